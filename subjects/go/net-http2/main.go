// HTTP/2 server on the standard library: by prior knowledge in plain text, by ALPN over TLS.
package main

import (
	"bytes"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
)

// Content-Length is set here, because the library sets it for short answers only.
func filled(size int) http.HandlerFunc {
	body, length := bytes.Repeat([]byte("x"), size), strconv.Itoa(size)
	return func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Server", "net-http")
		header.Set("Content-Type", "text/plain")
		header.Set("Content-Length", length)
		w.Write(body)
	}
}

func exitOnSignal() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
	os.Exit(0)
}

func main() {
	scheme := flag.String("scheme", "http", "http or https")
	listen := flag.String("listen", "127.0.0.1:8080", "address and port")
	cpus := flag.Int("cpus", 1, "CPUs to use")
	flag.Parse()
	runtime.GOMAXPROCS(*cpus)
	go exitOnSignal()

	routes := http.NewServeMux()
	routes.HandleFunc("GET /bytes/1024", filled(1024))
	routes.HandleFunc("GET /bytes/65536", filled(65536))
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Addr: *listen, Handler: routes, Protocols: protocols}
	if *scheme == "https" {
		log.Fatal(server.ListenAndServeTLS("cert.pem", "key.pem"))
	}
	log.Fatal(server.ListenAndServe())
}
