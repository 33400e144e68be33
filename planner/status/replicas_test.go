package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"ballast/planner/cycle/resize"
	"ballast/planner/measure"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// TestWhatTheLeaderKnowsOfEachReplica: what it has by its own account, how old the oldest value of its clusters is, what the rules
// want, and which clusters are not where the plan has them.
func TestWhatTheLeaderKnowsOfEachReplica(t *testing.T) {
	in, out, p := looked()
	p.Clusters["twin"] = plan.Row{Replica: 1}
	in.Observed.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Answered: true}, {Replica: 1, Name: "c-1", Answered: true},
		{Replica: 2, Name: "c-2"}}
	out.Verdict.Owned = map[string]observed.Owned{"a": {Owners: []int{0, 1}}, "b": {Owners: []int{1}}, "c": {}, "twin": {Idle: true},
		"unplanned": {Owners: []int{0}}}
	ms := func(ago time.Duration) int64 { return noon.Add(-ago).UnixMilli() }
	out.Table = measure.Table{Shards: []plan.Shard{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "twin"}}, Columns: []measure.Column{
		{ID: "apps", SampledAt: []int64{ms(30 * time.Second), ms(40 * time.Second), 0, ms(time.Hour)}},
		{ID: "objects", SampledAt: []int64{ms(20 * time.Second), 0, 0, ms(50 * time.Second)}}}}
	three := plan.Resources{Requests: map[string]string{"memory": "3Gi"}}
	out.Sizing = &resize.Sizing{Replicas: []resize.ReplicaSize{{Replica: 1, Wanted: three}}}
	s := Of(in, out, p, "me", Status{})
	want := []Replica{
		{Replica: 0, Owns: ptr.To(2), Sampled: noon.Add(-30 * time.Second)},
		{Replica: 1, Owns: ptr.To(2), Sampled: noon.Add(-time.Hour), Wanted: three},
	} // nothing is known of replica 2
	if diff := cmp.Diff(want, s.Replicas); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	elsewhere := []Elsewhere{{Cluster: "a", Planned: 0, Owners: []int{0, 1}}, {Cluster: "c", Planned: 2}}
	if diff := cmp.Diff(elsewhere, s.Elsewhere); diff != "" {
		t.Errorf("clusters elsewhere (-want +got):\n%s", diff)
	}
	in.Observed.Reported.Asked = false
	out.Sizing.Replicas[0].Replica = size.All
	s = Of(in, out, p, "me", Status{})
	if s.Elsewhere != nil || s.Replicas[len(s.Replicas)-1].Wanted.Requests["memory"] != "3Gi" {
		t.Errorf("where a pod is silent, %v are elsewhere and the replicas are %+v; want none, and 3Gi for the last", s.Elsewhere, s.Replicas)
	}
}

// TestAnotherSampleIsNoNews, and another owner is.
func TestAnotherSampleIsNoNews(t *testing.T) {
	in, out, p := looked()
	in.Observed.Pods = []observed.Pod{{Replica: 0, Name: "c-0", Answered: true}}
	before := Of(in, out, p, "me", Status{})
	later := Of(in, out, p, "me", Status{})
	later.Replicas[0].Sampled = noon
	if !before.Same(later) || later.Replicas[0].Sampled != noon {
		t.Error("another time of a sample is news, or is lost by the comparison")
	}
	*later.Replicas[0].Owns = 1
	if before.Same(later) {
		t.Error("another number of clusters is no news")
	}
}

// TestWhatPodsCanBeGivenIsSaid, so that a command compares their sizes as the leader does.
func TestWhatPodsCanBeGivenIsSaid(t *testing.T) {
	in, out, p := looked()
	if s := Of(in, out, p, "me", Status{}); s.Resizes != nil || s.KeepsLimits {
		t.Errorf("nothing is known, and it says %v and %v", s.Resizes, s.KeepsLimits)
	}
	in.Resizes, in.KeepsLimits = ptr.To(false), true
	s := Of(in, out, p, "me", Status{})
	if s.Resizes == nil || *s.Resizes || !s.KeepsLimits {
		t.Errorf("it says %v and %v, want that no running pod is resized, and no limit lowered", s.Resizes, s.KeepsLimits)
	}
}
