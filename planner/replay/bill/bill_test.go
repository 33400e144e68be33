package bill

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
)

// moment is what one cycle decides: the memory of each replica as the rules compute it, and as the plan has it.
type moment struct {
	computed, held []string
	unknown        bool
	blocked        []change.BlockReason
}

func counted(apply config.SizeApply, every time.Duration, all ...moment) *Bill {
	var t Tally
	now := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	for _, m := range all {
		s := &resize.Sizing{Apply: apply, Rules: []resize.SizeRow{{Rule: "limits/memory", Known: true, Computed: "99Gi", Value: "99Gi"}}}
		p := plan.Plan{Sizes: &plan.Sizes{Replicas: map[int]plan.Resources{}}}
		for r, computed := range m.computed {
			s.Rules = append(s.Rules, resize.SizeRow{Rule: "requests/memory/apps", Replica: r, Known: !m.unknown, Computed: computed, Value: computed})
			p.Sizes.Replicas[r] = plan.Resources{Requests: map[string]string{"memory": m.held[r]}}
		}
		if apply == config.Template {
			p.Sizes, p.Resources = nil, &plan.Resources{Requests: map[string]string{"memory": m.held[0]}}
		}
		for _, reason := range m.blocked {
			s.Blocked = append(s.Blocked, resize.Blocked{Reason: reason})
		}
		t.Count(now, s, p, len(m.computed), every)
		now = now.Add(every)
	}
	return t.Bill()
}

func TestWhatSizesCost(t *testing.T) {
	got := counted(config.InPlace, time.Hour,
		moment{computed: []string{"4Gi", "1Gi"}, held: []string{"4Gi", "1Gi"}},
		moment{computed: []string{"6Gi", "1Gi"}, held: []string{"6Gi", "1Gi"}, blocked: []change.BlockReason{change.RateLimit, change.RateLimit}},
		moment{computed: []string{"6Gi", "2Gi", "1Gi"}, held: []string{"6Gi", "2Gi", "1Gi"}, blocked: []change.BlockReason{change.RateLimit, change.StaleInput}},
		moment{computed: []string{"16Gi", "2Gi", "1Gi"}, unknown: true, held: []string{"6Gi", "2Gi", "1Gi"}})
	want := &Bill{Apply: config.InPlace, Ways: []Way{
		{Name: Ours, Changes: 2, Resizes: 2, GiBHours: 5 + 7 + 9 + 9, Largest: Amount{Memory: "6Gi"}},
		{Name: Same, GiBHours: 6 * (2 + 2 + 3 + 3), Largest: Amount{Memory: "6Gi"}},
		{Name: CPVPS, Changes: 1, Restarts: 2, GiBHours: 4*2 + 6*(2+3+3), Largest: Amount{Memory: "6Gi"}},
		{Name: HVPA, Changes: 1, Restarts: 2, GiBHours: 4*2 + 6*(2+3+3), Largest: Amount{Memory: "6442451k"}},
	}, Blocked: []Blocked{{string(change.RateLimit), 2}, {string(change.StaleInput), 1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// By the template each change restarts every replica.
func TestTheTemplateRestartsEveryReplica(t *testing.T) {
	got := counted(config.Template, 30*time.Minute,
		moment{computed: []string{"4Gi", "1Gi", "1Gi"}, held: []string{"4Gi", "4Gi", "4Gi"}},
		moment{computed: []string{"6Gi", "1Gi", "1Gi"}, held: []string{"6Gi", "6Gi", "6Gi"}})
	want := Way{Name: Ours, Changes: 3, Restarts: 3, GiBHours: 15, Largest: Amount{Memory: "6Gi"}}
	if diff := cmp.Diff(want, got.Ways[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// HVPA does nothing for less than its least change, nor soon after its last one.
func TestHVPAWaits(t *testing.T) {
	got := counted(config.InPlace, time.Minute,
		moment{computed: []string{"4Gi"}, held: []string{"4Gi"}},
		moment{computed: []string{"4200Mi"}, held: []string{"4Gi"}},
		moment{computed: []string{"6Gi"}, held: []string{"4Gi"}},
		moment{computed: []string{"8Gi"}, held: []string{"4Gi"}},
		moment{computed: []string{"8Gi"}, held: []string{"4Gi"}},
		moment{computed: []string{"4Gi"}, held: []string{"4Gi"}})
	if w := got.Ways[3]; w.Changes != 2 || w.Restarts != 2 {
		t.Errorf("%+v, want two changes", w)
	}
	if w := got.Ways[2]; w.Changes != 4 {
		t.Errorf("CPVPS's rules: %+v, want four changes", w)
	}
}

// A replica that comes has no input yet: what the peers hold of that resource stays, and nothing restarts for it.
func TestAnInputThatIsNotKnownTakesNothingBack(t *testing.T) {
	var tally Tally
	now := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	row := func(name string, replica int, value string) resize.SizeRow {
		return resize.SizeRow{Rule: "requests/" + name, Replica: replica, Known: value != "", Computed: value, Value: value}
	}
	for hour, rows := range [][]resize.SizeRow{
		{row("cpu", 0, "1"), row("memory", 0, "4Gi")},
		{row("cpu", 0, "1"), row("memory", 0, "4Gi"), row("cpu", 1, "1"), row("memory", 1, "")},
		{row("cpu", 0, "2"), row("memory", 0, "4Gi"), row("cpu", 1, "1"), row("memory", 1, "")},
		{row("cpu", 0, "2"), row("memory", 0, "4Gi"), row("cpu", 1, "1"), row("memory", 1, "1Gi")},
	} {
		tally.Count(now.Add(time.Duration(hour)*time.Hour), &resize.Sizing{Rules: rows}, plan.Plan{}, 2, time.Hour)
	}
	want := []Way{
		{Name: CPVPS, Changes: 1, Restarts: 2, GiBHours: 4 * 2 * 4, CoreHours: 2 * (1 + 1 + 2 + 2), Largest: Amount{CPU: "2", Memory: "4Gi"}},
		{Name: HVPA, Changes: 1, Restarts: 2, GiBHours: 4 * 2 * 4, CoreHours: 2 * (1 + 1 + 2 + 2), Largest: Amount{CPU: "2", Memory: "4Gi"}},
	}
	if diff := cmp.Diff(want, tally.Bill().Ways[2:]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWithoutSizesThereIsNoBill(t *testing.T) {
	var tally Tally
	tally.Count(time.Now(), nil, plan.Plan{}, 3, time.Hour)
	if b := tally.Bill(); b != nil {
		t.Errorf("%+v", b)
	}
}
