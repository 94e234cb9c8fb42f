// A server of Socket.IO that sends each message back.
const { createServer } = require("node:http");
const { Server } = require("socket.io");

const http = createServer();
new Server(http).on("connection", (socket) => {
  socket.on("echo", (...words) => socket.emit("echo", ...words));
});
http.listen(0, "127.0.0.1", () => console.log(http.address().port));
