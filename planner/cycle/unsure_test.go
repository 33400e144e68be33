package cycle

import (
	"fmt"
	"testing"
	"time"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// TestALeaderWithoutAMemoryTakesNoRowForAPassingOne: most of a plan's clusters are not seen, and nobody remembers whether
// they were the fleet's. For half an hour they count as seen by a broken selector.
func TestALeaderWithoutAMemoryTakesNoRowForAPassingOne(t *testing.T) {
	w := undecided(t, skewed(30)...)
	w.in.Memory = memory.Memory{}
	for i := 4; i < 30; i++ {
		w.remove(fmt.Sprintf("c%03d", i))
	}
	blind := func() bool {
		out := Run(clone(t, w.in))
		w.in.Memory = out.Memory
		return standing.Seen(w.in.InForce.Clusters, out.Fleet, out.Memory.Known, w.in.Workload).Blind(*w.in.InForce)
	}
	for minute := range 30 {
		if !blind() {
			t.Fatalf("after %d minutes what is not seen counts for nothing", minute)
		}
		w.in.Now = w.in.Now.Add(time.Minute)
	}
	if blind() || len(w.in.Memory.Known.Unsure) > 0 {
		t.Errorf("after half an hour it counts still: %v", w.in.Memory.Known.Unsure)
	}
}

// TestWhoComesBackIsUnsureNoMore, and a person's word for what is gone ends it, too.
func TestWhoComesBackIsUnsureNoMore(t *testing.T) {
	base := plan.Plan{Clusters: map[string]plan.Row{"a": {}, "b": {}, "c": {}, "d": {}}}
	secret := func(name string) discover.Secret {
		return discover.Secret{Name: name, HasData: true, Server: "https://" + name, Created: epoch.Add(-100 * time.Hour)}
	}
	in := input.Inputs{Now: epoch, InForce: &base, Discovered: discover.Input{Secrets: []discover.Secret{secret("a")}}}
	known := in.KnownFleet()
	if got := fmt.Sprint(known.Clusters, known.Unsure); got != "[a] [b c d]" || !known.UnsureSince.Equal(epoch) {
		t.Fatalf("known and unsure are %s, since %s", got, known.UnsureSince)
	}
	step := func(minutes int, accepted *int, names ...string) string {
		in := discover.Input{AcceptDiscovery: accepted}
		for _, name := range names {
			in.Secrets = append(in.Secrets, secret(name))
		}
		_, next, _ := discover.Discover(in, known, discover.Options{MaxShrink: 1}, epoch.Add(time.Duration(minutes)*time.Minute))
		return fmt.Sprint(next.Unsure)
	}
	two := 2
	for want, got := range map[string]string{
		"[b c d]": step(1, nil, "a"),
		"[b d]":   step(1, nil, "a", "c"),
		"[]":      step(30, nil, "a"),
	} {
		if got != want {
			t.Errorf("unsure are %s, want %s", got, want)
		}
	}
	if got := step(1, &two, "a", "c"); got != "[]" {
		t.Errorf("though a person says that two are right, unsure are %s", got)
	}
	if got := step(-5, nil, "a"); got != "[b c d]" {
		t.Errorf("before the clock's own time unsure are %s", got)
	}
}
