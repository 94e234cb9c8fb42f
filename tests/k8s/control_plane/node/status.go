// A kubelet's words for what became of a Pod.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// patch sets a Pod's status; it returns whether to try again.
func (p *pods) patch(ctx context.Context, object *core.Pod, status core.PodStatus) bool {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": object.UID}, "status": status,
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = p.client.CoreV1().Pods(object.Namespace).Patch(ctx, object.Name,
		types.StrategicMergePatchType, patch, meta.PatchOptions{}, "status")
	if err != nil {
		log.Print("status of ", object.Name, ": ", err)
	}
	_, answered := err.(errors.APIStatus)
	return err != nil && !answered
}

func conditions(ready core.ConditionStatus, reason string) []core.PodCondition {
	var all []core.PodCondition
	add := func(kind core.PodConditionType, status core.ConditionStatus, reason string) {
		all = append(all, core.PodCondition{
			Type: kind, Status: status, Reason: reason, LastTransitionTime: meta.Now(),
		})
	}
	add(core.PodReadyToStartContainers, ready, "")
	add(core.PodInitialized, core.ConditionTrue, "")
	add(core.PodReady, ready, reason)
	add(core.ContainersReady, ready, reason)
	return all
}

func containerStatus(object *core.Pod, state core.ContainerState) core.ContainerStatus {
	spec := object.Spec.Containers[0]
	running := state.Running != nil
	return core.ContainerStatus{
		Name: spec.Name, Image: spec.Image, State: state, Ready: running, Started: ptr.To(running),
	}
}

func waitingStatus(object *core.Pod, reason, message string) core.PodStatus {
	state := core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: reason, Message: message}}
	return core.PodStatus{
		Phase: core.PodPending, StartTime: ptr.To(meta.Now()), HostIP: "127.0.0.1",
		Conditions:        conditions(core.ConditionFalse, "ContainersNotReady"),
		ContainerStatuses: []core.ContainerStatus{containerStatus(object, state)},
	}
}

func pullError(object *core.Pod) string {
	image := fmt.Sprintf("docker.io/library/%s:latest", object.Spec.Containers[0].Image)
	return fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: pull access denied, "+
		"repository does not exist or may require authorization: server message: insufficient_scope: "+
		"authorization failed", image, image)
}

func backOff(object *core.Pod) string {
	return fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", object.Spec.Containers[0].Image, pullError(object))
}

func runningStatus(this *pod, last *container, restarts int32) core.PodStatus {
	state := core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: this.container.started}}
	container := containerStatus(this.object, state)
	container.ContainerID, container.RestartCount = "containerd://"+this.container.id, restarts
	if last != nil {
		container.LastTerminationState = terminated(last)
	}
	return core.PodStatus{
		Phase: core.PodRunning, StartTime: &this.container.started, HostIP: "127.0.0.1",
		PodIP: this.host.address, PodIPs: []core.PodIP{{IP: this.host.address}},
		Conditions:        conditions(core.ConditionTrue, ""),
		ContainerStatuses: []core.ContainerStatus{container},
	}
}

func terminated(ended *container) core.ContainerState {
	reason := "Error"
	if ended.code == 0 {
		reason = "Completed"
	}
	if ended.why() == oomKilled {
		reason = string(oomKilled)
	}
	return core.ContainerState{Terminated: &core.ContainerStateTerminated{
		ExitCode: int32(ended.code), Reason: reason, StartedAt: ended.started, FinishedAt: meta.Now(),
		ContainerID: "containerd://" + ended.id,
	}}
}

func endedStatus(this *pod, restarts int32) core.PodStatus {
	status := core.PodStatus{Phase: core.PodFailed, Conditions: conditions(core.ConditionFalse, "PodFailed")}
	if this.container.code == 0 {
		status.Phase, status.Conditions = core.PodSucceeded, conditions(core.ConditionFalse, "PodCompleted")
	}
	if this.container.why() == evicted {
		status.Reason, status.Message = string(evicted), evictionMessage(this.object)
		status.Conditions = append(status.Conditions, core.PodCondition{
			Type: core.DisruptionTarget, Status: core.ConditionTrue, LastTransitionTime: meta.Now(),
			Reason: core.PodReasonTerminationByKubelet, Message: status.Message,
		})
	}
	container := containerStatus(this.object, terminated(this.container))
	container.ContainerID, container.RestartCount = "containerd://"+this.container.id, restarts
	status.ContainerStatuses = []core.ContainerStatus{container}
	return status
}

func evictionMessage(object *core.Pod) string {
	return fmt.Sprintf("The node was low on resource: memory. Threshold quantity: 100Mi, available: 81240Ki. "+
		"Container %s was using 498Mi, request is 64Mi, has larger consumption of memory. ",
		object.Spec.Containers[0].Name)
}
