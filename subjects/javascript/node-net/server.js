// TCP echo on Node's own net module: each socket is piped into itself. With more than one CPU,
// the cluster module starts one process per CPU.
'use strict';

const net = require('node:net');
const { start } = require('./workers.js');

function echo(socket) {
  socket.on('error', () => socket.destroy());
  socket.pipe(socket);
}

function serve(host, port) {
  // Half open: when the client ends its side, the remaining bytes are sent before our side ends.
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, echo);
  server.listen({ host, port, backlog: 4096 });
}

start(serve);
