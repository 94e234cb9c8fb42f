// Broadcasts that reach the clients of every process. With one process a broadcast is delivered at once; with several, by
// Node's cluster module, it goes through the primary to all of them, and the number of clients comes back, summed up.
//
// A folder holds all that its subject is built from: this file is the same in javascript/ws, faye and uws.
'use strict';

const cluster = require('cluster');

// `deliver` sends a text to the clients of this process and returns their number. The result is a function of a text, and of
// what is to be done with the number of all clients once each process has delivered.
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

// The primary's part: what one worker says goes to all, and how many clients heard it goes back to that one.
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

// Starts the workers, and ends with them: one that ends by itself is a failure of the whole.
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

// Serves in this process, or in so many workers.
function run(workers, serve) {
  if (workers > 1 && cluster.isMaster) {
    lead(workers);
    return;
  }
  process.on('SIGTERM', () => process.exit(0));
  serve();
}

module.exports = { openHub, run };
