// The protocol between trueload and a client in Go, and the goroutines that perform the requests
// of an order. This file must not use an HTTP library. It lies in subjects/shared, and is copied
// into the build of each subject whose manifest names its folder.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Setup is the first line: Concurrency requests at once, over Pools client objects with PoolSize
// connections each.
type Setup struct {
	URL         *string `json:"url"`
	Concurrency int     `json:"concurrency"`
	Pools       int     `json:"pools"`
	PoolSize    int     `json:"pool_size"`
	TimeoutMs   int     `json:"timeout_ms"`
	Pipelining  int     `json:"pipelining"`
	KeepAlive   bool    `json:"keep_alive"`
}

func (s Setup) timeout() time.Duration {
	return time.Duration(s.TimeoutMs) * time.Millisecond
}

// A request is called by a goroutine. It returns "" if it was answered, else the failure class.
type request func() (class string)

type tally struct {
	latencies []time.Duration
	failed    map[string]int
}

type latencyUs struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

type claim struct {
	Ok        int            `json:"ok"`
	Failed    map[string]int `json:"failed"`
	ElapsedS  float64        `json:"elapsed_s"`
	LatencyUs *latencyUs     `json:"latency_us"`
}

func die(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func say(line any) {
	data, err := json.Marshal(line)
	if err != nil {
		die("%v", err)
	}
	fmt.Println(string(data))
}

// Talk reads the setup and performs the orders. The function that prepare returns makes the
// request of each goroutine.
func talk(unsupported func(Setup) string, prepare func(Setup) func(worker int) request) {
	input := bufio.NewReader(os.Stdin)
	line, _ := input.ReadString('\n')
	var setup Setup
	decoder := json.NewDecoder(bytes.NewReader([]byte(line)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&setup); err != nil {
		die("no setup: %v", err)
	}
	if setup.URL == nil || setup.Concurrency < 1 || setup.Pools < 1 || setup.PoolSize < 1 {
		die("no setup: url, concurrency, pools and pool_size are needed")
	}
	if why := unsupported(setup); why != "" {
		say(map[string]string{"unsupported": why})
		return
	}
	requestOf := prepare(setup)
	requests := make([]request, setup.Concurrency)
	for worker := range requests {
		requests[worker] = requestOf(worker)
	}
	say(map[string]bool{"ready": true})
	for {
		line, err := input.ReadString('\n')
		if err == io.EOF && line == "" {
			return
		}
		number, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "go "))
		if err != nil || number < 0 {
			die("no order: %.80q", line)
		}
		say(perform(requests, int64(number)))
	}
}

// Perform starts a goroutine for each request that is open at once. Each goroutine performs
// requests until none of the order is left.
func perform(requests []request, number int64) claim {
	var taken atomic.Int64
	var workers sync.WaitGroup
	tallies := make([]tally, len(requests))
	begun := time.Now()
	for worker, ask := range requests {
		workers.Add(1)
		go func() {
			defer workers.Done()
			mine := tally{failed: map[string]int{}}
			for taken.Add(1) <= number {
				sent := time.Now()
				if class := ask(); class == "" {
					mine.latencies = append(mine.latencies, time.Since(sent))
				} else {
					mine.failed[class]++
				}
			}
			tallies[worker] = mine
		}()
	}
	workers.Wait()
	return sum(tallies, time.Since(begun))
}

func sum(tallies []tally, elapsed time.Duration) claim {
	var all []time.Duration
	failed := map[string]int{}
	for _, each := range tallies {
		all = append(all, each.latencies...)
		for class, count := range each.failed {
			failed[class] += count
		}
	}
	made := claim{Ok: len(all), Failed: failed, ElapsedS: elapsed.Seconds()}
	if len(all) == 0 {
		return made
	}
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	at := func(share float64) float64 {
		rank := int(math.Ceil(share * float64(len(all))))
		return float64(all[rank-1].Nanoseconds()) / 1e3
	}
	made.LatencyUs = &latencyUs{at(0.5), at(0.9), at(0.99), at(1)}
	return made
}

// ClassOf returns the failure class of an error, according to the errors that it wraps.
func classOf(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connect.refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "local.ports"
	case errors.Is(err, syscall.EMFILE):
		return "local.fds"
	case errors.As(err, &network) && network.Timeout():
		return "timeout.total"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "empty"
	}
	return "other"
}
