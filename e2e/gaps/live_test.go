package gaps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// The bars of live: a moved cluster's time without an owner.
var (
	longestGap = bar(2 * time.Second)
	medianGap  = bar(time.Second)
)

// bar is a promise where the soak holds ballast to it, on a machine that does nothing else; elsewhere there is time for what else runs.
func bar(promised time.Duration) time.Duration {
	if os.Getenv("BALLAST_SOAK_MOVES") != "" {
		return promised
	}
	return 5 * promised
}

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
		{"waves move what they move and nothing else", waves},
		{"an emptied replica leaves without a trace", shrink},
		{"a killed replica's clusters wait for it, and the others do not", lose},
		{"a replica that crashes again and again has its clusters when it stays", crash},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, s) }) {
			t.FailNow()
		}
	}
}

func newReplica(t *testing.T, s *Site) {
	tl := window(t, s, func() error { return errors.Join(s.Scale(t.Context(), 3), s.WaitReady(t.Context(), 3)) })
	onlyMoved(t, tl, nil)
	known := 0
	for _, e := range tl.Events {
		if e.Pod == Pod(2) && e.Kind == timeline.Assigned {
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

// waves moves a third of all clusters to the new replica.
func waves(t *testing.T, s *Site) {
	moving := slices.Concat(owned(t, s, 0)[:4], owned(t, s, 1)[:4])
	to := assign(moving, 2)
	tl := window(t, s, func() error { return s.inWaves(t.Context(), moving, to) })
	underTheBars(t, onlyMoved(t, tl, to))
	keep(t, tl, "Two waves of four clusters to a third replica, by hand")
}

func shrink(t *testing.T, s *Site) {
	leaving := owned(t, s, 2)
	to := assign(leaving, 0, 1)
	emptying := window(t, s, func() error { return s.inWaves(t.Context(), leaving, to) })
	underTheBars(t, onlyMoved(t, emptying, to))
	leave := window(t, s, func() error { return errors.Join(s.Scale(t.Context(), 2), s.WaitReady(t.Context(), 2)) })
	onlyMoved(t, leave, nil)
	if ran := leave.Runs(Pod(2)); len(ran) == 0 || !ran[len(ran)-1].To.Before(leave.To) {
		t.Errorf("the replica that left still runs: %+v", ran)
	}
}

// inWaves moves four clusters at a time, each when its last refresh is over.
func (s *Site) inWaves(ctx context.Context, moving []timeline.Cluster, to map[string]int) error {
	for clusters := range slices.Chunk(moving, 4) {
		wave := map[string]int{}
		for _, c := range clusters {
			if err := s.waitRefreshed(ctx, c); err != nil {
				return err
			}
			wave[c.Name] = to[c.Name]
		}
		if _, err := s.Reassign(ctx, wave, AtOnce()); err != nil {
			return err
		}
	}
	return nil
}

func underTheBars(t *testing.T, gaps []time.Duration) {
	t.Helper()
	t.Logf("%d moves, gap median %s, longest %s", len(gaps), timeline.Median(gaps), timeline.Longest(gaps))
	if timeline.Median(gaps) > medianGap || timeline.Longest(gaps) > longestGap {
		t.Errorf("gaps: got median %s, longest %s, want at most %s and %s", timeline.Median(gaps), timeline.Longest(gaps), medianGap, longestGap)
	}
}

// lose: the container restarts by itself. A cluster that nobody moves has no owner until then, and none of the others notices.
func lose(t *testing.T, s *Site) {
	lost := assign(owned(t, s, 1), 1)
	tl := window(t, s, func() error { return errors.Join(s.Kill(t.Context(), Pod(1)), s.WaitOwned(t.Context(), lost)) })
	gaps := lostAndFound(t, tl, lost)
	t.Logf("%d clusters without their replica for %s to %s", len(gaps), slices.Min(gaps), timeline.Longest(gaps))
	if restarts := tl.Restarts(); !maps.Equal(restarts, map[string]int{Pod(1): 1}) {
		t.Errorf("restarts: got %v", restarts)
	}
}

// crash: the replica comes back only when it is let.
func crash(t *testing.T, s *Site) {
	lost := assign(owned(t, s, 1), 1)
	tl := window(t, s, func() error {
		release, err := s.Lose(t.Context(), 1)
		if err != nil {
			return err
		}
		err = s.waitRestarts(t.Context(), 1, 3)
		for _, c := range s.Clusters {
			if _, mine := lost[c.Name]; mine {
				unowned(t, s, c)
			}
		}
		release()
		return errors.Join(err, s.WaitOwned(t.Context(), lost))
	})
	gaps := lostAndFound(t, tl, lost)
	t.Logf("%d clusters without their replica for %s to %s", len(gaps), slices.Min(gaps), timeline.Longest(gaps))
}

// lostAndFound gives the gaps of the clusters that came back to their owner; the others were not touched.
func lostAndFound(t *testing.T, tl timeline.Timeline, lost map[string]int) []time.Duration {
	t.Helper()
	var gaps []time.Duration
	for _, a := range tl.Accounts() {
		if _, mine := lost[a.Cluster]; a.Touched != mine || len(a.Doubled) > 0 {
			t.Errorf("cluster %q: touched %t, want %t: %+v", a.Cluster, a.Touched, mine, a)
		}
		for _, m := range a.Moves {
			gaps = append(gaps, m.Gap)
		}
	}
	return gaps
}

// waitRestarts returns when the pod says that its container has restarted that often more than it had.
func (s *Site) waitRestarts(ctx context.Context, ordinal, more int) error {
	before := int32(-1)
	return site.Poll(ctx, func(ctx context.Context) error {
		pod, err := s.Client.CoreV1().Pods(s.Fleet.Namespace).Get(ctx, Pod(ordinal), metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := pod.Status.ContainerStatuses[0].RestartCount
		if before < 0 {
			before = now
		}
		if now < before+int32(more) {
			return fmt.Errorf("pod %q restarted %d times", Pod(ordinal), now-before)
		}
		return nil
	})
}
