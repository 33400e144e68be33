package configfile

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/config"
	"ballast/planner/plan"
)

const header = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"

// volume is a folder that changes as the kubelet changes a ConfigMap's: the file links to ..data/, which links to the
// present version's folder and is swapped by a rename.
type volume struct {
	t       *testing.T
	dir     string
	version int
}

func newVolume(t *testing.T, text string) *volume {
	v := &volume{t: t, dir: t.TempDir()}
	v.write(text)
	v.must(os.Symlink(filepath.Join("..data", "config.yaml"), v.path()))
	return v
}

func (v *volume) path() string { return filepath.Join(v.dir, "config.yaml") }

func (v *volume) write(text string) {
	v.t.Helper()
	v.version++
	name := ".." + strings.Repeat("v", v.version)
	v.must(os.Mkdir(filepath.Join(v.dir, name), 0o755))
	v.must(os.WriteFile(filepath.Join(v.dir, name, "config.yaml"), []byte(text), 0o644))
	v.must(os.Symlink(name, filepath.Join(v.dir, "..data_tmp")))
	v.must(os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
}

func (v *volume) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// heard collects a reloader's calls: a mode for each change, the error's first line for each refusal.
type heard struct{ calls []string }

func (h *heard) options() ReloaderOptions {
	return ReloaderOptions{
		OnChange: func(c config.PlannerConfig) { h.calls = append(h.calls, string(c.Mode)) },
		OnError:  func(err error) { h.calls = append(h.calls, "refused") },
	}
}

func TestReloading(t *testing.T) {
	for name, c := range map[string]struct {
		texts   []string
		calls   []string
		mode    plan.Mode
		healthy bool
	}{
		"an unchanged file is not a change":      {[]string{header}, nil, plan.Observe, true},
		"a new version takes hold once":          {[]string{header + "mode: Hold", header + "mode: Hold"}, []string{"Hold"}, plan.Hold, true},
		"a mistake keeps the last good one":      {[]string{header + "mode: Hold", header + "mode: hold"}, []string{"Hold", "refused"}, plan.Hold, false},
		"the same mistake is reported once":      {[]string{"a: 1", "a: 1"}, []string{"refused"}, plan.Observe, false},
		"another mistake is reported":            {[]string{"a: 1", "b: 1"}, []string{"refused", "refused"}, plan.Observe, false},
		"a mended file takes hold":               {[]string{"a: 1", header + "mode: Enforce"}, []string{"refused", "Enforce"}, plan.Enforce, true},
		"a mistake taken back is told":           {[]string{"a: 1", header, header}, []string{"refused", "Observe"}, plan.Observe, true},
		"an emptied file is a mistake as others": {[]string{""}, []string{"refused"}, plan.Observe, false},
	} {
		t.Run(name, func(t *testing.T) {
			v, h := newVolume(t, header), &heard{}
			r, err := NewReloader(v.path(), h.options())
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range c.texts {
				v.write(text)
				r.Reload()
			}
			if diff := cmp.Diff(c.calls, h.calls); diff != "" {
				t.Errorf("calls -want +got:\n%s", diff)
			}
			if got := r.Current().Mode; got != c.mode || r.Healthy() != c.healthy {
				t.Errorf("mode %s, healthy %t; want %s, %t", got, r.Healthy(), c.mode, c.healthy)
			}
		})
	}
}

func TestAFileThatGoesAwayIsReportedOnceAndComesBack(t *testing.T) {
	v, h := newVolume(t, header), &heard{}
	r, err := NewReloader(v.path(), h.options())
	if err != nil {
		t.Fatal(err)
	}
	v.must(os.Remove(v.path()))
	r.Reload()
	r.Reload()
	if diff := cmp.Diff([]string{"refused"}, h.calls); diff != "" || r.Healthy() {
		t.Errorf("healthy %t, calls -want +got:\n%s", r.Healthy(), diff)
	}
	v.must(os.WriteFile(v.path(), []byte(header), 0o644))
	r.Reload()
	if diff := cmp.Diff([]string{"refused", "Observe"}, h.calls); diff != "" || !r.Healthy() {
		t.Errorf("back with the text it had: healthy %t, calls -want +got:\n%s", r.Healthy(), diff)
	}
	v.must(os.WriteFile(v.path(), []byte(header+"mode: Hold"), 0o644))
	r.Reload()
	if r.Current().Mode != plan.Hold || !r.Healthy() {
		t.Errorf("mode %s, healthy %t", r.Current().Mode, r.Healthy())
	}
}

// announcingClock says when somebody waits for it.
type announcingClock struct {
	*clocktesting.FakeClock
	ticking chan struct{}
}

func (c announcingClock) NewTicker(d time.Duration) clock.Ticker {
	defer close(c.ticking)
	return c.FakeClock.NewTicker(d)
}

func TestRunFollowsTheFileAndEndsWithItsContext(t *testing.T) {
	v := newVolume(t, header)
	fake := announcingClock{clocktesting.NewFakeClock(time.Unix(0, 0)), make(chan struct{})}
	changed := make(chan plan.Mode, 1)
	r, err := NewReloader(v.path(), ReloaderOptions{Clock: fake, OnChange: func(c config.PlannerConfig) { changed <- c.Mode }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	<-fake.ticking
	v.write(header + "mode: Enforce")
	fake.Step(reloadEvery)
	if got := <-changed; got != plan.Enforce {
		t.Errorf("changed to %s", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestTheFirstFileHasToBeGood(t *testing.T) {
	v := newVolume(t, header+"mode: Sometimes")
	for name, path := range map[string]string{"mistaken": v.path(), "absent": filepath.Join(v.dir, "absent")} {
		if r, err := NewReloader(path, ReloaderOptions{}); err == nil || r != nil {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
}
