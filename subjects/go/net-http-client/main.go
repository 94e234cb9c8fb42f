// HTTP client on the standard library: a Client and its Transport for each pool, a goroutine for
// each request that is open at once. With the argument http2 it speaks HTTP/2 in plain text.
//
// Over HTTP/2, the server decides how many streams a connection has; if it allows no more, the
// Transport opens another connection. A semaphore limits the open requests to what the setup
// says.
package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

var overHTTP2 = len(os.Args) > 1 && os.Args[1] == "http2"

func unsupported(setup Setup) string {
	if setup.Pipelining > 1 && !overHTTP2 {
		return "net/http does not pipeline"
	}
	return ""
}

// A Transport with MaxConnsPerHost makes requests wait for a connection. All its connections may
// be kept.
func newClient(setup Setup) *http.Client {
	transport := &http.Transport{
		MaxConnsPerHost:     setup.PoolSize,
		MaxIdleConns:        setup.PoolSize,
		MaxIdleConnsPerHost: setup.PoolSize,
		DisableKeepAlives:   !setup.KeepAlive,
		DisableCompression:  true,
	}
	if overHTTP2 {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Client{Transport: transport, Timeout: setup.timeout()}
}

// The library's HTTP/2 errors have no exported types, so they are recognised by their texts.
func class(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "stream error"):
		return "h2.stream"
	case strings.Contains(text, "GOAWAY"):
		return "h2.goaway"
	}
	return classOf(err)
}

func get(client *http.Client, url string) string {
	response, err := client.Get(url)
	if err != nil {
		return class(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return class(err)
	}
	if response.StatusCode != http.StatusOK {
		return "status"
	}
	return ""
}

func prepare(setup Setup) func(worker int) request {
	clients := make([]*http.Client, setup.Pools)
	rooms := make([]chan struct{}, setup.Pools)
	for pool := range clients {
		clients[pool] = newClient(setup)
		rooms[pool] = make(chan struct{}, setup.PoolSize*setup.Pipelining)
	}
	return func(worker int) request {
		client, room := clients[worker%len(clients)], rooms[worker%len(clients)]
		if !overHTTP2 {
			return func() string { return get(client, *setup.URL) }
		}
		return func() string {
			room <- struct{}{}
			defer func() { <-room }()
			return get(client, *setup.URL)
		}
	}
}

func main() {
	talk(unsupported, prepare)
}
