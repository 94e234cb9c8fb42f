// TCP echo on Node's own net module: each socket is piped into itself. With more than one CPU,
// the cluster module starts one process per CPU.
'use strict';

const cluster = require('node:cluster');
const net = require('node:net');

function echo(socket) {
  socket.on('error', () => socket.destroy());
  socket.pipe(socket);
}

function serve(host, port) {
  // Half open: when the client ends its side, the remaining bytes are sent before our side ends.
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, echo);
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
