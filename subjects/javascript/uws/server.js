// WebSocket echo and broadcast on uws, with the version of Node that it was built for. It uses
// the library's own server on Node's http, and its own broadcast, which frames a text once for
// all clients of the process.
'use strict';

const http = require('http');
const WebSocket = require('uws');
const { openHub, run } = require('./hub.js');

const PATH = '/ws';
const BACKLOG = 4096;
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

function serve(host, port) {
  const web = http.createServer((request, response) => {
    response.writeHead(404);
    response.end();
  });
  const server = new WebSocket.Server({ server: web, path: PATH, maxPayload: MESSAGE_BYTES_MAX });
  const broadcast = openHub((text) => {
    server.broadcast(text);
    return server.clients.length;
  });

  function answer(client, text) {
    const { type, payload } = JSON.parse(text);
    if (type === 'echo') {
      client.send(JSON.stringify({ type, payload }));
    } else if (type === 'broadcast') {
      broadcast(JSON.stringify({ type, payload }), (listenerCount) => {
        client.send(JSON.stringify({ type: 'broadcastResult', payload, listenerCount }));
      });
    }
  }

  server.on('connection', (client) => {
    client.on('message', (text) => {
      try {
        answer(client, text);
      } catch (error) {
        client.close(1007);
      }
    });
  });
  web.listen({ host, port, backlog: BACKLOG });
}

const [host, port, workers] = process.argv.slice(2);
run(Number(workers), () => serve(host, Number(port)));
