// HTTP server on Fastify without its logger. With more than one CPU, Node's cluster module starts
// one process per CPU.
'use strict';

const fastify = require('fastify');
const { start } = require('./workers.js');

// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD = '..................';

// Fastify generates a serialiser from this schema, as its documentation recommends.
const JSON_SCHEMA = {
  response: { 200: { type: 'object', properties: { message: { type: 'string' } } } },
};

async function serve(host, port) {
  // An idle connection is kept for an hour. (Fastify takes 0 for its default of 72 s.)
  const app = fastify({ keepAliveTimeout: 3_600_000, http: { headersTimeout: 0 } });
  app.get('/', (request, reply) => {
    reply.header('X-Pad', PAD).type('text/plain').send('Hello, World!');
  });
  app.get('/json', { schema: JSON_SCHEMA }, (request, reply) => {
    reply.send({ message: 'Hello, World!' });
  });
  await app.listen({ host, port, backlog: 4096 });
}

start(serve);
