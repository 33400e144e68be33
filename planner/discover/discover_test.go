package discover

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ballast/planner/plan"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

var half = Options{MaxShrink: 0.5}

func secret(name string, edit ...func(*Secret)) Secret {
	s := Secret{UID: "uid-" + name, Name: name, Namespace: "argocd", Cluster: name, Server: "https://" + name, HasData: true}
	for _, e := range edit {
		e(&s)
	}
	return s
}

func cluster(name string, edit ...func(*Cluster)) Cluster {
	c := Cluster{Shard: plan.Shard{UID: "uid-" + name, ID: name, Namespace: "argocd", Name: name, Server: "https://" + name}}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func server(url string) func(*Secret) { return func(s *Secret) { s.Server = url } }

func shard(raw string) func(*Secret) {
	return func(s *Secret) { s.Shard = ParseShard([]byte(raw)) }
}

func valid(n int) ShardValue { return ShardValue{State: ShardValid, N: n} }

func TestDiscoverListsTheFleet(t *testing.T) {
	two := 2
	tests := map[string]struct {
		in           Input
		wantClusters []Cluster
		wantUnits    []Unit
	}{
		"clusters are listed by Secret name, with the URL as Argo CD reads it": {
			in:           Input{Secrets: []Secret{secret("b", server("https://b///")), secret("a", shard("3"))}},
			wantClusters: []Cluster{cluster("a", func(c *Cluster) { c.Explicit = valid(3) }), cluster("b")},
			wantUnits:    []Unit{{"https://a", []int{0}}, {"https://b", []int{1}}},
		},
		"the in-cluster without a Secret stays where Argo CD puts it": {
			in: Input{Namespace: "argocd", Secrets: []Secret{secret("z")}, InClusterEnabled: true, InClusterOwner: 2},
			wantClusters: []Cluster{
				{Shard: plan.Shard{ID: "in-cluster", Namespace: "argocd", Name: "in-cluster", Server: plan.InClusterServer}, Implicit: true, FixedAt: &two},
				cluster("z"),
			},
			wantUnits: []Unit{{plan.InClusterServer, []int{0}}, {"https://z", []int{1}}},
		},
		"a Secret called in-cluster for another server does not lend it its name": {
			in: Input{Namespace: "argocd", Secrets: []Secret{secret("in-cluster")}, InClusterEnabled: true, InClusterOwner: 2},
			wantClusters: []Cluster{cluster("in-cluster"),
				{Shard: plan.Shard{ID: "in-cluster (implicit)", Namespace: "argocd", Name: "in-cluster", Server: plan.InClusterServer}, Implicit: true, FixedAt: &two},
			},
			wantUnits: []Unit{{"https://in-cluster", []int{0}}, {plan.InClusterServer, []int{1}}},
		},
		"an in-cluster with a Secret is a cluster like any other, and there is no second": {
			in:           Input{Secrets: []Secret{secret("me", server(plan.InClusterServer+"/"))}, InClusterEnabled: true},
			wantClusters: []Cluster{cluster("me", func(c *Cluster) { c.Shard.Server = plan.InClusterServer })},
			wantUnits:    []Unit{{plan.InClusterServer, []int{0}}},
		},
		"Secrets with one URL are one unit": {
			in: Input{Secrets: []Secret{secret("c", server("https://a/")), secret("a"), secret("b")}},
			wantClusters: []Cluster{cluster("a"), cluster("b"),
				cluster("c", func(c *Cluster) { c.Shard.Server, c.Follows = "https://a", true })},
			wantUnits: []Unit{{"https://a", []int{0, 2}}, {"https://b", []int{1}}},
		},
		"what people and Argo CD say of a cluster comes along": {
			in: Input{Secrets: []Secret{secret("a", func(s *Secret) {
				s.SkipReconcile, s.Unmanaged, s.Immutable, s.Pin = true, true, true, "3"
			})}},
			wantClusters: []Cluster{cluster("a", func(c *Cluster) {
				c.Skip, c.Unmanaged, c.Immutable, c.Pin = true, true, true, "3"
			})},
			wantUnits: []Unit{{"https://a", []int{0}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fleet, _, err := Discover(test.in, Known{}, half, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Fleet{Clusters: test.wantClusters, Units: test.wantUnits}, fleet); diff != "" {
				t.Errorf("fleet (-want +got):\n%s", diff)
			}
		})
	}
}

// The peer freezes discovery at a Secret without name or server, panics at one without data, and halts at an odd shard.
func TestABrokenSecretIsReportedAndStopsNothing(t *testing.T) {
	tests := map[string]struct {
		broken    []Secret
		want      []SecretProblem
		wantNames []string
	}{
		"no data": {
			broken:    []Secret{{Name: "x"}},
			want:      []SecretProblem{{"x", MissingData, `Secret "x" has no data and is left out: give it name, server and config, or delete it`}},
			wantNames: []string{"good"},
		},
		"no server": {
			broken:    []Secret{secret("x", server("/"))},
			want:      []SecretProblem{{"x", MissingServer, `Secret "x" has no data.server and is left out: set the cluster's URL, or delete the Secret`}},
			wantNames: []string{"good"},
		},
		"credentials that are no JSON": {
			broken: []Secret{secret("x", func(s *Secret) { s.Unread = true })},
			want: []SecretProblem{{"x", ConfigUnread, `data.config of Secret "x" is not JSON as Argo CD reads it, so it does nothing for the cluster: ` +
				"give the credentials as its documentation has them (kubectl get secret, argocd cluster add)"}},
			wantNames: []string{"good", "x"},
		},
		"no name": {
			broken:    []Secret{secret("x", func(s *Secret) { s.Cluster = "" })},
			want:      []SecretProblem{{"x", MissingName, `Secret "x" has no data.name, so the Secret's name stands for it: set data.name`}},
			wantNames: []string{"good", "x"},
		},
		"a shard that is no number": {
			broken:    []Secret{secret("x", shard(" 1"))},
			want:      []SecretProblem{{"x", InvalidShard, `data.shard of Secret "x" is not a number, so Argo CD reads none: write digits only, or remove it`}},
			wantNames: []string{"good", "x"},
		},
		"a negative shard": {
			broken:    []Secret{secret("x", shard("-1"))},
			want:      []SecretProblem{{"x", NegativeShard, `data.shard of Secret "x" is negative, so no replica of Argo CD owns the cluster: write a number from 0, or remove it`}},
			wantNames: []string{"good", "x"},
		},
		"a shard beyond 32 bits": {
			broken:    []Secret{secret("x", shard("4294967296"))},
			want:      []SecretProblem{{"x", ShardOutOfRange, `data.shard of Secret "x" is above 999999, so Argo CD puts the cluster on shard 0: write a smaller number, or remove it`}},
			wantNames: []string{"good", "x"},
		},
		"a pin that is no number": {
			broken:    []Secret{secret("x", func(s *Secret) { s.Pin = invalidPin })},
			want:      []SecretProblem{{"x", InvalidPin, `the annotation ballast.argoproj.io/pin of Secret "x" is not a replica's number and is ignored: write digits only, as in "3", without zeros before them`}},
			wantNames: []string{"good", "x"},
		},
		"a Secret that waits for its finalizers": {
			broken:    []Secret{secret("x", func(s *Secret) { s.Deleting = true })},
			want:      []SecretProblem{{"x", BeingDeleted, `Secret "x" is being deleted and waits for its finalizers; its cluster is planned for until it is gone`}},
			wantNames: []string{"good", "x"},
		},
		"the in-cluster's Secret where it is turned off": {
			broken: []Secret{secret("x", server(plan.InClusterServer))},
			want: []SecretProblem{{"x", InClusterDisabled,
				`Secret "x" describes the cluster Argo CD runs in, which cluster.inClusterEnabled in argocd-cm turns off: nobody owns it; delete the Secret or turn it on`}},
			wantNames: []string{"good", "x"},
		},
		"one URL with two shards": {
			broken: []Secret{secret("x", shard("1")), secret("y", server("https://x"), shard("2"))},
			want: []SecretProblem{{"x", ConflictingShards,
				`Secrets "x", "y" share the server https://x and differ in data.shard; Argo CD takes whichever it saw last: give all the same shard, or delete all but one and change the shard of that one afterwards (a pin and back): until then Argo CD has it on replica 0`}},
			wantNames: []string{"good", "x", "y"},
		},
		"one URL with credentials, of many Secrets": {
			broken: slices.Concat([]Secret{secret("a", server("https://u:p@x"), shard("1"))}, secretsOf(names(11), server("https://u:p@x"), shard("2"))),
			want: []SecretProblem{{"a", ConflictingShards, `Secrets "a", "c00", "c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", and 2 more share the server https://***@x ` +
				`and differ in data.shard; Argo CD takes whichever it saw last: give all the same shard, or delete all but one and change the shard of that one afterwards (a pin and back): until then Argo CD has it on replica 0`}},
			wantNames: slices.Concat([]string{"a"}, names(11), []string{"good"}),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fleet, known, err := Discover(Input{Secrets: append(test.broken, secret("good"))}, Known{}, half, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, fleet.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantNames, known.Clusters); diff != "" {
				t.Errorf("known clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func secretsOf(names []string, changes ...func(*Secret)) []Secret {
	list := make([]Secret, len(names))
	for i, name := range names {
		list[i] = secret(name, changes...)
	}
	return list
}

func names(n int) []string {
	var ns []string
	for i := range n {
		ns = append(ns, fmt.Sprintf("c%02d", i))
	}
	return ns
}

func secrets(ns []string) []Secret {
	var ss []Secret
	for _, n := range ns {
		ss = append(ss, secret(n))
	}
	return ss
}

func TestAShrunkenDiscoveryKeepsThePlan(t *testing.T) {
	zero, three := 0, 3
	tests := map[string]struct {
		known     Known
		found     []string
		accept    *int
		inCluster bool
		wantKnown Known
		wantErr   *ShrinkError
	}{
		"the first discovery is believed": {
			found: names(3), wantKnown: Known{Clusters: names(3)},
		},
		"half of the clusters may go at once": {
			known: Known{Clusters: names(10)}, found: names(5), wantKnown: Known{Clusters: names(5), Lost: lost(noon, names(10)[5:]...)},
		},
		"more than half may not": {
			known: Known{Clusters: names(10)}, found: names(4),
			wantKnown: Known{Clusters: names(10), ShrunkFirst: noon, ShrunkSince: noon, ShrunkTo: 4},
			wantErr:   &ShrinkError{Found: 4, Lost: 6, Known: 10, Until: noon.Add(30 * time.Minute)},
		},
		"as many others do not make up for those that went": {
			known: Known{Clusters: names(4)}, found: []string{"x0", "x1", "x2", "x3"},
			wantKnown: Known{Clusters: names(4), ShrunkFirst: noon, ShrunkSince: noon, ShrunkTo: 4},
			wantErr:   &ShrinkError{Found: 4, Lost: 4, Known: 4, Until: noon.Add(30 * time.Minute)},
		},
		"of three clusters two may go": {
			known: Known{Clusters: names(3)}, found: names(1), wantKnown: Known{Clusters: names(1), Lost: lost(noon, names(3)[1:]...)},
		},
		"but not all of them": {
			known: Known{Clusters: names(1)}, found: nil,
			wantKnown: Known{Clusters: names(1), ShrunkFirst: noon, ShrunkSince: noon},
			wantErr:   &ShrinkError{Found: 0, Lost: 1, Known: 1, Until: noon.Add(30 * time.Minute)},
		},
		"the in-cluster alone is nothing found": {
			known: Known{Clusters: names(2)}, found: nil, inCluster: true,
			wantKnown: Known{Clusters: names(2), ShrunkFirst: noon, ShrunkSince: noon},
			wantErr:   &ShrinkError{Found: 0, Lost: 2, Known: 2, Until: noon.Add(30 * time.Minute)},
		},
		"a minute before the half hour is over": {
			known: Known{Clusters: names(10), ShrunkSince: noon.Add(-29 * time.Minute), ShrunkTo: 3}, found: names(3),
			wantKnown: Known{Clusters: names(10), ShrunkFirst: noon.Add(-29 * time.Minute), ShrunkSince: noon.Add(-29 * time.Minute), ShrunkTo: 3},
			wantErr:   &ShrinkError{Found: 3, Lost: 7, Known: 10, Until: noon.Add(time.Minute)},
		},
		"after half an hour it is believed": {
			known: Known{Clusters: names(10), ShrunkSince: noon.Add(-30 * time.Minute), ShrunkTo: 3}, found: names(3),
			wantKnown: Known{Clusters: names(3)},
		},
		"an empty one too": {
			known: Known{Clusters: names(10), ShrunkSince: noon.Add(-30 * time.Minute)}, found: []string{},
			wantKnown: Known{Clusters: []string{}},
		},
		"a further loss starts the half hour anew": {
			known: Known{Clusters: names(10), ShrunkSince: noon.Add(-30 * time.Minute), ShrunkTo: 4}, found: names(3),
			wantKnown: Known{Clusters: names(10), ShrunkFirst: noon.Add(-30 * time.Minute), ShrunkSince: noon, ShrunkTo: 3},
			wantErr:   &ShrinkError{Found: 3, Lost: 7, Known: 10, Until: noon.Add(30 * time.Minute)},
		},
		"but not for ever": {
			known: Known{Clusters: names(10), ShrunkFirst: noon.Add(-50 * time.Minute), ShrunkSince: noon.Add(-20 * time.Minute), ShrunkTo: 4}, found: names(3),
			wantKnown: Known{Clusters: names(10), ShrunkFirst: noon.Add(-50 * time.Minute), ShrunkSince: noon, ShrunkTo: 3},
			wantErr:   &ShrinkError{Found: 3, Lost: 7, Known: 10, Until: noon.Add(10 * time.Minute)},
		},
		"after an hour a further loss is believed": {
			known: Known{Clusters: names(10), ShrunkFirst: noon.Add(-60 * time.Minute), ShrunkSince: noon.Add(-20 * time.Minute), ShrunkTo: 4}, found: names(3),
			wantKnown: Known{Clusters: names(3)},
		},
		"a clock that went back counts as no time": {
			known: Known{Clusters: names(10), ShrunkSince: noon.Add(time.Hour), ShrunkTo: 3}, found: names(3),
			wantKnown: Known{Clusters: names(10), ShrunkFirst: noon, ShrunkSince: noon, ShrunkTo: 3},
			wantErr:   &ShrinkError{Found: 3, Lost: 7, Known: 10, Until: noon.Add(30 * time.Minute)},
		},
		"a person accepts it": {
			known: Known{Clusters: names(10)}, found: names(3), accept: &three, wantKnown: Known{Clusters: names(3)},
		},
		"a person accepts what is gone, and nothing that came": {
			known: Known{Clusters: names(10)}, found: append(names(2), "x0"), accept: &three, wantKnown: Known{Clusters: names(2), Fresh: []string{"x0"}, FreshSince: noon},
		},
		"a person accepted another one": {
			known: Known{Clusters: names(10)}, found: names(2), accept: &three,
			wantKnown: Known{Clusters: names(10), ShrunkFirst: noon, ShrunkSince: noon, ShrunkTo: 2},
			wantErr:   &ShrinkError{Found: 2, Lost: 8, Known: 10, Until: noon.Add(30 * time.Minute)},
		},
		"a person accepts an empty one": {
			known: Known{Clusters: names(10)}, found: []string{}, accept: &zero, wantKnown: Known{Clusters: []string{}},
		},
		"clusters that come back end it": {
			known: Known{Clusters: names(10), ShrunkSince: noon.Add(-time.Minute), ShrunkTo: 3}, found: names(9),
			wantKnown: Known{Clusters: names(9), Lost: lost(noon, names(10)[9:]...)},
		},
		"more than half may not go by steps either": {
			known: Known{Clusters: names(5), Lost: lost(noon.Add(-29*time.Minute), names(10)[5:]...)}, found: names(4),
			wantKnown: Known{Clusters: names(10), ShrunkFirst: noon, ShrunkSince: noon, ShrunkTo: 4},
			wantErr:   &ShrinkError{Found: 4, Lost: 6, Known: 10, Until: noon.Add(30 * time.Minute)},
		},
		"what went half an hour ago is believed": {
			known: Known{Clusters: names(5), Lost: lost(noon.Add(-30*time.Minute), names(10)[5:]...)}, found: names(4),
			wantKnown: Known{Clusters: names(4), Lost: lost(noon, names(5)[4:]...)},
		},
		"it is seen first when it is seen first": {
			known: Known{Clusters: names(9), Lost: lost(noon.Add(-time.Minute), names(10)[9:]...)}, found: names(8),
			wantKnown: Known{Clusters: names(8), Lost: map[string]time.Time{names(10)[9]: noon.Add(-time.Minute), names(10)[8]: noon}},
		},
		"what went lately and comes back is known": {
			known: Known{Clusters: names(9), Lost: lost(noon.Add(-time.Minute), names(10)[9:]...)}, found: names(10),
			wantKnown: Known{Clusters: names(10)},
		},
		"a loss in the future is one of now": {
			known: Known{Clusters: names(9), Lost: lost(noon.Add(time.Hour), names(10)[9:]...)}, found: names(9),
			wantKnown: Known{Clusters: names(9), Lost: lost(noon, names(10)[9:]...)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := Input{Secrets: secrets(test.found), AcceptDiscovery: test.accept, InClusterEnabled: test.inCluster}
			_, known, err := Discover(in, test.known, half, noon)
			var shrink *ShrinkError
			errors.As(err, &shrink)
			if diff := cmp.Diff(test.wantErr, shrink); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantKnown, known, emptyIsNil); diff != "" {
				t.Errorf("known (-want +got):\n%s", diff)
			}
		})
	}
}

func lost(at time.Time, names ...string) map[string]time.Time {
	all := map[string]time.Time{}
	for _, name := range names {
		all[name] = at
	}
	return all
}

var emptyIsNil = cmp.Transformer("emptyIsNil", func(ss []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range ss {
		set[s] = true
	}
	return set
})

func TestAShrinkErrorSaysWhatToDo(t *testing.T) {
	err := &ShrinkError{Found: 2, Lost: 22, Known: 24, Until: noon}
	want := `accepting a discovery of 2 clusters: 22 of 24 known clusters are gone within half an hour, so until 2026-08-01T12:00:00Z the plan stays as it is, ` +
		`but for clusters that leave a replica that is unwell, cordoned or taken away by an autoscaler; if they are gone for good, annotate the plan ConfigMap with ballast.argoproj.io/accept-discovery: "2"`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestAFleetMayGoOneByOne(t *testing.T) {
	known := Known{}
	for left := 20; left >= 1; left-- {
		var err error
		now := noon.Add(time.Duration(20-left) * AcceptAfter)
		if _, known, err = Discover(Input{Secrets: secrets(names(left))}, known, half, now); err != nil {
			t.Fatalf("at %d clusters: %v", left, err)
		}
	}
}

// TestAFleetIsLostByStepsAsAtOnce: a folder that is deleted file by file, ten seconds apart, is no other loss than one at once.
func TestAFleetIsLostByStepsAsAtOnce(t *testing.T) {
	known, now, refused := Known{}, noon, -1
	for left := 100; left >= 0 && refused < 0; left -= 7 {
		_, next, err := Discover(Input{Secrets: secrets(names(left))}, known, half, now)
		if known, now = next, now.Add(10*time.Second); err != nil {
			refused = left
		}
	}
	if want := 44; refused != want {
		t.Errorf("refused when %d of 100 were left, want %d: the first step beyond a half", refused, want)
	}
}

var servers = rapid.SampledFrom([]string{"", "/", "https://a", "https://a/", "https://b", "https://B", plan.InClusterServer, plan.InClusterServer + "/"})

var inputs = rapid.Custom(func(t *rapid.T) Input {
	in := Input{Namespace: "argocd", InClusterEnabled: rapid.Bool().Draw(t, "inClusterEnabled"), InClusterOwner: rapid.IntRange(0, 3).Draw(t, "owner")}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "in-cluster", "e", "f"}), 0, 7, rapid.ID).Draw(t, "names") {
		in.Secrets = append(in.Secrets, secret(name, server(servers.Draw(t, "server")), func(s *Secret) {
			s.Shard = rapid.SampledFrom([]ShardValue{{}, valid(0), valid(3), {State: ShardInvalid}, {State: ShardNegative}}).Draw(t, "shard")
			s.HasData = rapid.Bool().Draw(t, "hasData")
			s.SkipReconcile = rapid.Bool().Draw(t, "skip")
		}))
	}
	return in
})

func TestDiscoverHoldsForEveryInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs.Draw(t, "in")
		fleet, _, err := Discover(in, Known{}, half, noon)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := in
		shuffled.Secrets = rapid.Permutation(in.Secrets).Draw(t, "shuffled")
		if again, _, _ := Discover(shuffled, Known{}, half, noon); !cmp.Equal(fleet, again) {
			t.Fatalf("the order of the Secrets shows:\n%s", cmp.Diff(fleet, again))
		}
		ids, inUnits, inClusters := map[string]bool{}, map[int]bool{}, 0
		for _, c := range fleet.Clusters {
			if ids[c.Shard.ID] {
				t.Fatalf("ID %q stands twice", c.Shard.ID)
			}
			ids[c.Shard.ID] = true
			if c.Shard.Server == plan.InClusterServer {
				inClusters++
			}
		}
		if in.InClusterEnabled && inClusters == 0 {
			t.Fatal("the in-cluster is missing")
		}
		for _, u := range fleet.Units {
			for _, i := range u.Clusters {
				if inUnits[i] || fleet.Clusters[i].Shard.Server != u.Server {
					t.Fatalf("cluster %d is in a wrong unit or in two", i)
				}
				inUnits[i] = true
			}
		}
		if len(inUnits) != len(fleet.Clusters) {
			t.Fatalf("%d of %d clusters are in a unit", len(inUnits), len(fleet.Clusters))
		}
	})
}

func TestTheInputSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs.Draw(t, "in")
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var back Input
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, back, cmp.Transformer("len", func(ss []Secret) map[string]Secret {
			byName := map[string]Secret{}
			for _, s := range ss {
				byName[s.Name] = s
			}
			return byName
		})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// Who may create a Secret beside another's moves that one by no pin of its own.
func TestTheOldestSecretOfAServerLeadsByItsPin(t *testing.T) {
	twin := func(name, pin string, created time.Duration) Secret {
		return secret(name, func(s *Secret) { s.Server, s.Pin, s.Created = "https://one", pin, noon.Add(created) })
	}
	follows := func(name, oldest string) []SecretProblem {
		return []SecretProblem{{name, PinFollows, fmt.Sprintf("the pin annotation of Secret %q is passed over, since Secret %q of the same server leads, "+
			"which it stays together with: pin that one, or either in data.pins", name, oldest)}}
	}
	for name, test := range map[string]struct {
		secrets  []Secret
		want     map[string]string
		problems []SecretProblem
	}{
		"a younger one is passed over":     {[]Secret{twin("zz", "", 0), twin("aa", "0", time.Hour)}, map[string]string{"zz": "", "aa": ""}, follows("aa", "zz")},
		"the oldest one leads":             {[]Secret{twin("zz", "2", 0), twin("aa", "", time.Hour)}, map[string]string{"zz": "2", "aa": ""}, nil},
		"and against a younger one":        {[]Secret{twin("zz", "2", 0), twin("aa", "0", time.Hour)}, map[string]string{"zz": "2", "aa": ""}, follows("aa", "zz")},
		"both say the same":                {[]Secret{twin("zz", "2", 0), twin("aa", "2", time.Hour)}, map[string]string{"zz": "2", "aa": "2"}, nil},
		"of the same second, by the name":  {[]Secret{twin("zz", "2", 0), twin("aa", "0", 0)}, map[string]string{"zz": "", "aa": "0"}, follows("zz", "aa")},
		"a Secret of another server leads": {[]Secret{twin("zz", "", 0), secret("aa", func(s *Secret) { s.Pin = "1" })}, map[string]string{"zz": "", "aa": "1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fleet, _, _ := Discover(Input{Secrets: test.secrets}, Known{}, Options{MaxShrink: 1}, noon)
			got := map[string]string{}
			for _, c := range fleet.Clusters {
				got[c.Shard.ID] = c.Pin
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("pins (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, fleet.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
