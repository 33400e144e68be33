package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/size/inputs"
)

// asideWorld is a fleet of three replicas whose memory follows what their pods use, and whose cpu follows the cluster's cores.
func asideWorld() *world {
	w := sizedWorld(2, 2, 2)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.in.Workload.Resources.Requests["cpu"] = "400m"
	prometheus := *w.in.Config.Poll.Prometheus
	prometheus.Metrics = append(slices.Clone(prometheus.Metrics), config.Metric{ID: "workingSet", Query: `x{ {{.targets}} }`,
		Match: &config.Match{Label: "pod", To: config.MatchReplica}})
	w.in.Config.Poll.Prometheus = &prometheus
	w.in.Config.Size.Policies = []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Slope: "2", Input: "workingSet"},
		{List: config.Requests, Resource: "cpu", Base: "200m", Slope: "10m", Input: "cores"},
	}}}
	w.in.Surroundings.Nodes = &inputs.Nodes{Cores: 30, Count: 3}
	return w
}

// uses is a minute in which the pods use so much.
func (w *world) uses(n int, gib ...float64) {
	for range n {
		f := poll.Fetched{Metric: "workingSet"}
		for r, g := range gib {
			f.Samples = append(f.Samples, poll.Sample{Key: fmt.Sprintf("%s-%d", w.in.Workload.Name, r), Value: g * (1 << 30), At: w.in.Now})
		}
		w.in.Fetched = append(slices.DeleteFunc(slices.Clone(w.in.Fetched), func(f poll.Fetched) bool { return f.Metric == "workingSet" }), f)
		if w.in.Surroundings.Nodes != nil {
			w.in.Surroundings.Nodes.At = w.in.Now
		}
		w.run(1)
	}
}

func (w *world) requests(name string) (all []string) {
	for r := range w.in.InForce.Replicas {
		size, _ := w.in.InForce.SizeOf(r)
		all = append(all, size.Requests[name])
	}
	return all
}

func missingInputs(out outcome.Outcome) (all []string) {
	for _, p := range out.Problems {
		if p.Kind == "SizeInputMissing" {
			all = append(all, p.Subject)
		}
	}
	return all
}

func TestAReplicaIsSizedByWhatItsPodUses(t *testing.T) {
	w := asideWorld()
	w.uses(6, 1, 3, 0.5)
	if diff := cmp.Diff([]string{"2Gi", "6Gi", "1Gi"}, w.requests("memory")); diff != "" {
		t.Fatalf("-want +got:\n%s\n%v", diff, problems(w.last))
	}
	if diff := cmp.Diff([]string{"500m", "500m", "500m"}, w.requests("cpu")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(w.last.Table.Columns) != len(loads.MetricsOf(w.in.Config)) || w.last.Table.Frozen {
		t.Errorf("the metric of replicas is one of clusters, too: %+v", w.last.Table)
	}
}

// TestOneInputThatIsMissingFreezesNoOther: with Prometheus away what follows the cluster's state goes on; with the nodes unseen
// what follows pods does. Each is named, and what was decided stays.
func TestOneInputThatIsMissingFreezesNoOther(t *testing.T) {
	w := asideWorld()
	w.uses(6, 1, 3, 0.5)
	w.in.Surroundings.Nodes.Cores = 80
	before := slices.Clone(w.in.Fetched)
	for i := range w.in.Fetched {
		w.in.Fetched[i] = poll.Fetched{Metric: w.in.Fetched[i].Metric, Err: "connection refused"}
	}
	w.in.Surroundings.Nodes.At = w.in.Now
	w.run(3)
	if diff := cmp.Diff([]string{"1", "1", "1"}, w.requests("cpu")); diff != "" || !w.last.Table.Frozen {
		t.Errorf("frozen %t, -want +got:\n%s", w.last.Table.Frozen, diff)
	}
	if diff := cmp.Diff([]string{"2Gi", "6Gi", "1Gi"}, w.requests("memory")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"workingSet"}, missingInputs(w.last)); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
	w.in.Fetched = before
	w.in.Surroundings.Nodes = &inputs.Nodes{At: w.in.Now, Why: "ballast may not list nodes: install component size-nodes"}
	w.uses(3, 2, 3, 0.5)
	if diff := cmp.Diff([]string{"4Gi", "6Gi", "1Gi"}, w.requests("memory")); diff != "" {
		t.Errorf("-want +got:\n%s\n%v", diff, problems(w.last))
	}
	if diff := cmp.Diff([]string{"1", "1", "1"}, w.requests("cpu")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cores"}, missingInputs(w.last)); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
}

func TestADeploymentsPodsAreNoReplicas(t *testing.T) {
	w := asideWorld()
	w.in.Workload.Kind = plan.Deployment
	w.uses(3, 1, 3, 0.5)
	i := slices.IndexFunc(w.last.Problems, func(p problem.Problem) bool { return p.Subject == "workingSet" })
	if i < 0 || !strings.Contains(w.last.Problems[i].Message, "the pods of a Deployment have no ordinals") {
		t.Errorf("%v", problems(w.last))
	}
}

// TestNoReplicaIsLargerThanTheLargestNode: what is written wins, and where the nodes are not known nothing bounds, which is said.
func TestNoReplicaIsLargerThanTheLargestNode(t *testing.T) {
	kinds := func(out outcome.Outcome) (all []string) {
		for _, p := range out.Problems {
			if p.Phase == problem.PhaseSize {
				all = append(all, p.Kind)
			}
		}
		return all
	}
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
		kinds  []string
	}{
		"the largest node without a tenth": {func(*world) {}, "4608Mi", []string{"NodeTooSmall"}},
		"as it is written":                 {func(w *world) { w.in.Config.Size.NodeCap.Memory = "5Gi" }, "5Gi", []string{"NodeTooSmall"}},
		"no node has room":                 {func(w *world) { w.in.Surroundings.Nodes.Largest = nil }, "6Gi", []string{"NodeCapUnknown"}},
		"nodes that may not be listed": {func(w *world) {
			w.in.Surroundings.Nodes.Why = "ballast may not list nodes"
			w.in.Config.Size.Policies[0].Rules = w.in.Config.Size.Policies[0].Rules[:1]
		}, "6Gi", []string{"NodeCapUnknown"}},
		"both are written": {func(w *world) {
			w.in.Config.Size.NodeCap.CPU, w.in.Config.Size.NodeCap.Memory = "8", "5Gi"
			w.in.Surroundings.Nodes.Largest = nil
		}, "5Gi", []string{"NodeTooSmall"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := asideWorld()
			w.in.Config.Size.NodeCap.FromNodes = &config.FromNodes{Reserve: 10}
			w.in.Surroundings.Nodes.Largest = &inputs.Room{Node: "a", CPU: 4000, Memory: 5 << 30}
			tc.change(w)
			w.uses(6, 1, 3, 0.5)
			if got := w.requests("memory")[1]; got != tc.want {
				t.Errorf("replica 1 requests %s, want %s; %v", got, tc.want, problems(w.last))
			}
			if diff := cmp.Diff(tc.kinds, kinds(w.last)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWasSeenLongAgoIsNotBelieved: of nodes that nobody could list for an hour nothing is known.
func TestWhatWasSeenLongAgoIsNotBelieved(t *testing.T) {
	w := asideWorld()
	w.uses(6, 1, 3, 0.5)
	at := w.in.Now
	w.run(29)
	if got := missingInputs(w.last); slices.Contains(got, "cores") {
		t.Errorf("after %s: %v", w.in.Now.Sub(at), got)
	}
	w.run(5)
	if got := missingInputs(w.last); !slices.Contains(got, "cores") {
		t.Errorf("after %s: %v", w.in.Now.Sub(at), got)
	}
}

// TestTheShippedPolicyFollowsWhatPodsUse, and an operator's rule of the same list, resource and name takes its place.
func TestTheShippedPolicyFollowsWhatPodsUse(t *testing.T) {
	pods := func(gib ...float64) (all []observed.Pod) {
		for r, g := range gib {
			all = append(all, observed.Pod{Replica: r, Name: fmt.Sprint("pod-", r), Ready: true, Memory: int64(g * (1 << 30))})
		}
		return all
	}
	w := sizedWorld(2, 2, 2)
	halfHours := func(n int) {
		for range n {
			w.in.Now = w.in.Now.Add(29 * time.Minute)
			w.run(1)
		}
	}
	w.in.Config.Size.Policies, w.in.Config.Size.Defaults = nil, true
	w.in.Observed.Pods = pods(1, 3.5, 2)
	w.run(5)
	if diff := cmp.Diff([]string{"1280Mi", "4608Mi", "2560Mi"}, w.requests("memory")); diff != "" {
		t.Errorf("-want +got:\n%s\n%v", diff, problems(w.last))
	}
	w.in.Observed.Pods = pods(1, 1, 2)
	halfHours(46)
	if diff := cmp.Diff([]string{"1280Mi", "4608Mi", "2560Mi"}, w.requests("memory")); diff != "" {
		t.Errorf("within a day (-want +got):\n%s", diff)
	}
	halfHours(6)
	if diff := cmp.Diff([]string{"1280Mi", "1280Mi", "2560Mi"}, w.requests("memory")); diff != "" {
		t.Errorf("after a day (-want +got):\n%s", diff)
	}
	w.in.Config.Size.Policies = []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Base: "8Gi"}, {Name: "more", List: config.Requests, Resource: "memory", Base: "1Gi"}}}}
	w.run(2)
	if diff := cmp.Diff([]string{"9Gi", "9Gi", "9Gi"}, w.requests("memory")); diff != "" {
		t.Errorf("under an overlay (-want +got):\n%s", diff)
	}
	if got := w.in.Config.Size.PolicyOf(w.in.Config.Size.Merged()[0]); got != "ours" {
		t.Errorf("the rule is of policy %q", got)
	}
	w.in.Config.Size.Policies, w.in.Observed.Pods = nil, nil
	w.run(1)
	if diff := cmp.Diff([]string{"memoryInUse"}, missingInputs(w.last)); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
}

// While the nodes are not known replicas stay within what they gave when they were seen last, also under a new leader, and that is told.
func TestNodesThatAreNotSeenBoundAsTheyDid(t *testing.T) {
	w := asideWorld()
	w.in.Config.Size.NodeCap.FromNodes = &config.FromNodes{Reserve: 10}
	w.in.Surroundings.Nodes.Largest = &inputs.Room{Node: "a", CPU: 4000, Memory: 5 << 30}
	w.uses(6, 1, 3, 0.5)
	w.in.Surroundings.Nodes = nil
	parts, stale := w.in.Memory.Parts(nil)
	if len(stale) > 0 {
		t.Fatal(stale)
	}
	known, dropped := memory.Of(parts)
	if len(dropped) > 0 {
		t.Fatal(dropped)
	}
	w.in.Memory = known
	w.uses(6, 1, 20, 0.5)
	if diff := cmp.Diff([]string{"2Gi", "4608Mi", "1Gi"}, w.requests("memory")); diff != "" {
		t.Errorf("-want +got:\n%s\n%v", diff, problems(w.last))
	}
	const want = "size.nodeCap.fromNodes bounds replicas by the nodes as they were seen last: "
	if p := findProblem(w.last, "NodeCapUnknown"); !strings.HasPrefix(p.Message, want) {
		t.Errorf("told %q, want %q", p.Message, want)
	}
}
