package rollouts

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"ballast/e2e/assets"
	"ballast/e2e/gaps"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// patience is for one step on a machine that does other things as well: a pod's start takes 6 s on an idle one, and ten
// times that here.
const patience = 6 * time.Minute

// world is one installation, through which all modes go one after the other.
type world struct {
	*gaps.Site
	algorithm string // of Argo CD's
	perWave   int    // maxMovesPerWave
	levels    bool   // configured to; before, an algorithm's unevenness stays
	heavy     []timeline.Cluster
	hung      []timeline.Event // of processes that were stopped: to Argo CD's clusters they have ended, but no log says so
	marks     []timeline.Mark  // of the present step
	figures   []figure
	starts    []time.Duration // from a process's first line to each cluster that it took, where nothing was ballast's doing
}

// start brings up Argo CD with two replicas whose env is 2 and no shards, and all that ballast needs beside itself.
func start(t *testing.T, algorithm string, clusters int) *world {
	t.Helper()
	return launch(t, gaps.Options{Algorithm: algorithm, Clusters: clusters})
}

func launch(t *testing.T, o gaps.Options) *world {
	t.Helper()
	ctx := t.Context()
	binaries, err := assets.Build(ctx, os.Stderr)
	must(t, err)
	argocd, err := assets.BuildArgoCD(ctx, os.Stderr)
	must(t, err)
	ballast := filepath.Join(t.TempDir(), "ballast")
	must(t, site.BuildBallast(ctx, ballast, false))
	o.Binaries, o.ArgoCD, o.Ballast, o.Replicas, o.Log = binaries, argocd, ballast, 2, os.Stderr
	o.Shard = func(int) string { return "" }
	s, err := gaps.Start(context.WithoutCancel(ctx), o)
	must(t, err)
	t.Cleanup(s.Stop)
	t.Cleanup(func() { keepLogs(t, s) })
	must(t, s.Monitor(ctx))
	must(t, s.Plane.StartCertManager(ctx))
	w := &world{Site: s, algorithm: o.Algorithm, perWave: 5}
	first, err := w.timeline(time.Time{}, time.Now())
	must(t, err)
	w.starts = starts(first)
	return w
}

// keepLogs of a test that failed, among its artifacts.
func keepLogs(t *testing.T, s *gaps.Site) {
	if !t.Failed() {
		return
	}
	logs, err := filepath.Glob(s.Plane.PodLogPath("*"))
	if err != nil {
		t.Error(err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err == nil {
			err = os.WriteFile(filepath.Join(t.ArtifactDir(), filepath.Base(log)), text, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// count is an environment variable's number, or the default: of make test, which takes a slice.
func count(t *testing.T, name string, slice int) int {
	t.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return slice
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
