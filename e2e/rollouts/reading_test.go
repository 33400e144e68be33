package rollouts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/e2e/gaps"
	"ballast/e2e/gaps/timeline"
)

// TestEndedPods: a Deployment's pods are replaced by others; what counts is which of those that ran did not stay.
func TestEndedPods(t *testing.T) {
	zero := time.Unix(1_000_000, 0)
	var events []timeline.Event
	for _, e := range []struct {
		second int
		pod    string
		kind   timeline.Kind
	}{
		{-9, "stays", timeline.Began}, {-9, "replaced", timeline.Began}, {-9, "killed", timeline.Began}, {-9, "gone", timeline.Began}, {-1, "gone", timeline.Ended},
		{1, "comes", timeline.Began}, {2, "replaced", timeline.Ended}, {3, "killed", timeline.Ended}, {4, "killed", timeline.Began}, {5, "comes", timeline.Ended},
	} {
		events = append(events, timeline.Event{At: zero.Add(time.Duration(e.second) * time.Second), Pod: e.pod, Kind: e.kind})
	}
	got := ended(timeline.Timeline{From: zero, To: zero.Add(10 * time.Second), Events: events})
	if diff := cmp.Diff(map[string]int{"replaced": 1, "killed": 1}, got); diff != "" {
		t.Errorf("pods that ended (-want +got):\n%s", diff)
	}
}

// TestFigures reads what a step cost from events whose figures are known.
func TestFigures(t *testing.T) {
	clusters := []timeline.Cluster{{Name: "moved", Server: "https://a"}, {Name: "stayed", Server: "https://b"}, {Name: "asked", Server: "https://c"}}
	zero := time.Unix(1_000_000, 0)
	at := func(second float64, pod int, kind timeline.Kind, server string) timeline.Event {
		return timeline.Event{At: zero.Add(time.Duration(second * float64(time.Second))), Pod: gaps.Pod(pod), Kind: kind, Server: server}
	}
	before := []timeline.Event{
		at(-9, 0, timeline.Began, ""), at(-8, 0, timeline.Syncing, "https://a"), at(-8, 0, timeline.Syncing, "https://b"), at(-8, 0, timeline.Syncing, "https://c"),
		at(-7, 1, timeline.Began, ""),
	}
	moves := []timeline.Event{at(1, 0, timeline.Invalidated, "https://a"), at(1.25, 1, timeline.Syncing, "https://a")}
	for name, test := range map[string]struct {
		events  []timeline.Event
		want    figure
		stopped time.Duration
	}{
		"a move leaves the others alone": {
			events: moves,
			want:   figure{gaps: []time.Duration{250 * time.Millisecond}},
		},
		"the winner is there before the loser has left": {
			events: []timeline.Event{at(1, 1, timeline.Syncing, "https://a"), at(1.5, 0, timeline.Invalidated, "https://a")},
			want:   figure{doubled: []time.Duration{500 * time.Millisecond}},
		},
		"a cluster that stays is taken up anew": {
			events: append(moves, at(2, 0, timeline.Syncing, "https://b")),
			want:   figure{gaps: []time.Duration{250 * time.Millisecond}, disturbed: []string{"stayed"}},
		},
		"a cluster goes there and back and there": {
			events: append(moves, at(2, 1, timeline.Invalidated, "https://a"), at(3, 0, timeline.Syncing, "https://a"), at(4, 0, timeline.Invalidated, "https://a"), at(4.5, 1, timeline.Syncing, "https://a")),
			want:   figure{gaps: []time.Duration{1750 * time.Millisecond}, twice: []string{"moved"}},
		},
		"a replica comes back that was gone": {
			events: []timeline.Event{at(-6, 2, timeline.Began, ""), at(-5, 2, timeline.Ended, ""), at(3, 2, timeline.Began, "")},
			want:   figure{},
		},
		"everything stops and starts": {
			events: []timeline.Event{
				at(1, 0, timeline.Ended, ""), at(2, 1, timeline.Ended, ""), at(5, 0, timeline.Began, ""), at(5.5, 0, timeline.Syncing, "https://b"), at(6, 0, timeline.Syncing, "https://c"),
				at(7, 1, timeline.Began, ""), at(7.25, 1, timeline.Syncing, "https://a"), at(8, 1, timeline.Syncing, "https://a"),
			},
			want: figure{
				gaps:      []time.Duration{6250 * time.Millisecond, 4500 * time.Millisecond, 5 * time.Second},
				disturbed: []string{"stayed", "asked"},
				restarts:  map[string]int{gaps.Pod(0): 1, gaps.Pod(1): 1},
				starts:    []time.Duration{500 * time.Millisecond, time.Second, 250 * time.Millisecond},
			},
			stopped: 3 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := change{before: map[string]int{"moved": 0, "stayed": 0, "asked": 0}, after: map[string]int{"moved": 1, "stayed": 0, "asked": 0}, asked: zero}
			c.timeline = timeline.Timeline{From: zero, To: zero.Add(10 * time.Second), Clusters: clusters, Events: append(before[:len(before):len(before)], test.events...)}
			want := test.want
			want.mode, want.step, want.moved, want.took = live, "a step", 1, 10*time.Second
			if want.restarts == nil {
				want.restarts = map[string]int{}
			}
			if diff := cmp.Diff(want, figureOf(live, "a step", c), cmp.AllowUnexported(figure{})); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
			if got := stopped(c.timeline); got != test.stopped {
				t.Errorf("the time in which nothing ran: got %s, want %s", got, test.stopped)
			}
		})
	}
}
