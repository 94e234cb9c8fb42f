// GETs with the standard library: a Client and its Transport for each pool, a goroutine for each
// request that is open at once.
package main

import (
	"io"
	"net/http"
)

func unsupported(setup Setup) string {
	if setup.Pipelining > 1 {
		return "net/http does not pipeline"
	}
	return ""
}

// A Transport with a limit makes requests wait for a connection; as many are kept as there may be.
func newClient(setup Setup) *http.Client {
	transport := &http.Transport{
		MaxConnsPerHost:     setup.PoolSize,
		MaxIdleConns:        setup.PoolSize,
		MaxIdleConnsPerHost: setup.PoolSize,
		DisableKeepAlives:   !setup.KeepAlive,
		DisableCompression:  true,
	}
	return &http.Client{Transport: transport, Timeout: setup.timeout()}
}

func get(client *http.Client, url string) string {
	response, err := client.Get(url)
	if err != nil {
		return classOf(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return classOf(err)
	}
	if response.StatusCode != http.StatusOK {
		return "status"
	}
	return ""
}

func prepare(setup Setup) func(worker int) request {
	clients := make([]*http.Client, setup.Pools)
	for pool := range clients {
		clients[pool] = newClient(setup)
	}
	return func(worker int) request {
		client := clients[worker%len(clients)]
		return func() string { return get(client, *setup.URL) }
	}
}

func main() {
	talk(unsupported, prepare)
}
