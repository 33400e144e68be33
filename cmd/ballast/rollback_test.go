package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/cycle"
	"ballast/planner/plan"
)

func keptAs(p plan.Plan, revision int64, at time.Time, reason string) keptPlan {
	p.Revision = revision
	k := keptPlan{Revision: revision, DecidedAt: at, DecidedBy: "planner-0", Reason: reason, Replicas: p.Replicas, plan: &p}
	if p.Rollout != nil {
		k.plan, k.Midst = nil, string(p.Rollout.Stage)
	}
	return k
}

// four is a plan of four replicas that was in force before: dev and lab were on the fourth, gone was there, lab was not.
func four(p *plan.Plan) {
	p.Replicas = 4
	p.Clusters["dev"], p.Clusters["prod-us"], p.Clusters["gone"] = plan.Row{Replica: 3}, plan.Row{Replica: 2}, plan.Row{Replica: 0}
	delete(p.Clusters, "lab")
}

// backFrom is the way back from a plan in force.
func backFrom(now plan.Plan, secrets standing, then plan.Plan) difference {
	return wayBack(plan.Document{Plan: &now, Pins: secrets.pins}, secrets, then, noon)
}

func TestRollbackGolden(t *testing.T) {
	then := steered(four)
	then.Revision = 14
	two := steered(func(p *plan.Plan) {
		p.Replicas = 2
		p.Clusters = map[string]plan.Row{"prod-eu": {Replica: 1}, "prod-us": {Replica: 0}, "prod-ap": {Replica: 1}}
	})
	two.Revision = 12
	same := steered(nil)
	same.Revision = 16
	secrets := standing{pins: plan.Pins{"dev": 2, "prod-eu": 0}, fixed: map[string]bool{"prod-us": true}}
	asked := func(d difference, change func(*difference)) difference { change(&d); return d }
	moves := func(n int) *int { return &n }
	inForce, before := keptAs(steered(nil), 17, noon.Add(-3*time.Minute), "moves 3 of 7 clusters"), keptAs(then, 14, noon.Add(-26*time.Hour), "took over the fleet as it is")
	inForce.InForce, before.Moves = true, moves(2)
	midst := keptAs(steered(func(p *plan.Plan) { p.Rollout = &plan.Rollout{Stage: plan.Scaling} }), 15, noon.Add(-time.Hour), "4 replicas instead of 3")
	list := keptList{InForce: 17, Plans: []keptPlan{inForce, before}, Hidden: 1, now: noon}
	for name, r := range map[string]writer{
		"difference":         backFrom(steered(nil), standing{}, then),
		"dry-run":            asked(backFrom(steered(nil), standing{}, then), func(d *difference) { d.DryRun = true }),
		"some-stay":          asked(backFrom(steered(nil), secrets, then), func(d *difference) { d.Asked, d.Waits = "12", "enforcement is off" }),
		"to-fewer-replicas":  backFrom(steered(nil), standing{}, two),
		"replicas-of-people": backFrom(steered(func(p *plan.Plan) { p.FreeReplicas = true }), standing{}, then),
		"nothing":            backFrom(steered(nil), standing{}, same),
		"asked":              asked(backFrom(steered(nil), standing{}, then), func(d *difference) { d.asked, d.shown, d.Changed = true, true, true }),
		"asked-unseen":       asked(backFrom(steered(nil), standing{}, then), func(d *difference) { d.asked, d.Changed = true, true }),
		"asked-before":       asked(backFrom(steered(nil), standing{}, then), func(d *difference) { d.asked, d.shown = true, true }),
		"list":               list,
		"list-all": keptList{InForce: 17, RollbackTo: "14", now: noon, Plans: []keptPlan{inForce, midst, before,
			{Revision: 9, DecidedAt: noon.Add(-9 * 24 * time.Hour), Problem: "decoding the plan: kind"}, {Problem: "plan revision 8: unpacking: gzip: invalid header"}}},
		"list-none":     keptList{InForce: 1, Plans: []keptPlan{}, now: noon},
		"cancelled":     cancelled{Was: "14", Revision: 18, Changed: true, Rollout: &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Wave: 1, Waves: 2, Moves: map[string]int{"dev": 3}, From: plan.Count{Replicas: 3}, Replicas: 4}},
		"cancelled-not": cancelled{Revision: 17},
	} {
		t.Run(name, func(t *testing.T) {
			table, json := printed(t, r)
			golden(t, "rollback/"+name, table+"--- json\n"+json)
		})
	}
}

func TestRollbackRefusesWhatCannotBe(t *testing.T) {
	other, large := steered(nil), steered(func(p *plan.Plan) { p.Replicas = 20 })
	other.Target.Name = "argocd-controller"
	kept := []keptPlan{keptAs(steered(nil), 17, noon, ""), keptAs(steered(func(p *plan.Plan) { p.Rollout = &plan.Rollout{Stage: plan.Moving} }), 16, noon, ""),
		keptAs(steered(four), 14, noon, ""), keptAs(large, 13, noon, ""), keptAs(other, 12, noon, ""), {Revision: 11, Problem: "decoding the plan: kind"}}
	const instead = "choose one of 14"
	for name, test := range map[string]struct {
		now      plan.Plan
		kept     []keptPlan
		revision int64
		want     string
	}{
		"nothing":                     {steered(nil), kept, 14, ""},
		"the plan in force":           {steered(nil), kept, 17, "REVISION: 17 is the plan in force; " + instead},
		"one that is not kept":        {steered(nil), kept, 5, "REVISION: 5 is not kept; " + instead},
		"one from the midst":          {steered(nil), kept, 16, "REVISION: 16 was written in the midst of a rollout (Moving), which is no state to go back to; " + instead},
		"one that cannot be read":     {steered(nil), kept, 11, "REVISION: 11 cannot be read: decoding the plan: kind; " + instead},
		"one of another workload":     {steered(nil), kept, 12, "REVISION: revision 12 is for another workload, StatefulSet \"argocd-controller\"; " + instead},
		"one with too many replicas":  {steered(nil), kept, 13, "REVISION: revision 13 has 20 replicas, and partition.maxReplicas is 16: raise it first; " + instead},
		"not where they are people's": {steered(func(p *plan.Plan) { p.FreeReplicas = true }), kept, 13, ""},
		"where no other is kept":      {steered(nil), kept[:2], 5, "REVISION: 5 is not kept; no other plan is kept that one could go back to"},
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
			if _, _, failure := steer(t, "", "", append([]string{"rollback"}, test.args...)...); failure != test.want {
				t.Errorf("it fails with %q, want %q", failure, test.want)
			}
		})
	}
}

// twins are the Secrets of a fleet of three replicas whose clusters dev and lab have one server, lab by a Secret that only
// its people may write, with stage-eu on that server, too.
func twins(fixed ...string) (plan.Plan, standing) {
	p := steered(nil)
	in := cycle.RowsAsSecrets(p)
	secrets := standing{pins: plan.Pins{}, fixed: map[string]bool{}, secrets: &in}
	for _, name := range fixed {
		secrets.fixed[name] = true
	}
	for i, s := range in.Secrets {
		if s.Name == "dev" || s.Name == "lab" || s.Name == "stage-eu" {
			in.Secrets[i].Server = "https://twins.example.org"
			row := p.Clusters[s.Name]
			row.Server = plan.ServerHash(in.Secrets[i].Server)
			p.Clusters[s.Name] = row
		}
		in.Secrets[i].Unmanaged = secrets.fixed[s.Name]
	}
	return p, secrets
}

// TestWhatIsShownIsWhatThePlannerDoes with the Secrets of one server: what it leaves behind is not waited for.
func TestWhatIsShownIsWhatThePlannerDoes(t *testing.T) {
	for name, test := range map[string]struct {
		fixed []string
		want  emptying
	}{
		"ballast writes all of a server's":       {nil, emptying{left: []string{"dev", "lab", "prod-ap", "stage-eu"}}},
		"one of them is people's, and leads not": {[]string{"stage-eu"}, emptying{left: []string{"dev", "lab", "prod-ap"}, fixed: []string{"stage-eu"}}},
		"the one that leads is people's":         {[]string{"dev"}, emptying{left: []string{"prod-ap"}, fixed: []string{"dev", "lab", "stage-eu"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, secrets := twins(test.fixed...)
			got, err := howEmpty(stateWith(t, p, "", nil), 2, secrets, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(emptying{})); diff != "" {
				t.Errorf("left on replica 2 (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheWayBackTellsWhoStays, and why.
func TestTheWayBackTellsWhoStays(t *testing.T) {
	then := steered(func(p *plan.Plan) {
		for _, name := range []string{"dev", "lab", "prod-ap"} {
			p.Clusters[name] = plan.Row{Replica: 0}
		}
	})
	then.Revision = 14
	now, secrets := twins()
	secrets.pins["lab"] = 2
	doc := plan.Document{Plan: &now, Pins: secrets.pins}
	d := wayBack(doc, secrets, then, noon)
	if diff := cmp.Diff([][]string{{"lab"}, {"dev"}, nil}, [][]string{d.Pinned, d.Beside, d.Cordoned}); diff != "" {
		t.Errorf("pinned, beside, cordoned (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]cycle.Move{{Cluster: "prod-ap", From: 2, To: 0}}, d.Moves); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	doc.Cordon = "0=2026-11-20T18:30:00Z"
	d = wayBack(doc, secrets, then, noon)
	if diff := cmp.Diff([][]string{{"lab"}, nil, {"dev", "prod-ap"}}, [][]string{d.Pinned, d.Beside, d.Cordoned}); diff != "" {
		t.Errorf("with replica 0 cordoned: pinned, beside, cordoned (-want +got):\n%s", diff)
	}
}

// TestTheWayBackEndsThere: every cluster that both plans know and that may move ends where it was, nothing else moves, and no
// cluster ends on a replica that is not there.
func TestTheWayBackEndsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, secrets := drawFleet(t)
		then, _ := drawFleet(t)
		then.Revision = 3
		now.FreeReplicas = rapid.Bool().Draw(t, "free")
		d := backFrom(now, secrets, then)
		view := plan.NewView(now, secrets.pins)
		to := map[string]int{}
		for _, m := range d.Moves {
			to[m.Cluster] = m.To
		}
		for name := range now.Clusters {
			_, pinned := secrets.pins[name]
			at, _, _ := view.Effective(name)
			goal, moves := to[name]
			row, known := then.Clusters[name]
			may := known && !pinned && !secrets.fixed[name] && row.Replica < d.Replicas[1]
			switch {
			case may && row.Replica != at && goal != row.Replica, may && row.Replica != at && !moves:
				t.Fatalf("%s is on %d, was on %d, and goes to %d (%t)", name, at, row.Replica, goal, moves)
			case moves && (!may || row.Replica == at):
				t.Fatalf("%s is on %d and moves to %d, though it may not or need not", name, at, goal)
			case !moves && !slices.Contains(d.Displaced, name) && at >= d.Replicas[1] && !secrets.fixed[name] && !pinned:
				t.Fatalf("%s stays on %d of %d", name, at, d.Replicas[1])
			}
		}
		if again := backFrom(now, secrets, now); !again.nothing() {
			t.Fatalf("from a plan to itself: %+v", again)
		}
	})
}
