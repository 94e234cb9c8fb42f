// WebSocket echo and broadcast on faye-websocket with Node's http server, written as its
// documentation shows. A broadcast is a loop over a set of clients.
'use strict';

const http = require('node:http');
const WebSocket = require('faye-websocket');
const { openHub, run } = require('./hub.js');

const PATH = '/ws';
const BACKLOG = 4096;
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

function serve(host, port) {
  const clients = new Set();
  const broadcast = openHub((text) => {
    for (const client of clients) client.send(text);
    return clients.size;
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

  const server = http.createServer((request, response) => {
    response.writeHead(404);
    response.end();
  });
  server.on('upgrade', (request, socket, head) => {
    if (request.url !== PATH || !WebSocket.isWebSocket(request)) {
      socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const client = new WebSocket(request, socket, head, [], { maxLength: MESSAGE_BYTES_MAX });
    client.on('open', () => clients.add(client));
    client.on('message', (event) => {
      try {
        answer(client, event.data);
      } catch {
        client.close();
      }
    });
    client.on('close', () => clients.delete(client));
  });
  server.listen({ host, port, backlog: BACKLOG });
}

const [host, port, workers] = process.argv.slice(2);
run(Number(workers), () => serve(host, Number(port)));
