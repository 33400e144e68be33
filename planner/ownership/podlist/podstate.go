package podlist

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/planner/discover"
	"ballast/planner/discover/workload"
	"ballast/planner/observed"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
	"ballast/planner/printable"
)

const (
	metricsPortName = "metrics"
	metricsPort     = 8082 // Argo CD's default
	oomKilled       = "OOMKilled"
	workloads       = "apps/v1" // the only version that Kubernetes serves
)

// owners are what the target's pods are controlled by.
type owners struct {
	target plan.Target
	uid    string               // the target's, "" where it is not known
	sets   map[types.UID]string // a Deployment's ReplicaSets, by their names; nil where they are not known
}

// controls reports whether a ReplicaSet is one of the target's.
func (o owners) controls(set metav1.Object) bool {
	ref := metav1.GetControllerOf(set)
	if ref == nil || ref.APIVersion != workloads || ref.Kind != plan.Deployment {
		return false
	}
	return ref.Name == o.target.Name && (o.uid == "" || string(ref.UID) == o.uid)
}

// of reports whether the pod is one of the target's and not over. A Deployment's pods are owned by a ReplicaSet that is
// called like the Deployment and the pods' template hash. Whoever makes or patches a pod writes its owner, but not its
// name after it was made: the workload's controllers leave a pod of another name alone, and so they do one of another
// UID, which the garbage collector deletes, but only in the version that it knows.
func (o owners) of(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	ref := metav1.GetControllerOf(p)
	if ref == nil || ref.APIVersion != workloads {
		return false
	}
	if o.target.Kind != plan.Deployment {
		ours := o.uid == "" || string(ref.UID) == o.uid
		return ours && ref.Kind == plan.StatefulSet && ref.Name == o.target.Name &&
			ordinal(p.Name, ref.Name) != plan.NoReplica
	}
	hash := p.Labels["pod-template-hash"]
	if ref.Kind != "ReplicaSet" || hash == "" || ref.Name != o.target.Name+"-"+hash {
		return false
	}
	return (o.sets == nil || o.sets[ref.UID] == ref.Name) && generated(p.Name, ref.Name)
}

// Belongs reports whether the pod, by what it says of its owner, is one of the target's and not over; List asks the
// owner, too.
func Belongs(p *corev1.Pod, target plan.Target, uid string) bool {
	return owners{target: target, uid: uid}.of(p)
}

// What the API server makes of generateName: as much of it as leaves room for its own five characters.
const (
	generatedChars = 5
	mostGenerated  = 63 - generatedChars
)

// generated reports whether the pod has a name as the API server makes it for that owner.
func generated(pod, owner string) bool {
	base := owner + "-"
	rest, found := strings.CutPrefix(pod, base[:min(len(base), mostGenerated)])
	return found && len(rest) == generatedChars && !strings.Contains(rest, "-")
}

// ordinal is the number of a StatefulSet's pod, which is called like it, with a dash and that number.
func ordinal(pod, set string) int {
	digits, found := strings.CutPrefix(pod, set+"-")
	n, err := strconv.Atoi(digits)
	if !found || err != nil || strconv.Itoa(n) != digits || n < 0 || n >= plan.ReplicaLimit {
		return plan.NoReplica
	}
	return n
}

// fromPod keeps of a pod what is needed, but for its replica. A pod that is being deleted is not ready, whatever it
// says.
func fromPod(p *corev1.Pod, container string) observed.Controller {
	c := observed.Controller{
		Pod:         observed.Pod{Name: p.Name, UID: string(p.UID), Ready: p.DeletionTimestamp == nil && isReady(p)},
		Terminating: p.DeletionTimestamp != nil,
	}
	spec := controllerOf(p, container)
	if spec == nil {
		return c
	}
	c.Size = sizeOf(p, spec)
	c.MemoryLimit = memoryLimit(p, spec)
	if p.Status.PodIP != "" {
		c.Address = net.JoinHostPort(p.Status.PodIP, strconv.Itoa(portOf(spec)))
	}
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == spec.Name {
			if c.Running = s.State.Running != nil; c.Running {
				c.Started = patchable.WithinJSON(s.State.Running.StartedAt.Time)
			}
			c.Restarts = int(s.RestartCount)
			c.RestartedAt = lastRestart(s)
			if p.Spec.NodeName != "" { // only a node says how a container ended
				c.KilledAt, c.OOMKilled = lastKill(s)
			}
		}
	}
	return c
}

// memoryLimit is what the node has given the container, and where that is not told, or is more, what the pod asks for:
// a node that has no room lets a pod run at what it had, and who writes pods' status makes no limit larger by it.
func memoryLimit(p *corev1.Pod, spec *corev1.Container) int64 {
	asked, found := spec.Resources.Limits[corev1.ResourceMemory]
	if !found {
		return 0
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		if s.Name != spec.Name || s.Resources == nil {
			continue
		}
		has := s.Resources.Limits[corev1.ResourceMemory]
		if told := has.Value(); told > 0 { // 0, or more than any number holds, would be none, which its spec denies
			return min(told, asked.Value())
		}
	}
	return asked.Value()
}

// lastRestart says when the container last began anew, or ended if it has not begun again.
func lastRestart(s *corev1.ContainerStatus) time.Time {
	ended := s.LastTerminationState.Terminated
	switch {
	case s.State.Terminated != nil:
		return patchable.WithinJSON(s.State.Terminated.FinishedAt.Time)
	case s.RestartCount == 0:
		return time.Time{}
	case s.State.Running != nil:
		return patchable.WithinJSON(s.State.Running.StartedAt.Time)
	case ended != nil:
		return patchable.WithinJSON(ended.FinishedAt.Time)
	}
	return time.Time{}
}

// lastKill says whether memory ended the container last, and when. That is not when it began again: a pod that is
// backed off does so up to 5 minutes later. Whoever tells of an end before this container has counted a restart.
func lastKill(s *corev1.ContainerStatus) (at time.Time, oom bool) {
	ended := s.State.Terminated
	if ended == nil && s.RestartCount > 0 {
		ended = s.LastTerminationState.Terminated
	}
	if ended == nil || ended.Reason != oomKilled {
		return time.Time{}, false
	}
	return patchable.WithinJSON(ended.FinishedAt.Time), true
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// controllerOf is the application-controller's container; nil where it cannot be told.
func controllerOf(p *corev1.Pod, name string) *corev1.Container {
	containers := p.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if name == "" {
		found, err := workload.FindContainer(containers)
		if err != nil {
			return nil
		}
		i = found
	}
	if i < 0 {
		return nil
	}
	return &containers[i]
}

func portOf(c *corev1.Container) int {
	for _, p := range c.Ports {
		if p.Name == metricsPortName && p.ContainerPort > 0 {
			return int(p.ContainerPort)
		}
	}
	return metricsPort
}

// distribution says whether a Deployment's clusters are distributed dynamically.
type distribution int

const (
	distributionOff distribution = iota
	distributionUnknown
	distributionOn
)

// dynamic reads the env of a pod. Where pods differ, as during a rollout, one that distributes is enough. A value by
// reference is not followed: the ConfigMap's being there then decides.
func dynamic(pod *corev1.Pod, container string) distribution {
	env := envOf(pod, container, discover.EnvDynamic)
	switch on, _ := strconv.ParseBool(env.Value); {
	case on:
		return distributionOn
	case env.ValueFrom != nil:
		return distributionUnknown
	}
	return distributionOff
}

// patienceOf reads how often a pod writes heartbeats. Where pods differ, the most patient setting counts.
func patienceOf(pod *corev1.Pod, container string) Patience {
	c, p := controllerOf(pod, container), Patience{Heartbeat: defaultHeartbeat, Probe: defaultHeartbeat}
	if c == nil {
		return p
	}
	p.Heartbeat = max(p.Heartbeat, heartbeatTime(envOf(pod, container, EnvHeartbeat).Value))
	if c.ReadinessProbe != nil && c.ReadinessProbe.PeriodSeconds > 0 {
		p.Probe = max(p.Probe, time.Duration(c.ReadinessProbe.PeriodSeconds)*time.Second)
	}
	return p
}

// heartbeatTime reads the env as Argo CD does: what is no number from 10 to 60 is 10.
func heartbeatTime(value string) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil || seconds < int(defaultHeartbeat/time.Second) || seconds > int(maxHeartbeat/time.Second) {
		return defaultHeartbeat
	}
	return time.Duration(seconds) * time.Second
}

func envOf(p *corev1.Pod, container, name string) corev1.EnvVar {
	c := controllerOf(p, container)
	if c == nil {
		return corev1.EnvVar{}
	}
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	if i < 0 {
		return corev1.EnvVar{}
	}
	return c.Env[i]
}

// mostMessage is how much of a node's words is kept, in characters.
const mostMessage = 200

// sizeOf is how large a pod is, whose controller's container is that one; nil of a pod that is being deleted. What is
// kept of it is bounded, whatever somebody gave the pod.
func sizeOf(p *corev1.Pod, controller *corev1.Container) *observed.Size {
	if p.DeletionTimestamp != nil {
		return nil
	}
	s := &observed.Size{Asks: PodSize(p, controller), Unmanaged: p.Annotations[plan.AnnotationUnmanaged] == "true"}
	for _, policy := range controller.ResizePolicy {
		name := string(policy.ResourceName)
		if policy.RestartPolicy == corev1.RestartContainer && sized(name) && !slices.Contains(s.Restarts, name) {
			s.Restarts = append(s.Restarts, name)
		}
	}
	for i := range p.Status.ContainerStatuses {
		status := &p.Status.ContainerStatuses[i]
		if status.Name != controller.Name {
			continue
		}
		if r := status.Resources; r != nil {
			s.Has = plan.Resources{Requests: texts(r.Requests), Limits: texts(r.Limits)}
		}
		s.Allocated = texts(status.AllocatedResources)
	}
	for i := range p.Status.Conditions {
		readResize(s, &p.Status.Conditions[i])
	}
	return s
}

// readResize takes over what a condition says of a change. One that waits goes before one that the node is at.
func readResize(s *observed.Size, c *corev1.PodCondition) {
	if c.Status != corev1.ConditionTrue {
		return
	}
	var is observed.Resize
	switch {
	case c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible:
		is = observed.ResizeInfeasible
	case c.Type == corev1.PodResizePending:
		is = observed.ResizeDeferred
	case c.Type != corev1.PodResizeInProgress || s.Resize == observed.ResizeDeferred || s.Resize == observed.ResizeInfeasible:
		return
	case c.Reason == corev1.PodReasonError:
		is = observed.ResizeFailed
	default:
		is = observed.ResizeInProgress
	}
	s.Resize, s.Message, s.Since = is, printable.Text(c.Message, mostMessage),
		patchable.WithinJSON(c.LastTransitionTime.Time)
}

// PodSize is what a pod asks for, whose controller's container is that one.
func PodSize(p *corev1.Pod, controller *corev1.Container) podspec.Size {
	var own plan.Resources
	var others []plan.Resources
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			c := &list[i]
			asks := plan.Resources{Requests: texts(c.Resources.Requests), Limits: texts(c.Resources.Limits)}
			if c == controller {
				own = asks
				continue
			}
			others = append(others, asks)
		}
	}
	whole := p.Spec.Resources != nil && len(p.Spec.Resources.Requests)+len(p.Spec.Resources.Limits) > 0
	return podspec.NewSize(own, others, whole)
}

// texts are the quantities of what changes without a restart, as Kubernetes writes them.
func texts(list corev1.ResourceList) map[string]string {
	var m map[string]string
	for name, q := range list {
		if !sized(string(name)) {
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[string(name)] = q.String()
	}
	return m
}

func sized(name string) bool {
	return name == string(corev1.ResourceCPU) || name == string(corev1.ResourceMemory)
}
