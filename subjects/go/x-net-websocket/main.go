// WebSocket echo and broadcast on golang.org/x/net/websocket. Each client has a goroutine, which
// reads its connection as a stream. It writes a broadcast to all clients itself.
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/websocket"
)

const (
	path         = "/ws"
	writeWait    = 10 * time.Second
	messageBytes = 16 << 20
)

// room holds the connections of all clients.
type room struct {
	mutex       sync.RWMutex
	connections map[*websocket.Conn]struct{}
}

func (r *room) enter(connection *websocket.Conn) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.connections[connection] = struct{}{}
}

func (r *room) leave(connection *websocket.Conn) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.connections, connection)
}

// broadcast writes a text (string) or binary message ([]byte) to all clients, one after the
// other, and returns their number.
func (r *room) broadcast(message any) int {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	for connection := range r.connections {
		send(connection, message)
	}
	return len(r.connections)
}

// send waits for a slow client, but at most writeWait. If it fails, it closes the connection; the
// client's own goroutine then removes the client from the room.
func send(connection *websocket.Conn, message any) {
	connection.SetWriteDeadline(time.Now().Add(writeWait))
	if err := websocket.Message.Send(connection, message); err != nil {
		connection.Close()
	}
}

type message struct {
	Type          string          `json:"type"`
	Payload       json.RawMessage `json:"payload"`
	ListenerCount *int            `json:"listenerCount,omitempty"`
}

func encode(m message) string {
	text, err := json.Marshal(m)
	if err != nil {
		log.Fatal(err) // what was decoded can be encoded
	}
	return string(text)
}

// talkJSON reads JSON values, not frames, because the package returns each fragment of a message
// as a message.
func (r *room) talkJSON(connection *websocket.Conn) {
	// The package does not close the connection when the client sends a close frame.
	defer connection.Close()
	r.enter(connection)
	defer r.leave(connection)
	decoder := json.NewDecoder(connection)
	for {
		var m message
		if err := decoder.Decode(&m); err != nil {
			return
		}
		switch m.Type {
		case "echo":
			send(connection, encode(m))
		case "broadcast":
			count := r.broadcast(encode(m))
			send(connection, encode(message{"broadcastResult", m.Payload, &count}))
		}
	}
}

// talkBinary reads a type byte, a length and a payload, also over fragments.
func (r *room) talkBinary(connection *websocket.Conn) {
	defer connection.Close()
	r.enter(connection)
	defer r.leave(connection)
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(connection, head); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head[1:])
		if size > messageBytes {
			return
		}
		whole := make([]byte, 5+size)
		copy(whole, head)
		if _, err := io.ReadFull(connection, whole[5:]); err != nil {
			return
		}
		switch head[0] {
		case 'e':
			send(connection, whole)
		case 'b':
			r.broadcast(whole)
			whole[0] = 'r'
			send(connection, whole)
		}
	}
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
	isBinary := flag.Bool("binary", false, "the binary dialect")
	flag.Parse()
	runtime.GOMAXPROCS(*cpus)
	go exitOnSignal()

	r := &room{connections: make(map[*websocket.Conn]struct{})}
	talk := r.talkJSON
	if *isBinary {
		talk = r.talkBinary
	}
	// A Server, because a Handler alone would refuse clients that send no Origin, as non-browsers
	// do.
	http.Handle(path, websocket.Server{Handler: talk})
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, nil))
}
