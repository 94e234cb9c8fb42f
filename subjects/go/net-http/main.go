// HTTP server on the standard library, with its router.
package main

import (
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const (
	plain = "Hello, World!"
	perf  = `{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}`

	// Brings the plain response to 192 bytes, see subjects/README.md.
	pad = ".................................................."

	waitMax = time.Minute
)

func answer(w http.ResponseWriter, contentType, body string) {
	header := w.Header()
	header.Set("Server", "net-http")
	header.Set("Content-Type", contentType)
	io.WriteString(w, body)
}

func plaintext(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Pad", pad)
	answer(w, "text/plain", plain)
}

func wait(w http.ResponseWriter, r *http.Request) {
	ms, err := strconv.ParseUint(r.PathValue("ms"), 10, 32)
	delay := time.Duration(ms) * time.Millisecond
	if err != nil || delay > waitMax {
		http.Error(w, "not a number of milliseconds up to a minute", http.StatusBadRequest)
		return
	}
	time.Sleep(delay)
	answer(w, "text/plain", "ok")
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

	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", plaintext)
	routes.HandleFunc("GET /perf", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "application/json", perf)
	})
	routes.HandleFunc("GET /wait/{ms}", wait)
	server := &http.Server{Addr: *listen, Handler: routes}
	log.Fatal(server.ListenAndServe())
}
