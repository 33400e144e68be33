package inputs

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/size"
)

func node(name, cpu, memory string, change ...func(*Node)) Node {
	n := Node{}
	n.Metadata.Name = name
	n.Metadata.Labels = map[string]string{"zone": "a"}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	for _, c := range change {
		c(&n)
	}
	return n
}

func taint(key, value string, effect corev1.TaintEffect) func(*Node) {
	return func(n *Node) {
		n.Spec.Taints = append(n.Spec.Taints, Taint{Key: key, Value: value, Effect: effect})
	}
}

func labelled(key, value string) func(*Node) { return func(n *Node) { n.Metadata.Labels[key] = value } }

func seenNodes(needs Needs, nodes ...Node) *Nodes {
	s := &Nodes{At: noon}
	for _, n := range nodes {
		s.Add(n, needs)
	}
	return s
}

func TestNodesAddUpToWhatTheyCanGive(t *testing.T) {
	s := Surroundings{Nodes: seenNodes(Needs{}, node("a", "3920m", "16Gi"), node("b", "80m", "1Gi"), node("broken", "-1", "-1"))}
	for input, want := range map[string]float64{config.InputCores: 4, config.InputMemory: 17 << 30, config.InputNodes: 3} {
		if got, why := s.Of(input, noon); got.Total != want || got.Missing || why != "" {
			t.Errorf("%s is %v, %q; want %v", input, got, why, want)
		}
	}
	if got, why := s.Of(config.InputNodes, noon.Add(time.Hour)); !got.Missing || why != "it was seen last 1h0m0s ago" {
		t.Errorf("an hour later: %v, %q", got, why)
	}
}

func TestTheLargestNodeIsOneThatThePodsMayRunOn(t *testing.T) {
	both := func(terms ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	where := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	match := func(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: r}
	}
	gpu := taint("gpu", "yes", corev1.TaintEffectNoSchedule)
	small, large := node("small", "4", "16Gi"), node("large", "8", "64Gi", gpu, labelled("size", "9"))
	for name, tc := range map[string]struct {
		needs Needs
		nodes []Node
		want  string
	}{
		"most room for both, then memory, then cpu, then by name": {nodes: []Node{node("c", "4", "32Gi"), node("d", "32", "8Gi"), node("b", "8", "64Gi"), node("e", "8", "32Gi"), node("a", "8", "64Gi")}, want: "a"},
		"what one has of the one is nothing without the other":    {nodes: []Node{node("a", "20m", "1Pi"), node("b", "4", "16Gi"), node("c", "900", "1Mi")}, want: "b"},
		"in the proportion that the template requests": {needs: Needs{Own: Room{CPU: 4000, Memory: 1 << 30}}, nodes: []Node{node("a", "8", "64Gi"), node("b", "16", "8Gi")},
			want: "b"},
		"a taint keeps pods away":        {nodes: []Node{small, large}, want: "small"},
		"one that is tolerated does not": {needs: Needs{Tolerations: []corev1.Toleration{{Key: "gpu", Value: "yes"}}}, nodes: []Node{small, large}, want: "large"},
		"of another value it does":       {needs: Needs{Tolerations: []corev1.Toleration{{Key: "gpu", Value: "no"}}}, nodes: []Node{small, large}, want: "small"},
		"of another effect it does": {needs: Needs{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}},
			nodes: []Node{small, large}, want: "small"},
		"all are tolerated": {needs: Needs{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}, nodes: []Node{small, large}, want: "large"},
		"a cordoned node comes back": {nodes: []Node{small, node("away", "8", "64Gi", taint("node.kubernetes.io/unschedulable", "", corev1.TaintEffectNoSchedule))},
			want: "away"},
		"a preference is no ban": {nodes: []Node{small, node("last", "8", "64Gi", taint("x", "", corev1.TaintEffectPreferNoSchedule))}, want: "last"},
		"a selector":             {needs: Needs{Selector: map[string]string{"zone": "b"}}, nodes: []Node{small, node("there", "1", "1Gi", labelled("zone", "b"))}, want: "there"},
		"an affinity": {needs: Needs{Affinity: both(match(where("zone", corev1.NodeSelectorOpIn, "b")), match(where("zone", corev1.NodeSelectorOpIn, "c")))},
			nodes: []Node{small, node("there", "1", "1Gi", labelled("zone", "c"))}, want: "there"},
		"an affinity by a number": {needs: Needs{Affinity: both(match(where("size", corev1.NodeSelectorOpGt, "8"))),
			Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}, nodes: []Node{small, large}, want: "large"},
		"an affinity by a field": {needs: Needs{Affinity: both(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{where("metadata.name", corev1.NodeSelectorOpIn, "b")}})},
			nodes: []Node{node("a", "8", "8Gi"), node("b", "1", "1Gi")}, want: "b"},
		"an empty term matches none":          {needs: Needs{Affinity: both(corev1.NodeSelectorTerm{})}, nodes: []Node{small}},
		"an operator that is none":            {needs: Needs{Affinity: both(match(where("zone", "Near", "a")))}, nodes: []Node{small}},
		"no room beside the other containers": {needs: Needs{Memory: 16 << 30}, nodes: []Node{small}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if room := seenNodes(tc.needs, tc.nodes...).Largest; room != nil {
				got = room.Node
			}
			if got != tc.want {
				t.Errorf("the largest is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheCapIsTheLargestNodeWithoutItsReserve(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	requests := func(cpu, memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	needs := NeedsOf(corev1.PodSpec{
		Containers:     []corev1.Container{{Name: "application-controller", Resources: requests("1", "4Gi")}, {Name: "sidecar", Resources: requests("100m", "1Gi")}},
		InitContainers: []corev1.Container{{Name: "first", Resources: requests("9", "90Gi")}, {Name: "beside", Resources: requests("100m", "1Gi"), RestartPolicy: &always}},
	}, "application-controller")
	s := seenNodes(needs, node("a", "4200m", "22Gi"))
	got := map[string]string{}
	for name, q := range s.Cap(10, noon) {
		got[name] = q.String()
	}
	if diff := cmp.Diff(map[string]string{size.CPU: "3600m", size.Memory: "18Gi"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var none *Nodes
	for name, s := range map[string]*Nodes{"not asked": none, "not allowed": {At: noon, Why: "forbidden", Largest: s.Largest}, "no node fits": {At: noon, Count: 3}} {
		if most := s.Cap(10, noon); most != nil {
			t.Errorf("%s: %v", name, most)
		}
	}
	if most := s.Cap(10, noon.Add(time.Hour)); most != nil {
		t.Errorf("an hour later: %v", most)
	}
}

// TestANodesTimesAreNotRead: of a taint that says it was added in the year 10000, which no JSON has, the rest is.
func TestANodesTimesAreNotRead(t *testing.T) {
	var got Node
	err := json.Unmarshal([]byte(`{"metadata": {"name": "a"}, "spec": {"taints": [{"key": "x", "effect": "NoSchedule", "timeAdded": "10000-01-01T11:59:59Z"}]}}`), &got)
	if diff := cmp.Diff([]Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}, got.Spec.Taints); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestALyingNodeLowersNoCap: whatever a node says it has, the cap has room for the container as often as it had without it.
func TestALyingNodeLowersNoCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any := func(name string) Node {
			cpu, memory := rapid.Int64Range(1, mostCPU).Draw(t, name+" cpu"), rapid.Int64Range(1, mostMemory).Draw(t, name+" memory")
			return node(name, fmt.Sprintf("%dm", cpu), fmt.Sprint(memory))
		}
		needs := Needs{Own: Room{CPU: rapid.Int64Range(0, 8000).Draw(t, "own cpu"), Memory: rapid.Int64Range(0, 32<<30).Draw(t, "own memory")}}
		honest := []Node{any("a"), any("b"), any("c")}
		before, after := seenNodes(needs, honest...).Largest, seenNodes(needs, append(honest, any("liar"))...).Largest
		if needs.times(*after) < needs.times(*before) {
			t.Fatalf("%v instead of %v", after, before)
		}
	})
}

// TestNodesComeInAnyOrder, page by page: what is made of them is the same, and no cap is above any node's room.
func TestNodesComeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		for i := range rapid.IntRange(0, 12).Draw(t, "nodes") {
			nodes = append(nodes, node(fmt.Sprintf("n%02d", i), fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "cpu")), fmt.Sprintf("%dGi", rapid.IntRange(1, 4).Draw(t, "memory"))))
		}
		needs := Needs{Memory: int64(rapid.IntRange(0, 3).Draw(t, "beside")) << 30}
		one, other := seenNodes(needs, nodes...), seenNodes(needs, rapid.Permutation(nodes).Draw(t, "order")...)
		if diff := cmp.Diff(one, other); diff != "" {
			t.Fatal(diff)
		}
		if one.Largest == nil {
			return
		}
		most := one.Cap(rapid.IntRange(0, 90).Draw(t, "reserve"), noon)
		fits := false
		for _, n := range nodes {
			cpu, memory := most[size.CPU], most[size.Memory]
			fits = fits || cpu.Cmp(*n.Status.Allocatable.Cpu()) <= 0 && memory.Value()+needs.Memory <= n.Status.Allocatable.Memory().Value()
		}
		if !fits {
			t.Fatalf("no node has room for %v", most)
		}
	})
}

func FuzzNode(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"zone":"a"}},"spec":{"taints":[{"key":"x","effect":"NoSchedule"}]},"status":{"allocatable":{"cpu":"1e30","memory":"-5"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var n Node
		if json.Unmarshal(text, &n) != nil {
			return
		}
		s := seenNodes(Needs{}, n)
		for name, q := range s.Cap(10, noon) {
			if q.Sign() < 0 {
				t.Errorf("%s is %s", name, q.String())
			}
		}
		if s.Cores < 0 || s.Memory < 0 || s.Memory > mostMemory {
			t.Errorf("%+v", s)
		}
	})
}
