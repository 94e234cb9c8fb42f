// HTTP server on Express in production mode. With more than one CPU, Node's cluster module starts
// one process per CPU.
'use strict';

const cluster = require('node:cluster');
const http = require('node:http');
const express = require('express');

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
  process.on('SIGTERM', () => process.exit(0));
}

function lead(workers) {
  let ending = false;
  process.on('SIGTERM', () => {
    ending = true;
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGTERM');
  });
  cluster.on('exit', () => {
    if (!ending) process.exit(1);
    if (Object.keys(cluster.workers).length === 0) process.exit(0);
  });
  for (let i = 0; i < workers; i += 1) cluster.fork();
}

const [host, port, cpus] = process.argv.slice(2);
if (cluster.isPrimary && Number(cpus) > 1) lead(Number(cpus));
else serve(host, Number(port));
