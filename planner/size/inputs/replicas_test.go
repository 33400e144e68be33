package inputs

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/poll"
	"ballast/planner/size"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const workload = "argocd-application-controller"

func TestValuesLandOnTheirReplicas(t *testing.T) {
	pod := func(tail string, value float64) poll.Sample { return poll.Sample{Key: workload + tail, Value: value} }
	missing := size.Reading{Missing: true}
	for name, tc := range map[string]struct {
		fetched poll.Fetched
		seen    map[int]bool
		want    size.Reading
		why     string
	}{
		"each its own": {fetched: poll.Fetched{Samples: []poll.Sample{pod("-1", 5), pod("-0", 3)}},
			want: size.Reading{Replica: map[int]float64{0: 3, 1: 5}, Total: 8}},
		"pods that are not the workload's": {fetched: poll.Fetched{Samples: []poll.Sample{pod("-0", 3), pod("-00", 9), pod("-+1", 9), pod("-1x", 9), pod("-4", 9), pod("--1", 9),
			pod("", 9), {Key: "argocd-server-0", Value: 9}, {Key: "x" + workload + "-1", Value: 9}}}, want: size.Reading{Replica: map[int]float64{0: 3}, Total: 3}},
		"a pod that is no more": {fetched: poll.Fetched{Samples: []poll.Sample{pod("-0", 3), pod("-1", 9)}}, seen: map[int]bool{0: true},
			want: size.Reading{Replica: map[int]float64{0: 3}, Total: 3}},
		"what is no number": {fetched: poll.Fetched{Samples: []poll.Sample{pod("-0", math.NaN()), pod("-1", math.Inf(1)), pod("-2", -1), pod("-3", 0)}},
			want: size.Reading{Replica: map[int]float64{3: 0}}},
		"what is too old": {fetched: poll.Fetched{Samples: []poll.Sample{{Key: workload + "-0", Value: 1, At: noon.Add(-11 * time.Minute)},
			{Key: workload + "-1", Value: 2, At: noon.Add(-9 * time.Minute)}}}, want: size.Reading{Replica: map[int]float64{1: 2}, Total: 2}},
		"two series of one pod": {fetched: poll.Fetched{Samples: []poll.Sample{pod("-0", 3), pod("-0", 3)}}, want: missing,
			why: `two series are of pod "` + workload + `-0": aggregate the query by its label`},
		"a query that fails": {fetched: poll.Fetched{Err: "connection refused"}, want: missing, why: "connection refused"},
		"no answer":          {want: missing, why: "the query has no answer"},
		"strangers alone": {fetched: poll.Fetched{Samples: []poll.Sample{{Key: "b-0"}, {Key: "a-0"}}}, want: missing,
			why: `none of the pods is one of ` + workload + `'s: "a-0" is not`},
		"no number at all": {fetched: poll.Fetched{Samples: []poll.Sample{pod("-0", -1)}}, want: missing,
			why: "no value is a number of 0 or more, and no older than poll.prometheus.maxAge"},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := OfReplicas(tc.fetched, Pods{Workload: workload, Replicas: 4, Seen: tc.seen}, noon.Add(-10*time.Minute))
			if diff := cmp.Diff(tc.want, got); diff != "" || why != tc.why {
				t.Errorf("why %q, want %q; -want +got:\n%s", why, tc.why, diff)
			}
		})
	}
}

// TestOnlyTheWorkloadsOwnPodsCount: whatever names there are, a value is of the replica whose pod has exactly that name.
func TestOnlyTheWorkloadsOwnPodsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(0, 6).Draw(t, "replicas")
		tails := rapid.SliceOfDistinct(rapid.StringMatching(`-?[0-9+ ]{0,3}-?[0-9]{0,2}x?`), rapid.ID[string]).Draw(t, "tails")
		var f poll.Fetched
		want := map[int]float64{}
		for i, tail := range tails {
			f.Samples = append(f.Samples, poll.Sample{Key: workload + tail, Value: float64(i)})
			for r := range replicas {
				if tail == fmt.Sprintf("-%d", r) {
					want[r] = float64(i)
				}
			}
		}
		got, why := OfReplicas(f, Pods{Workload: workload, Replicas: replicas}, noon)
		if len(want) == 0 {
			want = nil
		}
		if diff := cmp.Diff(want, got.Replica); diff != "" || got.Missing != (want == nil) || (why != "") != got.Missing {
			t.Fatalf("why %q, missing %t; -want +got:\n%s", why, got.Missing, diff)
		}
	})
}

func FuzzOrdinal(f *testing.F) {
	for _, pod := range []string{workload + "-0", workload + "-00", workload + "-999999999999999999999", "", "-1"} {
		f.Add(pod)
	}
	f.Fuzz(func(t *testing.T, pod string) {
		if replica, ours := (Pods{Workload: workload, Replicas: 16}).ordinal(pod); ours {
			if strings.TrimPrefix(pod, workload) != fmt.Sprintf("-%d", replica) || replica < 0 || replica > 15 {
				t.Errorf("%q is taken for replica %d", pod, replica)
			}
		}
	})
}
