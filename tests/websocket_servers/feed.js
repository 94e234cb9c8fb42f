// A feed: what one client writes goes to all.
const { WebSocketServer } = require("ws");

const server = new WebSocketServer({ port: 0, host: "127.0.0.1", path: "/feed" });
server.on("connection", (socket) => {
  socket.on("message", (data) => {
    for (const each of server.clients) each.send(data.toString());
  });
});
server.on("listening", () => console.log(server.address().port));
