// HTTP/2 server on Node's own http2 module. With more than one CPU, the cluster module starts one
// process per CPU.
'use strict';

const cluster = require('node:cluster');
const fs = require('node:fs');
const http2 = require('node:http2');

const BODIES = new Map([1024, 65536].map((size) => [`/bytes/${size}`, Buffer.alloc(size, 'x')]));

function answer(request, response) {
  const body = BODIES.get(request.url);
  const shown = body ?? Buffer.from('not found');
  response.writeHead(body === undefined ? 404 : 200, {
    server: 'node-http2',
    'content-type': 'text/plain',
    'content-length': shown.length,
  });
  response.end(shown);
}

function serve(scheme, host, port) {
  const server =
    scheme === 'https'
      ? http2.createSecureServer({ cert: fs.readFileSync('cert.pem'), key: fs.readFileSync('key.pem') }, answer)
      : http2.createServer(answer);
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

const [scheme, host, port, cpus] = process.argv.slice(2);
if (cluster.isPrimary && Number(cpus) > 1) lead(Number(cpus));
else serve(scheme, host, Number(port));
