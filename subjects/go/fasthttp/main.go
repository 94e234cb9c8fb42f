// HTTP server on fasthttp, with a handler that switches on the path, as in its documentation.
package main

import (
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	plain = "Hello, World!"
	perf  = `{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}`

	// Brings the plain response to 192 bytes, see subjects/README.md.
	pad = ".................................................."

	waitMax = time.Minute
)

func answer(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	switch {
	case path == "/":
		ctx.SetContentType("text/plain")
		ctx.Response.Header.Set("X-Pad", pad)
		ctx.SetBodyString(plain)
	case path == "/perf":
		ctx.SetContentType("application/json")
		ctx.SetBodyString(perf)
	case strings.HasPrefix(path, "/wait/"):
		wait(ctx, strings.TrimPrefix(path, "/wait/"))
	default:
		ctx.Error("not found", fasthttp.StatusNotFound)
	}
}

func wait(ctx *fasthttp.RequestCtx, text string) {
	ms, err := strconv.ParseUint(text, 10, 32)
	delay := time.Duration(ms) * time.Millisecond
	if err != nil || delay > waitMax {
		ctx.Error("not a number of milliseconds up to a minute", fasthttp.StatusBadRequest)
		return
	}
	time.Sleep(delay)
	ctx.SetContentType("text/plain")
	ctx.SetBodyString("ok")
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

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	server := &fasthttp.Server{Name: "fasthttp", Handler: answer}
	log.Fatal(server.Serve(listener))
}
