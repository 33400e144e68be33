package cycle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/observed"
	"ballast/planner/sim"
)

// learning is a fleet whose memory dimension has no weights. A pod has 50 MiB in use, and one more for each object of its clusters, and
// what noise says.
func learning(t *testing.T, limit int, noise func(replica, hour int) float64) *liveWorld {
	t.Helper()
	w := remembering(t, 30, limit)
	w.in.Config.Index.Dimensions.Memory = &config.Memory{Base: "0", LimitShare: "1"}
	w.shape = func(p *observed.Pod) {
		p.MemoryLimit = int64(limit) << 20
		used := 50 + noise(p.Replica, int(w.in.Now.Sub(epoch).Hours()))
		for _, name := range w.on(p.Replica) {
			used += w.objectsOf(name)
		}
		p.Memory = int64(used * (1 << 20))
	}
	return w
}

func (w *liveWorld) objectsOf(name string) float64 {
	for _, s := range w.in.Fetched[1].Samples {
		if s.Key == server(name) {
			return s.Value
		}
	}
	return 0
}

// drifts runs so many hours in which the clusters of each replica have more and less.
func (w *liveWorld) drifts(hours int) {
	for hour := range hours {
		for i := range 30 {
			name := fmt.Sprintf("c%03d", i)
			w.setObjects(name, 8+float64((w.in.InForce.Clusters[name].Replica*5+hour*3)%7))
		}
		for range 60 {
			w.step(time.Minute)
		}
	}
}

func TestMemoryIsLearnedOfThePods(t *testing.T) {
	w := learning(t, 300, func(int, int) float64 { return 0 })
	w.step(time.Minute)
	wait := func() string {
		for _, p := range w.last.Problems {
			if p.Kind == "MemoryUnknown" {
				return p.Message
			}
		}
		return ""
	}
	if got, want := wait(), "no move is held back by memory: what clusters take is not learned yet: no pod was seen for long enough with the same clusters"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w.drifts(26)
	if wait() != "" || w.last.InUse == nil || w.last.InUse.Learned == nil {
		t.Fatalf("%q; %+v, %+v", wait(), w.last.InUse, w.in.Memory.Usage.Why)
	}
	fit := w.last.InUse.Learned
	if got := []float64{math.Round(fit.Base / (1 << 20)), math.Round(fit.Per["objects"] / (1 << 20))}; !slices.Equal(got, []float64{50, 1}) {
		t.Errorf("%v MiB, and %v an object: %+v", got[0], got[1], fit)
	}
	if room := w.last.InUse.Room >> 20; room < 245 || room > 250 {
		t.Errorf("clusters have %d MiB of 300", room)
	}
	if len(w.moved()) > 0 {
		t.Errorf("%v moved", w.moved())
	}
	grows := w.on(0)[0]
	w.setObjects(grows, 230)
	w.until(t, "a replica is relieved", 3*time.Hour, func(outcome.Outcome) bool {
		return w.in.InForce.Rollout == nil && len(w.moved()) > 0 && slices.Max(w.inUse()) <= 250
	})
	if w.moved()[grows] != nil {
		t.Errorf("%s itself moved", grows)
	}
}

// What pods have in use follows something else: nothing is bounded by what it is not known to be.
func TestWhatDoesNotFollowTheMetricsBoundsNothing(t *testing.T) {
	w := learning(t, 300, func(replica, hour int) float64 { return 100 * float64((replica*3+hour*hour)%5) })
	w.drifts(36)
	if w.last.InUse != nil || !strings.HasPrefix(w.in.Memory.Usage.Why, "R2 is ") {
		t.Errorf("%+v, %q", w.last.InUse, w.in.Memory.Usage.Why)
	}
	if len(w.moved()) > 0 {
		t.Errorf("%v moved", w.moved())
	}
}

// A pod that has less in use than there is bears what it has, whatever a fit says.
func TestWhatAPodBearsIsNoReasonToMove(t *testing.T) {
	w := learning(t, 300, func(int, int) float64 { return 0 })
	w.drifts(26)
	w.shape = func(p *observed.Pod) { p.MemoryLimit, p.Memory = 300<<20, 200<<20 } // it takes less all at once
	for _, name := range w.on(1) {
		w.setObjects(name, 40)
	}
	w.cycles(30, func(int) {})
	if got := w.inUse(); slices.Max(got) < 300 || len(w.moved()) > 0 {
		t.Errorf("%v MiB are in use by what was learned, and %v moved", got, w.moved())
	}
}

// The samples are those of whole pods: one whose clusters move, or that shares one, says nothing.
func TestAPodThatSharesAClusterIsNoSample(t *testing.T) {
	w := learning(t, 300, func(int, int) float64 { return 0 })
	shared := w.on(1)[0]
	w.doubled = map[string]bool{shared: true}
	for range 60 {
		w.step(time.Minute)
	}
	var pods []string
	for _, r := range w.in.Memory.Usage.Rows {
		pods = append(pods, r.Pod)
	}
	if diff := cmp.Diff([]string{"argocd-application-controller-2"}, pods); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// hops has a cluster pinned to the next replica every three minutes for so many hours.
func (w *liveWorld) hops(name string, hours int) {
	for minute := range hours * 60 {
		if minute%60 == 0 {
			for i := range 30 {
				if other := fmt.Sprintf("c%03d", i); other != name {
					w.setObjects(other, 8+float64((w.in.InForce.Clusters[other].Replica*5+minute/60*3)%7))
				}
			}
		}
		if minute%3 == 0 {
			w.secret(name).Pin = fmt.Sprint(minute / 3 % w.in.Workload.Replicas)
		}
		w.step(time.Minute)
	}
}

// Who pins an idle cluster of his to one replica after the other keeps no memory from being learned.
func TestAClusterThatHopsKeepsNothingFromBeingLearned(t *testing.T) {
	w := learning(t, 300, func(int, int) float64 { return 0 })
	sim.SetLoad(&w.in.Fetched[0], "c007", 0)
	w.setObjects("c007", 0)
	w.hops("c007", 24)
	if n := len(w.moved()["c007"]); n < 400 {
		t.Fatalf("it hopped %d times", n)
	}
	fit := w.in.Memory.Usage.Fit
	if fit == nil {
		t.Fatalf("nothing is learned: %q of %d samples", w.in.Memory.Usage.Why, len(w.in.Memory.Usage.Rows))
	}
	if got := []float64{math.Round(fit.Base / (1 << 20)), math.Round(fit.Per["objects"] / (1 << 20))}; !slices.Equal(got, []float64{50, 1}) {
		t.Errorf("%v MiB, and %v an object: %+v", got[0], got[1], fit)
	}
}

// TestALightClusterThatHopsKeepsNothingFromBeingLearned: what comes and goes again has changed nothing, however often.
func TestALightClusterThatHopsKeepsNothingFromBeingLearned(t *testing.T) {
	w := learning(t, 300, func(int, int) float64 { return 0 })
	w.setObjects("c007", 1)
	w.hops("c007", 6)
	if n := len(w.in.Memory.Usage.Rows); n == 0 {
		t.Error("no sample was taken in six hours")
	}
}

// One that carries much, and one that is exchanged for another, begin the half hour anew.
func TestWhatCarriesMuchIsNoSampleWhileItHops(t *testing.T) {
	w := learning(t, 300, func(int, int) float64 { return 0 })
	w.setObjects("c007", 40)
	w.hops("c007", 6)
	if n := len(w.in.Memory.Usage.Rows); n > 0 {
		t.Errorf("%d samples were taken", n)
	}
}
