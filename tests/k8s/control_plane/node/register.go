// The node as the API server knows it: its object, its lease, and its condition "Ready".
package main

import (
	"context"
	"log"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	heartbeatEvery = time.Second
	leases         = "kube-node-lease"
)

type registered struct {
	client kubernetes.Interface
	name   string
	port   int32
	cpus   string
	pods   int
}

// heartbeat registers the node, and renews its lease and its status until the context ends.
func (r *registered) heartbeat(ctx context.Context) {
	for {
		if err := r.beat(ctx); err != nil {
			log.Print("heartbeat: ", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(heartbeatEvery):
		}
	}
}

func (r *registered) beat(ctx context.Context) error {
	nodes := r.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, r.name, meta.GetOptions{})
	if errors.IsNotFound(err) {
		labels := map[string]string{"kubernetes.io/hostname": r.name, "kubernetes.io/os": "linux"}
		node = &core.Node{ObjectMeta: meta.ObjectMeta{Name: r.name, Labels: labels}}
		node, err = nodes.Create(ctx, node, meta.CreateOptions{})
	}
	if err != nil {
		return err
	}
	r.fill(&node.Status)
	if _, err := nodes.UpdateStatus(ctx, node, meta.UpdateOptions{}); err != nil {
		return err
	}
	return r.renew(ctx)
}

func (r *registered) fill(status *core.NodeStatus) {
	resources := core.ResourceList{
		core.ResourceCPU:    resource.MustParse(r.cpus),
		core.ResourceMemory: resource.MustParse("8Gi"),
		core.ResourcePods:   resource.MustParse(strconv.Itoa(r.pods)),
	}
	status.Capacity, status.Allocatable = resources, resources
	status.Addresses = []core.NodeAddress{
		{Type: core.NodeInternalIP, Address: "127.0.0.1"},
		{Type: core.NodeHostName, Address: r.name},
	}
	status.DaemonEndpoints.KubeletEndpoint.Port = r.port
	now := meta.Now()
	ready := core.NodeCondition{
		Type: core.NodeReady, Status: core.ConditionTrue,
		Reason: "KubeletReady", Message: "kubelet is posting ready status",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	for _, old := range status.Conditions {
		if old.Type == core.NodeReady && old.Status == core.ConditionTrue {
			ready.LastTransitionTime = old.LastTransitionTime
		}
	}
	status.Conditions = []core.NodeCondition{ready}
}

func (r *registered) renew(ctx context.Context) error {
	held := r.client.CoordinationV1().Leases(leases)
	now := meta.NowMicro()
	lease, err := held.Get(ctx, r.name, meta.GetOptions{})
	if errors.IsNotFound(err) {
		lease = &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: r.name, Namespace: leases}}
		lease.Spec = coordination.LeaseSpec{
			HolderIdentity: ptr.To(r.name), LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: &now,
		}
		_, err = held.Create(ctx, lease, meta.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = held.Update(ctx, lease, meta.UpdateOptions{})
	return err
}
