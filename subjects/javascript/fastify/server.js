// HTTP server on Fastify without its logger. With more than one CPU, Node's cluster module starts
// one process per CPU.
'use strict';

const cluster = require('node:cluster');
const fastify = require('fastify');

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
  process.on('SIGTERM', () => process.exit(0));
  await app.listen({ host, port, backlog: 4096 });
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
