package rollback

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/cmd/ballast/evacuate"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/cycle"
	"ballast/planner/cycle/preview"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/status"
)

func keptAs(p plan.Plan, revision int64, at time.Time, reason string) keptPlan {
	p.Revision = revision
	k := keptPlan{Revision: revision, DecidedAt: at, DecidedBy: "planner-0", Reason: reason, Replicas: p.Replicas, plan: &p}
	if p.Rollout != nil {
		k.plan, k.Midst = nil, string(p.Rollout.Stage)
	}
	return k
}

// backFrom is the way back from a plan in force.
func backFrom(now plan.Plan, secrets steer.Standing, then plan.Plan) difference {
	return wayBack(configmap.Document{Plan: &now, Pins: secrets.Pins}, secrets, then, fixture.Noon)
}

// sizedAt is a plan whose replica 1 is of a size of its own.
func sizedAt(memory string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		usual := plan.Resources{Requests: map[string]string{"memory": "1Gi"}, Limits: map[string]string{"memory": "4Gi"}}
		own := plan.Resources{Requests: map[string]string{"memory": memory}, Limits: map[string]string{"memory": "4Gi"}}
		p.Sizes = &plan.Sizes{Default: usual, Replicas: map[int]plan.Resources{1: own}}
	}
}

func TestRollbackGolden(t *testing.T) {
	then := fixture.Steered(fixture.Four)
	then.Revision = 14
	two := fixture.Steered(func(p *plan.Plan) {
		p.Replicas = 2
		p.Clusters = map[string]plan.Row{"prod-eu": {Replica: 1}, "prod-us": {Replica: 0}, "prod-ap": {Replica: 1}}
	})
	two.Revision = 12
	same := fixture.Steered(nil)
	same.Revision = 16
	secrets := steer.Standing{Pins: plan.Pins{"dev": 2, "prod-eu": 0}, Fixed: map[string]bool{"prod-us": true}}
	sized, grown := fixture.Steered(sizedAt("1280Mi")), fixture.Steered(sizedAt("2Gi"))
	sized.Revision = 16
	asked := func(d difference, change func(*difference)) difference { change(&d); return d }
	moves := func(n int) *int { return &n }
	inForce, before := keptAs(fixture.Steered(nil), 17, fixture.Noon.Add(-3*time.Minute), "moves 3 of 7 clusters"), keptAs(then, 14, fixture.Noon.Add(-26*time.Hour), "took over the fleet as it is")
	inForce.InForce, before.Moves = true, moves(2)
	midst := keptAs(fixture.Steered(func(p *plan.Plan) { p.Rollout = &plan.Rollout{Stage: plan.Scaling} }), 15, fixture.Noon.Add(-time.Hour), "4 replicas instead of 3")
	list := keptList{InForce: 17, Plans: []keptPlan{inForce, before}, Hidden: 1, now: fixture.Noon}
	for name, r := range map[string]say.Result{
		"difference":         backFrom(fixture.Steered(nil), steer.Standing{}, then),
		"dry-run":            asked(backFrom(fixture.Steered(nil), steer.Standing{}, then), func(d *difference) { d.DryRun = true }),
		"some-stay":          asked(backFrom(fixture.Steered(nil), secrets, then), func(d *difference) { d.Asked, d.Waits = "12", "enforcement is off" }),
		"to-fewer-replicas":  backFrom(fixture.Steered(nil), steer.Standing{}, two),
		"replicas-of-people": backFrom(fixture.Steered(func(p *plan.Plan) { p.FreeReplicas = true }), steer.Standing{}, then),
		"nothing":            backFrom(fixture.Steered(nil), steer.Standing{}, same),
		"sizes":              backFrom(grown, steer.Standing{}, sized),
		"asked":              asked(backFrom(fixture.Steered(nil), steer.Standing{}, then), func(d *difference) { d.asked, d.shown, d.Changed = true, true, true }),
		"asked-unseen":       asked(backFrom(fixture.Steered(nil), steer.Standing{}, then), func(d *difference) { d.asked, d.Changed = true, true }),
		"asked-before":       asked(backFrom(fixture.Steered(nil), steer.Standing{}, then), func(d *difference) { d.asked, d.shown = true, true }),
		"list":               list,
		"list-all": keptList{InForce: 17, RollbackTo: "14", now: fixture.Noon, Plans: []keptPlan{inForce, midst, before,
			{Revision: 9, DecidedAt: fixture.Noon.Add(-9 * 24 * time.Hour), Problem: "decoding the plan: kind"}, {Problem: "plan revision 8: unpacking: gzip: invalid header"}}},
		"list-none":     keptList{InForce: 1, Plans: []keptPlan{}, now: fixture.Noon},
		"cancelled":     cancelled{Was: "14", Revision: 18, Changed: true, Rollout: &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Wave: 1, Waves: 2, Moves: map[string]int{"dev": 3}, From: plan.Count{Replicas: 3}, Replicas: 4}},
		"cancelled-not": cancelled{Revision: 17},
	} {
		t.Run(name, func(t *testing.T) {
			table, json := fixture.Printed(t, r)
			fixture.Golden(t, name, table+"--- json\n"+json)
		})
	}
}

func TestRollbackRefusesWhatCannotBe(t *testing.T) {
	other, large := fixture.Steered(nil), fixture.Steered(func(p *plan.Plan) { p.Replicas = 20 })
	other.Target.Name = "argocd-controller"
	kept := []keptPlan{keptAs(fixture.Steered(nil), 17, fixture.Noon, ""), keptAs(fixture.Steered(func(p *plan.Plan) { p.Rollout = &plan.Rollout{Stage: plan.Moving} }), 16, fixture.Noon, ""),
		keptAs(fixture.Steered(fixture.Four), 14, fixture.Noon, ""), keptAs(large, 13, fixture.Noon, ""), keptAs(other, 12, fixture.Noon, ""), {Revision: 11, Problem: "decoding the plan: kind"}}
	const instead = "choose one of 14"
	for name, test := range map[string]struct {
		now      plan.Plan
		kept     []keptPlan
		revision int64
		want     string
	}{
		"nothing":                     {fixture.Steered(nil), kept, 14, ""},
		"the plan in force":           {fixture.Steered(nil), kept, 17, "REVISION: 17 is the plan in force; " + instead},
		"one that is not kept":        {fixture.Steered(nil), kept, 5, "REVISION: 5 is not kept; " + instead},
		"one from the midst":          {fixture.Steered(nil), kept, 16, "REVISION: 16 was written in the midst of a rollout (Moving), which is no state to go back to; " + instead},
		"one that cannot be read":     {fixture.Steered(nil), kept, 11, "REVISION: 11 cannot be read: decoding the plan: kind; " + instead},
		"one of another workload":     {fixture.Steered(nil), kept, 12, "REVISION: revision 12 is for another workload, StatefulSet \"argocd-controller\"; " + instead},
		"one with too many replicas":  {fixture.Steered(nil), kept, 13, "REVISION: revision 13 has 20 replicas, and partition.maxReplicas is 16: raise it first; " + instead},
		"not where they are people's": {fixture.Steered(func(p *plan.Plan) { p.FreeReplicas = true }), kept, 13, ""},
		"where no other is kept":      {fixture.Steered(nil), kept[:2], 5, "REVISION: 5 is not kept; no other plan is kept that one could go back to"},
	} {
		t.Run(name, func(t *testing.T) {
			then, err := choose(test.now, test.kept, test.revision)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want || err == nil && then.Revision != test.revision {
				t.Errorf("got revision %d, %q\nwant %q", then.Revision, got, test.want)
			}
		})
	}
}

func TestRollbackRefusesFlagsThatContradictEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a name":                   {[]string{"last"}, `REVISION: "last" is not the number of a plan: ballast rollback lists them`},
		"a number below 1":         {[]string{"0"}, `REVISION: "0" is not the number of a plan: ballast rollback lists them`},
		"an end of one":            {[]string{"14", "--off"}, "--off: it stops whatever rollback was asked for, and goes with no revision, --dry-run or --all"},
		"a dry run of nothing":     {[]string{"--dry-run"}, "--dry-run: name the revision: ballast rollback 14 --dry-run"},
		"a form that there is not": {[]string{"-o", "wide"}, `--output: "wide" is none of table, json and yaml`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, failure := run(t, "", "", append([]string{"rollback"}, test.args...)...); failure != test.want {
				t.Errorf("it fails with %q, want %q", failure, test.want)
			}
		})
	}
}

// twins are the Secrets of a fleet of three replicas whose clusters dev and lab have one server, lab by a Secret that only
// its people may write, with stage-eu on that server, too.
func twins(fixed ...string) (plan.Plan, steer.Standing) {
	p := fixture.Steered(nil)
	in := preview.RowsAsSecrets(p)
	secrets := steer.Standing{Pins: plan.Pins{}, Fixed: map[string]bool{}, Secrets: &in}
	for _, name := range fixed {
		secrets.Fixed[name] = true
	}
	for i, s := range in.Secrets {
		if s.Name == "dev" || s.Name == "lab" || s.Name == "stage-eu" {
			in.Secrets[i].Server = "https://twins.example.org"
			row := p.Clusters[s.Name]
			row.Server = plan.ServerHash(in.Secrets[i].Server)
			p.Clusters[s.Name] = row
		}
		in.Secrets[i].Unmanaged = secrets.Fixed[s.Name]
	}
	return p, secrets
}

// TestWhatIsShownIsWhatThePlannerDoes with the Secrets of one server: what it leaves behind is not waited for.
func TestWhatIsShownIsWhatThePlannerDoes(t *testing.T) {
	for name, test := range map[string]struct {
		fixed []string
		want  evacuate.Emptying
	}{
		"ballast writes all of a server's":       {nil, evacuate.Emptying{Left: []string{"dev", "lab", "prod-ap", "stage-eu"}}},
		"one of them is people's, and leads not": {[]string{"stage-eu"}, evacuate.Emptying{Left: []string{"dev", "lab", "prod-ap"}, Fixed: []string{"stage-eu"}}},
		"the one that leads is people's":         {[]string{"dev"}, evacuate.Emptying{Left: []string{"prod-ap"}, Fixed: []string{"dev", "lab", "stage-eu"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, secrets := twins(test.fixed...)
			got, err := evacuate.HowEmpty(fixture.StateWith(t, p, "", nil), 2, secrets, fixture.Noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(evacuate.Emptying{})); diff != "" {
				t.Errorf("left on replica 2 (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheWayBackTellsWhoStays, and why.
func TestTheWayBackTellsWhoStays(t *testing.T) {
	then := fixture.Steered(func(p *plan.Plan) {
		for _, name := range []string{"dev", "lab", "prod-ap"} {
			p.Clusters[name] = plan.Row{Replica: 0}
		}
	})
	then.Revision = 14
	now, secrets := twins()
	secrets.Pins["lab"] = 2
	doc := configmap.Document{Plan: &now, Pins: secrets.Pins}
	d := wayBack(doc, secrets, then, fixture.Noon)
	if diff := cmp.Diff([][]string{{"lab"}, {"dev"}, nil}, [][]string{d.Pinned, d.Beside, d.Cordoned}); diff != "" {
		t.Errorf("pinned, beside, cordoned (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]cycle.Move{{Cluster: "prod-ap", From: 2, To: 0}}, d.Moves); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	doc.Cordon = "0=2026-11-20T18:30:00Z"
	d = wayBack(doc, secrets, then, fixture.Noon)
	if diff := cmp.Diff([][]string{{"lab"}, nil, {"dev", "prod-ap"}}, [][]string{d.Pinned, d.Beside, d.Cordoned}); diff != "" {
		t.Errorf("with replica 0 cordoned: pinned, beside, cordoned (-want +got):\n%s", diff)
	}
	doc.Cordon = ""
	for ago, unwell := range map[time.Duration][]string{time.Minute: {"dev", "prod-ap"}, time.Hour: nil} { // what was said long ago counts for nothing
		secrets.Said = &status.Status{LookedAt: fixture.Noon.Add(-ago), Unwell: []status.Unwell{{Replica: 0}}}
		if d = wayBack(doc, secrets, then, fixture.Noon); !slices.Equal(d.Unwell, unwell) || len(d.Moves) != 1-len(unwell)/2 {
			t.Errorf("with replica 0 unwell %s ago: %v stay and %v move, want %v to stay", ago, d.Unwell, d.Moves, unwell)
		}
	}
}

// TestTheWayBackEndsThere: every cluster that both plans know and that may move ends where it was, nothing else moves, and no
// cluster ends on a replica that is not there.
func TestTheWayBackEndsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, secrets := fixture.DrawFleet(t)
		then, _ := fixture.DrawFleet(t)
		then.Revision = 3
		now.FreeReplicas = rapid.Bool().Draw(t, "free")
		d := backFrom(now, secrets, then)
		view := plan.NewView(now, secrets.Pins)
		to := map[string]int{}
		for _, m := range d.Moves {
			to[m.Cluster] = m.To
		}
		for name := range now.Clusters {
			_, pinned := secrets.Pins[name]
			at, _, _ := view.Effective(name)
			goal, moves := to[name]
			row, known := then.Clusters[name]
			may := known && !pinned && !secrets.Fixed[name] && row.Replica < d.Replicas[1]
			switch {
			case may && row.Replica != at && goal != row.Replica, may && row.Replica != at && !moves:
				t.Fatalf("%s is on %d, was on %d, and goes to %d (%t)", name, at, row.Replica, goal, moves)
			case moves && (!may || row.Replica == at):
				t.Fatalf("%s is on %d and moves to %d, though it may not or need not", name, at, goal)
			case !moves && !slices.Contains(d.Displaced, name) && at >= d.Replicas[1] && !secrets.Fixed[name] && !pinned:
				t.Fatalf("%s stays on %d of %d", name, at, d.Replicas[1])
			}
		}
		if again := backFrom(now, secrets, now); !again.nothing() {
			t.Fatalf("from a plan to itself: %+v", again)
		}
	})
}

func TestWhateverRollbackPrintsIsHarmless(t *testing.T) {
	fixture.Harmless(t, map[string]func() say.Result{
		"rollback":   func() say.Result { return &difference{} },
		"kept plans": func() say.Result { return &keptList{now: fixture.Noon} },
		"cancelled":  func() say.Result { return &cancelled{Changed: true} },
	})
}

// TestRollingBackOnARealAPIServer: what is asked of the planner is what a person saw.
func TestRollingBackOnARealAPIServer(t *testing.T) {
	s := fixture.StartSite(t)
	for name, run := range map[string]func(*testing.T, *fixture.Site){
		"lists the plans that are kept":                  listsPlans,
		"shows the way back, asks, and asks the planner": rollsBack,
		"asks for no plan that nobody saw":               rollsBackWhatWasSeen,
		"keeps what another person asked for meanwhile":  keepsWhatAnotherAskedFor,
	} {
		t.Run(name, func(t *testing.T) { run(t, s) })
	}
}
