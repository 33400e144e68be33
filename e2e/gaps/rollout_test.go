package gaps

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/fleet"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// TestDefaultAndX0YByHand does what these modes do, by hand: the environment is the number of replicas, and changes with it.
func TestDefaultAndX0YByHand(t *testing.T) {
	s := start(t, Options{Replicas: 2, Clusters: 12})
	for _, step := range []struct {
		name string
		run  func(*testing.T, *Site)
	}{
		{"default grows, and clusters have no owner or two until the last pod has restarted", defaultGrows},
		{"x0y shrinks, and everything is back with the pods", x0yShrinks},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, s) }) {
			t.FailNow()
		}
	}
}

// timeToRestart is less than a pod takes to stop and to start, and more than what one pod sees later than another.
const timeToRestart = time.Second

// defaultGrows: the shards are written first, then the environment and the replicas, which restarts all pods one by one, the
// new one first. A pod that was started with an environment of 2 takes the new shard for shard 0 until then: a cluster of
// replica 0's that goes to replica 2 has both, and one of replica 1's has nobody until replica 2 is there.
func defaultGrows(t *testing.T, s *Site) {
	from, to := assign(s.Clusters, 0, 1), assign(s.Clusters, 0, 1, 2)
	tl := window(t, s, func() error {
		return errors.Join(s.setShards(t.Context(), to), s.SetReplicas(t.Context(), 3, 3), s.WaitReady(t.Context(), 3), s.WaitOwned(t.Context(), to))
	})
	keep(t, tl, "default: from 2 to 3 replicas, by hand")
	var unowned, doubled []time.Duration
	for _, a := range tl.Accounts() {
		unowned = append(unowned, total(a.Unowned))
		doubled = append(doubled, total(a.Doubled))
		if both := from[a.Cluster] == 0 && to[a.Cluster] == 2; both != (total(a.Doubled) > timeToRestart) {
			t.Errorf("cluster %q on its way from replica %d to %d had two owners for %s", a.Cluster, from[a.Cluster], to[a.Cluster], total(a.Doubled))
		}
	}
	t.Logf("default, 2 to 3 replicas in %s: without an owner median %s, longest %s; with two median %s, longest %s",
		tl.To.Sub(tl.From), timeline.Median(unowned), timeline.Longest(unowned), timeline.Median(doubled), timeline.Longest(doubled))
}

// x0yShrinks: no pod is left when the shards are written, so no two ever own a cluster.
func x0yShrinks(t *testing.T, s *Site) {
	ctx := t.Context()
	to := assign(s.Clusters, 0, 1)
	var drained, restored time.Time
	tl := window(t, s, func() error {
		err := errors.Join(s.Scale(ctx, 0), s.waitPods(ctx, 0))
		drained = time.Now()
		err = errors.Join(err, s.setShards(ctx, to))
		restored = time.Now()
		return errors.Join(err, s.SetReplicas(ctx, 2, 2), s.WaitReady(ctx, 2), s.WaitOwned(ctx, to))
	})
	keep(t, tl, "x0y: from 3 to 2 replicas, by hand")
	var unowned []time.Duration
	for _, a := range tl.Accounts() {
		if len(a.Unowned) != 1 || len(a.Doubled) > 0 || len(a.Moves) != 1 || a.Moves[0].To != Pod(to[a.Cluster]) {
			t.Errorf("cluster %q: got %+v, want one gap and replica %d", a.Cluster, a, to[a.Cluster])
			continue
		}
		unowned = append(unowned, a.Unowned[0].Length())
		runs := tl.Runs(a.Moves[0].To)
		if own := a.Moves[0].At.Sub(runs[len(runs)-1].From); own > ownStart {
			t.Errorf("cluster %q was taken %s after its pod's process began, want within %s", a.Cluster, own, ownStart)
		}
	}
	t.Logf("x0y, 3 to 2 replicas in %s: drained in %s, shards written in %s, pods ready again in %s; without an owner median %s, longest %s",
		tl.To.Sub(tl.From), drained.Sub(tl.From), restored.Sub(drained), tl.To.Sub(restored), timeline.Median(unowned), timeline.Longest(unowned))
}

// ownStart is what an application-controller takes from its first line to its last cluster's "Start syncing cluster", on a
// busy machine: 0.3 s on an idle one.
const ownStart = 10 * time.Second

func total(spans []timeline.Span) time.Duration {
	var d time.Duration
	for _, s := range spans {
		d += s.Length()
	}
	return d
}

func (s *Site) setShards(ctx context.Context, to map[string]int) error {
	for _, c := range s.Clusters {
		if err := s.SetShard(ctx, c.Name, to[c.Name]); err != nil {
			return err
		}
	}
	return nil
}

// waitPods returns when the application-controller has that many pods, those that are being deleted counted.
func (s *Site) waitPods(ctx context.Context, want int) error {
	return site.Poll(ctx, func(ctx context.Context) error {
		pods, err := s.Client.CoreV1().Pods(s.Fleet.Namespace).List(ctx, metav1.ListOptions{LabelSelector: programLabel + "=" + fleet.Workload})
		if err == nil && len(pods.Items) != want {
			err = fmt.Errorf("there are %d pods, want %d", len(pods.Items), want)
		}
		return err
	})
}
