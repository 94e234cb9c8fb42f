// HTTP client on axios with Node's http: an instance and its agent for each pool.
'use strict';

const http = require('node:http');
const axios = require('axios');
const { talk, classOf } = require('./talk');

let agents = [];

function unsupported(setup) {
  return setup.pipelining > 1 ? 'axios does not pipeline' : null;
}

// An agent with a limit makes requests wait for a connection. The time-out of axios begins after
// that wait, and so does Node's time-out of the socket.
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
    // While requests wait, an agent with a limit reuses connections, unless this header forbids it.
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
