// HTTP client on undici: a Pool for each pool. A request that finds no connection waits in the
// Pool's queue. With the argument http2 it speaks HTTP/2 over TLS, chosen by ALPN, and accepts
// any certificate.
'use strict';

const { Pool } = require('undici');
const { talk, classOf } = require('./talk');

const HTTP2 = process.argv[2] === 'http2';

let pools = [];

function unsupported(setup) {
  return setup.pipelining > 1 && !setup.keep_alive ? 'pipelining needs connections that are kept' : null;
}

function open(setup) {
  const { origin, pathname } = new URL(setup.url);
  const options = {
    connections: setup.pool_size,
    pipelining: setup.pipelining,
    headersTimeout: setup.timeout_ms,
    bodyTimeout: setup.timeout_ms,
    allowH2: HTTP2,
    maxConcurrentStreams: setup.pipelining,
    connect: { timeout: setup.timeout_ms, rejectUnauthorized: !HTTP2 },
    keepAliveTimeout: 3_600_000,
    keepAliveMaxTimeout: 3_600_000,
  };
  pools = Array.from({ length: setup.pools }, () => new Pool(origin, options));
  const request = { path: pathname, method: 'GET', reset: !setup.keep_alive };
  return Array.from({ length: setup.concurrency }, (_, i) => () => get(pools[i % pools.length], request));
}

async function get(pool, request) {
  try {
    const { statusCode, body } = await pool.request(request);
    await body.arrayBuffer();
    return statusCode === 200 ? null : 'status';
  } catch (error) {
    return nameOf(error);
  }
}

function nameOf(error) {
  switch (error.code) {
    case 'UND_ERR_HEADERS_TIMEOUT': return 'timeout.first_byte';
    case 'UND_ERR_BODY_TIMEOUT': return 'timeout.total';
    case 'UND_ERR_CONNECT_TIMEOUT': return 'connect.timeout';
    case 'UND_ERR_SOCKET': return error.cause ? classOf(error) : 'empty';
    case 'ERR_HTTP2_STREAM_ERROR': return 'h2.stream';
    case 'ERR_HTTP2_GOAWAY_SESSION': return 'h2.goaway';
    default: return classOf(error);
  }
}

talk({ unsupported, open, close: () => Promise.all(pools.map((pool) => pool.close())) });
