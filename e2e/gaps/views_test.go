package gaps

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/e2e/assets"
	"ballast/e2e/fleet"
)

func startViews(t *testing.T) *Views {
	t.Helper()
	argocd, err := assets.BuildArgoCD(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	v, err := StartViews(t.Context(), argocd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() }) // the context has ended it
	return v
}

// TestWhatArgoCDMakesOfShards proves the facts again that the modes rest on, one pod's start after the other.
func TestWhatArgoCDMakesOfShards(t *testing.T) {
	v := startViews(t)
	type pod struct{ shard, replicas string }
	for name, tc := range map[string]struct {
		shard string // data.shard; "none" for none
		pods  []pod
		want  []string
	}{
		"an explicit shard":                               {"1", []pod{{"0", "16"}, {"1", "16"}}, []string{"1"}},
		"one that is not a number is left to the hash":    {"0x1", []pod{{"0", "2"}, {"1", "2"}}, []string{"1"}},
		"a negative one is nobody's":                      {"-1", []pod{{"0", "2"}, {"1", "2"}}, []string{}},
		"one at the replicas is shard 0's":                {"2", []pod{{"0", "2"}, {"1", "2"}}, []string{"0"}},
		"one without a pod is nobody's":                   {"2", []pod{{"0", "16"}, {"1", "16"}}, []string{}},
		"none, and an env above the pods":                 {"none", []pod{{"0", "16"}, {"1", "16"}}, []string{}},
		"an env of 1 takes everything":                    {"1", []pod{{"0", "1"}, {"1", "1"}}, []string{"0", "1"}},
		"an env that is no number takes everything":       {"1", []pod{{"0", "many"}, {"1", "many"}}, []string{"0", "1"}},
		"an ordinal at the env has no work":               {"0", []pod{{"0", "2"}, {"2", "2"}}, []string{"0"}},
		"an ordinal above the env is a second shard 0":    {"0", []pod{{"0", "2"}, {"3", "2"}}, []string{"0", "3"}},
		"a new shard while the env rolls has two":         {"2", []pod{{"0", "2"}, {"1", "2"}, {"2", "3"}}, []string{"0", "2"}},
		"a shard of both while the env rolls has one":     {"1", []pod{{"0", "2"}, {"1", "2"}, {"2", "3"}}, []string{"1"}},
		"a constant env makes a new pod take what is its": {"2", []pod{{"0", "16"}, {"1", "16"}, {"2", "16"}}, []string{"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			secret := ViewSecret{UID: "9e2f4c11-0b7a-4c57-a8a5-1f2f6b0c1d24", Name: "prod-eu", Server: "https://prod-eu:6443", Shard: &tc.shard}
			if tc.shard == "none" {
				secret.Shard = nil
			}
			steps := []Step{{Do: DoReset}}
			for _, p := range tc.pods {
				steps = append(steps, Step{Do: DoStart, Pod: p.shard, Start: &ViewStart{
					Replicas: p.replicas, Shard: p.shard, Algorithm: "legacy", Secrets: []ViewSecret{secret},
				}})
			}
			got, err := v.Ask(steps, secret.Server)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{tc.want}, got); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

const maxReplicas = 16

// live is a fleet that keeps the rules of the mode live: an explicit shard below the number of pods on every Secret, and an
// environment that stays at the most pods there may ever be.
type live struct {
	*rapid.T
	views     *Views
	algorithm string
	inCluster bool
	pods      int
	made      int
	secrets   []ViewSecret
}

// TestUnderTheRulesOfLiveEveryClusterHasOneOwner takes 100 random transitions in each check; with rapid's 100 checks these
// are 10,000. All owners are asked for after every event that a single pod has seen, in whatever order the pods see it.
func TestUnderTheRulesOfLiveEveryClusterHasOneOwner(t *testing.T) {
	views := startViews(t)
	transitions, answers := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := &live{T: t, views: views, algorithm: rapid.SampledFrom([]string{"legacy", "round-robin", "consistent-hashing", ""}).Draw(t, "algorithm")}
		f.begin()
		for range 100 {
			answers += rapid.SampledFrom([]func() int{f.grow, f.shrink, f.move, f.move, f.move, f.add, f.remove, f.restart}).Draw(t, "transition")()
			transitions++
		}
	})
	t.Logf("%d transitions, all owners asked for %d times", transitions, answers)
}

// begin: the implicit in-cluster keeps the rules only where its algorithm puts it on shard 0. With a Secret it keeps them like
// any other.
func (f *live) begin() {
	f.inCluster = rapid.Bool().Draw(f.T, "in-cluster")
	f.pods = rapid.IntRange(1, 4).Draw(f.T, "pods")
	for range rapid.IntRange(0, 8).Draw(f.T, "clusters") {
		f.secrets = append(f.secrets, f.newSecret(fmt.Sprintf("https://cluster-%d:6443", f.made)))
	}
	if f.inCluster && f.algorithm == "consistent-hashing" {
		f.secrets = append(f.secrets, f.newSecret(fleet.InClusterServer))
	}
	steps := []Step{{Do: DoReset}}
	for i := range f.pods {
		steps = append(steps, f.start(i))
	}
	f.owned(steps, nil)
}

func (f *live) newSecret(server string) ViewSecret {
	f.made++
	return ViewSecret{
		UID: fmt.Sprintf("00000000-0000-4000-a000-%012x", rapid.Uint32().Draw(f.T, "uid")), Name: fmt.Sprintf("cluster-%d", f.made),
		Server: server, Shard: f.shard(f.pods),
	}
}

func (f *live) shard(below int) *string {
	s := strconv.Itoa(rapid.IntRange(0, below-1).Draw(f.T, "shard"))
	return &s
}

func (f *live) start(ordinal int) Step {
	return Step{Do: DoStart, Pod: strconv.Itoa(ordinal), Start: &ViewStart{
		Replicas: strconv.Itoa(maxReplicas), Shard: strconv.Itoa(ordinal), Algorithm: f.algorithm, InCluster: f.inCluster,
		Secrets: slices.Clone(f.secrets),
	}}
}

// grow adds a pod, which at first owns nothing.
func (f *live) grow() int {
	if f.pods == maxReplicas {
		return 0
	}
	f.pods++
	return f.owned([]Step{f.start(f.pods - 1)}, nil)
}

// shrink empties the last pod and then ends it.
func (f *live) shrink() int {
	if f.pods == 1 {
		return 0
	}
	answers := 0
	for i, s := range f.secrets {
		if *s.Shard == strconv.Itoa(f.pods-1) {
			answers += f.reassign(i, f.shard(f.pods-1))
		}
	}
	f.pods--
	return answers + f.owned([]Step{{Do: DoStop, Pod: strconv.Itoa(f.pods)}}, nil)
}

func (f *live) move() int {
	if len(f.secrets) == 0 {
		return 0
	}
	return f.reassign(rapid.IntRange(0, len(f.secrets)-1).Draw(f.T, "cluster"), f.shard(f.pods))
}

func (f *live) reassign(i int, shard *string) int {
	old := f.secrets[i]
	f.secrets[i].Shard = shard
	return f.deliver(Step{Do: DoUpdate, Old: &old, New: &f.secrets[i]}, &old)
}

func (f *live) add() int {
	s := f.newSecret(fmt.Sprintf("https://cluster-%d:6443", f.made))
	f.secrets = append(f.secrets, s)
	return f.deliver(Step{Do: DoAdd, New: &s}, &s)
}

func (f *live) remove() int {
	i := slices.IndexFunc(f.secrets, func(s ViewSecret) bool { return s.Server != fleet.InClusterServer })
	if i < 0 {
		return 0
	}
	old := f.secrets[i]
	f.secrets = slices.Delete(f.secrets, i, i+1)
	return f.deliver(Step{Do: DoDelete, Old: &old}, &old)
}

// restart is of one pod, which reads everything anew.
func (f *live) restart() int {
	i := rapid.IntRange(0, f.pods-1).Draw(f.T, "pod")
	return f.owned([]Step{{Do: DoStop, Pod: strconv.Itoa(i)}, f.start(i)}, nil)
}

// deliver lets the pods see an event one after the other. Until the last has, only the cluster that it is about may have
// another number of owners than one; one that moves has none but the old and the new one.
func (f *live) deliver(event Step, about *ViewSecret) int {
	order := rapid.Permutation(numbers(f.pods)).Draw(f.T, "order")
	for i, pod := range order {
		event.Pod = strconv.Itoa(pod)
		if i == len(order)-1 {
			about = nil
		}
		f.owned([]Step{event}, about)
		if event.Do == DoUpdate {
			f.between(*event.Old.Shard, *event.New.Shard, event.New.Server)
		}
	}
	return len(order)
}

func (f *live) between(from, to, server string) {
	owners, err := f.views.Ask(nil, server)
	if err != nil {
		f.Fatal(err)
	}
	for _, owner := range owners[0] {
		if owner != from && owner != to {
			f.Fatalf("owners of %q on its way from %s to %s: got %v", server, from, to, owners[0])
		}
	}
}

// owned takes the steps and asks for the owners of all clusters, but of the one that is moving.
func (f *live) owned(steps []Step, moving *ViewSecret) int {
	var servers []string
	var want [][]string
	for _, s := range f.secrets {
		if moving == nil || s.Server != moving.Server {
			servers, want = append(servers, s.Server), append(want, []string{*s.Shard})
		}
	}
	if f.inCluster && f.algorithm != "consistent-hashing" {
		servers, want = append(servers, fleet.InClusterServer), append(want, []string{"0"})
	}
	got, err := f.views.Ask(steps, servers...)
	if err != nil {
		f.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		f.Fatalf("owners of %v (-want +got):\n%s", servers, diff)
	}
	return 1
}

func numbers(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}
