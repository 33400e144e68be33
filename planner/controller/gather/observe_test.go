package gather

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll"
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
	shows := func(apps int) []scrape.PodReport {
		r := scrape.PodReport{SampledAt: epoch, Servers: map[string]scrape.ServerReport{server("c000"): {Apps: apps}}}
		r.Ready = true
		return []scrape.PodReport{r}
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
			clock := clocktesting.NewFakeClock(epoch)
			o := Observer{Clock: clock, Count: func(_ context.Context, _ string, _ discover.Fleet, age time.Duration) (ownership.Applications, time.Time, error) {
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

// TestWhoHasApplicationsByNameAloneIsAskedWhereAPodShowsSome without a server, and a cluster seems to be nobody's.
func TestWhoHasApplicationsByNameAloneIsAskedWhereAPodShowsSome(t *testing.T) {
	w := newWorld(1)
	fleet, _, err := discover.Discover(w.in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("the API server is away")
	for name, test := range map[string]struct {
		shown, unplaced, byServer int // -1: it fails
		asked, byName             bool
		err                       error
	}{
		"all give the name":       {shown: 0, unplaced: 5, byServer: 0, asked: true, byName: true},
		"some give the server":    {shown: 0, unplaced: 5, byServer: 1, asked: true},
		"it has an owner":         {shown: 1, unplaced: 5, byServer: 0},
		"no pod shows any":        {shown: 0, unplaced: 0, byServer: 0},
		"they cannot be read now": {shown: 0, unplaced: 5, byServer: -1, asked: true, err: away},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			o := Observer{Clock: clocktesting.NewFakeClock(epoch),
				Count: func(context.Context, string, discover.Fleet, time.Duration) (ownership.Applications, time.Time, error) {
					return ownership.Applications{server("c000"): 3}, epoch, nil
				},
				ByServer: func(context.Context, string, discover.Fleet, time.Duration) (ownership.Applications, time.Time, error) {
					if asked = true; test.byServer < 0 {
						return nil, time.Time{}, away
					}
					return ownership.Applications{server("c000"): test.byServer}, epoch, nil
				},
			}
			servers := map[string]scrape.ServerReport{server("c000"): {Apps: test.shown}}
			r := scrape.PodReport{SampledAt: epoch, Unplaced: test.unplaced, Servers: servers}
			r.Ready = true
			reported, err := o.reported(t.Context(), "argocd", []scrape.PodReport{r}, fleet)
			if got := reported.Clusters["c000"]; got.ByName != test.byName || got.Apps != 3 {
				t.Errorf("by name %t of %d, want %t of 3", got.ByName, got.Apps, test.byName)
			}
			if asked != test.asked || !errors.Is(err, test.err) {
				t.Errorf("asked %t, error %v, want %t, %v", asked, err, test.asked, test.err)
			}
		})
	}
}

// answersOnly lets one address answer, as one that owns nothing.
type answersOnly string

func (a answersOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != string(a) {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("process_start_time_seconds 1\n")), Header: http.Header{}, Request: r}, nil
}

// TestAPodThatIsReadyByItsStatusAloneIsTold: whoever writes a pod's status says that it is ready, and only the pod that it answers.
func TestAPodThatIsReadyByItsStatusAloneIsTold(t *testing.T) {
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for i, address := range []string{"10.0.0.1", "10.0.0.2"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fmt.Sprintf("argocd-application-controller-%d", i),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "argocd-application-controller", Controller: ptr.To(true)}}}}
		pod.Spec.Containers = []corev1.Container{{Name: "application-controller"}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "application-controller", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		b = b.WithObjects(pod)
	}
	o := Observer{Reader: b.Build(), Clock: clocktesting.NewFakePassiveClock(epoch),
		Scrape: scrape.NewScraper(scrape.Options{Client: &http.Client{Transport: answersOnly("10.0.0.1:8082")}})}
	w := discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller", Replicas: 2}
	seen, _ := o.Observe(t.Context(), silent{}, w, discover.Fleet{})

	type pod struct{ Ready, Answered bool }
	var pods []pod
	for _, p := range seen.Pods {
		pods = append(pods, pod{p.Ready, p.Answered})
	}
	if diff := cmp.Diff([]pod{{true, true}, {true, false}}, pods); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const alone = "; there is no Prometheus to ask instead (poll.pods)"
	if told := strings.Join(seen.Trouble, "; "); strings.Contains(told, alone) {
		t.Errorf("with a Prometheus, people are told %q", told)
	}
	if seen, _ := o.Observe(t.Context(), nil, w, discover.Fleet{}); len(seen.Trouble) != 1 || !strings.HasSuffix(seen.Trouble[0], alone) {
		t.Errorf("without a Prometheus, people are told %q", seen.Trouble)
	}
	if told := strings.Join(seen.Trouble, "; "); !strings.HasPrefix(told, "nothing is known of what argocd-application-controller-1 owns: ") {
		t.Errorf("people are told %q", told)
	}
}

// TestWhatPodsSayTheyDidIsBounded, of two pods of a replica, too.
func TestWhatPodsSayTheyDidIsBounded(t *testing.T) {
	most := map[string]scrape.ServerReport{"https://a": {Reconciles: math.MaxFloat64, Seconds: math.MaxFloat64}}
	got := workOf([]scrape.PodReport{
		{Controller: observed.Controller{Pod: observed.Pod{Name: "a"}}, Servers: most},
		{Controller: observed.Controller{Pod: observed.Pod{Name: "b"}}, Servers: most},
	})
	if diff := cmp.Diff(map[int]input.ServerWork{0: {"https://a": {Reconciles: 2 * maxReconciles, Seconds: math.MaxFloat64}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// silent is a Prometheus that knows no series.
type silent struct{}

func (silent) Fetch(_ context.Context, metrics []poll.Metric, _ discover.Fleet, _ time.Time) []poll.Fetched {
	return make([]poll.Fetched, len(metrics))
}
