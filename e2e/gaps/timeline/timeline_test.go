package timeline

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// brief is an account in whole milliseconds since the timeline's day began to be of interest.
type brief struct {
	Touched bool
	Moves   []string
	Unowned []string
	Doubled []string
}

func briefly(a Account) brief {
	b := brief{Touched: a.Touched}
	for _, m := range a.Moves {
		b.Moves = append(b.Moves, m.From+">"+m.To+" "+m.Gap.String())
	}
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	span := func(s Span) string { return s.From.Sub(start).String() + "-" + s.To.Sub(start).String() }
	for _, s := range a.Unowned {
		b.Unowned = append(b.Unowned, span(s))
	}
	for _, s := range a.Doubled {
		b.Doubled = append(b.Doubled, span(s))
	}
	return b
}

func TestWhatBecameOfACluster(t *testing.T) {
	begun := []string{"0 0 began", "0 1 began", "1 0 syncing x"}
	for name, tc := range map[string]struct {
		lines []string
		want  brief
	}{
		"nothing": {nil, brief{}},
		"a move with a gap": {
			[]string{"11 0 changed x", "11 0 invalidated x", "11.5 1 syncing x"},
			brief{Touched: true, Moves: []string{"c-0>c-1 500ms"}, Unowned: []string{"11s-11.5s"}},
		},
		"a move whose winner was first": {
			[]string{"11 1 syncing x", "11.25 0 invalidated x"},
			brief{Touched: true, Moves: []string{"c-0>c-1 -250ms"}, Doubled: []string{"11s-11.25s"}},
		},
		"a loser that takes it again keeps two owners": {
			[]string{"11 0 invalidated x", "11.5 1 syncing x", "12 0 syncing x"},
			brief{Touched: true, Moves: []string{"c-0>c-1 500ms", "c-1>c-0 -8s"}, Unowned: []string{"11s-11.5s"}, Doubled: []string{"12s-20s"}},
		},
		"a cluster that nobody takes": {
			[]string{"11 0 invalidated x"},
			brief{Touched: true, Unowned: []string{"11s-20s"}},
		},
		"an owner that ends and comes back": {
			[]string{"11 0 ended", "13 0 began", "14 0 syncing x"},
			brief{Touched: true, Moves: []string{"c-0>c-0 3s"}, Unowned: []string{"11s-14s"}},
		},
		"an owner that began again without a word": {
			[]string{"13 0 began", "14 0 syncing x"},
			brief{Touched: true, Moves: []string{"c-0>c-0 1s"}, Unowned: []string{"13s-14s"}},
		},
		"an owner that claims another slot and says nothing": {
			[]string{"11 0 claimed", "12 1 syncing x"},
			brief{Touched: true, Moves: []string{"c-0>c-1 1s"}, Unowned: []string{"11s-12s"}},
		},
		"its owner's only new sync": {
			[]string{"11 0 syncing x"},
			brief{Touched: true},
		},
		"a pod that thinks otherwise of it": {
			[]string{"11 1 changed x"},
			brief{Touched: true},
		},
		"another cluster's move":               {[]string{"11 0 invalidated y", "11.5 1 syncing y"}, brief{}},
		"another pod's end":                    {[]string{"11 1 ended"}, brief{}},
		"a new pod that is told of it":         {[]string{"11 2 began", "12 2 assigned x"}, brief{}},
		"a pod that loses what it did not own": {[]string{"11 1 invalidated y"}, brief{}},
		"what happened after the window":       {[]string{"21 0 invalidated x"}, brief{}},
	} {
		t.Run(name, func(t *testing.T) {
			a := script(t, 10, 20, append(slices.Clone(begun), tc.lines...)...).Accounts()[0]
			if diff := cmp.Diff(tc.want, briefly(a)); diff != "" {
				t.Errorf("the account (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoOwnsAClusterAtTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		lines     []string
		want, err string
	}{
		"nobody":           {nil, "", `cluster "x" has no owner`},
		"one":              {[]string{"1 0 syncing x", "2 0 synced x"}, "c-0", ""},
		"one not yet done": {[]string{"1 0 syncing x", "2 1 synced x"}, "c-0", `cluster "x" is not yet synced by its owner "c-0"`},
		"two":              {[]string{"1 0 syncing x", "2 0 synced x", "3 1 syncing x"}, "", `cluster "x" has two owners, "c-0" and "c-1"`},
		"one until later":  {[]string{"1 0 syncing x", "2 0 synced x", "11 0 invalidated x", "12 1 syncing x"}, "c-0", ""},
		"the next":         {[]string{"1 0 syncing x", "2 0 synced x", "3 0 invalidated x", "3 1 syncing x", "4 1 synced x"}, "c-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tl := script(t, 0, 10, tc.lines...)
			got, err := tl.Owner(tl.Clusters[0])
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tc.want || text != tc.err {
				t.Errorf("got %q, %q, want %q, %q", got, text, tc.want, tc.err)
			}
		})
	}
}

func TestRestartsAreOfPodsThatRanBefore(t *testing.T) {
	tl := script(t, 10, 20, "0 0 began", "0 1 began", "11 0 ended", "12 0 began", "13 2 began", "14 0 began", "21 1 began")
	if diff := cmp.Diff(map[string]int{"c-0": 2}, tl.Restarts()); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
}

// TestTheWindowIsWhollyAccountedFor: whatever the pods do, the stretches with no owner, one and more make up the window.
func TestTheWindowIsWhollyAccountedFor(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var lines []string
		at := 0.0
		for range rapid.IntRange(0, 30).Draw(r, "events") {
			at += rapid.Float64Range(0, 2).Draw(r, "later")
			pod := rapid.SampledFrom([]string{"0", "1", "2"}).Draw(r, "pod")
			kind := rapid.SampledFrom([]string{"began", "ended", "syncing x", "invalidated x", "syncing y", "changed x", "claimed"}).Draw(r, "kind")
			lines = append(lines, fmt.Sprintf("%.3f %s %s", at, pod, kind))
		}
		tl := script(t, 10, 20, lines...)
		for _, a := range tl.Accounts() {
			tenures := tl.Tenures("https://" + a.Cluster)
			single := spans(tl.depths(tenures), func(owners int) bool { return owners == 1 })
			total := time.Duration(0)
			for _, s := range slices.Concat(single, a.Unowned, a.Doubled) {
				total += s.Length()
			}
			if window := tl.To.Sub(tl.From); total != window {
				r.Errorf("cluster %q: the stretches make up %s of %s: %+v", a.Cluster, total, window, a)
			}
			if gone := slices.ContainsFunc(a.Unowned, func(s Span) bool { return s.From.After(tl.From) }); gone && !a.Touched {
				r.Errorf("cluster %q lost its owner untouched: %+v", a.Cluster, a)
			}
		}
		if svg := tl.SVG("<any> & \"all\""); !strings.HasSuffix(string(svg), "</svg>\n") {
			r.Errorf("the picture does not end: %s", svg)
		}
	})
}

func TestMedianAndLongest(t *testing.T) {
	ds := []time.Duration{5, 1, 3, 2, 4}
	if Median(ds) != 3 || Longest(ds) != 5 || Median(nil) != 0 || Longest(nil) != 0 {
		t.Errorf("got median %d, longest %d, of none %d and %d", Median(ds), Longest(ds), Median(nil), Longest(nil))
	}
}

func TestThePictureOfATimeline(t *testing.T) {
	tl := script(t, 10, 20,
		"0 0 began", "0 1 began", "1 0 syncing x", "1 1 syncing y",
		"12 2 began", "14 0 invalidated x", "14.5 2 syncing x", "16 2 syncing y", "17 1 invalidated y", "18 1 ended", "19 1 began")
	got := tl.SVG("A move, & one with two owners", Mark{tl.From.Add(2 * time.Second), "scaled to 3"})
	golden := filepath.Join("testdata", "timeline.svg")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the picture (-want +got):\n%s", diff)
	}
}
