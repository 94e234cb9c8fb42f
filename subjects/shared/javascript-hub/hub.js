// Delivers broadcasts to the clients of all processes. With one process, a broadcast is delivered
// at once. With several, it goes through the primary of Node's cluster module to all of them.
// Each reports its number of clients, and the primary returns the sum to the sender's process.
//
// This file lies in subjects/shared, and is copied into the build of each subject whose manifest
// names its folder.
'use strict';

const cluster = require('cluster');

// `deliver` sends a text to the clients of this process and returns their number. The result is a
// function (text, done). It calls `done` with the number of all clients once each process has
// delivered.
function openHub(deliver) {
  if (!cluster.isWorker) return (text, done) => done(deliver(text));
  const waiting = new Map();
  let last = 0;
  process.on('message', (message) => {
    if (message.text !== undefined) {
      process.send({ key: message.key, count: deliver(message.text) });
      return;
    }
    const done = waiting.get(message.id);
    waiting.delete(message.id);
    done(message.count);
  });
  return (text, done) => {
    last += 1;
    waiting.set(last, done);
    process.send({ id: last, text });
  };
}

// The primary's part: it passes the text of a worker to all workers, adds up their numbers of
// clients, and returns the sum to that worker.
function relay() {
  const pending = new Map();
  cluster.on('message', (worker, message) => {
    if (message.text !== undefined) {
      const key = `${worker.id}.${message.id}`;
      const workers = Object.values(cluster.workers);
      pending.set(key, { worker, id: message.id, left: workers.length, count: 0 });
      for (const each of workers) each.send({ key, text: message.text });
      return;
    }
    const broadcast = pending.get(message.key);
    broadcast.left -= 1;
    broadcast.count += message.count;
    if (broadcast.left > 0) return;
    pending.delete(message.key);
    broadcast.worker.send({ id: broadcast.id, count: broadcast.count });
  });
}

// Starts the workers, and ends with them. If a worker ends unasked, the whole program fails.
function lead(workers) {
  let ending = false;
  relay();
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

// Serves in this process, or in `workers` processes.
function run(workers, serve) {
  if (workers > 1 && cluster.isMaster) {
    lead(workers);
    return;
  }
  process.on('SIGTERM', () => process.exit(0));
  serve();
}

module.exports = { openHub, run };
