package bill

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/size"
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
		{Name: Ours, Replicas: Replicas{3, 2, 3}, Changes: 2, Resizes: 2, GiBHours: 5 + 7 + 9 + 9, Largest: Amount{Memory: "6Gi"}},
		{Name: Same, Replicas: Replicas{3, 2, 3}, GiBHours: 6 * (2 + 2 + 3 + 3), Largest: Amount{Memory: "6Gi"}},
		{Name: CPVPS, Replicas: Replicas{3, 2, 3}, Changes: 1, Restarts: 2, GiBHours: 4*2 + 6*(2+3+3), Largest: Amount{Memory: "6Gi"}},
		// One more of two replicas, and then 2/5 of two more, and 3/5 of the way from 4Gi to 6Gi.
		{Name: HVPA, Replicas: Replicas{4, 2, 4}, Changes: 1, Restarts: 3, GiBHours: 4*2 + 4*3 + 5.2*(4+4), Largest: Amount{Memory: "5583458k"}},
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
	want := Way{Name: Ours, Replicas: Replicas{3, 3, 3}, Changes: 3, Restarts: 3, GiBHours: 15, Largest: Amount{Memory: "6Gi"}}
	if diff := cmp.Diff(want, got.Ways[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// HVPA does nothing for less than its least change, nor soon after its last one: of three replicas it makes four of 5.2Gi at once, a
// fifth two minutes later, and three of 2.8Gi a quarter of an hour after that.
func TestHVPAWaits(t *testing.T) {
	three := func(memory string) moment {
		return moment{computed: []string{memory, memory, memory}, held: []string{"4Gi", "4Gi", "4Gi"}}
	}
	all := []moment{three("4Gi"), three("4200Mi"), three("6Gi"), three("8Gi"), three("8Gi"), three("2Gi")}
	for minutes, want := range map[int]Way{
		2:  {Name: HVPA, Replicas: Replicas{3, 3, 3}, GiBHours: 0.4, Largest: Amount{Memory: "4Gi"}},
		3:  {Name: HVPA, Replicas: Replicas{4, 3, 4}, Changes: 1, Restarts: 3, GiBHours: 0.75, Largest: Amount{Memory: "5583458k"}},
		4:  {Name: HVPA, Replicas: Replicas{4, 3, 4}, Changes: 1, Restarts: 3, GiBHours: 1.09, Largest: Amount{Memory: "5583458k"}},
		5:  {Name: HVPA, Replicas: Replicas{5, 3, 5}, Changes: 1, Restarts: 3, GiBHours: 1.53, Largest: Amount{Memory: "5583458k"}},
		19: {Name: HVPA, Replicas: Replicas{5, 3, 5}, Changes: 1, Restarts: 3, GiBHours: 7.59, Largest: Amount{Memory: "5583458k"}},
		20: {Name: HVPA, Replicas: Replicas{3, 3, 5}, Changes: 2, Restarts: 6, GiBHours: 7.73, Largest: Amount{Memory: "5583458k"}},
	} {
		for len(all) < minutes {
			all = append(all, three("2Gi"))
		}
		got := counted(config.InPlace, time.Minute, all[:minutes]...)
		if diff := cmp.Diff(want, got.Ways[3]); diff != "" {
			t.Errorf("after %d minutes (-want +got):\n%s", minutes, diff)
		}
	}
	if w := counted(config.InPlace, time.Minute, all[:6]...).Ways[2]; w.Changes != 4 {
		t.Errorf("CPVPS's rules: %+v, want four changes", w)
	}
}

// Up to two replicas HVPA's weights make more of them and none larger, and within a tenth of what stands the HPA wants none.
func TestHVPAOfTwoReplicasGrowsByMore(t *testing.T) {
	two := func(memory string) moment {
		return moment{computed: []string{memory, memory}, held: []string{memory, memory}}
	}
	got := counted(config.InPlace, time.Hour, two("10Gi"), two("11Gi"), two("12Gi"))
	want := Way{Name: HVPA, Replicas: Replicas{3, 2, 3}, GiBHours: 20 + 20 + 30, Largest: Amount{Memory: "10Gi"}}
	if diff := cmp.Diff(want, got.Ways[3]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What each replica needs whatever it has, a base, is not shared by more of them.
func TestABaseIsOfEachReplica(t *testing.T) {
	d := demand{each: request{"memory": 1000}, fullest: request{"memory": 6000, "cpu": 10}, replicas: 2}
	for replicas, want := range map[int]request{1: {"memory": 13000, "cpu": 20}, 2: {"memory": 7000, "cpu": 10}, 3: {"memory": 5000, "cpu": 7}} {
		if diff := cmp.Diff(want, d.target(replicas)); diff != "" {
			t.Errorf("of %d replicas (-want +got):\n%s", replicas, diff)
		}
	}
}

// Whatever is asked of it, HVPA keeps its bounds and its cooldowns.
func TestHVPAKeepsToItsSpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h hvpa
		began := rapid.IntRange(1, 12).Draw(t, "replicas")
		now, changed := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC), time.Time{}
		for range rapid.IntRange(1, 40).Draw(t, "minutes") {
			now = now.Add(time.Minute)
			gib := int64(1<<30) * 1000
			d := demand{each: request{"memory": gib}, fullest: request{"memory": rapid.Int64Range(0, 64).Draw(t, "GiB") * gib,
				"cpu": rapid.Int64Range(0, 64000).Draw(t, "cpu")}, replicas: began}
			if rapid.Bool().Draw(t, "cpu is unknown") {
				delete(d.fullest, "cpu")
			}
			before, stood := h.replicas, maps.Clone(h.stands)
			restarts := h.takes(now, d)
			if h.replicas < 1 || h.replicas > 10*began {
				t.Fatalf("%d replicas of %d", h.replicas, began)
			}
			if stood == nil {
				continue
			}
			resized := !maps.Equal(stood, h.stands)
			if want := min(before, h.replicas); resized && restarts != want || !resized && restarts != 0 {
				t.Fatalf("%d restarts, of %d replicas and then %d (resized: %v)", restarts, before, h.replicas, resized)
			}
			if resized || before != h.replicas {
				if !changed.IsZero() && now.Sub(changed) < 2*time.Minute {
					t.Fatalf("changed %s after the last change", now.Sub(changed))
				}
				changed = now
			}
		}
	})
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
		{Name: CPVPS, Replicas: Replicas{2, 2, 2}, Changes: 1, Restarts: 2,
			GiBHours: 4 * 2 * 4, CoreHours: 2 * (1 + 1 + 2 + 2), Largest: Amount{CPU: "2", Memory: "4Gi"}},
		// Two replicas of two cores' need become four of one, and once memory is known again each has 3/5 less of what it does not need.
		{Name: HVPA, Replicas: Replicas{4, 2, 4}, Changes: 1, Restarts: 4,
			GiBHours: 4*(2+2+4) + 2.8*4, CoreHours: 2 + 2 + 4 + 4, Largest: Amount{CPU: "1", Memory: "4Gi"}},
	}
	if diff := cmp.Diff(want, tally.Bill().Ways[2:]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Where one size is for all (a Deployment, size.apply: template), what the fullest replica needs is divided among HVPA's replicas
// as where each has its own, and what does not go by a replica is not.
func TestOneSizeForAllIsBilledAsTheFullestReplicas(t *testing.T) {
	bills := map[bool][]Way{}
	for _, uniform := range []bool{false, true} {
		var tally Tally
		now := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
		for hour, needs := range []string{"1", "1", "2", "2", "4", "4"} {
			rows := []resize.SizeRow{{Rule: "requests/cpu/base", Replica: size.All, Known: true, Computed: "500m", Value: "500m"}}
			if uniform {
				rows = append(rows, resize.SizeRow{Rule: "requests/cpu", Replica: size.All, Fullest: true, Known: true, Computed: needs, Value: needs})
			} else {
				rows = append(rows, resize.SizeRow{Rule: "requests/cpu", Replica: 0, Known: true, Computed: needs, Value: needs},
					resize.SizeRow{Rule: "requests/cpu", Replica: 1, Known: true, Computed: "500m", Value: "500m"})
			}
			tally.Count(now.Add(time.Duration(hour)*time.Hour), &resize.Sizing{Rules: rows}, plan.Plan{}, 2, time.Hour)
		}
		bills[uniform] = tally.Bill().Ways[2:]
	}
	if diff := cmp.Diff(bills[false], bills[true]); diff != "" {
		t.Errorf("of its own size, and one for all (-own +one):\n%s", diff)
	}
	if got, want := bills[true][1].Replicas, (Replicas{6, 2, 6}); got != want {
		t.Errorf("HVPA makes %+v, want %+v", got, want)
	}
}

func TestWithoutSizesThereIsNoBill(t *testing.T) {
	var tally Tally
	tally.Count(time.Now(), nil, plan.Plan{}, 3, time.Hour)
	if b := tally.Bill(); b != nil {
		t.Errorf("%+v", b)
	}
}
