package rollouts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/e2e/gaps"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

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

// install takes over a fleet whose shards are Argo CD's own choice. Every cluster keeps its owner, and nothing restarts.
func (w *world) install(t *testing.T, m mode) {
	t.Helper()
	c := w.drive(t, goal{replicas: 2, unlevel: true, reached: w.stamped}, func(ctx context.Context) error { return w.InstallBallast(ctx, w.patient(m, 2)) })
	f := w.note(t, m, "adoption", c)
	f.restarted(t, 0, 0)
	for _, name := range f.disturbed {
		t.Errorf("cluster %q was disturbed", name)
	}
	must(t, site.Poll(t.Context(), w.ownershipKnown))
}

// prepare is what mode live does once: the env's one restart.
func (w *world) prepare(t *testing.T, replicas int) {
	t.Helper()
	c := w.drive(t, goal{replicas: replicas, reached: envStands}, func(ctx context.Context) error { return w.Configure(ctx, w.config(live, replicas)) })
	w.note(t, live, "env to 16", c).restarted(t, replicas, 1)
}

// adopt installs ballast with mode live: every Secret gets the owner that Argo CD's algorithm chose, and then the env's one
// restart comes. Under consistent-hashing the in-cluster must have a Secret or be off: its shard would change with the env.
func (w *world) adopt(t *testing.T) {
	t.Helper()
	if w.algorithm == "consistent-hashing" {
		w.noInCluster(t)
	}
	stands := func(ctx context.Context, p site.Plan) error { return cmp.Or(envStands(ctx, p), w.stamped(ctx, p)) }
	c := w.drive(t, goal{replicas: 2, unlevel: true, reached: stands}, func(ctx context.Context) error { return w.InstallBallast(ctx, w.patient(live, 2)) })
	w.note(t, live, "adoption", c).restarted(t, 2, 1)
	must(t, site.Poll(t.Context(), w.ownershipKnown))
}

func (w *world) noInCluster(t *testing.T) {
	t.Helper()
	patch := []byte(`{"data":{"cluster.inClusterEnabled":"false"}}`)
	_, err := w.Client.CoreV1().ConfigMaps(w.Fleet.Namespace).Patch(t.Context(), "argocd-cm", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}

func envStands(_ context.Context, p site.Plan) error {
	if p.ControllerReplicas != maxReplicas {
		return fmt.Errorf("the plan's env is %d, want %d", p.ControllerReplicas, maxReplicas)
	}
	return nil
}

// stamped is nil when every Secret carries the plan's replica.
func (w *world) stamped(ctx context.Context, p site.Plan) error {
	shards, err := w.Shards(ctx)
	if err != nil {
		return err
	}
	for name, replica := range w.rows(&p) {
		if shards[name] != strconv.Itoa(replica) {
			return fmt.Errorf("secret %q carries shard %q, want %d", name, shards[name], replica)
		}
	}
	return nil
}

// restarted wants that many replicas to have restarted so often, and every cluster to have the owner that it had.
func (m measured) restarted(t *testing.T, replicas, times int) {
	t.Helper()
	want := map[string]int{}
	for n := range replicas {
		want[gaps.Pod(n)] = times
	}
	if !maps.Equal(m.restarts, want) {
		t.Errorf("restarts: got %v, want %v", m.restarts, want)
	}
	for name, to := range m.change.moved() {
		t.Errorf("cluster %q went from replica %d to %d", name, m.change.before[name], to)
	}
	m.owned(t)
}

// ownershipKnown is nil when the planner that leads has asked every application-controller what it owns.
func (w *world) ownershipKnown(ctx context.Context) error {
	return w.leaderShows(ctx, "ballast_ownership_known 1")
}

// leaderShows is nil when the planner that leads has that line among its metrics.
func (w *world) leaderShows(ctx context.Context, line string) error {
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
		if pod.Name == leader && err == nil && strings.Contains(text, "\n"+line+"\n") {
			return nil
		}
	}
	return fmt.Errorf("the planner that leads, %q, does not show %s", leader, line)
}

func (w *world) scale(t *testing.T, m mode, replicas int) measured {
	t.Helper()
	before, err := w.Plan(t.Context())
	must(t, err)
	w.levels = true
	c := w.drive(t, goal{replicas: replicas}, func(ctx context.Context) error { return w.Configure(ctx, w.config(m, replicas)) })
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
	decided := func(_ context.Context, p site.Plan) error {
		if p.Revision == before.Revision {
			return fmt.Errorf("revision %d is still the newest", p.Revision)
		}
		return nil
	}
	c := w.drive(t, goal{replicas: replicas, reached: decided}, func(ctx context.Context) error { return w.Configure(ctx, w.config(m, replicas)) })
	return w.note(t, m, "rebalance", c)
}

// kill ends a process as the kernel does; the kubelet starts it again. Its clusters wait for it, and the others do not notice.
func (w *world) kill(t *testing.T, m mode, replicas int) measured {
	t.Helper()
	const lost = 1
	pod, err := w.Holder(t.Context(), lost)
	must(t, err)
	c := w.drive(t, goal{replicas: replicas, unlevel: !w.levels}, func(ctx context.Context) error { return w.Kill(ctx, pod) })
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
func (w *world) failover(t *testing.T, m mode, look func(context.Context) error) (away, back measured) {
	t.Helper()
	const lost, replicas = 1, 3
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	before, err := w.owners(ctx, time.Now())
	must(t, err)
	pod, err := w.Holder(ctx, lost)
	must(t, err)
	c := change{before: before, asked: time.Now()}
	must(t, syscall.Kill(w.Plane.PodPID(w.Fleet.Namespace, pod), syscall.SIGSTOP))
	w.hung = append(w.hung, timeline.Event{At: c.asked, Pod: pod, Kind: timeline.Ended})
	w.marks = nil
	must(t, site.Poll(ctx, func(ctx context.Context) error {
		plan, err := w.observed(ctx)
		if err == nil {
			err = cmp.Or(look(ctx), resting(plan, replicas))
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
		return w.ownedAs(ctx, c.after)
	}))
	c.timeline, err = w.timeline(c.asked, time.Now())
	must(t, err)
	c.marks = w.marks
	away = w.note(t, m, "failover", c)
	away.quietExcept(t, pod)
	back = w.note(t, m, "and back", w.drive(t, goal{replicas: replicas}, func(ctx context.Context) error { return w.Kill(ctx, pod) }))
	back.quietExcept(t, pod)
	return away, back
}

// byHand stops and starts the same replicas without ballast: what x0y is compared with. The glass is broken meanwhile, so that
// nobody writes but the person.
func byHand(t *testing.T, w *world) {
	const replicas = 4
	x0y := w.figures[len(w.figures)-1]
	c := w.drive(t, goal{replicas: replicas}, func(ctx context.Context) error {
		if err := w.annotate(ctx, map[string]any{"enforcement": "off", "paused": "true"}); err != nil {
			return err
		}
		for _, n := range []int{0, replicas} {
			if err := w.scaleByHand(ctx, n); err != nil {
				return err
			}
		}
		return cmp.Or(w.WaitSynced(ctx), w.annotate(ctx, map[string]any{"enforcement": nil, "paused": nil}))
	})
	hand := w.note(t, "by hand", "4 to 0 to 4", c)
	t.Logf("nothing ran for %s", seconds(stopped(c.timeline)))
	if got, most := timeline.Longest(x0y.gaps), 3*timeline.Longest(hand.gaps)/2+5*time.Second; got > most {
		t.Errorf("the longest gap of x0y's growth to %d: got %s, and by hand %s", replicas, got, timeline.Longest(hand.gaps))
	}
}

// scaleByHand repeats itself: a webhook's replica may not know yet that the glass is broken.
func (w *world) scaleByHand(ctx context.Context, replicas int) error {
	return site.Poll(ctx, func(ctx context.Context) error {
		return cmp.Or(w.Scale(ctx, replicas), w.Ready(ctx, replicas))
	})
}

// annotate sets the plan's annotations that are people's.
func (w *world) annotate(ctx context.Context, values map[string]any) error {
	annotations := map[string]any{}
	for name, value := range values {
		annotations["ballast.argoproj.io/"+name] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("marshalling the plan's annotations: %w", err)
	}
	_, err = w.Client.CoreV1().ConfigMaps(w.Fleet.Namespace).Patch(ctx, site.PlanConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("annotating the plan: %w", err)
	}
	return nil
}
