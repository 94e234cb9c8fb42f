// A node of the test cluster: it does what a kubelet does for Pods, with namespaces of this machine
// for containers. It registers a node, keeps its lease, runs each Pod's command, serves `kubectl
// exec`, and tells the API server how a Pod ended.
//
// Pods see this machine's files; what they write is their own. All volumes are empty folders.
// An image is only a name: one with "missing" in it cannot be pulled, the pull of one with "slow" in
// it never ends, and one with "without-sh" has no sh.
// Each Pod gets one of the given hosts: the pid of a process whose network and processes it joins.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type host struct {
	pid     string
	address string
}

func main() {
	name := flag.String("name", "", "the node's name")
	port := flag.Int("port", 0, "the port on 127.0.0.1 that the API server calls")
	kubeconfig := flag.String("kubeconfig", "", "how the API server is reached")
	cert := flag.String("cert", "", "certificate and key of this server, one file")
	ca := flag.String("ca", "", "whose certificates clients of this server must have")
	cpus := flag.String("cpus", "4", "how many CPUs the node says it has")
	hosts := flag.String("hosts", "", "PID=ADDRESS,PID=ADDRESS: a host for each Pod that may run")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	client := kubernetes.NewForConfigOrDie(config)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	pods := newPods(client, parseHosts(*hosts))
	go func() { log.Fatal(serve(*port, *cert, *ca, pods)) }()
	node := &registered{client: client, name: *name, port: int32(*port), cpus: *cpus, pods: len(pods.free)}
	go node.heartbeat(ctx)
	pods.watch(ctx, *name)
	<-ctx.Done()
}

func parseHosts(words string) []host {
	var hosts []host
	for _, word := range strings.Split(words, ",") {
		pid, address, _ := strings.Cut(word, "=")
		hosts = append(hosts, host{pid, address})
	}
	return hosts
}
