package nudge

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settled is a watching whose setting may be away, and that counts its listings.
type settled struct {
	watching
	away  error
	lists int
}

func (s *settled) Get(ctx context.Context, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
	if s.away != nil {
		return s.away
	}
	return s.watching.Get(ctx, key, o, how...)
}

func (s *settled) List(ctx context.Context, list client.ObjectList, how ...client.ListOption) error {
	s.lists++
	return s.watching.List(ctx, list, how...)
}

// TestASettingIsSeenByWhoeverCounts, each cycle: one that stands between two listings alone is another one all the same. Who writes it over and
// over has a fifth of the time at most go into listings.
func TestASettingIsSeenByWhoeverCounts(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	r := &settled{watching: watching{"", []string{"argocd", ""}}}
	n := New(Options{Reader: r, Clock: clock})
	digests := map[string]string{}
	for i, cycle := range []struct {
		setting string
		away    error
		took    time.Duration // by the listing before
		lists   int           // so far
	}{
		{setting: "", lists: 1},
		{setting: "", lists: 1},
		{setting: "team-*", lists: 2},
		{setting: "", lists: 3},
		{setting: "other-*", away: errors.New("away"), lists: 3},
		{setting: "", took: 30 * time.Second, lists: 3},
		{setting: "team-*", took: 30 * time.Second, lists: 4},
	} {
		clock.SetTime(start.Add(time.Duration(i) * time.Minute))
		if l := n.last.Load(); l != nil {
			l.took = cycle.took
		}
		r.setting, r.away = cycle.setting, cycle.away
		if _, _, err := n.Count(t.Context(), "argocd", nil, n.Current(t.Context(), "argocd", keep)); err != nil || r.lists != cycle.lists {
			t.Errorf("cycle %d: %d listings, %v; want %d", i, r.lists, err, cycle.lists)
		}
		digest, _ := n.Listed()
		if before, known := digests[cycle.setting]; cycle.away == nil && known && before != digest {
			t.Errorf("cycle %d: the setting %q is told as another one", i, cycle.setting)
		}
		if cycle.away == nil {
			digests[cycle.setting] = digest
		}
	}
	if len(digests) != 2 || digests[""] == digests["team-*"] {
		t.Errorf("told are %v", digests)
	}
}
