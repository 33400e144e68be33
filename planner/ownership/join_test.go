package ownership

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
)

func fleetOf(t testing.TB, in discover.Input) discover.Fleet {
	t.Helper()
	fleet, _, err := discover.Discover(in, discover.Known{}, discover.Options{MaxShrink: 1}, noon())
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func secret(name, server string) discover.Secret {
	return discover.Secret{Name: name, UID: "uid-" + name, Server: server, HasData: true}
}

// answer is a pod's report; its name is its replica's.
func answer(replica int, servers map[string]scrape.ServerReport) scrape.PodReport {
	pod := running("ac-" + string(rune('0'+replica)))
	pod.Replica, pod.Claimed = replica, true
	return scrape.PodReport{Controller: pod, SampledAt: noon(), Servers: servers}
}

// silent is the report of a pod that runs and did not answer.
func silent(replica int, ready bool) scrape.PodReport {
	r := answer(replica, nil)
	r.Ready, r.Err, r.SampledAt = ready, "no answer", time.Time{}
	return r
}

func TestReportsAreJoinedToTheFleet(t *testing.T) {
	const a, b = "https://a", "https://b"
	live := scrape.ServerReport{Apps: 2, Cached: true, CacheAge: 5, Connected: true}
	one := discover.Input{Secrets: []discover.Secret{secret("prod", a)}}
	for name, test := range map[string]struct {
		reports []scrape.PodReport
		fleet   discover.Input
		apps    Applications
		asked   bool
		want    map[string]ClusterObservation
	}{
		"one owner, at work": {
			reports: []scrape.PodReport{answer(0, nil), answer(1, map[string]scrape.ServerReport{a: live})}, fleet: one, asked: true,
			want: map[string]ClusterObservation{"prod": {Server: a, Owners: []int{1}, Live: []int{1}, Cached: []int{1}, Holders: []int{1}, Apps: Unknown}},
		},
		"the owner has not read it yet": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{a: {Apps: 1, Cached: true, CacheAge: -1, Connected: true}})}, fleet: one, asked: true,
			want: map[string]ClusterObservation{"prod": {Server: a, Owners: []int{0}, Cached: []int{0}, Holders: []int{0}, Apps: Unknown}},
		},
		"the owner cannot reach it": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{a: {Apps: 1, Cached: true, CacheAge: 9}})}, fleet: one, asked: true,
			want: map[string]ClusterObservation{"prod": {Server: a, Owners: []int{0}, Cached: []int{0}, Holders: []int{0}, Apps: Unknown}},
		},
		"just moved: the loser shows its last gauges and counters": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{a: {Cached: true, CacheAge: 400, Connected: true, Reconciles: 7}}), answer(1, map[string]scrape.ServerReport{a: {Apps: 2}})}, fleet: one, asked: true,
			want: map[string]ClusterObservation{"prod": {Server: a, Owners: []int{1}, Cached: []int{0}, Holders: []int{1}, Readers: []int{0}, Apps: Unknown}},
		},
		"two owners, one at work": {
			reports: []scrape.PodReport{answer(3, map[string]scrape.ServerReport{a: live}), answer(0, map[string]scrape.ServerReport{a: {Apps: 2}})}, fleet: one, asked: true, apps: Applications{a: 2},
			want: map[string]ClusterObservation{"prod": {Server: a, Owners: []int{0, 3}, Live: []int{3}, Cached: []int{3}, Holders: []int{0, 1}, Apps: 2}},
		},
		"two pods that take themselves for one replica": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{a: live}), answer(0, map[string]scrape.ServerReport{a: live})}, fleet: one, asked: true,
			want: map[string]ClusterObservation{"prod": {Server: a, Owners: []int{0}, Live: []int{0}, Cached: []int{0}, Holders: []int{0, 1}, Apps: Unknown}},
		},
		"nobody has it, and it has no Applications": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{b: live})}, fleet: one, asked: true, apps: Applications{b: 2},
			want: map[string]ClusterObservation{"prod": {Server: a}},
		},
		"a slash at the end of a Secret's server is nothing": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{a: live})}, fleet: discover.Input{Secrets: []discover.Secret{secret("prod", a+"/")}}, asked: true,
			want: map[string]ClusterObservation{"prod": {Server: a, Owners: []int{0}, Live: []int{0}, Cached: []int{0}, Holders: []int{0}, Apps: Unknown}},
		},
		"two Secrets with one server have what either has": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{a: live})}, fleet: discover.Input{Secrets: []discover.Secret{secret("prod", a+"/"), secret("twin", a)}}, asked: true,
			want: map[string]ClusterObservation{
				"prod": {Server: a, Owners: []int{0}, Live: []int{0}, Cached: []int{0}, Holders: []int{0}, Apps: Unknown},
				"twin": {Server: a, Owners: []int{0}, Live: []int{0}, Cached: []int{0}, Holders: []int{0}, Apps: Unknown},
			},
		},
		"the in-cluster without a Secret": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{plan.InClusterServer: live})}, fleet: discover.Input{InClusterEnabled: true}, asked: true,
			want: map[string]ClusterObservation{"in-cluster": {Server: plan.InClusterServer, Owners: []int{0}, Live: []int{0}, Cached: []int{0}, Holders: []int{0}, Apps: Unknown}},
		},
		"a cluster that Argo CD leaves alone": {
			reports: []scrape.PodReport{answer(0, nil)}, fleet: discover.Input{Secrets: []discover.Secret{{Name: "prod", Server: a, HasData: true, SkipReconcile: true}}}, asked: true,
			want: map[string]ClusterObservation{"prod": {Server: a, Skip: true, Apps: Unknown}},
		},
		"a ready pod is silent": {
			reports: []scrape.PodReport{answer(0, map[string]scrape.ServerReport{a: live}), silent(1, true)}, fleet: one,
			want: map[string]ClusterObservation{"prod": {Server: a, Owners: []int{0}, Live: []int{0}, Cached: []int{0}, Holders: []int{0}, Apps: Unknown}},
		},
		"an unready pod is silent": {
			reports: []scrape.PodReport{answer(0, nil), silent(1, false)}, fleet: one, asked: true,
			want: map[string]ClusterObservation{"prod": {Server: a, Apps: Unknown}},
		},
		"what a pod said before it failed does not count": {
			reports: []scrape.PodReport{{Controller: running("ac-0"), Err: "no answer", Servers: map[string]scrape.ServerReport{a: live}}}, fleet: one,
			want: map[string]ClusterObservation{"prod": {Server: a, Apps: Unknown}},
		},
		"no pods": {fleet: one, want: map[string]ClusterObservation{"prod": {Server: a, Apps: Unknown}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Join(test.reports, fleetOf(t, test.fleet), test.apps)
			if diff := cmp.Diff(test.want, got.Clusters); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Asked != test.asked {
				t.Errorf("asked is %v, want %v", got.Asked, test.asked)
			}
		})
	}
}

func TestPodsAreHandedOnWithWhatTheyReported(t *testing.T) {
	second, first := answer(1, nil), answer(0, nil)
	second.Memory, second.MemoryLimit = 7, 10
	want := []observed.Pod{
		{Replica: 0, Name: "ac-0", Ready: true, Claimed: true, Answered: true},
		{Replica: 1, Name: "ac-1", Ready: true, Claimed: true, Memory: 7, MemoryLimit: 10, Answered: true},
		{Replica: 2, Name: "ac-2", Ready: true, Claimed: true},
	}
	if diff := cmp.Diff(want, scrape.Pods([]scrape.PodReport{second, silent(2, true), first})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	observation := []PodObservation{{Name: "ac-1", Replica: 1, Ready: true, Running: true, Answered: true, SampledAt: noon()}, {Name: "ac-0", Ready: true, Running: true}}
	if diff := cmp.Diff(observation, Join([]scrape.PodReport{second, silent(0, true)}, discover.Fleet{}, nil).Pods); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestApplicationsByNameAreTold: Argo CD 3.0.0 to 3.0.5 shows them with an empty dest_server, at their owner alone.
func TestApplicationsByNameAreTold(t *testing.T) {
	pod := func(answered bool, unplaced int) PodObservation {
		return PodObservation{Ready: true, Answered: answered, Unplaced: unplaced}
	}
	for name, test := range map[string]struct {
		pods []PodObservation
		want int
	}{
		"nobody looked":                   {nil, 0},
		"none":                            {[]PodObservation{pod(true, 0), pod(true, 0)}, 0},
		"by their owners":                 {[]PodObservation{pod(true, 12), pod(true, 7), pod(true, 0)}, 19},
		"beside some that all show":       {[]PodObservation{pod(true, 15), pod(true, 10), pod(true, 3)}, 19},
		"whose destination is unknown":    {[]PodObservation{pod(true, 9), pod(true, 9)}, 0},
		"one that does not answer":        {[]PodObservation{pod(true, 9), pod(false, 0)}, 0},
		"one pod, of which none can tell": {[]PodObservation{pod(true, 9)}, 0},
	} {
		if got := (Observation{Pods: test.pods}).ByName(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestOnePodAloneIsTakenForWhatWasKnown of Applications by name, as far as it shows as many.
func TestOnePodAloneIsTakenForWhatWasKnown(t *testing.T) {
	pod := func(answered bool, unplaced int) PodObservation {
		return PodObservation{Ready: true, Answered: answered, Unplaced: unplaced}
	}
	for name, test := range map[string]struct {
		pods   []PodObservation
		before int
		want   int
	}{
		"nobody looked":       {nil, 9, 0},
		"two":                 {[]PodObservation{pod(true, 12), pod(true, 5)}, 30, 7},
		"one, as before":      {[]PodObservation{pod(true, 12), pod(false, 0)}, 9, 9},
		"one, of fewer":       {[]PodObservation{pod(true, 4), pod(false, 0)}, 9, 4},
		"one, of none":        {[]PodObservation{pod(true, 0)}, 9, 0},
		"one, never known":    {[]PodObservation{pod(true, 12)}, 0, 0},
		"nobody that answers": {[]PodObservation{pod(false, 12)}, 9, 0},
	} {
		if got := (Observation{Pods: test.pods}).ByNameAfter(test.before); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestWhoHasApplicationsByNameAlone: no number, or an unknown one, of those that give the server takes a cluster for such a one.
func TestWhoHasApplicationsByNameAlone(t *testing.T) {
	const url = "https://a"
	for name, test := range map[string]struct {
		seen     ClusterObservation
		byServer Applications
		byName   bool
		unshown  bool
	}{
		"all by name":                {ClusterObservation{Apps: 3, Cached: []int{1}}, Applications{url: 0}, true, true},
		"whose cache nobody keeps":   {ClusterObservation{Apps: 3}, Applications{url: 0}, true, false},
		"which a pod has":            {ClusterObservation{Apps: 3, Cached: []int{1}, Holders: []int{0}}, Applications{url: 0}, true, false},
		"one by server":              {ClusterObservation{Apps: 3, Cached: []int{1}}, Applications{url: 1}, false, false},
		"unknown how many":           {ClusterObservation{Apps: 3, Cached: []int{1}}, Applications{url: Unknown}, false, false},
		"not said":                   {ClusterObservation{Apps: 3, Cached: []int{1}}, Applications{}, false, false},
		"nobody could read them":     {ClusterObservation{Apps: 3, Cached: []int{1}}, nil, false, false},
		"none at all":                {ClusterObservation{Apps: 0, Cached: []int{1}}, Applications{url: 0}, false, false},
		"unknown how many there are": {ClusterObservation{Apps: Unknown, Cached: []int{1}}, Applications{url: 0}, false, false},
	} {
		test.seen.Server = url
		o := Observation{Clusters: map[string]ClusterObservation{"prod": test.seen}}
		o.TellByName(test.byServer)
		if got := o.Clusters["prod"]; got.ByName != test.byName || got.Unshown() != test.unshown {
			t.Errorf("%s: by name %t, unshown %t, want %t and %t", name, got.ByName, got.Unshown(), test.byName, test.unshown)
		}
	}
}

// TestTheOnlyReaderIsTheOwner of a cluster that Argo CD shows nobody for, once two looks in a row say that it leaves destinations empty.
func TestTheOnlyReaderIsTheOwner(t *testing.T) {
	for name, test := range map[string]struct {
		seen   ClusterObservation
		before int
		owners []int
	}{
		"one reads it":            {ClusterObservation{ByName: true, Cached: []int{3}, Readers: []int{1}}, 9, []int{3}},
		"by one look":             {ClusterObservation{ByName: true, Cached: []int{3}, Readers: []int{1}}, 4, nil},
		"one shows it":            {ClusterObservation{ByName: true, Cached: []int{3}, Readers: []int{1}, Owners: []int{0}, Holders: []int{0}}, 9, []int{0}},
		"one gives the server":    {ClusterObservation{Cached: []int{3}, Readers: []int{1}}, 9, nil},
		"one is not connected":    {ClusterObservation{ByName: true, Cached: []int{3}}, 9, nil},
		"another keeps a cache":   {ClusterObservation{ByName: true, Cached: []int{0, 3}, Readers: []int{1}}, 9, nil},
		"two pods of one replica": {ClusterObservation{ByName: true, Cached: []int{3}, Readers: []int{1, 2}}, 9, nil},
		"nobody has any":          {ClusterObservation{ByName: true}, 9, nil},
	} {
		o := Observation{Clusters: map[string]ClusterObservation{"prod": test.seen},
			Pods: []PodObservation{{Ready: true, Answered: true, Unplaced: 1}, {Replica: 3, Ready: true, Answered: true, Unplaced: 6}}}
		got := o
		if o.Hides(test.before) {
			got = o.WithReaders()
		}
		if diff := cmp.Diff(test.owners, got.Clusters["prod"].Owners); diff != "" {
			t.Errorf("%s: owners (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.seen, o.Clusters["prod"]); diff != "" {
			t.Errorf("%s: what was seen is changed (-want +got):\n%s", name, diff)
		}
	}
}

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func running(name string) observed.Controller {
	return observed.Controller{Pod: observed.Pod{Name: name, Ready: true}, Running: true}
}
