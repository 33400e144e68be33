package apply

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/plan"
)

func TestASecretThatIsRevertedWaitsLongerEachTime(t *testing.T) {
	p, now := newPace(1000), start
	type turn struct {
		Reverted int
		Wait     time.Duration
	}
	var got []turn
	for range 8 {
		reverted := p.wrote("a", "3", true, now)
		wait := p.wait("a", "3", now)
		got = append(got, turn{reverted, wait})
		now = now.Add(wait)
	}
	want := []turn{
		{0, time.Second}, {1, 2 * time.Second}, {2, 4 * time.Second},
		{3, 32 * time.Second}, {4, 256 * time.Second}, {5, 10 * time.Minute}, {6, 10 * time.Minute}, {7, 10 * time.Minute},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheBackoffIsOneObjectsAndOneValues(t *testing.T) {
	for name, test := range map[string]struct {
		after         time.Duration
		object, value string
		wantWait      time.Duration
		wantReverted  int
	}{
		"at once again":              {0, "a", "3", 4 * time.Second, 3},
		"a part of the wait is over": {time.Second, "a", "3", 3 * time.Second, 3},
		"the wait is over":           {4 * time.Second, "a", "3", 0, 3},
		"another Secret":             {0, "b", "3", 0, 0},
		"another value is a move":    {0, "a", "4", 0, 0},
		"hours in peace are a start": {7 * time.Hour, "a", "3", 0, 0},
		"a clock that went far back": {-time.Hour, "a", "3", 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPace(1000)
			for range 3 {
				p.wrote("a", "3", true, start)
			}
			now := start.Add(test.after)
			if got := p.wait(test.object, test.value, now); got != test.wantWait {
				t.Errorf("waits %s, want %s", got, test.wantWait)
			}
			if got := p.wrote(test.object, test.value, true, now); got != test.wantReverted {
				t.Errorf("counts %d reverts, want %d", got, test.wantReverted)
			}
		})
	}
}

func TestAWriteThatFailedIsNoRevert(t *testing.T) {
	p := newPace(1000)
	got := []int{p.wrote("a", "3", false, start), p.wrote("a", "3", false, start), p.wrote("a", "3", true, start), p.wrote("a", "3", true, start)}
	if diff := cmp.Diff([]int{0, 0, 0, 1}, got); diff != "" {
		t.Errorf("reverts (-want +got):\n%s", diff)
	}
}

func TestTheFleetsBudgetFillsUpByTheMinute(t *testing.T) {
	p := newPace(2)
	got := []time.Duration{p.spend(start, 0), p.spend(start, 0), p.spend(start, 0), p.spend(start.Add(30*time.Second), 0), p.spend(start.Add(30*time.Second), 0)}
	want := []time.Duration{0, 0, 30 * time.Second, 0, 30 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	p := newPace(1000)
	p.wrote("old", "1", true, start)
	p.wrote("new", "1", true, start.Add(6*time.Hour))
	p.forget(start.Add(7 * time.Hour))
	if _, kept := p.objects["old"]; kept || len(p.objects) != 1 {
		t.Errorf("kept %v, want new alone", p.objects)
	}
}

func TestTheOtherWriterIsTheLastOneOfTheShard(t *testing.T) {
	entry := func(manager string, after time.Duration, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &metav1.Time{Time: start.Add(after)}, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const shard, server = `{"f:data":{"f:shard":{}}}`, `{"f:data":{".":{},"f:server":{}}}`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"nobody":             {nil, ""},
		"ballast alone":      {[]metav1.ManagedFieldsEntry{entry(plan.FieldManager, 0, shard)}, ""},
		"the latest":         {[]metav1.ManagedFieldsEntry{entry("helm", 0, shard), entry("kubectl-edit", 2, shard), entry("argocd", 1, shard)}, "kubectl-edit"},
		"not ballast itself": {[]metav1.ManagedFieldsEntry{entry("helm", 0, shard), entry(plan.FieldManager, 2, shard)}, "helm"},
		"not another field":  {[]metav1.ManagedFieldsEntry{entry("helm", 0, shard), entry("argocd", 2, server)}, "helm"},
		"who took it away":   {[]metav1.ManagedFieldsEntry{entry("kubectl-create", 0, server), entry("external-secrets", 1, server), entry("argocd", 2, `{"f:metadata":{}}`)}, "external-secrets"},
		"what no one reads":  {[]metav1.ManagedFieldsEntry{{Manager: "none"}, entry("broken", 0, `[`), entry("helm", 0, shard)}, "helm"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shardManager(test.entries); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestWhatFollowsLeavesHalfOfTheBudget: one server may have thousands of Secrets, and who pins the first moves them all.
func TestWhatFollowsLeavesHalfOfTheBudget(t *testing.T) {
	p := newPace(4)
	got := []time.Duration{p.spend(start, 2), p.spend(start, 2), p.spend(start, 2), p.spend(start, 0), p.spend(start, 0), p.spend(start, 0),
		p.spend(start.Add(15*time.Second), 2), p.spend(start.Add(45*time.Second), 2)}
	want := []time.Duration{0, 0, 15 * time.Second, 0, 0, 15 * time.Second, 30 * time.Second, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}
