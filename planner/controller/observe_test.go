package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/ownership"
)

// TestWhatNobodyHasIsCountedAnew: a number of ten minutes ago would take a cluster whose last Application was deleted for one
// without an owner.
func TestWhatNobodyHasIsCountedAnew(t *testing.T) {
	w := newWorld(1)
	fleet, _, err := discover.Discover(w.in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("the API server is away")
	shows := func(apps int) []ownership.PodReport {
		r := ownership.PodReport{SampledAt: epoch, Servers: map[string]ownership.ServerReport{server("c000"): {Apps: apps}}}
		r.Ready = true
		return []ownership.PodReport{r}
	}
	type answer struct {
		Apps    int
		Counted time.Time
		Asked   []time.Duration
		Err     error
	}
	for name, test := range map[string]struct {
		shown  int
		counts []int // by the first listing, and by a younger one; -1: it fails
		want   answer
	}{
		"it has an owner":                  {1, []int{1}, answer{1, epoch.Add(-9 * time.Minute), []time.Duration{10 * time.Minute}, nil}},
		"it has no Application":            {0, []int{0}, answer{0, epoch.Add(-9 * time.Minute), []time.Duration{10 * time.Minute}, nil}},
		"its Applications are nobody's":    {0, []int{1, 1}, answer{1, epoch, []time.Duration{10 * time.Minute, 2 * time.Minute}, nil}},
		"its last Application was deleted": {0, []int{1, 0}, answer{0, epoch, []time.Duration{10 * time.Minute, 2 * time.Minute}, nil}},
		"it cannot be counted anew":        {0, []int{1, -1}, answer{1, epoch.Add(-9 * time.Minute), []time.Duration{10 * time.Minute, 2 * time.Minute}, away}},
		"it cannot be counted at all":      {0, []int{-1}, answer{ownership.Unknown, time.Time{}, []time.Duration{10 * time.Minute}, away}},
	} {
		t.Run(name, func(t *testing.T) {
			var got answer
			o := Observer{Count: func(_ context.Context, _ string, _ discover.Fleet, age time.Duration) (ownership.Applications, time.Time, error) {
				n, at := test.counts[len(got.Asked)], epoch.Add(-9*time.Minute)
				if len(got.Asked) > 0 {
					at = epoch
				}
				if got.Asked = append(got.Asked, age); n < 0 {
					return nil, time.Time{}, away
				}
				return ownership.Applications{server("c000"): n}, at, nil
			}}
			reported, err := o.reported(t.Context(), "argocd", shows(test.shown), fleet)
			got.Apps, got.Counted, got.Err = reported.Clusters["c000"].Apps, reported.Counted, err
			if diff := cmp.Diff(test.want, got, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
