// What the API server calls for `kubectl exec`, and what tests call to make a Pod fail. Only clients
// with a certificate of the cluster are let in: commands run as root.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
	protocols "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/remotecommand"
	streaming "k8s.io/kubelet/pkg/cri/streaming/remotecommand"
)

const (
	idleTimeout    = 4 * time.Hour
	createTimeout  = 30 * time.Second
	leftOverOutput = time.Second // after the command's end, for output of what it left running
	signalled      = 128
)

func serve(port int, certFile, caFile string, pods *pods) error {
	caBytes, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(certFile, certFile)
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(caBytes)
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", pods.serveExec)
	mux.HandleFunc("POST /evict/{namespace}/{pod}", pods.serveFault(evicted))
	mux.HandleFunc("POST /oom/{namespace}/{pod}", pods.serveFault(oomKilled))
	server := http.Server{
		Addr: fmt.Sprintf("127.0.0.1:%d", port), Handler: mux,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{cert},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: clients,
		},
		// Streams of exec take over an HTTP/1.1 connection.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	return server.ListenAndServeTLS("", "")
}

func (p *pods) serveFault(fault fault) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		container := p.find(r.PathValue("namespace"), r.PathValue("pod"))
		if container == nil {
			http.Error(w, "no such Pod runs here", http.StatusNotFound)
			return
		}
		container.end(fault)
	}
}

func (p *pods) serveExec(w http.ResponseWriter, r *http.Request) {
	container := p.find(r.PathValue("namespace"), r.PathValue("pod"))
	if container == nil {
		name := r.PathValue("container")
		http.Error(w, fmt.Sprintf("container not found (%q)", name), http.StatusInternalServerError)
		return
	}
	options, err := streaming.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	streaming.ServeExec(w, r, container, r.PathValue("pod"), "", r.PathValue("container"),
		r.URL.Query()["command"], options, idleTimeout, createTimeout, protocols.SupportedStreamingProtocols)
}

// ExecInContainer runs a command in a Pod. As with containerd, a client that goes away ends the
// command's input, and does not kill it.
func (c *container) ExecInContainer(_ context.Context, _ string, _ types.UID, _ string, argv []string,
	in io.Reader, out, errOut io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	command, err := c.command(argv)
	if err != nil {
		return err
	}
	command.WaitDelay = leftOverOutput
	if out != nil {
		command.Stdout = out
	}
	if errOut != nil {
		command.Stderr = errOut
	}
	if in != nil {
		input, err := command.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			io.Copy(input, in)
			input.Close()
		}()
	}
	return exitError(command.Run())
}
