package gaps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/site"
)

// The bars of live: a moved cluster's time without an owner.
const (
	longestGap = 2 * time.Second
	medianGap  = time.Second
)

// TestLiveByHand does what the mode live does, by hand: the environment stands at 16 all the time, every Secret has its shard,
// and each moved cluster is nudged. The steps build on each other.
func TestLiveByHand(t *testing.T) {
	s := start(t, Options{Replicas: 2, ControllerReplicas: 16, Clusters: 24})
	for _, step := range []struct {
		name string
		run  func(*testing.T, *Site)
	}{
		{"a nudge after the shard's write wakes the new owner at once", nudgeLater},
		{"a nudge before it is used up by the old owner", nudgeTooEarly},
		{"a nudge that is pending is not heard a second time", nudgePending},
		{"a new replica touches nothing", newReplica},
		{"Prometheus says the same as the logs", metricsAgree},
		{"waves move what they move and nothing else", wave},
		{"an emptied replica leaves without a trace", shrink},
		{"a killed replica's clusters wait for it, and the others do not", lose},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, s) }) {
			t.FailNow()
		}
	}
}

// nudgeLater moves one cluster after the other to the other replica, the nudge sent that long after the answer to the write. The
// full count is BALLAST_SOAK_MOVES of each. A cluster's turn comes again only when its last refresh is over: a pod has one
// Application in hand once, and a second nudge of it would wait for the first.
func nudgeLater(t *testing.T, s *Site) {
	turn := 0
	for _, later := range []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond} {
		var gaps []time.Duration
		repeated := 0
		for range count(t, "BALLAST_SOAK_MOVES", 3) {
			c := s.Clusters[turn%len(s.Clusters)]
			if err := s.waitRefreshed(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			to := map[string]int{c.Name: 0}
			if slices.Contains(owned(t, s, 0), c) {
				to[c.Name] = 1
			}
			tl := window(t, s, func() error {
				again, err := s.Reassign(t.Context(), to, Pace{First: later, Again: AtOnce().Again})
				repeated += again
				return err
			})
			gaps = append(gaps, onlyMoved(t, tl, to)...)
			turn++
		}
		t.Logf("nudged %s after the write: %d moves, %d nudges were lost, gap median %s, longest %s", later, len(gaps), repeated, Median(gaps), Longest(gaps))
		if longest := Longest(gaps); longest > later+longestGap {
			t.Errorf("the longest gap with a nudge after %s: got %s", later, longest)
		}
	}
}

// nudgeTooEarly: that the new owner would still come cannot be waited for, so another cluster's whole move is put in between.
func nudgeTooEarly(t *testing.T, s *Site) {
	ctx, from := t.Context(), time.Now()
	mine := owned(t, s, 0)
	c, other := mine[0], mine[1:2]
	err := s.Nudge(ctx, c.Name)
	if err == nil {
		err = s.WaitEvent(ctx, from, Event{Pod: Pod(0), Kind: Refreshed, Application: c.Name})
	}
	if err == nil {
		err = s.waitRefreshed(ctx, c)
	}
	if err == nil {
		err = s.SetShard(ctx, c.Name, 1)
	}
	if err == nil {
		_, err = s.Reassign(ctx, assign(other, 1), AtOnce())
	}
	if err != nil {
		t.Fatal(err)
	}
	unowned(t, s, c)
	if err := errors.Join(s.Nudge(ctx, c.Name), s.WaitOwned(ctx, map[string]int{c.Name: 1})); err != nil {
		t.Fatal(err)
	}
}

// nudgePending: a cluster whose shard has no pod keeps the request. When it is given to a pod, that one has seen the request
// already and passed over it; the same once more is no write, and no event.
func nudgePending(t *testing.T, s *Site) {
	ctx, from := t.Context(), time.Now()
	mine := owned(t, s, 1)
	c, other := mine[0], mine[1:2]
	const nobody = 9
	err := s.SetShard(ctx, c.Name, nobody)
	if err == nil {
		err = s.WaitEvent(ctx, from, Event{Pod: Pod(1), Kind: Invalidated, Server: c.Server})
	}
	if err == nil {
		err = s.annotate(ctx, c.Name, "normal")
	}
	if err == nil {
		err = s.SetShard(ctx, c.Name, 0)
	}
	if err == nil {
		err = s.WaitEvent(ctx, from, Event{Pod: Pod(0), Kind: Changed, Server: c.Server, Shard: 0})
	}
	if err == nil {
		err = s.annotate(ctx, c.Name, "normal")
	}
	if err == nil {
		_, err = s.Reassign(ctx, assign(other, 0), AtOnce())
	}
	if err != nil {
		t.Fatal(err)
	}
	unowned(t, s, c)
	if err := errors.Join(s.Nudge(ctx, c.Name), s.WaitOwned(ctx, map[string]int{c.Name: 0})); err != nil {
		t.Fatal(err)
	}
}

func unowned(t *testing.T, s *Site, c Cluster) {
	t.Helper()
	now := time.Now()
	tl, err := s.Timeline(now, now)
	if err != nil {
		t.Fatal(err)
	}
	if owner, err := tl.Owner(c); err == nil || err.Error() != fmt.Sprintf("cluster %q has no owner", c.Name) {
		t.Errorf("cluster %q: got owner %q, %v, want none", c.Name, owner, err)
	}
}

// waitRefreshed returns when Argo CD has taken the request away.
func (s *Site) waitRefreshed(ctx context.Context, c Cluster) error {
	return s.wait(ctx, func(Timeline) error {
		app, err := s.objects.Resource(applications).Namespace(s.Fleet.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
		if err == nil && app.GetAnnotations()[refresh] != "" {
			err = errors.New("the refresh is pending")
		}
		return err
	})
}

func newReplica(t *testing.T, s *Site) {
	tl := window(t, s, func() error { return errors.Join(s.Scale(t.Context(), 3), s.WaitReady(t.Context(), 3)) })
	onlyMoved(t, tl, nil)
	known := 0
	for _, e := range tl.Events {
		if e.Pod == Pod(2) && e.Kind == Assigned {
			known++
		}
	}
	if want := len(s.Clusters) + 1; known != want {
		t.Errorf("clusters that the new replica knows: got %d, want %d, the in-cluster with them", known, want)
	}
}

// metricsAgree: which replica is responsible for a cluster's Application shows in its metrics at once.
func metricsAgree(t *testing.T, s *Site) {
	if err := s.Monitor(t.Context()); err != nil {
		t.Fatal(err)
	}
	for replica := range 3 {
		var want []string
		for _, c := range owned(t, s, replica) {
			want = append(want, c.Server)
		}
		err := site.Poll(t.Context(), func(ctx context.Context) error {
			samples, err := s.Query(ctx, "dest_server", fmt.Sprintf("argocd_app_info{pod=%q}", Pod(replica)))
			if err != nil {
				return err
			}
			if up, err := s.Query(ctx, "pod", fmt.Sprintf("up{pod=%q}", Pod(replica))); err != nil || up[Pod(replica)] != 1 {
				return fmt.Errorf("pod %q is not scraped: %v, %w", Pod(replica), up, err)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(samples)), cmpopts.EquateEmpty()); diff != "" {
				return fmt.Errorf("clusters of replica %d (-by the logs +by its metrics):\n%s", replica, diff)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// wave moves a third of all clusters in waves of 4.
func wave(t *testing.T, s *Site) {
	moving := slices.Concat(owned(t, s, 0)[:4], owned(t, s, 1)[:4])
	tl := window(t, s, func() error {
		for clusters := range slices.Chunk(moving, 4) {
			if _, err := s.Reassign(t.Context(), assign(clusters, 2), AtOnce()); err != nil {
				return err
			}
		}
		return nil
	})
	underTheBars(t, onlyMoved(t, tl, assign(moving, 2)))
	keep(t, tl, "Two waves of four clusters to a third replica, by hand")
}

func shrink(t *testing.T, s *Site) {
	leaving := owned(t, s, 2)
	to := assign(leaving, 0, 1)
	emptying := window(t, s, func() error {
		_, err := s.Reassign(t.Context(), to, AtOnce())
		return err
	})
	underTheBars(t, onlyMoved(t, emptying, to))
	leave := window(t, s, func() error { return errors.Join(s.Scale(t.Context(), 2), s.WaitReady(t.Context(), 2)) })
	onlyMoved(t, leave, nil)
	if ran := leave.Runs(Pod(2)); len(ran) == 0 || !ran[len(ran)-1].To.Before(leave.To) {
		t.Errorf("the replica that left still runs: %+v", ran)
	}
}

func underTheBars(t *testing.T, gaps []time.Duration) {
	t.Helper()
	t.Logf("%d moves, gap median %s, longest %s", len(gaps), Median(gaps), Longest(gaps))
	if Median(gaps) > medianGap || Longest(gaps) > longestGap {
		t.Errorf("gaps: got median %s, longest %s, want at most %s and %s", Median(gaps), Longest(gaps), medianGap, longestGap)
	}
}

// lose: the container restarts by itself. A cluster that nobody moves has no owner until then, and none of the others notices.
func lose(t *testing.T, s *Site) {
	lost := assign(owned(t, s, 1), 1)
	tl := window(t, s, func() error { return errors.Join(s.Kill(t.Context(), 1), s.WaitOwned(t.Context(), lost)) })
	var gaps []time.Duration
	for _, a := range tl.Accounts() {
		if _, mine := lost[a.Cluster]; a.Touched != mine || len(a.Doubled) > 0 {
			t.Errorf("cluster %q: touched %t, want %t: %+v", a.Cluster, a.Touched, mine, a)
		}
		for _, m := range a.Moves {
			gaps = append(gaps, m.Gap)
		}
	}
	if restarts := tl.Restarts(); !maps.Equal(restarts, map[string]int{Pod(1): 1}) {
		t.Errorf("restarts: got %v", restarts)
	}
	t.Logf("%d clusters without their replica for %s to %s", len(gaps), slices.Min(gaps), Longest(gaps))
}
