// The protocol between trueload and a client in JavaScript, and the loops that perform the
// requests of an order. This file must not use an HTTP library. It lies in subjects/shared, and
// is copied into the build of each subject whose manifest names its folder.
'use strict';

const readline = require('node:readline');

const KINDS = {
  url: 'string', concurrency: 'number', pools: 'number', pool_size: 'number',
  timeout_ms: 'number', pipelining: 'number', keep_alive: 'boolean',
};

function say(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

function die(why) {
  process.stderr.write(why + '\n');
  process.exit(1);
}

function parse(line) {
  let setup;
  try {
    setup = JSON.parse(line);
  } catch (error) {
    die(`no setup: ${error.message}`);
  }
  for (const [name, kind] of Object.entries(KINDS)) {
    if (setup === null || typeof setup[name] !== kind) die(`no setup: ${name} is no ${kind}`);
  }
  return setup;
}

// Runs a loop for each request that is open at once. Each loop performs requests until none of
// the order is left. A request returns null if it was answered, else its failure class.
async function perform(requests, number) {
  const latencies = [];
  const failed = {};
  let left = number;
  const begun = process.hrtime.bigint();
  await Promise.all(requests.map(async (request) => {
    while (left-- > 0) {
      const sent = process.hrtime.bigint();
      const name = await request();
      if (name === null) latencies.push(Number(process.hrtime.bigint() - sent) / 1e3);
      else failed[name] = (failed[name] || 0) + 1;
    }
  }));
  const elapsed = Number(process.hrtime.bigint() - begun) / 1e9;
  return { ok: latencies.length, failed, elapsed_s: elapsed, latency_us: figures(latencies) };
}

function figures(latencies) {
  if (latencies.length === 0) return null;
  const sorted = Float64Array.from(latencies).sort();
  const at = (share) => sorted[Math.ceil(share * sorted.length) - 1];
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}

// Reads the setup and performs the orders. `client` has three methods. unsupported(setup) returns
// a reason or null, open(setup) returns the request of each loop, and close() ends the client.
async function talk(client) {
  let requests = null;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (requests === null) {
      const setup = parse(line);
      const why = client.unsupported(setup);
      if (why !== null) {
        say({ unsupported: why });
        return;
      }
      requests = client.open(setup);
      say({ ready: true });
      continue;
    }
    const order = /^go (\d+)$/.exec(line.trim());
    if (order === null) die(`no order: ${line.slice(0, 80)}`);
    say(await perform(requests, Number(order[1])));
  }
  await client.close();
}

const CLASSES = {
  ECONNREFUSED: 'connect.refused', ECONNRESET: 'reset', EPIPE: 'reset', ETIMEDOUT: 'timeout.total',
  EMFILE: 'local.fds', EADDRNOTAVAIL: 'local.ports',
};

// Returns the failure class of an error, according to its chain of causes.
function classOf(error) {
  for (let at = error; at; at = at.cause) {
    if (CLASSES[at.code]) return CLASSES[at.code];
  }
  return 'other';
}

module.exports = { talk, classOf };
