// HTTP server on Express in production mode. With more than one CPU, Node's cluster module starts
// one process per CPU.
'use strict';

const http = require('node:http');
const express = require('express');
const { start } = require('./workers.js');

function serve(host, port) {
  const app = express();
  app.disable('x-powered-by');
  app.get('/', (request, response) => {
    // No X-Pad: with its ETag, the response has 195 bytes, see subjects/README.md.
    response.type('text/plain').send('Hello, World!');
  });
  app.get('/json', (request, response) => {
    response.json({ message: 'Hello, World!' });
  });
  // A connection ends when the client says so: without these, an idle one ends after seconds.
  const server = http.createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 }, app);
  server.listen({ host, port, backlog: 4096 });
}

start(serve);
