// HTTP server on Node's own http module. With more than one CPU, the cluster module starts one
// process per CPU.
'use strict';

const http = require('node:http');
const { start } = require('./workers.js');

const PLAIN = Buffer.from('Hello, World!');
const PERF = Buffer.from(
  '{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}',
);
const WAIT_MS_MAX = 60_000;

// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD = '.........................';

function send(response, status, type, body, more) {
  response.writeHead(status, {
    Server: 'node-http',
    'Content-Type': type,
    'Content-Length': body.length,
    ...more,
  });
  response.end(body);
}

function wait(text, response) {
  const ms = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!(ms <= WAIT_MS_MAX)) {
    send(response, 400, 'text/plain', 'not a number of milliseconds up to a minute');
    return;
  }
  const end = performance.now() + ms;
  // Timers count whole milliseconds from the start of an iteration of the event loop. So a timer
  // may fire early, and is then set again.
  const tick = () => {
    if (performance.now() < end) setTimeout(tick, 1);
    else send(response, 200, 'text/plain', 'ok');
  };
  setTimeout(tick, ms);
}

function answer(request, response) {
  const { url } = request;
  if (url === '/') send(response, 200, 'text/plain', PLAIN, { 'X-Pad': PAD });
  else if (url === '/perf') send(response, 200, 'application/json', PERF);
  else if (url.startsWith('/wait/')) wait(url.slice('/wait/'.length), response);
  else send(response, 404, 'text/plain', 'not found');
}

function serve(host, port) {
  // A connection ends when the client says so: without these, an idle one ends after seconds.
  const server = http.createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 }, answer);
  server.listen({ host, port, backlog: 4096 });
}

start(serve);
