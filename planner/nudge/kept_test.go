package nudge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

const eu, us = "https://eu.example", "https://us.example:6443"

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// TestWhatIsKeptOfApplicationsIsBounded: what is beyond the bound is told of, and takes no memory.
func TestWhatIsKeptOfApplicationsIsBounded(t *testing.T) {
	all, server := &kept{}, "https://"+strings.Repeat("a", 1000)
	const made = 200_000
	for i := range made {
		all.add(Application{Namespace: "team", Name: fmt.Sprintf("app-%06d", i), Server: server})
	}
	const each = 160 + 4 + 10 + 1008
	stay := mostKept / each
	if len(all.applications) != stay || all.bytes > mostKept {
		t.Errorf("%d of %d are kept in %d bytes, want %d", len(all.applications), made, all.bytes, stay)
	}
	want := []ListingProblem{{TooMany, fmt.Sprintf("%d Applications are read, and %d more are not: their clusters' new owners begin at the next resync; see who makes so many", stay, made-stay)}}
	if diff := cmp.Diff(want, all.left(nil)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	less := &kept{most: 10 * each}
	for range 11 {
		less.add(all.applications[0])
	}
	if len(less.applications) != 10 || less.more != 1 {
		t.Errorf("of a smaller bound %d are kept and %d are not, want 10 and 1", len(less.applications), less.more)
	}
}

// TestAFatApplicationIsReadToLittle: of what its maker may fill, nothing is kept.
func TestAFatApplicationIsReadToLittle(t *testing.T) {
	var notes, conditions strings.Builder
	for i := range 62_000 {
		fmt.Fprintf(&notes, `"%x":"",`, i)
	}
	for range 20_000 {
		conditions.WriteString(`{"message":"","type":"aa"},`)
	}
	for name, test := range map[string]struct {
		item string
		want Application
	}{
		"annotations and conditions": {`{"metadata":{"namespace":"team","name":"a","annotations":{` + notes.String() + `"argocd.argoproj.io/refresh":"` + strings.Repeat("x", 1<<16) +
			`"}},"spec":{"destination":{"server":"https://a"}},"status":{"conditions":[` + conditions.String() + `{"type":"UnknownError"}]}}`,
			Application{Namespace: "team", Name: "a", Server: "https://a", Refresh: "normal", Invalid: true}},
		"a server of a megabyte": {`{"metadata":{"namespace":"team","name":"a"},"spec":{"destination":{"server":"https://` + strings.Repeat("a", 1<<20) + `"}}}`,
			Application{Namespace: "team", Name: "a"}},
		"a cluster's name of a megabyte": {`{"metadata":{"namespace":"team","name":"a"},"spec":{"destination":{"name":"` + strings.Repeat("a", 1<<20) + `"}}}`,
			Application{Namespace: "team", Name: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage()
			if err := p.UnmarshalJSON([]byte(`{"items":[` + test.item + `]}`)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Application{test.want}, applicationsOf(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatArgoCDDoesNothingForCountsNowhere: by Argo CD v3.2.11's own answers (util/db GetCluster, util/argo GetDestinationCluster).
func TestWhatArgoCDDoesNothingForCountsNowhere(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	const other = "https://other"
	for name, test := range map[string]struct {
		application Application
		want        map[string]int
	}{
		"its server":              {Application{Server: eu}, map[string]int{eu: 1, us: 0, other: 0}},
		"its name":                {Application{Cluster: "us"}, map[string]int{eu: 0, us: 1, other: 0}},
		"a slash behind":          {Application{Server: eu + "/"}, map[string]int{eu: 0, us: 0, other: 0}},
		"a fault was found":       {Application{Server: eu, Invalid: true}, map[string]int{eu: 0, us: 0, other: 0}},
		"a name that is nobody's": {Application{Cluster: "twice"}, map[string]int{eu: 0, us: 0, other: 0}},
		"both server and name":    {Application{Server: eu, Cluster: "us"}, map[string]int{eu: 0, us: 0, other: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			n := New(Options{Clock: clock})
			n.last.Store(&listing{namespace: "argocd", at: start, applications: newIndex([]Application{test.application})})
			got, _, err := n.Count(t.Context(), "argocd", []Destination{{eu, ""}, {us, "us"}, {us + "/", "us"}, {other, ""}}, time.Minute)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// What Applications name is their destinations, each once; one that Argo CD goes no further with names none.
func TestTheDestinationsAreThoseOfApplicationsThatAreWorkedOn(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(start)
	n := New(Options{Clock: now})
	n.last.Store(&listing{namespace: "argocd", at: start, applications: newIndex([]Application{{Name: "a", Server: us}, {Name: "b", Cluster: "eu"}, {Name: "c", Server: us},
		{Name: "d", Server: "https://invalid", Invalid: true}, {Name: "e", Server: "https://skipped", Skipped: true}, {Name: "f", Server: eu, Cluster: "eu"}})})
	got, err := n.Destinations(t.Context(), "argocd", time.Minute)
	if diff := cmp.Diff([]Destination{{Name: "eu"}, {Server: us}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestWhatIsBeyondTheBoundMayBeAnybodys: who makes more Applications than are kept must not make others' clusters look as if they had none.
func TestWhatIsBeyondTheBoundMayBeAnybodys(t *testing.T) {
	fleet := []Destination{{Server: "https://a"}, {Server: "https://b"}}
	for name, test := range map[string]struct {
		partial bool
		want    map[string]int
	}{
		"all are kept": {false, map[string]int{"https://a": 1, "https://b": 0}},
		"some are not": {true, map[string]int{"https://a": 1, "https://b": Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
			n := New(Options{Clock: now})
			n.last.Store(&listing{namespace: "argocd", at: now.Now(), partial: test.partial, applications: newIndex([]Application{{Namespace: "argocd", Name: "a", Server: "https://a"}})})
			got, _, err := n.Count(t.Context(), "argocd", fleet, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}
