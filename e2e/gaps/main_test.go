package gaps

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"ballast/e2e/assets"
	"ballast/e2e/gaps/timeline"
)

// start brings up a site for a test, which ends with it.
func start(t *testing.T, o Options) *Site {
	t.Helper()
	var err error
	if o.Binaries, err = assets.Build(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if o.ArgoCD, err = assets.BuildArgoCD(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	o.Log = os.Stderr
	s, err := Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	t.Cleanup(func() { keepLogs(t, s) })
	return s
}

// keepLogs of a test that failed, among its artifacts.
func keepLogs(t *testing.T, s *Site) {
	if !t.Failed() {
		return
	}
	for i := range maxReplicas {
		log, err := s.Plane.PodLog(Pod(i))
		if err == nil {
			err = os.WriteFile(filepath.Join(t.ArtifactDir(), Pod(i)+".log"), []byte(log), 0o644)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

// window runs something and gives its timeline.
func window(t *testing.T, s *Site, do func() error) timeline.Timeline {
	t.Helper()
	from := time.Now()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	tl, err := s.Timeline(from, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// owned are the clusters of a replica by the logs, by name.
func owned(t *testing.T, s *Site, ordinal int) []timeline.Cluster {
	t.Helper()
	now := time.Now()
	tl, err := s.Timeline(now, now)
	if err != nil {
		t.Fatal(err)
	}
	var clusters []timeline.Cluster
	for _, c := range s.Clusters {
		owner, err := tl.Owner(c)
		if err != nil {
			t.Fatal(err)
		}
		if owner == Pod(ordinal) {
			clusters = append(clusters, c)
		}
	}
	return clusters
}

// assign deals clusters out to replicas in turn.
func assign(clusters []timeline.Cluster, ordinals ...int) map[string]int {
	to := map[string]int{}
	for i, c := range clusters {
		to[c.Name] = ordinals[i%len(ordinals)]
	}
	return to
}

// longestDoubled is the bar for two owners: the loser may see the write some milliseconds after the winner has begun.
var longestDoubled = bar(time.Second)

// onlyMoved fails for each cluster that should not have been touched but was, and for each that had two owners for too long;
// it gives the gaps of those that moved.
func onlyMoved(t *testing.T, tl timeline.Timeline, moved map[string]int) []time.Duration {
	t.Helper()
	var gaps []time.Duration
	for _, a := range tl.Accounts() {
		to, moves := moved[a.Cluster]
		switch {
		case slices.ContainsFunc(a.Doubled, func(s timeline.Span) bool { return s.Length() > longestDoubled }):
			t.Errorf("cluster %q had two owners: %+v", a.Cluster, a)
		case a.Touched != moves:
			t.Errorf("cluster %q: touched %t, want %t: %+v", a.Cluster, a.Touched, moves, a)
		case moves && (len(a.Moves) != 1 || a.Moves[0].To != Pod(to)):
			t.Errorf("cluster %q: got moves %+v, want one to replica %d", a.Cluster, a.Moves, to)
		case moves:
			gaps = append(gaps, a.Moves[0].Gap)
		}
	}
	if restarts := tl.Restarts(); len(restarts) > 0 {
		t.Errorf("pods restarted: %v", restarts)
	}
	return gaps
}

// keep writes a timeline's picture among the test's artifacts.
func keep(t *testing.T, tl timeline.Timeline, title string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "timeline.svg"), tl.SVG(title), 0o644); err != nil {
		t.Error(err)
	}
}

// count is an environment variable's number, or a default: of make test, which takes a slice.
func count(t *testing.T, name string, slice int) int {
	t.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return slice
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
