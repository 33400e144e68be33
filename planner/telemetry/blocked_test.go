package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/resize"
	"ballast/planner/sim"
	"ballast/planner/size"
)

func waits(replica int, resource string, direction change.Direction, reason change.BlockReason, since time.Duration) resize.Blocked {
	return resize.Blocked{Replica: replica, Resource: resource, Direction: direction, Reason: reason, From: "2Gi", To: "3Gi",
		Since: sim.Epoch.Add(since)}
}

// TestAChangeThatWaitsIsToldOnce: by its kind and not by its replica, and again only after it was gone for an hour.
func TestAChangeThatWaitsIsToldOnce(t *testing.T) {
	var n BlockedNews
	one := waits(1, "memory", change.Up, change.OutsideMaintenance, 0)
	two := waits(2, "memory", change.Up, change.OutsideMaintenance, time.Minute)
	other := waits(1, "cpu", change.Up, change.RateLimit, 0)
	number := waits(size.All, resize.ResourceReplicas, change.In, change.Paradoxical, 0)
	for _, step := range []struct {
		name    string
		at      time.Duration
		waiting []resize.Blocked
		want    []string
	}{
		{"two of one kind", 0, []resize.Blocked{one, two},
			[]string{"replica 1: memory 3Gi instead of 2Gi waits since 2026-11-20T09:00:00Z: MaintenanceWindow; " +
				"and 1 more like it, which `ballast status` names"}},
		{"the same, of another replica", time.Minute, []resize.Blocked{two}, nil},
		{"others beside it", 2 * time.Minute, []resize.Blocked{two, other, number},
			[]string{"replica 1: cpu 3Gi instead of 2Gi waits since 2026-11-20T09:00:00Z: RateLimit",
				"the number of replicas: 3Gi instead of 2Gi waits since 2026-11-20T09:00:00Z: Paradoxical"}},
		{"none", 3 * time.Minute, nil, nil},
		{"again within the hour", 61 * time.Minute, []resize.Blocked{two}, nil},
		{"gone for an hour", 121 * time.Minute, []resize.Blocked{two},
			[]string{"replica 2: memory 3Gi instead of 2Gi waits since 2026-11-20T09:01:00Z: MaintenanceWindow"}},
		{"a clock that went back", 0, []resize.Blocked{two},
			[]string{"replica 2: memory 3Gi instead of 2Gi waits since 2026-11-20T09:01:00Z: MaintenanceWindow"}},
	} {
		var got []string
		for _, e := range n.Of(step.waiting, sim.Epoch.Add(step.at)) {
			got = append(got, e.Message)
			if e.Type != "Normal" || e.Reason != "ChangeBlocked" {
				t.Errorf("%s: event %s %s", step.name, e.Type, e.Reason)
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// TestTheMetricHasWhatWaitsLongest, and nothing of what waited in the cycle before.
func TestTheMetricHasWhatWaitsLongest(t *testing.T) {
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	var counted []map[string]float64 // moves
	look := func(waiting ...resize.Blocked) map[string]float64 {
		out := cycle.Outcome{Sizing: &resize.Sizing{Blocked: waiting}, Counts: &cycle.Counts{Blocked: []resize.Blocked{
			waits(size.All, resize.ResourceReplicas, change.In, change.Paradoxical, 3*time.Minute)}}}
		if len(waiting) > 0 {
			out.Blocked = []resize.Blocked{{Replica: size.All, Resource: resize.ResourceClusters, Direction: change.Moves, Reason: change.UpdatePolicy,
				From: "0", To: "7", Since: sim.Epoch.Add(4 * time.Minute)}}
		}
		m.ObserveOutcome(input.Inputs{Now: sim.Epoch}, out, sim.Epoch)
		counted = append(counted, series(t, r, "ballast_moves_blocked"))
		return series(t, r, "ballast_change_blocked_timestamp_seconds")
	}
	at := func(since time.Duration) float64 { return float64(sim.Epoch.Add(since).Unix()) }
	got := []map[string]float64{
		look(waits(1, "memory", change.Up, change.OutsideMaintenance, 2*time.Minute),
			waits(2, "memory", change.Up, change.OutsideMaintenance, time.Minute),
			waits(3, "memory", change.Up, change.OutsideMaintenance, 3*time.Minute), waits(3, "cpu", change.Down, change.TooSmall, 0)),
		look()}
	number := at(3 * time.Minute)
	want := []map[string]float64{
		{"up/MaintenanceWindow/memory": at(time.Minute), "down/MinChange/cpu": at(0), "in/Paradoxical/replicas": number,
			"moves/UpdatePolicy/clusters": at(4 * time.Minute)},
		{"in/Paradoxical/replicas": number}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]map[string]float64{{"UpdatePolicy": 7}, {}}, counted); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
}

// series are a metric's values by its labels' values, in the order of the labels' names.
func series(t *testing.T, r *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			values[strings.Join(labels, "/")] = m.GetGauge().GetValue()
		}
	}
	return values
}

// TestWhatWaitsIsToldAtMostOnceAnHour, however it comes and goes.
func TestWhatWaitsIsToldAtMostOnceAnHour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n BlockedNews
		now, told := sim.Epoch, map[string]time.Time{}
		for range rapid.IntRange(1, 40).Draw(t, "cycles") {
			now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "minutes")) * time.Minute)
			var waiting []resize.Blocked
			for _, reason := range []change.BlockReason{change.RateLimit, change.TooSmall, change.StaleInput} {
				for replica := range rapid.IntRange(0, 3).Draw(t, string(reason)) {
					waiting = append(waiting, resize.Blocked{Replica: replica, Resource: "memory", Reason: reason, Since: now})
				}
			}
			for _, e := range n.Of(waiting, now) {
				reason := e.Message[strings.LastIndex(strings.SplitN(e.Message, ";", 2)[0], " ")+1:]
				reason = strings.SplitN(reason, ";", 2)[0]
				if last, again := told[reason]; again && now.Sub(last) < quietFor {
					t.Fatalf("%s is told at %s and at %s", reason, last, now)
				}
				told[reason] = now
			}
			for _, b := range waiting {
				if told[string(b.Reason)].IsZero() {
					t.Fatalf("%s waits and was never told", b.Reason)
				}
			}
		}
	})
}
