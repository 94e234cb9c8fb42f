// WebSocket echo and broadcast on the package ws, written as its documentation shows: its own
// server, and a broadcast that loops over its set of clients.
'use strict';

const { WebSocket, WebSocketServer } = require('ws');
const { openHub, run } = require('./hub.js');

const PATH = '/ws';
const BACKLOG = 4096;
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

function serve(host, port) {
  const server = new WebSocketServer({ host, port, path: PATH, backlog: BACKLOG, maxPayload: MESSAGE_BYTES_MAX });
  const broadcast = openHub((text) => {
    // Encoded once for all.
    const data = Buffer.from(text);
    let count = 0;
    for (const client of server.clients) {
      if (client.readyState !== WebSocket.OPEN) continue;
      client.send(data, { binary: false });
      count += 1;
    }
    return count;
  });

  function answer(client, data) {
    const { type, payload } = JSON.parse(data);
    if (type === 'echo') {
      client.send(JSON.stringify({ type, payload }));
    } else if (type === 'broadcast') {
      broadcast(JSON.stringify({ type, payload }), (listenerCount) => {
        client.send(JSON.stringify({ type: 'broadcastResult', payload, listenerCount }));
      });
    }
  }

  server.on('connection', (client) => {
    client.on('error', () => client.terminate());
    client.on('message', (data) => {
      try {
        answer(client, data);
      } catch {
        client.close(1007);
      }
    });
  });
}

const [host, port, workers] = process.argv.slice(2);
run(Number(workers), () => serve(host, Number(port)));
