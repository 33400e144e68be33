package health

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/observed"
)

var start = time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }

var patience = Options{After: 5 * time.Minute, Settle: 10 * time.Minute, Interval: time.Minute}

func pod(replica int, change ...func(*observed.Pod)) observed.Pod {
	p := observed.Pod{Replica: replica, Name: fmt.Sprintf("controller-%d", replica), Ready: true, Claimed: true}
	for _, c := range change {
		c(&p)
	}
	return p
}

func notReady(p *observed.Pod) { p.Ready = false }
func unclaimed(p *observed.Pod) {
	p.Claimed = false
}

func restarted(times int, minute float64) func(*observed.Pod) {
	return func(p *observed.Pod) { p.Restarts, p.RestartedAt = times, at(minute) }
}

func oomKilled(times int, minute float64) func(*observed.Pod) {
	return func(p *observed.Pod) { p.Restarts, p.RestartedAt, p.OOMKilled = times, at(minute), true }
}

// named is a pod whose name is not its replica's, as a Deployment's.
func named(name string) func(*observed.Pod) { return func(p *observed.Pod) { p.Name = name } }

// look is what is seen at a minute: four replicas, of which those pods differ from well ones.
type look struct {
	minute  float64
	pods    []observed.Pod
	missing []int
	rolling bool
	unseen  bool
}

func (l look) fleet(dynamic bool) Fleet {
	f := Fleet{Known: !l.unseen, Replicas: 4, Dynamic: dynamic, Rolling: l.rolling, Pods: l.pods}
	for replica := range 4 {
		given := false
		for _, p := range l.pods {
			given = given || p.Replica == replica
		}
		for _, m := range l.missing {
			given = given || m == replica
		}
		if !given {
			f.Pods = append(f.Pods, pod(replica))
		}
	}
	return f
}

func judged(dynamic bool, looks []look) (v Verdict) {
	var m Memory
	for _, l := range looks {
		v, m = Judge(l.fleet(dynamic), patience, at(l.minute), m)
	}
	return v
}

// every minute from one to another the same is seen.
func every(from, to float64, l look) (looks []look) {
	for l.minute = from; l.minute <= to; l.minute++ {
		looks = append(looks, l)
	}
	return looks
}

func then(looks ...[]look) (all []look) {
	for _, l := range looks {
		all = append(all, l...)
	}
	return all
}

func seen(pods ...observed.Pod) look { return look{pods: pods} }

func TestUnwellReplicas(t *testing.T) {
	ill := seen(pod(2, notReady))
	well := look{}
	for name, test := range map[string]struct {
		looks []look
		want  []Sick
		held  Hold
	}{
		"all is well":                         {every(0, 30, well), nil, ""},
		"not ready for less than after":       {every(0, 4, ill), nil, ""},
		"not ready for as long as after":      {every(0, 5, ill), []Sick{{2, NotReady, at(0), "controller-2"}}, ""},
		"ready in between":                    {then(every(0, 4, ill), every(5, 5, well), every(6, 10, ill)), nil, ""},
		"ready again":                         {then(every(0, 20, ill), every(21, 21, well)), nil, ""},
		"a pod that is missing":               {every(0, 5, look{missing: []int{3}}), []Sick{{3, Missing, at(0), ""}}, ""},
		"a pod that came and is not ready":    {then(every(0, 2, look{missing: []int{2}}), every(3, 5, ill)), []Sick{{2, NotReady, at(0), "controller-2"}}, ""},
		"an OOM kill":                         {[]look{{minute: 0}, {minute: 1, pods: []observed.Pod{pod(1, oomKilled(1, 0.5))}}}, []Sick{{1, OOMKilled, at(0.5), "controller-1"}}, ""},
		"an OOM kill at the first look":       {every(0, 0, seen(pod(1, oomKilled(9, -14)))), []Sick{{1, OOMKilled, at(-14), "controller-1"}}, ""},
		"an OOM kill 15 minutes ago":          {every(0, 0, seen(pod(1, oomKilled(9, -15)))), nil, ""},
		"an OOM kill of a pod that waits":     {every(0, 14, seen(pod(1, func(p *observed.Pod) { p.OOMKilled = true }))), []Sick{{1, OOMKilled, at(0), "controller-1"}}, ""},
		"an OOM kill at a time to come":       {every(0, 1, seen(pod(1, oomKilled(1, 99)))), []Sick{{1, OOMKilled, at(0), "controller-1"}}, ""},
		"and 15 minutes later":                {every(0, 15, seen(pod(1, oomKilled(1, 360)))), nil, ""},
		"one centuries ahead, later":          {every(0, 15, seen(pod(1, oomKilled(1, 1e8)))), nil, ""},
		"one whose time nobody tells, later":  {every(0, 15, seen(pod(1, func(p *observed.Pod) { p.OOMKilled, p.Restarts = true, 1 }))), nil, ""},
		"and when our clock has come there":   {every(0, 62, seen(pod(1, oomKilled(1, 60)))), nil, ""},
		"another at a time to come":           {then(every(0, 20, seen(pod(1, oomKilled(1, 360)))), every(21, 22, seen(pod(1, oomKilled(2, 381))))), []Sick{{1, OOMKilled, at(21), "controller-1"}}, ""},
		"an OOM kill whose pod is gone":       {then(every(0, 0, seen(pod(1, oomKilled(1, 0)))), every(1, 1, look{missing: []int{1}})), []Sick{{1, OOMKilled, at(0), ""}}, ""},
		"three restarts in looks far apart":   {[]look{{minute: 0}, {minute: 1, pods: []observed.Pod{pod(0, restarted(1, 1))}}, {minute: 7, pods: []observed.Pod{pod(0, restarted(2, 7))}}, {minute: 13, pods: []observed.Pod{pod(0, restarted(3, 13))}}}, []Sick{{0, Restarting, at(1), "controller-0"}}, ""},
		"three restarts, looked at each time": {then(every(0, 0, well), every(1, 6, seen(pod(0, restarted(1, 1)))), every(7, 12, seen(pod(0, restarted(2, 7)))), every(13, 13, seen(pod(0, restarted(3, 13))))), []Sick{{0, Restarting, at(1), "controller-0"}}, ""},
		"three restarts in 15 minutes":        {then(every(0, 0, well), every(1, 6, seen(pod(0, restarted(1, 1)))), every(7, 15, seen(pod(0, restarted(2, 7)))), every(16, 16, seen(pod(0, restarted(3, 16))))), nil, ""},
		"three restarts between two looks":    {then(every(0, 0, well), every(1, 1, seen(pod(0, restarted(3, 0.9))))), []Sick{{0, Restarting, at(0.9), "controller-0"}}, ""},
		"restarts of old at the first look":   {every(0, 1, seen(pod(0, restarted(500, -1)))), nil, ""},
		"restarts of another pod":             {then(every(0, 0, seen(pod(0, restarted(7, -60)))), every(1, 1, seen(pod(0, restarted(1, 0.5))))), nil, ""},
		"restarts after a long absence":       {then(every(0, 0, well), every(120, 120, seen(pod(0, restarted(3, 119))))), nil, ""},
		"restarts of a pod that was not seen for a look": {then(every(0, 0, well), every(1, 1, seen(pod(0, restarted(1, 1)))), every(2, 2, look{missing: []int{0}}), every(3, 3, seen(pod(0, restarted(1, 1)))),
			every(4, 4, look{missing: []int{0}}), every(5, 5, seen(pod(0, restarted(1, 1))))), nil, ""},
		"restarts of another pod of the replica": {then(every(0, 0, seen(pod(0, named("a")))), every(1, 1, seen(pod(0, named("b"), restarted(3, 0.5))))), nil, ""},
		"restarts of a new pod under the old name": {then(every(0, 0, seen(pod(0, restarted(7, -60)))), every(1, 1, seen(pod(0, restarted(1, 0.5)))), every(2, 2, seen(pod(0, restarted(2, 1.5)))), every(3, 3, seen(pod(0, restarted(3, 2.5))))),
			[]Sick{{0, Restarting, at(0.5), "controller-0"}}, ""},
		"not ready before and after an absence":     {then(every(0, 0, ill), every(6, 10, ill)), nil, ""},
		"a clock that went back after a rollout":    {then(every(0, 0, look{pods: ill.pods, rolling: true}), every(-500, -490, ill)), []Sick{{2, NotReady, at(-500), "controller-2"}}, ""},
		"a clock that went back after an OOM kill":  {then(every(0, 0, seen(pod(1, oomKilled(1, 0)))), every(-500, -485, well)), nil, ""},
		"not ready before and after a long absence": {then(every(0, 0, ill), every(120, 124, ill)), nil, ""},
		"not ready through a short absence":         {then(every(0, 2, ill), every(7, 7, ill)), []Sick{{2, NotReady, at(0), "controller-2"}}, ""},
		"while pods cannot be listed":               {then(every(0, 5, ill), every(6, 6, look{unseen: true})), nil, Unseen},
		"after pods could not be listed":            {then(every(0, 2, ill), every(3, 4, look{unseen: true}), every(5, 5, ill)), []Sick{{2, NotReady, at(0), "controller-2"}}, ""},
		"while the workload rolls out":              {every(0, 60, look{pods: ill.pods, rolling: true}), nil, RollingOut},
		"after a rollout, before settle":            {then(every(0, 0, look{pods: ill.pods, rolling: true}), every(1, 9, ill)), []Sick{{2, NotReady, at(1), "controller-2"}}, Settling},
		"after a rollout, after settle":             {then(every(0, 0, look{pods: ill.pods, rolling: true}), every(1, 10, ill)), []Sick{{2, NotReady, at(1), "controller-2"}}, ""},
		"well after a rollout":                      {then(every(0, 0, look{rolling: true}), every(1, 1, well)), nil, ""},
		"an OOM kill in a rollout":                  {then(every(0, 3, look{rolling: true, pods: []observed.Pod{pod(1, oomKilled(1, 1))}}), every(4, 14, seen(pod(1, oomKilled(1, 1))))), nil, ""},
		"restarts in a rollout":                     {then(every(0, 3, look{rolling: true, pods: []observed.Pod{pod(1, restarted(3, 2))}}), every(4, 14, seen(pod(1, restarted(3, 2))))), nil, ""},
		"half of the fleet":                         {every(0, 5, seen(pod(0, notReady), pod(1, notReady))), []Sick{{0, NotReady, at(0), "controller-0"}, {1, NotReady, at(0), "controller-1"}}, ""},
		"more than half of it":                      {every(0, 5, look{pods: []observed.Pod{pod(0, notReady), pod(1, oomKilled(1, 1))}, missing: []int{2}}), []Sick{{0, NotReady, at(0), "controller-0"}, {1, OOMKilled, at(0), "controller-1"}, {2, Missing, at(0), ""}}, WholeFleet},
		"two pods, one of them ready":               {every(0, 9, seen(pod(2, notReady), pod(2, named("another")))), nil, ""},
		"pods of no replica and beyond":             {every(0, 9, seen(pod(-1, notReady), pod(4, notReady))), nil, ""},
		"a clock that went back":                    {then(every(0, 3, ill), every(-500, -498, ill)), []Sick{{2, NotReady, at(-503), "controller-2"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := judged(false, test.looks)
			if diff := cmp.Diff(Verdict{Sick: test.want, Held: test.held}, got, cmpopts.IgnoreFields(Verdict{}, "Down", "Stuck", "Rolling")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestARestartIsDatedAsItWasSeen where its node's clock is ahead, once and for all.
func TestARestartIsDatedAsItWasSeen(t *testing.T) {
	_, m := Judge(seen(pod(1, restarted(1, 600))).fleet(false), patience, at(30), Memory{})
	for name, test := range map[string]struct {
		pod    observed.Pod
		minute float64
		want   time.Time
	}{
		"at the next look":                     {pod(1, restarted(1, 600)), 31, at(30)},
		"and when our clock has reached it":    {pod(1, restarted(1, 600)), 601, at(30)},
		"another one":                          {pod(1, restarted(2, 32)), 33, at(32)},
		"another one that is ahead, too":       {pod(1, restarted(2, 600)), 33, time.Time{}},
		"one of another pod":                   {pod(1, named("another"), restarted(1, 20)), 31, at(20)},
		"one of a replica that nobody judged":  {pod(7, restarted(1, 600)), 31, time.Time{}},
		"one that is not ahead, of a well one": {pod(2, restarted(1, 20)), 31, at(20)},
	} {
		t.Run(name, func(t *testing.T) {
			given := []observed.Pod{test.pod}
			if got := m.Dated(given, at(test.minute))[0].RestartedAt; !got.Equal(test.want) {
				t.Errorf("it restarted at %s, want %s", got, test.want)
			}
			if !given[0].RestartedAt.Equal(test.pod.RestartedAt) {
				t.Errorf("what was given is changed to %s", given[0].RestartedAt)
			}
		})
	}
}

// TestAStartIsDatedAsItWasSeen where its node's clock is ahead, or somebody who may write pods' status says so: by its date the pod
// would have begun a moment ago until our clock reaches it, its memory would not be learned, and no reference taken.
func TestAStartIsDatedAsItWasSeen(t *testing.T) {
	began := func(replica int, minute float64) observed.Pod {
		return pod(replica, func(p *observed.Pod) { p.Started = at(minute) })
	}
	_, m := Judge(seen(began(1, 600), began(2, 20)).fleet(false), patience, at(30), Memory{})
	_, m = Judge(seen(began(1, 600), began(2, 20)).fleet(false), patience, at(31), m)
	for name, test := range map[string]struct {
		pod    observed.Pod
		minute float64
		want   time.Time
	}{
		"one look later":                      {began(1, 600), 32, at(30)},
		"and when our clock has reached it":   {began(1, 600), 601, at(30)},
		"another one that is ahead, too":      {began(1, 700), 33, at(33)},
		"one of a replica that nobody judged": {began(7, 600), 33, at(33)},
		"one that is not ahead any more":      {began(1, 32), 33, at(32)},
		"one that is not ahead":               {began(2, 20), 33, at(20)},
		"one that nobody knows":               {pod(3), 33, time.Time{}},
		"one that nobody knows after one did": {pod(1), 33, time.Time{}},
		"one in years of another look":        {began(2, 4e6), 33, at(33)},
	} {
		t.Run(name, func(t *testing.T) {
			given := []observed.Pod{test.pod}
			if got := m.Dated(given, at(test.minute))[0].Started; !got.Equal(test.want) {
				t.Errorf("it began at %s, want %s", got, test.want)
			}
			if !given[0].Started.Equal(test.pod.Started) {
				t.Errorf("what was given is changed to %s", given[0].Started)
			}
		})
	}
	back, _ := Judge(seen(began(1, 600)).fleet(false), patience, at(20), m) // our clock was ten minutes ahead, and is put right
	_, m = Judge(seen(began(1, 600)).fleet(false), patience, at(20), m)
	if got := m.Dated([]observed.Pod{began(1, 600)}, at(20))[0].Started; len(back.Sick) > 0 || !got.Equal(at(19)) {
		t.Errorf("after the clock went back it began at %s, want %s", got, at(19))
	}
}

func TestAFleetThatFallsPodByPodIsAWholeFleet(t *testing.T) {
	falling := func(fall int) (looks []look) { // one every 20 s
		for second := 0; second <= 5*60; second += 20 {
			l := look{minute: float64(second) / 60}
			for replica := range min(fall, second/20+1) {
				l.pods = append(l.pods, pod(replica, notReady))
			}
			looks = append(looks, l)
		}
		return looks
	}
	first := []Sick{{0, NotReady, at(0), "controller-0"}}
	for fall, want := range map[int]Verdict{
		4: {Sick: first, Down: []int{1, 2, 3}, Held: WholeFleet},
		3: {Sick: first, Down: []int{1, 2}, Held: WholeFleet},
		2: {Sick: first, Down: []int{1}},
		1: {Sick: first},
	} {
		if diff := cmp.Diff(want, judged(false, falling(fall))); diff != "" {
			t.Errorf("%d of 4 fall: -want +got:\n%s", fall, diff)
		}
	}
}

func TestInDeploymentModeOnlyASlotThatNobodyClaimsIsUnwell(t *testing.T) {
	for name, test := range map[string]struct {
		looks []look
		want  []Sick
	}{
		"claimed by a pod that is not ready":        {every(0, 30, seen(pod(2, notReady))), nil},
		"claimed by a pod that was OOM-killed":      {every(0, 3, seen(pod(2, oomKilled(1, 0)))), nil},
		"claimed by another pod than before":        {then(every(0, 4, seen(pod(2, named("a"), unclaimed))), every(5, 9, seen(pod(2, named("a"), unclaimed), pod(2, named("b"))))), nil},
		"ready, but without a claim":                {every(0, 5, seen(pod(2, unclaimed))), []Sick{{2, Unclaimed, at(0), "controller-2"}}},
		"without a claim for less than after":       {every(0, 4, seen(pod(2, unclaimed))), nil},
		"without a pod":                             {every(0, 5, look{missing: []int{1}}), []Sick{{1, Unclaimed, at(0), ""}}},
		"OOM-killed, and then nobody's":             {then(every(0, 2, seen(pod(2, oomKilled(1, 0)))), every(3, 3, seen(pod(2, oomKilled(1, 0), unclaimed)))), []Sick{{2, OOMKilled, at(0), "controller-2"}}},
		"a pod without a slot beside a healthy one": {every(0, 9, seen(pod(-1, unclaimed, notReady))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Verdict{Sick: test.want}, judged(true, test.looks), cmpopts.IgnoreFields(Verdict{}, "Down")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestVerdictsAreSentences(t *testing.T) {
	for want, sick := range map[string]Sick{
		`replica 3 is unwell: pod "controller-3" was killed for its memory, and started again at 2026-11-20T17:00:00Z`: {3, OOMKilled, start, "controller-3"},
		`replica 3 is unwell: pod "controller-3" restarted 3 times since 2026-11-20T17:00:00Z`:                         {3, Restarting, start, "controller-3"},
		`replica 3 is unwell: pod "controller-3" is not ready since 2026-11-20T17:00:00Z`:                              {3, NotReady, start, "controller-3"},
		`replica 3 is unwell: it has no pod since 2026-11-20T17:00:00Z`:                                                {3, Missing, start, ""},
		`replica 3 is unwell: no pod claims its slot since 2026-11-20T17:00:00Z`:                                       {3, Unclaimed, start, ""},
	} {
		if diff := cmp.Diff(want, sick.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	for want, v := range map[string]Verdict{
		"": {Sick: make([]Sick, 1)},
		"the application-controller's pods cannot be listed: no replica is judged":              {Held: Unseen},
		"the workload rolls out: no replica is judged":                                          {Held: RollingOut},
		"the workload rolled out a short while ago: nothing moves although 1 replica is unwell": {Held: Settling, Sick: make([]Sick, 1)},
		"more than half of the fleet is ill (3 replicas are unwell or not ready): nothing moves, for what ails most of them is not theirs alone and would come along; look at Redis, the repo-server, the API server, the nodes and the image first": {
			Held: WholeFleet, Sick: make([]Sick, 1), Down: make([]int, 2)},
	} {
		if diff := cmp.Diff(want, v.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	held := Verdict{Sick: []Sick{{Replica: 1}, {Replica: 3}}, Held: Settling}
	if got := held.Unwell(); got != nil {
		t.Errorf("while it is held, %v are to be emptied", got)
	}
	held.Held = ""
	if diff := cmp.Diff([]int{1, 3}, held.Unwell()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// drawFleet is any fleet: pods of any state, also none and several of one replica.
func drawFleet(t *rapid.T, now time.Time) Fleet {
	f := Fleet{Known: rapid.IntRange(0, 9).Draw(t, "known") > 0, Replicas: rapid.IntRange(0, 5).Draw(t, "replicas"),
		Dynamic: rapid.Bool().Draw(t, "dynamic"), Rolling: rapid.IntRange(0, 9).Draw(t, "rolling") == 0}
	f.Pods = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) observed.Pod {
		p := pod(rapid.IntRange(-1, 5).Draw(t, "replica"))
		p.Ready, p.Claimed, p.OOMKilled = rapid.Bool().Draw(t, "ready"), rapid.Bool().Draw(t, "claimed"), rapid.IntRange(0, 5).Draw(t, "oom") == 0
		if p.Restarts = rapid.IntRange(0, 5).Draw(t, "restarts"); rapid.Bool().Draw(t, "restarted at") {
			p.RestartedAt = now.Add(-time.Duration(rapid.IntRange(-60, 3600).Draw(t, "seconds ago")) * time.Second)
		}
		return p
	}), 0, 8).Draw(t, "pods")
	return f
}

// TestFailoverKeepsQuietDuringARolloutAndForAWholeFleet plays random looks, on a clock that goes back now and then, and with
// leaders that pass their memory on as JSON.
func TestFailoverKeepsQuietDuringARolloutAndForAWholeFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Memory
		now, rolled := start, time.Duration(-1)
		for range rapid.IntRange(1, 40).Draw(t, "looks") {
			passed := time.Duration(rapid.SampledFrom([]int{0, 10, 60, 60, 200, 4000}).Draw(t, "seconds")) * time.Second
			if now = now.Add(passed); rapid.IntRange(0, 9).Draw(t, "back") == 0 {
				now, passed = now.Add(-24*time.Hour), 0
			}
			f := drawFleet(t, now)
			if f.Rolling && f.Known {
				rolled = 0
			} else if rolled >= 0 {
				rolled += passed
			}
			if rapid.Bool().Draw(t, "another leader") {
				m = reread(t, m)
			}
			var v Verdict
			v, m = Judge(f, patience, now, m)
			unwell := v.Unwell()
			switch {
			case len(unwell) > 0 && f.Rolling:
				t.Fatalf("%v are to be emptied during a rollout", unwell)
			case len(unwell) > 0 && rolled >= 0 && rolled < patience.Settle:
				t.Fatalf("%v are to be emptied %s after a rollout", unwell, rolled)
			case 2*len(unwell) > f.Replicas:
				t.Fatalf("%v of %d replicas are to be emptied", unwell, f.Replicas)
			case len(unwell) > 0 && !f.Known:
				t.Fatalf("%v are to be emptied, and nobody saw them", unwell)
			}
			for _, replica := range unwell {
				if f.Dynamic && claimed(f, replica) {
					t.Fatalf("replica %d is to be emptied though a pod claims it", replica)
				}
			}
			for replica, h := range m.Replicas {
				if len(h.Restarts) > manyRestarts || replica < 0 {
					t.Fatalf("replica %d is remembered with %v", replica, h)
				}
			}
		}
	})
}

func claimed(f Fleet, replica int) bool {
	for _, p := range f.Pods {
		if p.Replica == replica && p.Claimed {
			return true
		}
	}
	return false
}

func reread(t *rapid.T, m Memory) Memory {
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var again Memory
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

func TestForgettingChangesNothingItWasGiven(t *testing.T) {
	m := Memory{Looked: at(19), Replicas: map[int]Replica{0: {Pod: "controller-0", Count: 2, Restarts: []time.Time{at(0), at(10)}}}}
	_, next := Judge(look{}.fleet(false), patience, at(20), m)
	if diff := cmp.Diff([]time.Time{at(0), at(10)}, m.Replicas[0].Restarts); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if diff := cmp.Diff([]time.Time{at(10)}, next.Replicas[0].Restarts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJudgingChangesNothingItWasGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Memory
		now := start
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{-100, 0, 60, 240, 290}).Draw(t, "seconds")) * time.Second)
			f := drawFleet(t, now)
			before, pods := reread(t, m), slices.Clone(f.Pods)
			first, next := Judge(f, patience, now, m)
			second, again := Judge(f, patience, now, m)
			if diff := cmp.Diff(before, reread(t, m)) + cmp.Diff(pods, f.Pods); diff != "" {
				t.Fatalf("what was given changed:\n%s", diff)
			}
			if diff := cmp.Diff(first, second) + cmp.Diff(next, again); diff != "" {
				t.Fatalf("asked twice, it answers otherwise:\n%s", diff)
			}
			m = next
		}
	})
}

// TestARolloutWithoutAnEndNamesWhoDoesNotWork, since nobody judges it meanwhile.
func TestARolloutWithoutAnEndNamesWhoDoesNotWork(t *testing.T) {
	start := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	o := Options{After: 5 * time.Minute, Settle: 5 * time.Minute, Interval: time.Minute}
	up := func(replica int) observed.Pod {
		return observed.Pod{Replica: replica, Name: fmt.Sprintf("controller-%d", replica), Ready: true}
	}
	down := up(1)
	down.Ready = false
	type look struct {
		minute  int
		rolling bool
		pods    []observed.Pod
	}
	since := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
	for name, test := range map[string]struct {
		looks []look
		stuck []int
		since time.Time
	}{
		"for nine minutes":                {[]look{{0, true, []observed.Pod{up(0), down}}, {9, true, []observed.Pod{up(0), down}}}, nil, since(0)},
		"for ten minutes":                 {[]look{{0, true, []observed.Pod{up(0), down}}, {10, true, []observed.Pod{up(0), down}}}, []int{1}, since(0)},
		"a pod that is gone":              {[]look{{0, true, []observed.Pod{up(0)}}, {10, true, []observed.Pod{up(0)}}}, []int{1}, since(0)},
		"while all work":                  {[]look{{0, true, []observed.Pod{up(0), up(1)}}, {60, true, []observed.Pod{up(0), up(1)}}}, nil, since(0)},
		"a replica that dies in a canary": {[]look{{0, true, []observed.Pod{up(0), up(1)}}, {60, true, []observed.Pod{up(0), down}}}, []int{1}, since(0)},
		"two rollouts":                    {[]look{{0, true, []observed.Pod{up(0), down}}, {5, false, []observed.Pod{up(0), up(1)}}, {6, true, []observed.Pod{up(0), down}}, {12, true, []observed.Pod{up(0), down}}}, nil, since(6)},
	} {
		t.Run(name, func(t *testing.T) {
			var m Memory
			var v Verdict
			for _, l := range test.looks {
				v, m = Judge(Fleet{Known: true, Replicas: 2, Rolling: l.rolling, Pods: l.pods}, o, since(l.minute), m)
			}
			if diff := cmp.Diff(Verdict{Held: RollingOut, Stuck: test.stuck, Rolling: test.since}, v); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAStatusThatLiesByTurnsIsTold: who may write the workload's status may have it say, now and then, that pods are replaced. Nothing
// fails over meanwhile, and people hear why.
func TestAStatusThatLiesByTurnsIsTold(t *testing.T) {
	for _, every := range []int{1, 4, 9} {
		var m Memory
		var v Verdict
		sick, stuck := 0, 0
		for minute := range 6 * 60 {
			l := look{minute: float64(minute), missing: []int{2}, rolling: minute%every == 0}
			v, m = Judge(l.fleet(false), patience, at(float64(minute)), m)
			sick += len(v.Sick)
			stuck += len(v.Stuck)
		}
		if told := sick + stuck; told < 30 {
			t.Errorf("a false status every %d minutes: in six hours the dead replica is told of %d times as unwell, %d times as stuck", every, sick, stuck)
		}
		if want := 6*60/every - 11; stuck < want {
			t.Errorf("a false status every %d minutes: it is told of as stuck %d times, want at least %d", every, stuck, want)
		}
	}
}

// BenchmarkJudge is a look at 16 replicas.
func BenchmarkJudge(b *testing.B) {
	f := look{pods: nil}.fleet(false)
	f.Replicas = 16
	var m Memory
	now := start
	for b.Loop() {
		now = now.Add(time.Minute)
		_, m = Judge(f, patience, now, m)
	}
}
