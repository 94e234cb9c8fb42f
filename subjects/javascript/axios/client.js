// GETs with axios on Node's http: an instance and its agent for each pool.
'use strict';

const http = require('node:http');
const axios = require('axios');
const { talk, classOf } = require('./talk');

let agents = [];

function unsupported(setup) {
  return setup.pipelining > 1 ? 'axios does not pipeline' : null;
}

// An agent with a limit makes requests wait for a connection; axios' time-out begins behind that wait,
// with Node's of the socket.
function newInstance(setup) {
  const agent = new http.Agent({
    keepAlive: setup.keep_alive,
    maxSockets: setup.pool_size,
    maxFreeSockets: setup.pool_size,
  });
  agents.push(agent);
  return axios.create({
    httpAgent: agent,
    timeout: setup.timeout_ms,
    transitional: { clarifyTimeoutError: true },
    maxRedirects: 0,
    validateStatus: null,
    responseType: 'text',
    proxy: false,
    // An agent with a limit uses a connection again while requests wait, unless it is told not to.
    headers: setup.keep_alive ? {} : { Connection: 'close' },
  });
}

function open(setup) {
  const instances = Array.from({ length: setup.pools }, () => newInstance(setup));
  return Array.from({ length: setup.concurrency }, (_, i) => () => get(instances[i % instances.length], setup.url));
}

async function get(instance, url) {
  try {
    const answer = await instance.get(url);
    return answer.status === 200 ? null : 'status';
  } catch (error) {
    return classOf(error);
  }
}

talk({ unsupported, open, close: async () => agents.forEach((agent) => agent.destroy()) });
