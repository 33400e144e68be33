package inputs

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"ballast/planner/size"
)

// Nodes is what all nodes together can give pods, and what the largest one has on which the workload's pods may run.
// Why says why nothing is known.
type Nodes struct {
	At      time.Time `json:"at,omitzero"`
	Count   int       `json:"count,omitempty"`
	Cores   float64   `json:"cores,omitempty"`
	Memory  float64   `json:"memory,omitempty"` // bytes
	Largest *Room     `json:"largest,omitempty"`
	Why     string    `json:"why,omitempty"`
}

func (s *Nodes) unknown(now time.Time) string { return unknown(s.Why, s.At, now) }

// Room is what a node has for the controller's container: its allocatable without what the pod's other containers
// request.
type Room struct {
	Node   string `json:"node"`
	CPU    int64  `json:"cpu"`    // thousandths of a core
	Memory int64  `json:"memory"` // bytes
}

// Node is the part of one that is read.
type Node struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Taints []Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Allocatable corev1.ResourceList `json:"allocatable"`
	} `json:"status"`
}

// Taint is what of one keeps pods away; when it was added is not read, since nobody needs it and a time may be one that
// JSON has not.
type Taint struct {
	Key    string             `json:"key"`
	Value  string             `json:"value"`
	Effect corev1.TaintEffect `json:"effect"`
}

// The most that one node is believed to have.
const (
	mostCPU    = 1_000_000_000 // thousandths of a core
	mostMemory = 1 << 50
)

// has is a node's allocatable in cpu's thousandths and bytes; 0 for what is none.
func (n Node) has() (cpu, memory int64) {
	a := n.Status.Allocatable
	return min(max(a.Cpu().MilliValue(), 0), mostCPU), min(max(a.Memory().Value(), 0), mostMemory)
}

// Needs is what a pod template says of where its pods may run, and what its other containers request.
type Needs struct {
	Selector    map[string]string
	Affinity    *corev1.NodeSelector
	Tolerations []corev1.Toleration
	CPU, Memory int64 // of the other containers
	Own         Room  // of the container itself: in that proportion it grows
}

// NeedsOf reads them from a template; container is the one that is sized.
func NeedsOf(pod corev1.PodSpec, container string) Needs {
	n := Needs{Selector: pod.NodeSelector, Tolerations: pod.Tolerations}
	if a := pod.Affinity; a != nil && a.NodeAffinity != nil {
		n.Affinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	add := func(c corev1.Container) {
		n.CPU += max(c.Resources.Requests.Cpu().MilliValue(), 0)
		n.Memory += max(c.Resources.Requests.Memory().Value(), 0)
	}
	for _, c := range pod.Containers {
		if c.Name != container {
			add(c)
			continue
		}
		n.Own = Room{CPU: max(c.Resources.Requests.Cpu().MilliValue(), 0),
			Memory: max(c.Resources.Requests.Memory().Value(), 0)}
	}
	for _, c := range pod.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // it runs beside the others
			add(c)
		}
	}
	return n
}

// Add counts a node. The largest is the one in which the container as the template has it has room most times, then the
// one with most memory, then with most CPU: a pod has both of one node, and a node that says it has much of one and
// next to nothing of the other is nobody's bound.
func (s *Nodes) Add(n Node, needs Needs) {
	cpu, memory := n.has()
	s.Count++
	s.Cores += float64(cpu) / 1000
	s.Memory += float64(memory)
	room := Room{Node: n.Metadata.Name, CPU: cpu - needs.CPU, Memory: memory - needs.Memory}
	if room.CPU <= 0 || room.Memory <= 0 || !needs.fit(n) {
		return
	}
	if s.Largest == nil || needs.larger(room, *s.Largest) {
		s.Largest = &room
	}
}

// What a container counts as where the template requests nothing of a resource.
const (
	usualCPU    = 1000
	usualMemory = 4 << 30
)

// times is how many times a room has the container as it is requested.
func (n Needs) times(r Room) float64 {
	cpu, memory := cmp.Or(n.Own.CPU, usualCPU), cmp.Or(n.Own.Memory, usualMemory)
	return min(float64(r.CPU)/float64(cpu), float64(r.Memory)/float64(memory))
}

func (n Needs) larger(a, b Room) bool {
	return cmp.Or(cmp.Compare(n.times(a), n.times(b)), cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.CPU, b.CPU),
		cmp.Compare(b.Node, a.Node)) > 0
}

// Cap is what a container may request at most where that many percent of the largest node are kept back; nil: not
// known.
func (s *Nodes) Cap(reserve int, now time.Time) map[string]resource.Quantity {
	if s == nil || s.Largest == nil || s.unknown(now) != "" {
		return nil
	}
	of := func(all int64) int64 { return all/100*int64(100-reserve) + all%100*int64(100-reserve)/100 }
	return map[string]resource.Quantity{
		size.CPU:    *resource.NewMilliQuantity(of(s.Largest.CPU), resource.DecimalSI),
		size.Memory: *resource.NewQuantity(of(s.Largest.Memory), resource.BinarySI),
	}
}

// lifecycle is the prefix of the taints by which Kubernetes itself keeps pods away for a while: a node that is
// cordoned, or not ready, comes back.
const lifecycle = "node.kubernetes.io/"

// fit reports whether the pods may run on a node, whatever room it has now.
func (n Needs) fit(node Node) bool {
	if !labels.SelectorFromSet(n.Selector).Matches(labels.Set(node.Metadata.Labels)) {
		return false
	}
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if strings.HasPrefix(t.Key, lifecycle) || t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(n.Tolerations, func(o corev1.Toleration) bool { return tolerates(o, *t) }) {
			return false
		}
	}
	chosen := func(t corev1.NodeSelectorTerm) bool { return matches(t, node) }
	return n.Affinity == nil || slices.ContainsFunc(n.Affinity.NodeSelectorTerms, chosen)
}

func tolerates(o corev1.Toleration, t Taint) bool {
	switch {
	case o.Effect != "" && o.Effect != t.Effect, o.Key != "" && o.Key != t.Key:
		return false
	case o.Operator == corev1.TolerationOpExists:
		return true
	}
	equal := o.Operator == "" || o.Operator == corev1.TolerationOpEqual
	return equal && o.Key != "" && o.Value == t.Value
}

// matches reports whether a node has all that a term asks for; an empty term matches none, as in Kubernetes.
func matches(t corev1.NodeSelectorTerm, node Node) bool {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false
	}
	meets := func(list []corev1.NodeSelectorRequirement, of map[string]string) bool {
		return !slices.ContainsFunc(list, func(r corev1.NodeSelectorRequirement) bool { return !meets(r, of) })
	}
	return meets(t.MatchExpressions, node.Metadata.Labels) &&
		meets(t.MatchFields, map[string]string{"metadata.name": node.Metadata.Name})
}

func meets(r corev1.NodeSelectorRequirement, of map[string]string) bool {
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
		corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
		corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan}
	q, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
	return err == nil && q.Matches(labels.Set(of))
}
