// HTTP/2 server on Node's own http2 module. With more than one CPU, the cluster module starts one
// process per CPU.
'use strict';

const fs = require('node:fs');
const http2 = require('node:http2');
const { start } = require('./workers.js');

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

function serve(host, port, scheme) {
  const server =
    scheme === 'https'
      ? http2.createSecureServer({ cert: fs.readFileSync('cert.pem'), key: fs.readFileSync('key.pem') }, answer)
      : http2.createServer(answer);
  server.listen({ host, port, backlog: 4096 });
}

start(serve);
