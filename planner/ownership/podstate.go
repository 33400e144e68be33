package ownership

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	metricsPortName = "metrics"
	metricsPort     = 8082 // Argo CD's default
	oomKilled       = "OOMKilled"
)

// Belongs reports whether the pod is one of the target's and not over. A Deployment's pods are owned by a ReplicaSet
// that is called like the Deployment and the pods' template hash, so that no ReplicaSet has to be read. Whoever makes or
// patches a pod writes its owner, but not its name after it was made: the workload's controllers leave a pod of another
// name alone, and give one of their own that they did not make up, or delete it.
func Belongs(p *corev1.Pod, target plan.Target) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, "apps/") {
		return false
	}
	if target.Kind == plan.Deployment {
		hash := p.Labels["pod-template-hash"]
		return owner.Kind == "ReplicaSet" && hash != "" && owner.Name == target.Name+"-"+hash && generated(p.Name, owner.Name)
	}
	return owner.Kind == plan.StatefulSet && owner.Name == target.Name && ordinal(p.Name, target.Name) != NoReplica
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
		return NoReplica
	}
	return n
}

// fromPod keeps of a pod what is needed, but for its replica. A pod that is being deleted is not ready, whatever it
// says.
func fromPod(p *corev1.Pod, container string) Controller {
	c := Controller{
		Pod:         observed.Pod{Name: p.Name, Ready: p.DeletionTimestamp == nil && isReady(p)},
		Terminating: p.DeletionTimestamp != nil,
	}
	spec := controllerOf(p, container)
	if spec == nil {
		return c
	}
	c.Size = sizeOf(p, spec)
	if limit, found := spec.Resources.Limits[corev1.ResourceMemory]; found {
		c.MemoryLimit = limit.Value()
	}
	if p.Status.PodIP != "" {
		c.Address = net.JoinHostPort(p.Status.PodIP, strconv.Itoa(portOf(spec)))
	}
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == spec.Name {
			if c.Running = s.State.Running != nil; c.Running {
				c.Started = plan.WithinJSON(s.State.Running.StartedAt.Time)
			}
			c.Restarts = int(s.RestartCount)
			c.RestartedAt = lastRestart(s)
			c.KilledAt, c.OOMKilled = lastKill(s)
		}
	}
	return c
}

// lastRestart says when the container last began anew, or ended if it has not begun again.
func lastRestart(s *corev1.ContainerStatus) time.Time {
	ended := s.LastTerminationState.Terminated
	switch {
	case s.State.Terminated != nil:
		return plan.WithinJSON(s.State.Terminated.FinishedAt.Time)
	case s.RestartCount == 0:
		return time.Time{}
	case s.State.Running != nil:
		return plan.WithinJSON(s.State.Running.StartedAt.Time)
	case ended != nil:
		return plan.WithinJSON(ended.FinishedAt.Time)
	}
	return time.Time{}
}

// lastKill says whether memory ended the container last, and when. That is not when it began again: a pod that is
// backed off does so up to 5 minutes later.
func lastKill(s *corev1.ContainerStatus) (at time.Time, oom bool) {
	ended := s.State.Terminated
	if ended == nil {
		ended = s.LastTerminationState.Terminated
	}
	if ended == nil || ended.Reason != oomKilled {
		return time.Time{}, false
	}
	return plan.WithinJSON(ended.FinishedAt.Time), true
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
		found, err := discover.FindContainer(containers)
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

// dynamic reads the env of the pods; where they differ, as during a rollout, one that distributes is enough. A value by
// reference is not followed: the ConfigMap's being there then decides.
func dynamic(pods []corev1.Pod, container string) distribution {
	most := distributionOff
	for i := range pods {
		env := envOf(&pods[i], container, discover.EnvDynamic)
		switch on, _ := strconv.ParseBool(env.Value); {
		case on:
			most = distributionOn
		case env.ValueFrom != nil:
			most = max(most, distributionUnknown)
		}
	}
	return most
}

// patienceOf reads how often heartbeats are written; where the pods differ, the most patient setting counts.
func patienceOf(pods []corev1.Pod, container string) Patience {
	p := Patience{}
	for i := range pods {
		c := controllerOf(&pods[i], container)
		if c == nil {
			continue
		}
		p.Heartbeat = max(p.Heartbeat, heartbeatTime(envOf(&pods[i], container, EnvHeartbeat).Value))
		if c.ReadinessProbe != nil && c.ReadinessProbe.PeriodSeconds > 0 {
			p.Probe = max(p.Probe, time.Duration(c.ReadinessProbe.PeriodSeconds)*time.Second)
		}
	}
	return Patience{Heartbeat: max(p.Heartbeat, defaultHeartbeat), Probe: max(p.Probe, defaultHeartbeat)}
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
