// Starts a server in this process or, with more than one CPU, in one process per CPU by Node's
// cluster module. The command line is HOST PORT CPUS [MORE].
//
// This file must not know the protocol that is served. It lies in subjects/shared, and is copied
// into the build of each subject whose manifest names its folder.
'use strict';

const cluster = require('node:cluster');

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

// Calls serve(host, port, more) in each process that serves. SIGTERM ends it.
function start(serve) {
  const [host, port, cpus, more] = process.argv.slice(2);
  if (cluster.isPrimary && Number(cpus) > 1) {
    lead(Number(cpus));
    return;
  }
  process.on('SIGTERM', () => process.exit(0));
  serve(host, Number(port), more);
}

module.exports = { start };
