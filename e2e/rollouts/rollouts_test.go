package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/e2e/gaps"
	"ballast/e2e/site"
)

// The bars of mode live.
const (
	longestGap     = 2 * time.Second
	medianGap      = time.Second
	longestDoubled = time.Second
)

// TestRollouts goes through the modes, told by nothing but ballast's configuration. The steps build on each other.
func TestRollouts(t *testing.T) {
	rounds := count(t, "BALLAST_SOAK_ROLLOUTS", 0)
	clusters := 12
	if rounds > 0 {
		clusters = 24
	}
	w := start(t, "round-robin", clusters)
	w.full = rounds > 0
	if w.full {
		w.perWave = 5
	}
	t.Cleanup(func() { t.Log(table(w.figures)) })
	steps := []step{{"adoption changes no owner", adopt}}
	for range max(rounds, 1) {
		steps = append(steps, w.programme()...)
	}
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) { s.run(t, w) }) {
			t.FailNow()
		}
	}
}

type step struct {
	name string
	run  func(*testing.T, *world)
}

func (w *world) programme() []step {
	steps := []step{
		{"live grows", func(t *testing.T, w *world) { w.scale(t, live, 4).quiet(t).picture(t, "grow") }},
		{"live levels", func(t *testing.T, w *world) { w.level(t, live, 4).quiet(t) }},
		{"live shrinks", func(t *testing.T, w *world) { w.scale(t, live, 3).quiet(t).picture(t, "shrink") }},
		{"live loses a replica that comes back", func(t *testing.T, w *world) { w.kill(t, live, 3) }},
	}
	if w.full {
		steps = append(steps, step{"live loses a replica that stays away", failover})
	}
	steps = append(steps,
		step{"x0y shrinks", func(t *testing.T, w *world) { w.scale(t, x0y, 2).single(t) }},
		step{"x0y grows", func(t *testing.T, w *world) { w.scale(t, x0y, 4).single(t) }},
	)
	if w.full {
		steps = append(steps,
			step{"a person stops and starts", byHand},
			step{"x0y levels", func(t *testing.T, w *world) { w.level(t, x0y, 4).single(t) }},
			step{"x0y shrinks to three", func(t *testing.T, w *world) { w.scale(t, x0y, 3).single(t) }},
			step{"x0y loses a replica that comes back", func(t *testing.T, w *world) { w.kill(t, x0y, 3) }},
		)
	}
	steps = append(steps,
		step{"default shrinks", func(t *testing.T, w *world) { w.scale(t, defaults, 2) }},
		step{"default grows", func(t *testing.T, w *world) { w.scale(t, defaults, 4) }},
	)
	if w.full {
		steps = append(steps,
			step{"default levels", func(t *testing.T, w *world) { w.level(t, defaults, 4) }},
			step{"default shrinks to three", func(t *testing.T, w *world) { w.scale(t, defaults, 3) }},
			step{"default loses a replica that comes back", func(t *testing.T, w *world) { w.kill(t, defaults, 3) }},
			step{"live again", func(t *testing.T, w *world) { w.scale(t, live, 2) }},
		)
	}
	return steps
}

// measured is a step with its cost.
type measured struct {
	figure
	world  *world
	change change
}

func (w *world) note(t *testing.T, m mode, step string, c change) measured {
	t.Helper()
	f := figureOf(m, step, c)
	w.figures = append(w.figures, f)
	t.Log(table([]figure{f}))
	return measured{f, w, c}
}

// adopt takes over a fleet whose shards are Argo CD's own choice: every cluster keeps its owner, and the env's one restart is
// all that happens.
func adopt(t *testing.T, w *world) {
	c := w.drive(t, 2, func(ctx context.Context) error { return w.InstallBallast(ctx, w.config(live, 2)) },
		func(p site.Plan) bool { return p.ControllerReplicas == maxReplicas })
	m := w.note(t, live, "adoption", c)
	w.starts = m.starts
	for name, to := range c.moved() {
		t.Errorf("cluster %q went from replica %d to %d", name, c.before[name], to)
	}
	for pod := range 2 {
		if got := m.restarts[gaps.Pod(pod)]; got != 1 {
			t.Errorf("restarts of replica %d: got %d, want the announced one", pod, got)
		}
	}
	if len(m.doubled) > 0 {
		t.Errorf("clusters with two owners: %v", m.doubled)
	}
	must(t, site.Poll(t.Context(), w.ownershipKnown))
}

// ownershipKnown is nil when the planner that leads has asked every application-controller what it owns.
func (w *world) ownershipKnown(ctx context.Context) error {
	leader, err := w.Leader(ctx)
	if err != nil {
		return err
	}
	pods, err := w.Pods(ctx, "planner")
	if err != nil {
		return err
	}
	for _, pod := range pods {
		text, err := w.Metrics(ctx, pod)
		if pod.Name == leader && err == nil && strings.Contains(text, "\nballast_ownership_known 1\n") {
			return nil
		}
	}
	return fmt.Errorf("the planner that leads, %q, does not show ballast_ownership_known 1", leader)
}

func (w *world) scale(t *testing.T, m mode, replicas int) measured {
	t.Helper()
	before, err := w.Plan(t.Context())
	must(t, err)
	c := w.drive(t, replicas, func(ctx context.Context) error { return w.Configure(ctx, w.config(m, replicas)) }, nil)
	return w.note(t, m, fmt.Sprintf("%d to %d", before.Replicas, replicas), c)
}

// level makes three clusters of replica 0 heavy, or other ones than before.
func (w *world) level(t *testing.T, m mode, replicas int) measured {
	t.Helper()
	before, err := w.Plan(t.Context())
	must(t, err)
	was := w.heavy
	w.heavy = nil
	for _, c := range w.Clusters {
		if before.Clusters[c.Name].Replica == len(was)%2 && len(w.heavy) < 3 {
			w.heavy = append(w.heavy, c)
		}
	}
	c := w.drive(t, replicas, func(ctx context.Context) error { return w.Configure(ctx, w.config(m, replicas)) },
		func(p site.Plan) bool { return p.Revision > before.Revision })
	return w.note(t, m, "rebalance", c)
}

// kill ends a process as the kernel does; the kubelet starts it again. Its clusters wait for it, and the others do not notice.
func (w *world) kill(t *testing.T, m mode, replicas int) measured {
	t.Helper()
	const lost = 1
	c := w.drive(t, replicas, func(ctx context.Context) error { return w.Kill(ctx, lost) }, nil)
	f := w.note(t, m, "kill", c)
	for _, a := range c.timeline.Accounts() {
		if hers := c.before[a.Cluster] == lost; a.Touched != hers || len(a.Doubled) > 0 {
			t.Errorf("cluster %q of replica %d: touched %t, want %t: %+v", a.Cluster, c.before[a.Cluster], a.Touched, hers, a)
		}
	}
	return f
}

// failover stops a process: it stays, and neither works nor answers. Its clusters go to the others, which notice nothing else.
// Then it is killed, comes back, and gets clusters again.
func failover(t *testing.T, w *world) {
	const lost, replicas = 1, 3
	before, err := w.owners(time.Now())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := change{before: before, asked: time.Now()}
	must(t, syscall.Kill(w.Plane.PodPID(w.Fleet.Namespace, gaps.Pod(lost)), syscall.SIGSTOP))
	w.hung = append(w.hung, gaps.Event{At: c.asked, Pod: gaps.Pod(lost), Kind: gaps.Ended})
	w.marks = nil
	must(t, site.Poll(ctx, func(ctx context.Context) error {
		plan, err := w.observed(ctx)
		if err == nil {
			err = resting(plan, replicas, nil)
		}
		if err != nil {
			return err
		}
		c.after = w.rows(plan)
		for name, replica := range c.after {
			if replica == lost {
				return fmt.Errorf("cluster %q is still on replica %d", name, lost)
			}
		}
		return w.ownedAs(c.after)
	}))
	c.timeline, err = w.timeline(c.asked, time.Now())
	must(t, err)
	w.note(t, live, "failover", c).quietBut(t, patience)
	back := w.drive(t, replicas, func(ctx context.Context) error { return w.Kill(ctx, lost) }, nil)
	w.note(t, live, "and back", back).quietExcept(t, lost)
}

// quiet holds a step of mode live to its bars.
func (m measured) quiet(t *testing.T) measured {
	t.Helper()
	m.quietBut(t, longestGap)
	if got := gaps.Median(m.gaps); got > medianGap {
		t.Errorf("half of the gaps: got longer than %s, want at most %s", got, medianGap)
	}
	if m.moved == 0 {
		t.Error("nothing moved")
	}
	return m
}

// quietBut allows gaps of another length.
func (m measured) quietBut(t *testing.T, longest time.Duration) {
	t.Helper()
	m.quietExcept(t, -1)
	if got := gaps.Longest(m.gaps); got > longest {
		t.Errorf("the longest gap: got %s, want at most %s", got, longest)
	}
}

// quietExcept leaves out a replica that was killed.
func (m measured) quietExcept(t *testing.T, lost int) {
	t.Helper()
	for pod, n := range m.restarts {
		if ordinal(pod) != lost {
			t.Errorf("restarts of %s: got %d", pod, n)
		}
	}
	for _, name := range m.disturbed {
		t.Errorf("cluster %q did not move, and was disturbed", name)
	}
	for _, name := range m.twice {
		t.Errorf("cluster %q moved more than once", name)
	}
	if got := gaps.Longest(m.doubled); got > longestDoubled {
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
	if got, most := gaps.Longest(m.starts), 2*gaps.Longest(m.world.starts)+time.Second; got > most {
		t.Errorf("the longest start of a process up to its last cluster: got %s, want at most %s", got, most)
	}
	return m
}

// stopped is how long no process ran: that much of the time without owners is ballast's own doing.
func stopped(t gaps.Timeline) (longest time.Duration) {
	running, since := map[string]bool{}, time.Time{}
	for _, e := range t.Events {
		switch e.Kind {
		case gaps.Began:
			if len(running) == 0 && since.After(t.From) {
				longest = max(longest, e.At.Sub(since))
			}
			running[e.Pod] = true
		case gaps.Ended:
			if delete(running, e.Pod); len(running) == 0 {
				since = e.At
			}
		}
	}
	return longest
}

// byHand stops and starts the same replicas without ballast: what x0y is compared with. The glass is broken meanwhile, so that
// nobody writes but the person.
func byHand(t *testing.T, w *world) {
	const replicas = 4
	was := w.figures[len(w.figures)-1]
	c := w.drive(t, replicas, func(ctx context.Context) error {
		if err := w.breakGlass(ctx, "off"); err != nil {
			return err
		}
		for _, n := range []int{0, replicas} {
			if err := errors.Join(w.Scale(ctx, n), w.WaitReady(ctx, n)); err != nil {
				return err
			}
		}
		if err := w.WaitSynced(ctx); err != nil {
			return err
		}
		return w.breakGlass(ctx, nil)
	}, nil)
	f := w.note(t, "by hand", "4 to 0 to 4", c)
	if got, most := gaps.Longest(was.gaps), 3*gaps.Longest(f.gaps)/2+5*time.Second; got > most {
		t.Errorf("the longest gap of x0y's growth to %d: got %s, and by hand %s", replicas, got, gaps.Longest(f.gaps))
	}
}

func (w *world) breakGlass(ctx context.Context, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"ballast.argoproj.io/enforcement": value}}})
	if err != nil {
		return err
	}
	_, err = w.Client.CoreV1().ConfigMaps(w.Fleet.Namespace).Patch(ctx, site.PlanConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
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
