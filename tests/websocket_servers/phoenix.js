// A server that speaks what channels of Phoenix speak (serializer 2.0.0): Hex is no registry of ours.
const { WebSocketServer } = require("ws");

const path = "/socket/websocket";
const server = new WebSocketServer({ port: 0, host: "127.0.0.1", path });
server.on("connection", (socket) => {
  const topics = new Map();
  socket.on("message", (data) => {
    const [join, ref, topic, event] = JSON.parse(data);
    if (event === "phx_join") topics.set(topic, join);
    const known = topic === "phoenix" || topics.get(topic) === join;
    const payload = { status: known ? "ok" : "error", response: {} };
    socket.send(JSON.stringify([join, ref, topic, "phx_reply", payload]));
  });
});
server.on("listening", () => console.log(server.address().port));
