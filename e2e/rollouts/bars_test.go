package rollouts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ballast/e2e/gaps/timeline"
)

// The bars of mode live.
var (
	longestGap     = bar(2 * time.Second)
	medianGap      = bar(time.Second)
	longestDoubled = bar(time.Second)
)

// bar is a promise where the soak holds ballast to it, on a machine that does nothing else; elsewhere there is time for what else runs.
func bar(promised time.Duration) time.Duration {
	if os.Getenv("BALLAST_SOAK_ROLLOUTS") != "" {
		return promised
	}
	return 5 * promised
}

// quiet holds a step of mode live to its bars.
func (m measured) quiet(t *testing.T) measured {
	t.Helper()
	m.quietExcept(t, "")
	if got := timeline.Longest(m.gaps); got > longestGap {
		t.Errorf("the longest gap: got %s, want at most %s", got, longestGap)
	}
	if got := timeline.Median(m.gaps); got > medianGap {
		t.Errorf("half of the gaps: got longer than %s, want at most %s", got, medianGap)
	}
	if m.moved == 0 {
		t.Error("nothing moved")
	}
	return m
}

// quietExcept allows gaps of any length, and leaves out a pod that was killed.
func (m measured) quietExcept(t *testing.T, lost string) {
	t.Helper()
	for pod, n := range m.restarts {
		if pod != lost {
			t.Errorf("restarts of %s: got %d", pod, n)
		}
	}
	for _, name := range m.disturbed {
		t.Errorf("cluster %q did not move, and was disturbed", name)
	}
	for _, name := range m.twice {
		t.Errorf("cluster %q moved more than once", name)
	}
	m.owned(t)
}

// owned holds a step of any mode to its bar: no cluster with two owners.
func (m measured) owned(t *testing.T) {
	t.Helper()
	if got := timeline.Longest(m.doubled); got > longestDoubled {
		t.Errorf("two owners: got %s, want at most %s", got, longestDoubled)
	}
}

// single holds a step of mode x0y to its bars: never two owners, and every cluster back when its pod has started. How long a
// process takes to its clusters by itself was seen when ballast was installed.
func (m measured) single(t *testing.T) measured {
	t.Helper()
	if len(m.doubled) > 0 {
		t.Errorf("clusters with two owners: %v", m.doubled)
	}
	if n := len(m.world.Clusters); len(m.gaps) != n || len(m.starts) != n {
		t.Errorf("clusters that were stopped and started: got %d and %d, want %d", len(m.gaps), len(m.starts), n)
	}
	t.Logf("from a process's first line to its clusters: by itself %s; now %s; nothing ran for %s",
		spread(m.world.starts), spread(m.starts), seconds(stopped(m.change.timeline)))
	if got, most := timeline.Longest(m.starts), 2*timeline.Longest(m.world.starts)+bar(2*time.Second); got > most {
		t.Errorf("the longest start of a process up to its last cluster: got %s, want at most %s", got, most)
	}
	return m
}

// picture writes the step's timeline, if somebody wants pictures.
func (m measured) picture(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("BALLAST_PICTURES")
	if dir == "" {
		return
	}
	title := fmt.Sprintf("live: %s replicas, %d of %d clusters move", m.step, m.moved, len(m.world.Clusters))
	must(t, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".svg"), m.change.timeline.SVG(title, m.change.marks...), 0o644)))
}
