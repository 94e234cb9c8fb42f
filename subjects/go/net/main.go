// TCP echo with the standard library: a goroutine for each connection, which reads and writes in turn.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const (
	readBytes = 16 * 1024

	// The pause after a failed accept, mostly because no descriptor was free.
	acceptPause = 10 * time.Millisecond
)

// echo returns when the client ends its side; this ends our side after the last byte.
func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, readBytes)
	for {
		n, err := connection.Read(buffer)
		if n > 0 {
			if _, err := connection.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// splice leaves the copying to io.Copy, which on Linux moves the bytes inside the kernel.
func splice(connection net.Conn) {
	defer connection.Close()
	io.Copy(connection, connection)
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
	spliced := flag.Bool("splice", false, "copy inside the kernel")
	flag.Parse()
	runtime.GOMAXPROCS(*cpus)
	go exitOnSignal()

	serve := echo
	if *spliced {
		serve = splice
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		go serve(connection)
	}
}
