// A chat: who joins a room is told an id, and hears what is said there.
const { WebSocketServer } = require("ws");
const { randomUUID } = require("node:crypto");

const rooms = new Map();
const server = new WebSocketServer({ port: 0, host: "127.0.0.1", path: "/chat" });
server.on("connection", (socket) => {
  let room;
  socket.on("message", (data) => {
    const message = JSON.parse(data);
    if (message.type === "join") {
      room = rooms.get(message.room) ?? new Set();
      rooms.set(message.room, room.add(socket));
      socket.send(JSON.stringify({ type: "joined", id: randomUUID() }));
    } else if (message.type === "say") {
      for (const each of room) each.send(JSON.stringify({ ...message, type: "said" }));
    } else {
      room.delete(socket);
    }
  });
  socket.on("close", () => room?.delete(socket));
});
server.on("listening", () => console.log(server.address().port));
