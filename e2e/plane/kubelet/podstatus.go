package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"ballast/e2e/plane/process"
	"ballast/e2e/plane/resize"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// podStatus is what the kubelet knows of the pod's one process.
type podStatus struct {
	reason, message string // of waiting; no reason = running
	startedAt       time.Time
	ready           bool
	unready         string // why not, from the readiness probe
	readySince      time.Time
	restarts        int32
	last            *corev1.ContainerStateTerminated

	written string // the patch that was accepted last
}

func (s *podStatus) waiting(reason, message string) {
	s.reason, s.message = reason, message
	s.setReady(false)
}

// started: without a readiness probe package probe makes it ready at once.
func (s *podStatus) started(at time.Time) {
	s.reason, s.message, s.unready = "", "", ""
	s.startedAt = at
	s.setReady(false)
}

func (s *podStatus) probed(err error) {
	s.unready = ""
	if err != nil {
		s.unready = "readiness probe failed: " + err.Error()
	}
	s.setReady(err == nil)
}

func (s *podStatus) setReady(ready bool) {
	if s.ready != ready || s.readySince.IsZero() {
		s.readySince = time.Now()
	}
	s.ready = ready
}

func (s *podStatus) exited(c *process.Child) {
	s.last = &corev1.ContainerStateTerminated{
		ExitCode: exitCode(c.Err), Reason: "Error",
		StartedAt: metav1.NewTime(s.startedAt), FinishedAt: metav1.Now(),
	}
	if s.last.ExitCode == 0 {
		s.last.Reason = "Completed"
	}
	s.restarts++
	s.waiting("CrashLoopBackOff", "back-off restarting the process")
}

// exitCode follows the shells: 128 and the signal's number for a killed one.
func exitCode(err error) int32 {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int32(128 + w.Signal())
	}
	return int32(exit.ExitCode())
}

// report writes the status if it differs from what was written, or if another
// writer changed whether the pod is ready, as the node controller does where a
// node's heartbeat is late. A failed write is left to the next call: a pod being
// deleted meanwhile is no fault.
func (r *podRunner) report(ctx context.Context) {
	pod := r.current()
	patch, err := json.Marshal(map[string]any{"status": r.status.podPatch(pod, r.kubelet.Sizes.Of(pod))})
	if err != nil || string(patch) == r.status.written && shownReady(pod) == r.status.ready {
		return
	}
	pods := r.kubelet.Client.CoreV1().Pods(r.namespace)
	_, err = pods.Patch(ctx, r.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case err == nil || apierrors.IsNotFound(err):
		r.status.written = string(patch)
	case ctx.Err() == nil:
		r.kubelet.Log("pod %s/%s: writing its status: %v", r.namespace, r.name, err)
	}
}

func shownReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podPatch never takes a pod back to Pending: a restart is no new pod.
func (s *podStatus) podPatch(pod *corev1.Pod, size resize.Grant) map[string]any {
	containers, conditions := s.containers(pod), size.Conditions(pod)
	size.Dress(containers)
	for _, c := range s.conditions(pod) {
		conditions = append(conditions, c)
	}
	patch := map[string]any{"conditions": conditions, "containerStatuses": containers}
	if !s.startedAt.IsZero() {
		patch["phase"] = corev1.PodRunning
	}
	return patch
}

func (s *podStatus) conditions(pod *corev1.Pod) []corev1.PodCondition {
	c := corev1.PodCondition{Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.readySince)}
	if !s.ready {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ContainersNotReady", s.unready
	}
	conditions := []corev1.PodCondition{}
	kinds := []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady}
	for _, g := range pod.Spec.ReadinessGates {
		kinds = append(kinds, g.ConditionType)
	}
	for _, kind := range kinds {
		c.Type = kind
		conditions = append(conditions, c)
	}
	return conditions
}

// containers gives every container the state of the one process.
func (s *podStatus) containers(pod *corev1.Pod) []corev1.ContainerStatus {
	status := corev1.ContainerStatus{Ready: s.ready, Started: ptr.To(s.reason == ""), RestartCount: s.restarts}
	if s.reason == "" {
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.startedAt)}
	} else {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: s.reason, Message: s.message}
	}
	status.LastTerminationState.Terminated = s.last
	statuses := make([]corev1.ContainerStatus, 0, len(pod.Spec.Containers))
	for _, c := range pod.Spec.Containers {
		status.Name, status.Image = c.Name, c.Image
		statuses = append(statuses, status)
	}
	return statuses
}
