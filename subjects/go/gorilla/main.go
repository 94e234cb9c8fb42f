// WebSocket echo and broadcast on gorilla/websocket, structured like its chat example. A hub owns
// the clients. Each client has a goroutine that reads, and one that writes what the hub has put
// into its channel.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// The values of the example, except messageBytes.
const (
	path          = "/ws"
	writeWait     = 10 * time.Second
	pongWait      = 60 * time.Second
	pingPeriod    = pongWait * 9 / 10
	queueMessages = 256
	messageBytes  = 16 << 20
)

var upgrader = websocket.Upgrader{ReadBufferSize: 1024, WriteBufferSize: 1024}

type message struct {
	Type          string          `json:"type"`
	Payload       json.RawMessage `json:"payload"`
	ListenerCount *int            `json:"listenerCount,omitempty"`
}

// prepare encodes a message once for all clients.
func prepare(m message) *websocket.PreparedMessage {
	text, err := json.Marshal(m)
	if err != nil {
		log.Fatal(err) // what was decoded can be encoded
	}
	prepared, err := websocket.NewPreparedMessage(websocket.TextMessage, text)
	if err != nil {
		log.Fatal(err)
	}
	return prepared
}

type client struct {
	hub        *hub
	connection *websocket.Conn
	queue      chan *websocket.PreparedMessage
}

func (c *client) read() {
	defer func() {
		c.hub.leave <- c
		c.connection.Close()
	}()
	c.connection.SetReadLimit(messageBytes)
	c.connection.SetReadDeadline(time.Now().Add(pongWait))
	c.connection.SetPongHandler(func(string) error {
		return c.connection.SetReadDeadline(time.Now().Add(pongWait))
	})
	for {
		var m message
		if err := c.connection.ReadJSON(&m); err != nil {
			return
		}
		switch m.Type {
		case "echo":
			c.hub.echo <- letter{c, prepare(m), nil}
		case "broadcast":
			c.hub.broadcast <- letter{c, prepare(m), m.Payload}
		}
	}
}

func (c *client) write() {
	ticker := time.NewTicker(pingPeriod)
	defer func() {
		ticker.Stop()
		c.connection.Close()
	}()
	for {
		select {
		case prepared, open := <-c.queue:
			c.connection.SetWriteDeadline(time.Now().Add(writeWait))
			if !open {
				c.connection.WriteMessage(websocket.CloseMessage, []byte{})
				return
			}
			if err := c.connection.WritePreparedMessage(prepared); err != nil {
				return
			}
		case <-ticker.C:
			c.connection.SetWriteDeadline(time.Now().Add(writeWait))
			if err := c.connection.WriteMessage(websocket.PingMessage, nil); err != nil {
				return
			}
		}
	}
}

// letter is a message that a client has sent, encoded for its receivers.
type letter struct {
	sender   *client
	prepared *websocket.PreparedMessage
	payload  json.RawMessage
}

// hub owns the clients. It sends through the clients' channels, which keep the order.
type hub struct {
	clients   map[*client]bool
	enter     chan *client
	leave     chan *client
	echo      chan letter
	broadcast chan letter
}

func newHub() *hub {
	return &hub{
		clients:   make(map[*client]bool),
		enter:     make(chan *client),
		leave:     make(chan *client),
		echo:      make(chan letter),
		broadcast: make(chan letter),
	}
}

func (h *hub) run() {
	for {
		select {
		case c := <-h.enter:
			h.clients[c] = true
		case c := <-h.leave:
			h.remove(c)
		case l := <-h.echo:
			h.send(l.sender, l.prepared)
		case l := <-h.broadcast:
			h.sendToAll(l)
		}
	}
}

func (h *hub) sendToAll(l letter) {
	count := 0
	for c := range h.clients {
		if h.send(c, l.prepared) {
			count++
		}
	}
	h.send(l.sender, prepare(message{"broadcastResult", l.payload, &count}))
}

// send puts a message into a client's channel. If the channel is full, the client is too slow and is disconnected.
func (h *hub) send(c *client, prepared *websocket.PreparedMessage) bool {
	if !h.clients[c] {
		return false
	}
	select {
	case c.queue <- prepared:
		return true
	default:
		h.remove(c)
		return false
	}
}

func (h *hub) remove(c *client) {
	if h.clients[c] {
		delete(h.clients, c)
		close(c.queue)
	}
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	connection, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &client{h, connection, make(chan *websocket.PreparedMessage, queueMessages)}
	h.enter <- c
	go c.write()
	go c.read()
}

func exitOnSignal() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
	os.Exit(0)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address and port")
	cpus := flag.Int("cpus", 1, "CPUs to use")
	flag.Parse()
	runtime.GOMAXPROCS(*cpus)
	go exitOnSignal()

	h := newHub()
	go h.run()
	http.HandleFunc(path, h.serve)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, nil))
}
