// HTTP client on fasthttp: a HostClient for each pool, in which requests wait for a connection,
// and a goroutine for each request that is open at once. With pipelining, it uses a
// PipelineClient for each pool.
package main

import (
	"errors"
	"io"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"
)

// The limit of the wait for a connection. It is so long that it never ends, because the wait is
// part of the latency.
const patience = time.Hour

type doer interface {
	DoTimeout(req *fasthttp.Request, resp *fasthttp.Response, timeout time.Duration) error
}

// Do instead of DoTimeout: DoTimeout would include the wait for a connection. The fields of
// HostClient limit the rest.
type pool struct{ client *fasthttp.HostClient }

func (p pool) DoTimeout(req *fasthttp.Request, resp *fasthttp.Response, _ time.Duration) error {
	return p.client.Do(req, resp)
}

func unsupported(setup Setup) string {
	if setup.Pipelining > 1 && !setup.KeepAlive {
		return "pipelining needs connections that are kept"
	}
	return ""
}

func newPool(setup Setup, host string) doer {
	if setup.Pipelining > 1 {
		return &fasthttp.PipelineClient{
			Addr:               host,
			MaxConns:           setup.PoolSize,
			MaxPendingRequests: setup.Pipelining,
			ReadTimeout:        setup.timeout(),
			WriteTimeout:       setup.timeout(),
		}
	}
	return pool{&fasthttp.HostClient{
		Addr:                      host,
		MaxConns:                  setup.PoolSize,
		MaxConnWaitTimeout:        patience,
		MaxIdleConnDuration:       patience,
		MaxIdemponentCallAttempts: 1, // no hidden retries
		ReadTimeout:               setup.timeout(),
		WriteTimeout:              setup.timeout(),
	}}
}

func class(err error) string {
	switch {
	case errors.Is(err, fasthttp.ErrTimeout), errors.Is(err, fasthttp.ErrDialTimeout):
		return "timeout.total"
	case errors.Is(err, fasthttp.ErrConnectionClosed), errors.Is(err, io.EOF):
		return "empty"
	}
	return classOf(err)
}

func prepare(setup Setup) func(worker int) request {
	target, err := url.Parse(*setup.URL)
	if err != nil {
		die("no setup: %v", err)
	}
	pools := make([]doer, setup.Pools)
	for each := range pools {
		pools[each] = newPool(setup, target.Host)
	}
	return func(worker int) request {
		client := pools[worker%len(pools)]
		return func() string { return get(client, setup) }
	}
}

func get(client doer, setup Setup) string {
	ask, answer := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(ask)
	defer fasthttp.ReleaseResponse(answer)
	ask.SetRequestURI(*setup.URL)
	if !setup.KeepAlive {
		ask.SetConnectionClose()
	}
	if err := client.DoTimeout(ask, answer, setup.timeout()); err != nil {
		return class(err)
	}
	if answer.StatusCode() != fasthttp.StatusOK {
		return "status"
	}
	return ""
}

func main() {
	talk(unsupported, prepare)
}
