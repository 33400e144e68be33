package ownership

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
)

const serverA = "https://a"

// look is one observation, taken so long after noon, and what is made of the one cluster.
type look struct {
	after   time.Duration
	reports []scrape.PodReport
	want    string
}

// has is a replica that is responsible for the cluster, resting one that shows only its gauges, without one that shows nothing.
func has(replica int) scrape.PodReport {
	return answer(replica, map[string]scrape.ServerReport{serverA: {Apps: 3, Cached: true, CacheAge: 9, Connected: true}})
}

func restingOn(replica int) scrape.PodReport {
	return answer(replica, map[string]scrape.ServerReport{serverA: {Cached: true, CacheAge: 9, Connected: true}})
}

func without(replica int) scrape.PodReport { return answer(replica, nil) }

// at gives the reports that time, where they have none of their own.
func at(reports []scrape.PodReport, when time.Time) []scrape.PodReport {
	out := make([]scrape.PodReport, len(reports))
	for i, r := range reports {
		if r.Answered() && r.SampledAt.Equal(noon()) {
			r.SampledAt = when
		}
		out[i] = r
	}
	return out
}

func sampled(r scrape.PodReport, after time.Duration) scrape.PodReport {
	r.SampledAt = noon().Add(after)
	return r
}

// told is a verdict about the cluster "prod" in words.
func told(v Verdict) string {
	o := v.Owned["prod"]
	parts := []string{fmt.Sprintf("owners %v live %v", o.Owners, o.Live)}
	if o.Idle {
		parts = append(parts, "idle")
	}
	for _, f := range v.Orphans {
		parts = append(parts, fmt.Sprintf("orphaned %s after %s, intended %d, last %d", f.Why, f.Since.Sub(noon()), f.Intended, f.Last))
	}
	for _, f := range v.Doubled {
		parts = append(parts, fmt.Sprintf("doubled after %s on %s", f.Since.Sub(noon()), strings.Join(f.Pods, " ")))
	}
	return strings.Join(parts, "; ")
}

const (
	nobodyHasIt = "owners [] live []"
	nobodyIdle  = nobodyHasIt + "; idle"
	oneOwner    = "owners [1] live [1]"
	bothOwn     = "owners [0 1] live [0 1]"
)

// TestAClusterIsNoOrphanByANumberFromBefore: its last Application may have been deleted since it was counted.
func TestAClusterIsNoOrphanByANumberFromBefore(t *testing.T) {
	fleet := fleetOf(t, discover.Input{Secrets: []discover.Secret{secret("prod", serverA)}})
	intended := func(string) (int, bool) { return 1, true }
	var m Memory
	for _, l := range []struct {
		minutes, counted int // when the Applications were counted
		apps             int
		want             string
	}{
		{0, -9, 1, nobodyHasIt}, {2, -9, 1, nobodyHasIt}, {3, -9, 1, nobodyHasIt},
		{4, 3, 0, nobodyIdle},                          // it was deleted
		{5, 4, 1, nobodyHasIt}, {7, 4, 1, nobodyHasIt}, // another one came; nobody takes it
		{8, 5, 1, nobodyHasIt + "; orphaned NotTaken after 5m0s, intended 1, last -1"},
	} {
		now := noon().Add(time.Duration(l.minutes) * time.Minute)
		s := Join(at([]scrape.PodReport{without(0), without(1)}, now), fleet, Applications{serverA: l.apps})
		s.Counted = noon().Add(time.Duration(l.counted) * time.Minute)
		var v Verdict
		m, v = Judge(m, s, intended, now, Grace{})
		if diff := cmp.Diff(l.want, told(v)); diff != "" {
			t.Errorf("after %d minutes (-want +got):\n%s", l.minutes, diff)
		}
	}
}

func TestAStoryOfOneClusterIsJudged(t *testing.T) {
	second, minute := time.Second, time.Minute
	both := []scrape.PodReport{without(0), without(1)}
	for name, test := range map[string]struct {
		apps     Applications
		fleet    discover.Input
		intended int // default 1
		looks    []look
	}{
		"owned all the time": {looks: []look{
			{0, []scrape.PodReport{without(0), has(1)}, oneOwner}, {time.Hour, []scrape.PodReport{without(0), has(1)}, oneOwner},
		}},
		"moved: for a moment nobody has it": {looks: []look{
			{0, []scrape.PodReport{has(0), without(1)}, "owners [0] live [0]"}, {10 * second, both, nobodyHasIt}, {15 * second, []scrape.PodReport{without(0), has(1)}, oneOwner},
		}},
		"orphaned: somebody had it": {looks: []look{
			{0, []scrape.PodReport{without(0), has(1)}, oneOwner},
			{10 * second, both, nobodyHasIt},
			{2*minute + 9*second, both, nobodyHasIt},
			{2*minute + 10*second, both, nobodyHasIt + "; orphaned NotTaken after 10s, intended 1, last 1"},
			{57 * time.Hour, both, nobodyHasIt + "; orphaned NotTaken after 10s, intended 1, last 1"},
			{73 * time.Hour, both, nobodyIdle},
			{73*time.Hour + minute, []scrape.PodReport{without(0), has(1)}, oneOwner},
			{73*time.Hour + 2*minute, both, nobodyHasIt},
			{73*time.Hour + 4*minute, both, nobodyHasIt + "; orphaned NotTaken after 73h2m0s, intended 1, last 1"},
		}},
		"orphaned: its Applications are known": {apps: Applications{serverA: 3}, looks: []look{
			{0, both, nobodyHasIt}, {minute, both, nobodyHasIt}, {2 * minute, both, nobodyHasIt + "; orphaned NotTaken after 0s, intended 1, last -1"},
			{100 * time.Hour, both, nobodyHasIt + "; orphaned NotTaken after 0s, intended 1, last -1"},
		}},
		"its replica has no pod": {apps: Applications{serverA: 3}, intended: 4, looks: []look{
			{0, []scrape.PodReport{has(0), without(1)}, "owners [0] live [0]"}, {minute, both, nobodyHasIt}, {3 * minute, both, nobodyHasIt + "; orphaned NoPod after 1m0s, intended 4, last 0"},
		}},
		"the plan does not know it": {apps: Applications{serverA: 3}, intended: plan.NoReplica, looks: []look{
			{0, both, nobodyHasIt}, {3 * minute, both, nobodyHasIt + "; orphaned NotPlanned after 0s, intended -1, last -1"},
		}},
		"it never had Applications, as far as is seen": {looks: []look{
			{0, both, nobodyHasIt}, {44 * second, both, nobodyHasIt}, {45 * second, both, nobodyIdle}, {time.Hour, both, nobodyIdle},
		}},
		"it has no Applications, as is known": {apps: Applications{}, looks: []look{{0, both, nobodyIdle}, {time.Hour, both, nobodyIdle}}},
		"its last Application was deleted, as is known": {apps: Applications{}, looks: []look{
			{0, []scrape.PodReport{without(0), has(1)}, oneOwner}, {10 * second, both, nobodyIdle}, {time.Hour, both, nobodyIdle},
		}},
		"its last Application was deleted: the cache stays": {looks: []look{
			{0, []scrape.PodReport{without(0), has(1)}, oneOwner},
			{10 * second, []scrape.PodReport{without(0), restingOn(1)}, nobodyHasIt},
			{54 * second, []scrape.PodReport{without(0), restingOn(1)}, nobodyHasIt},
			{55 * second, []scrape.PodReport{without(0), restingOn(1)}, nobodyIdle},
			{time.Hour, both, nobodyIdle},
		}},
		"a loser's last gauges are no sign of rest": {looks: []look{
			{0, []scrape.PodReport{has(0), without(1)}, "owners [0] live [0]"},
			{10 * second, []scrape.PodReport{restingOn(0), without(1)}, nobodyHasIt},
			{40 * second, both, nobodyHasIt},
			{130 * second, both, nobodyHasIt + "; orphaned NotTaken after 10s, intended 1, last 0"},
		}},
		"a ready pod is silent: nothing is known": {apps: Applications{serverA: 3}, looks: []look{
			{0, []scrape.PodReport{without(0), without(1), silent(2, true)}, nobodyHasIt}, {time.Hour, []scrape.PodReport{without(0), without(1), silent(2, true)}, nobodyHasIt},
		}},
		"its pod is not ready and silent: nothing is known": {apps: Applications{serverA: 3}, looks: []look{
			{0, []scrape.PodReport{without(0), silent(1, false)}, nobodyHasIt}, {time.Hour, []scrape.PodReport{without(0), silent(1, false)}, nobodyHasIt},
		}},
		"another pod is not ready and silent": {apps: Applications{serverA: 3}, looks: []look{
			{0, []scrape.PodReport{without(1), silent(2, false)}, nobodyHasIt}, {time.Hour, []scrape.PodReport{without(1), silent(2, false)}, nobodyHasIt + "; orphaned NotTaken after 0s, intended 1, last -1"},
		}},
		"the pod that had it is silent, and may have it": {apps: Applications{serverA: 3}, looks: []look{
			{0, []scrape.PodReport{has(0), without(1)}, "owners [0] live [0]"}, {minute, []scrape.PodReport{silent(0, false), without(1)}, nobodyHasIt}, {time.Hour, []scrape.PodReport{silent(0, false), without(1)}, nobodyHasIt},
		}},
		"the pod that had it does not run, and has it no more": {apps: Applications{serverA: 3}, looks: []look{
			{0, []scrape.PodReport{has(0), without(1)}, "owners [0] live [0]"}, {minute, []scrape.PodReport{stopped(0), without(1)}, nobodyHasIt},
			{time.Hour, []scrape.PodReport{stopped(0), without(1)}, nobodyHasIt + "; orphaned NotTaken after 1m0s, intended 1, last 0"},
		}},
		"a pod without a slot is silent, and may have it": {apps: Applications{serverA: 3}, looks: []look{
			{0, []scrape.PodReport{without(1), silent(plan.NoReplica, false)}, nobodyHasIt}, {time.Hour, []scrape.PodReport{without(1), silent(plan.NoReplica, false)}, nobodyHasIt},
		}},
		"all pods are silent: nothing is known": {apps: Applications{serverA: 3}, looks: []look{
			{0, both, nobodyHasIt}, {time.Hour, []scrape.PodReport{silent(0, true), silent(1, true)}, nobodyHasIt}, {2 * time.Hour, []scrape.PodReport{silent(0, false), silent(1, false)}, nobodyHasIt},
		}},
		"no pods at all, as while everything is drained": {apps: Applications{serverA: 3}, looks: []look{
			{0, []scrape.PodReport{without(0), has(1)}, oneOwner}, {minute, nil, nobodyHasIt}, {time.Hour, nil, nobodyHasIt},
		}},
		"silence in between neither proves nor clears": {apps: Applications{serverA: 3}, looks: []look{
			{0, both, nobodyHasIt}, {minute, []scrape.PodReport{without(0), silent(1, true)}, nobodyHasIt}, {2 * minute, both, nobodyHasIt + "; orphaned NotTaken after 0s, intended 1, last -1"},
			{3 * minute, []scrape.PodReport{without(0), silent(1, true)}, nobodyHasIt}, {4 * minute, both, nobodyHasIt + "; orphaned NotTaken after 0s, intended 1, last -1"},
		}},
		"found again, and lost again": {apps: Applications{serverA: 3}, looks: []look{
			{0, both, nobodyHasIt}, {3 * minute, []scrape.PodReport{without(0), has(1)}, oneOwner}, {4 * minute, both, nobodyHasIt}, {6 * minute, both, nobodyHasIt + "; orphaned NotTaken after 4m0s, intended 1, last 1"},
		}},
		"a sample that is not newer proves nothing": {apps: Applications{serverA: 3}, looks: []look{
			{0, both, nobodyHasIt}, {time.Hour, []scrape.PodReport{sampled(without(0), time.Minute), sampled(without(1), time.Hour)}, nobodyHasIt},
			{2 * time.Hour, []scrape.PodReport{sampled(without(0), 2*time.Minute), sampled(without(1), time.Hour)}, nobodyHasIt + "; orphaned NotTaken after 0s, intended 1, last -1"},
		}},
		"samples of the future prove nothing yet": {apps: Applications{serverA: 3}, looks: []look{
			{0, both, nobodyHasIt}, {minute, []scrape.PodReport{sampled(without(0), time.Hour), sampled(without(1), time.Hour)}, nobodyHasIt},
			{2 * minute, []scrape.PodReport{sampled(without(0), time.Hour), sampled(without(1), time.Hour)}, nobodyHasIt + "; orphaned NotTaken after 0s, intended 1, last -1"},
		}},
		"doubled": {looks: []look{
			{0, []scrape.PodReport{has(0), has(1)}, bothOwn}, {29 * second, []scrape.PodReport{has(0), has(1)}, bothOwn}, {30 * second, []scrape.PodReport{has(0), has(1)}, bothOwn + "; doubled after 0s on ac-0 ac-1"},
			{minute, []scrape.PodReport{without(0), has(1)}, oneOwner}, {2 * minute, []scrape.PodReport{has(0), has(1)}, bothOwn}, {3 * minute, []scrape.PodReport{has(0), has(1)}, bothOwn + "; doubled after 2m0s on ac-0 ac-1"},
		}},
		"doubled, while the old pod ends": {looks: []look{
			{0, []scrape.PodReport{ending(0), has(1)}, bothOwn}, {minute, []scrape.PodReport{ending(0), has(1)}, bothOwn + "; doubled after 0s on ac-0 ac-1"},
		}},
		"doubled only by an old sample": {looks: []look{
			{0, []scrape.PodReport{sampled(has(0), -minute), has(1)}, bothOwn}, {40 * second, []scrape.PodReport{sampled(has(0), -minute), has(1)}, bothOwn}, {50 * second, []scrape.PodReport{without(0), has(1)}, oneOwner},
		}},
		"doubled since the newer of the first two samples": {looks: []look{
			{0, []scrape.PodReport{sampled(has(0), -minute), has(1)}, bothOwn}, {10 * second, []scrape.PodReport{has(0), has(1)}, bothOwn}, {30 * second, []scrape.PodReport{has(0), has(1)}, bothOwn + "; doubled after 0s on ac-0 ac-1"},
		}},
		"one of two owners is silent: neither doubled nor cleared": {looks: []look{
			{0, []scrape.PodReport{has(0), has(1)}, bothOwn}, {minute, []scrape.PodReport{silent(0, true), has(1)}, oneOwner}, {2 * minute, []scrape.PodReport{has(0), has(1)}, bothOwn + "; doubled after 0s on ac-0 ac-1"},
		}},
		"Argo CD leaves it alone": {fleet: discover.Input{Secrets: []discover.Secret{{Name: "prod", Server: serverA, HasData: true, SkipReconcile: true}}}, apps: Applications{serverA: 3}, looks: []look{
			{0, both, nobodyIdle}, {time.Hour, []scrape.PodReport{silent(0, true)}, nobodyIdle},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.fleet.Secrets == nil {
				test.fleet.Secrets = []discover.Secret{secret("prod", serverA)}
			}
			if test.intended == 0 {
				test.intended = 1
			}
			intended := func(string) (int, bool) { return test.intended, test.intended != plan.NoReplica }
			var memory Memory
			for i, look := range test.looks {
				now := noon().Add(look.after)
				observation := Join(at(look.reports, now), fleetOf(t, test.fleet), test.apps)
				var verdict Verdict
				memory, verdict = Judge(overJSON(t, memory), observation, intended, now, Grace{})
				if diff := cmp.Diff(look.want, told(verdict)); diff != "" {
					t.Fatalf("look %d, %s after noon (-want +got):\n%s", i, look.after, diff)
				}
			}
		})
	}
}

func stopped(replica int) scrape.PodReport {
	r := silent(replica, false)
	r.Running = false
	return r
}

func ending(replica int) scrape.PodReport {
	r := has(replica)
	r.Ready, r.Terminating = false, true
	return r
}

type fataler interface {
	Helper()
	Fatal(...any)
}

// overJSON is the memory as the next leader reads it.
func overJSON(t fataler, m Memory) Memory {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var read Memory
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestTheGraceIsAnArgument(t *testing.T) {
	fleet := fleetOf(t, discover.Input{Secrets: []discover.Secret{secret("prod", serverA)}})
	intended := func(string) (int, bool) { return 1, true }
	m, _ := Judge(Memory{}, Join([]scrape.PodReport{without(0), without(1)}, fleet, Applications{serverA: 1}), intended, noon(), Grace{})
	later := noon().Add(10 * time.Second)
	observation := Join(at([]scrape.PodReport{without(0), without(1)}, later), fleet, Applications{serverA: 1})
	for grace, want := range map[time.Duration]int{10 * time.Second: 1, 11 * time.Second: 0, 0: 0, -time.Second: 0} {
		if _, v := Judge(m, observation, intended, later, Grace{Orphaned: grace}); len(v.Orphans) != want {
			t.Errorf("with a grace of %s there are %d orphans, want %d", grace, len(v.Orphans), want)
		}
	}
}

func TestAClusterThatWentIsForgotten(t *testing.T) {
	intended := func(string) (int, bool) { return 1, true }
	two := fleetOf(t, discover.Input{Secrets: []discover.Secret{secret("prod", serverA), secret("twin", serverA)}})
	one := fleetOf(t, discover.Input{Secrets: []discover.Secret{secret("twin", serverA)}})
	m, _ := Judge(Memory{}, Join([]scrape.PodReport{has(0), has(1)}, two, nil), intended, noon(), Grace{})
	lost, _ := Judge(m, Join([]scrape.PodReport{without(0), without(1)}, two, nil), intended, noon(), Grace{})
	m.Lost = lost.Lost
	got, _ := Judge(m, Join([]scrape.PodReport{silent(0, true), silent(1, true)}, one, nil), intended, noon(), Grace{})
	since := map[string]time.Time{"twin": noon()}
	want := Memory{Last: map[string]int{"twin": 0}, Lost: since, Doubled: since, Newest: noon(), Begun: noon()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFaultsAreSaidInASentence(t *testing.T) {
	for want, got := range map[string]string{
		`nobody reconciles cluster "prod" since 2026-03-01T12:00:00Z: replica 3 does not have it, replica 1 had it before; 1 Application waits`: Orphan{"prod", noon(), NotTaken, 3, 1, 1}.Message(),
		`nobody reconciles cluster "prod" since 2026-03-01T12:00:00Z: replica 3 has no pod; 12 Applications wait`:                               Orphan{"prod", noon(), NoPod, 3, 3, 12}.Message(),
		`nobody reconciles cluster "prod" since 2026-03-01T12:00:00Z: the plan does not know it`:                                                Orphan{"prod", noon(), NotPlanned, plan.NoReplica, plan.NoReplica, Unknown}.Message(),
		`cluster "prod" is reconciled by 2 pods at once since 2026-03-01T12:00:00Z: ac-0, ac-1`:                                                 Doubled{"prod", noon(), []int{0, 1}, []string{"ac-0", "ac-1"}}.Message(),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
