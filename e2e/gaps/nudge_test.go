package gaps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/gaps/timeline"
)

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
		t.Logf("nudged %s after the write: %d moves, %d nudges were lost, gap median %s, longest %s", later, len(gaps), repeated, timeline.Median(gaps), timeline.Longest(gaps))
		if longest := timeline.Longest(gaps); longest > later+longestGap {
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
		err = s.WaitEvent(ctx, from, timeline.Event{Pod: Pod(0), Kind: timeline.Refreshed, Application: c.Name})
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
	c, other, his := mine[0], mine[1:2], owned(t, s, 0)[0]
	const nobody = 9
	err := s.SetShard(ctx, c.Name, nobody)
	if err == nil {
		err = s.WaitEvent(ctx, from, timeline.Event{Pod: Pod(1), Kind: timeline.Invalidated, Server: c.Server})
	}
	if err == nil {
		err = s.annotate(ctx, c.Name, "normal")
	}
	if err == nil { // the pod to be has seen that request once it has answered a later one
		err = errors.Join(s.Nudge(ctx, his.Name), s.waitRefreshed(ctx, his))
	}
	if err == nil {
		err = s.SetShard(ctx, c.Name, 0)
	}
	if err == nil {
		err = s.WaitEvent(ctx, from, timeline.Event{Pod: Pod(0), Kind: timeline.Changed, Server: c.Server, Shard: 0})
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

func unowned(t *testing.T, s *Site, c timeline.Cluster) {
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
func (s *Site) waitRefreshed(ctx context.Context, c timeline.Cluster) error {
	return s.wait(ctx, func(timeline.Timeline) error {
		app, err := s.objects.Resource(applications).Namespace(s.Fleet.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
		if err == nil && app.GetAnnotations()[refresh] != "" {
			err = errors.New("the refresh is pending")
		}
		return err
	})
}
