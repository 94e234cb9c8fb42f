// Echoes with permessage-deflate at /on, where short messages come back as they are, and without it
// at /off. At /refused the answer has a parameter that nobody offered.
const http = require("node:http");
const { WebSocketServer } = require("ws");

const sockets = {
  "/on": new WebSocketServer({ noServer: true, perMessageDeflate: { threshold: 64 } }),
  "/off": new WebSocketServer({ noServer: true }),
  "/refused": new WebSocketServer({ noServer: true }),
};
const answered = "permessage-deflate; server_no_context_takeover; client_max_window_bits=9";
sockets["/refused"].on("headers", (headers) => {
  headers.push(`Sec-WebSocket-Extensions: ${answered}`);
});
for (const each of Object.values(sockets)) {
  each.on("connection", (socket) => {
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
}
const server = http.createServer();
server.on("upgrade", (request, socket, head) => {
  const own = sockets[request.url];
  own.handleUpgrade(request, socket, head, (opened) => own.emit("connection", opened, request));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
