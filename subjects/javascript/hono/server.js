// HTTP server on Hono, with its adapter for Node. With more than one CPU, Node's cluster module
// starts one process per CPU.
'use strict';

const { createAdaptorServer } = require('@hono/node-server');
const { Hono } = require('hono');
const { start } = require('./workers.js');

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
}

start(serve);
