// HTTP server on Hono, with its adapter for Node. With more than one CPU, Node's cluster module
// starts one process per CPU.
'use strict';

const cluster = require('node:cluster');
const { createAdaptorServer } = require('@hono/node-server');
const { Hono } = require('hono');

// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD = '.............................';

function serve(host, port) {
  const app = new Hono();
  app.get('/', (c) => c.text('Hello, World!', 200, { 'X-Pad': PAD }));
  app.get('/json', (c) => c.json({ message: 'Hello, World!' }));
  const server = createAdaptorServer({
    fetch: app.fetch,
    // A connection ends when the client says so: without these, an idle one ends after seconds.
    serverOptions: { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 },
  });
  // Replaces the adapter's serve(), which has no option for the backlog.
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
