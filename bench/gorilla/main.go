// A client of broadcasts as the published method has it: a goroutine for each connection, which reads whole messages
// and decodes their JSON.
//
// gorilla PORT CLIENTS MESSAGES PADDING CONCURRENT: as bare_receive, with CONCURRENT messages in flight, each
// until its receipt; the end is reached when every client has had every message.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

type payload struct {
	Sender   uint32 `json:"sender"`
	Sequence uint32 `json:"sequence"`
	Padding  string `json:"padding"`
}

type message struct {
	Type          string  `json:"type"`
	Payload       payload `json:"payload"`
	ListenerCount int     `json:"listenerCount,omitempty"`
}

var (
	delivered atomic.Int64
	receipts  = make(chan time.Duration, 1024)
	sentAt    atomic.Pointer[[]time.Time]
)

func receive(conn *websocket.Conn) {
	for {
		var heard message
		_, bytes, err := conn.ReadMessage()
		if err != nil {
			return
		}
		if err := json.Unmarshal(bytes, &heard); err != nil {
			log.Fatal(err)
		}
		switch heard.Type {
		case "broadcast":
			delivered.Add(1)
		case "broadcastResult":
			receipts <- time.Since((*sentAt.Load())[heard.Payload.Sequence])
		}
	}
}

func cpu() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		log.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func number(at int) int {
	value, err := strconv.Atoi(os.Args[at])
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	if len(os.Args) != 6 {
		log.Fatal("gorilla PORT CLIENTS MESSAGES PADDING CONCURRENT")
	}
	clients, messages, concurrent := number(2), number(3), number(5)
	padding := strings.Repeat("x", number(4))
	times := make([]time.Time, messages)
	sentAt.Store(&times)
	conns := make([]*websocket.Conn, clients)
	for at := range conns {
		conn, _, err := websocket.DefaultDialer.Dial("ws://127.0.0.1:"+os.Args[1]+"/ws", nil)
		if err != nil {
			log.Fatal(err)
		}
		conns[at] = conn
		go receive(conn)
	}
	began, before := time.Now(), cpu()
	next := 0
	send := func() {
		if next < messages {
			times[next] = time.Now()
			sent := message{"broadcast", payload{uint32(next % clients), uint32(next), padding}, 0}
			if err := conns[next%clients].WriteJSON(sent); err != nil {
				log.Fatal(err)
			}
			next++
		}
	}
	for at := 0; at < concurrent; at++ {
		send()
	}
	for at := 0; at < messages; at++ {
		<-receipts
		send()
	}
	all := int64(clients * messages)
	for delivered.Load() < all {
		time.Sleep(time.Millisecond)
	}
	used, wall := cpu()-before, time.Since(began)
	fmt.Printf("{\"deliveries\": %d, \"cpu_ns\": %d, \"wall_ns\": %d}\n", all, used, wall)
}
