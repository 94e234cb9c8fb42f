// The Pods of the node: each is started, kept running as its restart policy says, and ended, and its
// status says so in a kubelet's words.
package main

import (
	"context"
	"log"
	"strings"
	"sync"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const backOffAfter = time.Second

type pods struct {
	client kubernetes.Interface

	lock    sync.Mutex
	free    []host
	running map[types.UID]*pod // a Pod of a StatefulSet comes again under its name
}

type pod struct {
	object    *core.Pod
	host      host
	container *container // nil until it is started
	stopping  bool
}

func newPods(client kubernetes.Interface, hosts []host) *pods {
	return &pods{client: client, free: hosts, running: map[types.UID]*pod{}}
}

// watch follows the Pods of the node until the context ends.
func (p *pods) watch(ctx context.Context, node string) {
	mine := func(options *meta.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	factory := informers.NewSharedInformerFactoryWithOptions(p.client, 0, informers.WithTweakListOptions(mine))
	factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.see(ctx, object.(*core.Pod)) },
		UpdateFunc: func(_, object any) { p.see(ctx, object.(*core.Pod)) },
		DeleteFunc: p.forget,
	})
	factory.Start(ctx.Done())
}

// find returns the container that runs in a Pod now, or nil.
func (p *pods) find(namespace, name string) *container {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, one := range p.running {
		mine := one.object.Namespace == namespace && one.object.Name == name
		if mine && one.container != nil && !one.container.isOver() {
			return one.container
		}
	}
	return nil
}

// see starts what is new, and ends what is to be deleted or was given a final status by somebody.
func (p *pods) see(ctx context.Context, object *core.Pod) {
	p.lock.Lock()
	defer p.lock.Unlock()
	known := p.running[object.UID]
	over := object.Status.Phase == core.PodFailed || object.Status.Phase == core.PodSucceeded
	deleted := object.DeletionTimestamp != nil
	switch {
	case known == nil && deleted:
		go p.remove(ctx, object)
	case known == nil && over:
	case known == nil && strings.Contains(object.Spec.Containers[0].Image, "missing"):
		p.running[object.UID] = &pod{object: object}
		go p.failToPull(ctx, object)
	case known == nil && strings.Contains(object.Spec.Containers[0].Image, "slow"):
		p.running[object.UID] = &pod{object: object}
		go p.tell(ctx, object, waitingStatus(object, "ContainerCreating", ""))
	case known == nil && len(p.free) > 0:
		known = &pod{object: object, host: p.free[0]}
		p.free = p.free[1:]
		p.running[object.UID] = known
		go p.run(ctx, known)
	case known == nil:
		log.Print("no host left for ", object.Name)
	case (deleted || over) && !known.stopping:
		known.stopping = true
		go p.stop(ctx, known, object)
	}
}

// forget kills what the API server no longer knows: its deletion was forced.
func (p *pods) forget(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	known := p.running[object.(*core.Pod).UID]
	switch {
	case known == nil:
	case known.container != nil:
		known.stopping = true
		known.container.end(none)
	case known.host.pid == "": // it waits for its image
		delete(p.running, known.object.UID)
	default:
		known.stopping = true
	}
}

// run starts a Pod's container, tells its end, and starts it again if its policy says so.
func (p *pods) run(ctx context.Context, this *pod) {
	defer p.release(this)
	var last *container
	for restarts := int32(0); ; restarts++ {
		container, err := startContainer(this.host, this.object, restarts)
		if err != nil {
			log.Print(this.object.Name, " did not start: ", err)
			return
		}
		p.lock.Lock()
		this.container = container
		if this.stopping {
			container.end(none)
		}
		p.lock.Unlock()
		p.tell(ctx, this.object, runningStatus(this, last, restarts))
		<-container.ended
		last = container
		if p.isStopping(this) {
			return
		}
		if this.object.Spec.RestartPolicy != core.RestartPolicyAlways || container.why() == evicted {
			p.tell(ctx, this.object, endedStatus(this, restarts))
			return
		}
	}
}

func (p *pods) isStopping(this *pod) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return this.stopping
}

func (p *pods) release(this *pod) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.free = append(p.free, this.host)
	delete(p.running, this.object.UID)
}

// stop ends a Pod as a kubelet does: SIGTERM, the time of grace, SIGKILL, and then it is removed.
func (p *pods) stop(ctx context.Context, this *pod, object *core.Pod) {
	p.lock.Lock()
	container := this.container
	p.lock.Unlock()
	if container != nil {
		grace := time.Duration(0)
		if object.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*object.DeletionGracePeriodSeconds) * time.Second
			container.signal(syscall.SIGTERM)
		}
		select {
		case <-container.ended:
		case <-time.After(grace):
			container.end(none)
			<-container.ended
		}
	}
	if object.DeletionTimestamp == nil {
		return
	}
	if container != nil {
		p.tell(ctx, object, endedStatus(this, 0))
	}
	p.remove(ctx, object)
}

func (p *pods) remove(ctx context.Context, object *core.Pod) {
	now := meta.NewDeleteOptions(0)
	now.Preconditions = meta.NewUIDPreconditions(string(object.UID))
	if err := p.client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, *now); err != nil {
		log.Print("remove: ", err)
	}
}

func (p *pods) failToPull(ctx context.Context, object *core.Pod) {
	p.tell(ctx, object, waitingStatus(object, "ErrImagePull", pullError(object)))
	select {
	case <-ctx.Done():
	case <-time.After(backOffAfter):
		p.tell(ctx, object, waitingStatus(object, "ImagePullBackOff", backOff(object)))
	}
}

// tell sets a Pod's status. The API server may be gone: a kubelet goes on trying.
func (p *pods) tell(ctx context.Context, object *core.Pod, status core.PodStatus) {
	for ctx.Err() == nil {
		retry := p.patch(ctx, object, status)
		if !retry {
			return
		}
		time.Sleep(heartbeatEvery)
	}
}
