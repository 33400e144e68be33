package evacuate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/cycle"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
	"ballast/planner/status"
)

// evacuator is the command's options at noon, as `ballast evacuate N --for 2h` has them where the flag is given.
func evacuator(given bool) *options {
	o := &options{keep: 2 * time.Hour, keepSet: given, until: fixture.Noon.Add(2 * time.Hour)}
	o.Now = func() time.Time { return fixture.Noon }
	return o
}

func TestEvacuateGolden(t *testing.T) {
	preview := func(s steer.State, secrets steer.Standing, replica int, change func(*evacuation)) evacuation {
		cordons, err := evacuator(false).cordon(s, replica)
		if err != nil {
			t.Fatal(err)
		}
		e := evacuating(s, secrets, cordons, replica, fixture.Noon)
		change(&e)
		return e
	}
	list := func(s steer.State, ended *int, changed bool) cordonList {
		l, err := cordonsOf(s, fixture.Noon)
		if err != nil {
			t.Fatal(err)
		}
		l.ended, l.Changed = ended, changed
		return l
	}
	plain := fixture.StateWith(t, fixture.Steered(nil), "", nil)
	busy := fixture.StateWith(t, fixture.Steered(nil), "stage-eu: 2\n", map[string]string{plan.AnnotationCordon: "2=2026-11-20T18:30:00Z,0=2026-11-20T11:59:59Z", plan.AnnotationEnforcement: "off"})
	one, two := 1, 2
	for name, r := range map[string]say.Result{
		"begins":           preview(plain, steer.Standing{}, 2, func(e *evacuation) { e.Changed = true }),
		"dry-run":          preview(plain, steer.Standing{}, 2, func(e *evacuation) { e.DryRun = true }),
		"stays-and-waits":  preview(busy, steer.Standing{Pins: plan.Pins{"stage-eu": 2}, Fixed: map[string]bool{"lab": true}}, 2, func(*evacuation) {}),
		"beside-another":   preview(busy, steer.Standing{Pins: plan.Pins{"stage-eu": 2}}, 0, func(e *evacuation) { e.Changed = true }),
		"nothing-to-move":  preview(fixture.StateWith(t, fixture.Steered(func(p *plan.Plan) { p.Replicas = 4 }), "", nil), steer.Standing{}, 3, func(e *evacuation) { e.Changed = true }),
		"list":             list(busy, nil, false),
		"list-none":        list(plain, nil, false),
		"ended":            list(busy, &one, true),
		"ended-before":     list(plain, &two, false),
		"list-with-no-way": list(steer.State{}, nil, false),
	} {
		t.Run(name, func(t *testing.T) {
			table, json := fixture.Printed(t, r)
			fixture.Golden(t, name, table+"--- json\n"+json)
		})
	}
}

func TestEvacuateRefusesWhatCannotBe(t *testing.T) {
	growing := func(p *plan.Plan) {
		p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Shrinking, Since: fixture.Noon, From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 2, ControllerReplicas: 16}
	}
	const last = "REPLICA: 2 is the last one that is not cordoned, and its clusters would have nowhere to go: end another one's first (ballast evacuate lists them), or raise partition.minReplicas"
	for name, test := range map[string]struct {
		plan    func(*plan.Plan)
		cordon  string
		replica int
		want    string
	}{
		"a replica beyond the last":                   {nil, "", 3, "REPLICA: 3 is not between 0 and 2: the plan has 3 replicas"},
		"a replica that goes":                         {growing, "", 2, "REPLICA: 2 is not between 0 and 1: the plan has 2 replicas when the rollout under way has ended"},
		"the last one":                                {nil, "0=2026-11-20T17:00:00Z,1=2026-11-20T17:00:00Z", 2, last},
		"the last one beside one that is over":        {nil, "0=2026-11-20T12:00:00Z,1=2026-11-20T17:00:00Z", 2, ""},
		"the last one beside one that is not there":   {nil, "0=2026-11-20T17:00:00Z,7=2026-11-20T17:00:00Z", 2, ""},
		"the only one":                                {func(p *plan.Plan) { p.Replicas, p.Clusters = 1, nil }, "", 0, "REPLICA: 0 is the last one that is not cordoned, and its clusters would have nowhere to go: end another one's first (ballast evacuate lists them), or raise partition.minReplicas"},
		"a mode that moves nothing":                   {func(p *plan.Plan) { p.Mode = plan.Hold }, "", 1, "the mode is Hold, in which nothing moves: set mode: Enforce in the planner's configuration"},
		"beside an annotation that cannot be read":    {nil, "soon", 1, "annotation ballast.argoproj.io/cordon of the plan ConfigMap: reading the cordon \"soon\": it has no time: write it like 3=2026-11-20T17:00:00Z\nmend it there, or take the annotation away"},
		"nothing: one that is cordoned already":       {nil, "1=2026-11-20T17:00:00Z", 1, ""},
		"nothing: the last one, cordoned already too": {nil, "1=2026-11-20T17:00:00Z,2=2026-11-20T17:00:00Z", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := evacuator(false).cordon(fixture.StateWith(t, fixture.Steered(test.plan), "", fixture.CordonAnnotation(test.cordon)), test.replica); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestACordonKeepsTheOthers(t *testing.T) {
	for name, test := range map[string]struct {
		stands string
		given  bool
		want   string
	}{
		"the first":                                 {"", false, "1=2026-11-20T14:00:00Z"},
		"beside another":                            {"2=2026-11-20T17:00:00Z", false, "1=2026-11-20T14:00:00Z,2=2026-11-20T17:00:00Z"},
		"one that is over goes":                     {"2=2026-11-20T12:00:00Z", false, "1=2026-11-20T14:00:00Z"},
		"one's own stays as it was":                 {"1=2026-11-20T17:00:00Z", false, "1=2026-11-20T17:00:00Z"},
		"one's own gets the time that was asked":    {"1=2026-11-20T17:00:00Z", true, "1=2026-11-20T14:00:00Z"},
		"one's own that is over begins anew":        {"1=2026-11-20T11:00:00Z", false, "1=2026-11-20T14:00:00Z"},
		"in whatever order and zone they were kept": {"2=2026-11-20T18:00:00+01:00 , 1=2026-11-20T17:00:00Z", false, "1=2026-11-20T17:00:00Z,2=2026-11-20T17:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			cordons, err := evacuator(test.given).cordon(fixture.StateWith(t, fixture.Steered(nil), "", fixture.CordonAnnotation(test.stands)), 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := people.FormatCordons(cordons); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestEvacuateRefusesFlagsThatContradictEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a pod's name":                {[]string{"argocd-application-controller-3"}, `REPLICA: "argocd-application-controller-3" is not the number of a replica: the pod argocd-application-controller-3 is replica 3`},
		"a number that is none":       {[]string{"1.0"}, `REPLICA: "1.0" is not the number of a replica: the pod argocd-application-controller-3 is replica 3`},
		"a time for its end":          {[]string{"1", "--off", "--for", "2h"}, "--off: it ends a cordon at once, and goes with none of --for, --wait and --dry-run"},
		"to wait for its end":         {[]string{"1", "--off", "--wait"}, "--off: it ends a cordon at once, and goes with none of --for, --wait and --dry-run"},
		"to wait for nothing":         {[]string{"1", "--dry-run", "--wait"}, "--wait: there is nothing to wait for with --dry-run"},
		"no time at all":              {[]string{"1", "--for", "0s"}, "--for: 0s is not between 1m0s and 744h0m0s"},
		"for ever":                    {[]string{"1", "--for", "8000h"}, "--for: 8000h0m0s is not between 1m0s and 744h0m0s"},
		"no time to wait":             {[]string{"1", "--wait", "--timeout", "0s"}, "--timeout: 0s is not above 0"},
		"an end of nobody in special": {[]string{"--off"}, "REPLICA: name the replica: ballast evacuate 3"},
		"two replicas":                {[]string{"1", "2"}, `ballast evacuate takes a replica, and there are 2: ["1" "2"], as in: ballast evacuate 3 --dry-run`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, failure := run(t, "", "", append([]string{"evacuate"}, test.args...)...); failure != test.want {
				t.Errorf("it fails with %q, want %q", failure, test.want)
			}
		})
	}
}

func TestHowEmptyAReplicaIs(t *testing.T) {
	live := func(change func(*plan.Rollout)) func(*plan.Plan) {
		return func(p *plan.Plan) {
			p.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: fixture.Noon, From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 3, ControllerReplicas: 16, Wave: 1, Waves: 2}
			change(p.Rollout)
		}
	}
	none := func(p *plan.Plan) { p.Clusters = map[string]plan.Row{"prod-eu": {Replica: 0}} }
	at := func(name string, replicas ...int) standing.Home {
		return standing.Home{Cluster: discover.Cluster{Shard: plan.Shard{ID: name}}, At: replicas}
	}
	lab := map[string]bool{"lab": true}
	inCluster := at("in-cluster", 2)
	inCluster.Cluster.Implicit = true
	anywhere := standing.Home{Cluster: discover.Cluster{Shard: plan.Shard{ID: "lab"}}, Unknown: true}
	for name, test := range map[string]struct {
		plan    func(*plan.Plan)
		pins    string
		secrets steer.Standing
		want    Emptying
	}{
		"full":               {nil, "", steer.Standing{}, Emptying{Left: []string{"dev", "lab", "prod-ap", "stage-eu"}}},
		"but for what stays": {nil, "dev: 2\n", steer.Standing{Fixed: lab}, Emptying{Left: []string{"prod-ap", "stage-eu"}, pinned: []string{"dev"}, Fixed: []string{"lab"}}},
		"but for an unmanaged one, without a row":  {none, "", steer.Standing{Fixed: lab, Homes: []standing.Home{at("lab", 2)}}, Emptying{Fixed: []string{"lab"}}},
		"an unmanaged one is elsewhere":            {none, "", steer.Standing{Fixed: lab, Homes: []standing.Home{at("lab", 1)}}, Emptying{}},
		"an unmanaged one may be anywhere":         {none, "", steer.Standing{Fixed: lab, Homes: []standing.Home{anywhere}}, Emptying{unknown: []string{"lab"}}},
		"an immutable one is not where its row is": {func(p *plan.Plan) { p.Clusters = map[string]plan.Row{"lab": {Replica: 0}} }, "", steer.Standing{Fixed: lab, Homes: []standing.Home{at("lab", 2)}}, Emptying{Fixed: []string{"lab"}}},
		"a fixed one is counted once":              {nil, "dev: 2\nprod-ap: 2\nstage-eu: 2\n", steer.Standing{Fixed: lab, Homes: []standing.Home{at("lab", 2)}}, Emptying{pinned: []string{"dev", "prod-ap", "stage-eu"}, Fixed: []string{"lab"}}},
		"an implicit in-cluster":                   {none, "", steer.Standing{Homes: []standing.Home{inCluster}}, Emptying{implicit: []string{"in-cluster"}}},
		"a new one without a row":                  {none, "", steer.Standing{Homes: []standing.Home{at("new", 2)}}, Emptying{Left: []string{"new"}}},
		"one whose Secret does not say so yet":     {none, "", steer.Standing{Homes: []standing.Home{at("prod-eu", 2)}}, Emptying{Left: []string{"prod-eu"}}},
		"one whose Secret a wave is to write": {func(p *plan.Plan) {
			live(func(r *plan.Rollout) {
				r.Moves, r.Was = map[string]int{"prod-eu": 0}, map[string]int{"prod-eu": 2}
			})(p)
			none(p)
		}, "", steer.Standing{Homes: []standing.Home{at("prod-eu", 2)}}, Emptying{moving: 1, wave: "live, Moving, wave 1 of 2, 1 move"}},
		"what nobody could see":               {none, "", steer.Standing{Unseen: "the Secrets"}, Emptying{unseen: "the Secrets"}},
		"pinned by its Secret's own, not yet": {none, "", steer.Standing{Pins: plan.Pins{"prod-eu": 2}}, Emptying{pinned: []string{"prod-eu"}}},
		"the server of one that stays": {func(p *plan.Plan) {
			p.Clusters = map[string]plan.Row{"dev": {Replica: 2, Server: "0123456789ab"}, "lab": {Replica: 2, Server: "0123456789ab"}}
		}, "dev: 2\n", steer.Standing{}, Emptying{pinned: []string{"dev", "lab"}}},
		"pinned by its Secret": {func(p *plan.Plan) { p.Clusters = map[string]plan.Row{"dev": {Replica: 2, Pinned: true}} }, "", steer.Standing{}, Emptying{pinned: []string{"dev"}}},
		"empty":                {func(p *plan.Plan) { p.Clusters = map[string]plan.Row{"dev": {Replica: 1}} }, "", steer.Standing{}, Emptying{}},
		"with a wave that comes from it": {func(p *plan.Plan) {
			live(func(r *plan.Rollout) { r.Moves, r.Was = map[string]int{"prod-us": 1}, map[string]int{"prod-us": 2} })(p)
		}, "", steer.Standing{}, Emptying{Left: []string{"dev", "lab", "prod-ap", "stage-eu"}, moving: 1, wave: "live, Moving, wave 1 of 2, 1 move"}},
		"with a wave that goes to it": {live(func(r *plan.Rollout) { r.Moves = map[string]int{"prod-us": 2} }), "dev: 2\nlab: 2\nprod-ap: 2\nstage-eu: 2\n", steer.Standing{},
			Emptying{moving: 1, pinned: []string{"dev", "lab", "prod-ap", "stage-eu"}, wave: "live, Moving, wave 1 of 2, 1 move"}},
		"with a wave of others": {live(func(r *plan.Rollout) { r.Moves, r.Was = map[string]int{"prod-us": 1}, map[string]int{"prod-us": 0} }), "dev: 2\nlab: 2\nprod-ap: 2\nstage-eu: 2\n", steer.Standing{},
			Emptying{pinned: []string{"dev", "lab", "prod-ap", "stage-eu"}, wave: "live, Moving, wave 1 of 2, 1 move"}},
		"with a rollout that does not say where from": {live(func(r *plan.Rollout) { r.Mode, r.Moves = plan.ModeX0Y, map[string]int{"prod-us": 1, "dev": 0} }), "", steer.Standing{},
			Emptying{Left: []string{"dev", "lab", "prod-ap", "stage-eu"}, moving: 2, wave: "x0y, Moving, wave 1 of 2, 2 moves"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := HowEmpty(fixture.StateWith(t, fixture.Steered(test.plan), test.pins, nil), 2, test.secrets, fixture.Noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Emptying{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A script goes on after --wait only where nothing is left on the replica.
func TestWhatStaysEndsTheWaitingWithItsOwnCode(t *testing.T) {
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprintf("c%02d", i)
	}
	const unpin = `: take the pin out of data.pins of ConfigMap "ballast-plan", or the annotation ballast.argoproj.io/pin off the Secret, or pin to another replica`
	const free = ": create it anew, or take the annotation ballast.argoproj.io/unmanaged off, or let the selector have it"
	const notOurs = "because the Secret is immutable, unmanaged or not of discover.selector "
	const cannotTell = "no cluster of the plan is to leave replica 2 any more, and whether it is empty cannot be told: "
	for name, test := range map[string]struct {
		e    Emptying
		want string
		code int
	}{
		"nothing": {Emptying{}, "", 0},
		"the cluster that Argo CD adds by itself": {Emptying{implicit: []string{"in-cluster"}}, "replica 2 is not empty: 1 cluster stays there because it has no Secret (in-cluster): " +
			"create a cluster Secret with the server https://kubernetes.default.svc; then evacuate it again", 3},
		"what could not be seen": {Emptying{unseen: "the Secrets"}, cannotTell + "not seen are the Secrets; then evacuate it again", 1},
		"one that may be there": {Emptying{pinned: []string{"dev"}, unknown: []string{"lab"}}, cannotTell + "1 cluster stays there by a pin (dev)" + unpin +
			"; 1 cluster may be there (lab), for Argo CD's consistent-hashing decides: give the Secret a data.shard; then evacuate it again", 1},
		"one by a pin":  {Emptying{pinned: []string{"dev"}}, "replica 2 is not empty: 1 cluster stays there by a pin (dev)" + unpin + "; then evacuate it again", 3},
		"two by a pin":  {Emptying{pinned: []string{"dev", "lab"}}, "replica 2 is not empty: 2 clusters stay there by a pin (dev, lab)" + unpin + "; then evacuate it again", 3},
		"one fixed":     {Emptying{Fixed: []string{"lab"}}, "replica 2 is not empty: 1 cluster stays there " + notOurs + "(lab)" + free + "; then evacuate it again", 3},
		"of both kinds": {Emptying{pinned: []string{"dev"}, Fixed: []string{"lab"}}, "replica 2 is not empty: 1 cluster stays there by a pin (dev)" + unpin + "; 1 cluster stays there " + notOurs + "(lab)" + free + "; then evacuate it again", 3},
		"many by a pin": {Emptying{pinned: many}, "replica 2 is not empty: 60 clusters stay there by a pin (" + strings.Join(many[:50], ", ") + " and 10 more)" + unpin + "; then evacuate it again", 3},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.e.staying(2, "ballast-plan")
			if test.want == "" {
				if err != nil {
					t.Errorf("it ends with %v", err)
				}
				return
			}
			if err == nil || err.Error() != test.want || say.ExitCode(err) != test.code {
				t.Errorf("it ends with %d, %v\nwant %d, %s", say.ExitCode(err), err, test.code, test.want)
			}
		})
	}
}

// TestAPreviewEmptiesTheReplica: nothing goes to a cordoned replica, what is pinned or fixed stays, and all else leaves.
func TestAPreviewEmptiesTheReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, secrets := fixture.DrawFleet(t)
		replica := rapid.IntRange(0, p.Replicas-1).Draw(t, "evacuated")
		s := steer.State{Document: configmap.Document{Plan: &p, Pins: secrets.Pins}}
		o := evacuator(false)
		cordons, err := o.cordon(s, replica)
		if err != nil {
			t.Fatal(err)
		}
		e := evacuating(s, secrets, cordons, replica, fixture.Noon)
		view := plan.NewView(p, secrets.Pins)
		for _, m := range e.Moves {
			_, pinned := secrets.Pins[m.Cluster]
			if at, _, _ := view.Effective(m.Cluster); m.From != replica || at != replica || m.To == replica || pinned || secrets.Fixed[m.Cluster] {
				t.Fatalf("move %+v of a cluster on %d", m, at)
			}
		}
		stays, clusters, load := 0, 0, plan.Load(0)
		for name := range p.Clusters {
			_, pinned := secrets.Pins[name]
			if at, _, _ := view.Effective(name); at == replica && (pinned || secrets.Fixed[name]) {
				stays++
			}
		}
		for _, r := range e.Then {
			clusters += len(r.LoadIndexes)
			load += r.TotalLoad
		}
		if left := len(e.Then[replica].LoadIndexes); left != stays || clusters != len(p.Clusters) || load < 0 || load > math.MaxInt64/2 {
			t.Fatalf("%d clusters are left on it, want %d that stay; %d are anywhere, want %d", left, stays, clusters, len(p.Clusters))
		}
		empty, err := HowEmpty(s, replica, secrets, fixture.Noon)
		if err != nil || len(empty.Left) != len(e.Moves) || len(empty.pinned)+len(empty.Fixed) != stays || !slices.IsSorted(empty.Left) {
			t.Fatalf("%+v (%v), with %d moves to come", empty, err, len(e.Moves))
		}
	})
}

// TestAPreviewGivesNothingToAReplicaThatIsUnwell, by the leader's word, as the leader itself will not.
func TestAPreviewGivesNothingToAReplicaThatIsUnwell(t *testing.T) {
	p := fixture.Steered(nil)
	s := steer.State{Document: configmap.Document{Plan: &p}}
	cordons := []people.Cordon{{Replica: 2, Until: fixture.Noon.Add(time.Hour)}}
	for _, unwell := range []int{0, 1} {
		said := &status.Status{LookedAt: fixture.Noon.Add(-time.Minute), Unwell: []status.Unwell{{Replica: unwell}}}
		e := evacuating(s, steer.Standing{Said: said}, cordons, 2, fixture.Noon)
		if len(e.Moves) == 0 || slices.ContainsFunc(e.Moves, func(m cycle.Move) bool { return m.To != 1-unwell }) {
			t.Errorf("with replica %d unwell: %v, want all to go to %d", unwell, e.Moves, 1-unwell)
		}
	}
}

func TestWhateverEvacuatePrintsIsHarmless(t *testing.T) {
	fixture.Harmless(t, map[string]func() say.Result{
		"evacuate": func() say.Result { return &evacuation{now: fixture.Noon} },
		"cordons":  func() say.Result { return &cordonList{now: fixture.Noon} },
	})
}

// TestEvacuatingOnARealAPIServer: cordons are written as they should be, and an evacuation is followed to its end.
func TestEvacuatingOnARealAPIServer(t *testing.T) {
	s := fixture.StartSite(t)
	for name, run := range map[string]func(*testing.T, *fixture.Site){
		"writes a cordon beside others, and ends it":    evacuates,
		"shows what Secrets keep from moving":           showsWhatStays,
		"tells of each wave until the replica is empty": waitsForWaves,
		"waits out what is wrong for a moment":          waitsItOut,
		"waits no longer than it may":                   waitsNoLonger,
		"waits no longer than the cordon":               waitsForACordonOnly,
		"calls no replica empty that still works":       endsWithThree,
		"calls no replica empty that it cannot see":     endsWithOne,
		"a lost race is decided anew":                   decidesAnew,
	} {
		t.Run(name, func(t *testing.T) { run(t, s) })
	}
}
