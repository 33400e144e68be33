package cycle

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
)

// knotted is a fleet of twelve on three replicas of which no few moves relieve the fullest, 219 where an even share is 171: a plan
// made anew does, by four moves.
func knotted(t *testing.T) (w *liveWorld, names [3][]string) {
	t.Helper()
	w = shippedPlans(t, 12)
	for r, loads := range [3][]float64{{44, 12, 45, 44}, {64, 63, 7, 16}, {50, 58, 56, 55}} {
		names[r] = w.on(r)
		for k, name := range names[r] {
			w.setLoad(name, loads[k])
		}
	}
	return w, names
}

func TestWhatNoFewMovesRelieveIsMadeAnewWhereThatPays(t *testing.T) {
	w, names := knotted(t)
	w.in.Config.Change.Moves.Rate = nil
	reason := ""
	w.cycles(120, func(int) {
		if w.in.InForce.Rollout != nil && reason == "" {
			reason = w.last.Reason
		}
	})
	want := map[string][]int{names[0][2]: {0, 1}, names[1][2]: {1, 0}, names[1][3]: {1, 0}, names[2][0]: {2, 0}}
	got := map[string][]int{}
	for name, was := range w.history {
		if len(was) > 1 {
			got[name] = was
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the replicas of those that moved (-want +got):\n%s", diff)
	}
	if !strings.Contains(reason, "made anew, for no few moves relieve replica 2: would have saved ") || !strings.Contains(reason, ", and costs ") {
		t.Errorf("the plan's reason is %q", reason)
	}
}

// All its moves must have room at once: a quarter of it moved would be neither the one plan nor the other.
func TestNoPartOfAPlanMadeAnewIsTaken(t *testing.T) {
	w, _ := knotted(t)
	w.in.Config.Change = config.Default().Change // one move an hour, three a day
	w.cycles(60, func(int) {})
	if moved := w.moved(); len(moved) > 0 {
		t.Errorf("%v moved", moved)
	}
	want := "stays as it is, though replica 2 carries more than it may: pins, caps, closed replicas or the others' load leave nothing to move; " +
		"a plan made anew would relieve it by 4 moves, of which the move budget has room for 0 now"
	if got := w.last.Candidate.Verdict; got != want {
		t.Errorf("the verdict is %q, want %q", got, want)
	}
}

// A group that stays together is as many moves as it has servers: one of its two would be half of a plan.
func TestAGroupIsAsManyMovesOfAPlanMadeAnewAsItHasServers(t *testing.T) {
	w := shippedPlans(t, 15)
	for r, loads := range [3][]float64{{44, 12, 45, 44, 0}, {64, 63, 3, 16, 4}, {50, 58, 56, 55, 0}} {
		names := w.on(r)
		for k, name := range names {
			w.setLoad(name, loads[k])
		}
		if r == 1 {
			w.place(names[2], r, "pay")
			w.place(names[4], r, "pay")
		}
	}
	w.in.Config.Partition.Groups = []config.Group{together("pay")}
	w.in.Config.Change = config.Default().Change
	w.cycles(60, func(int) {})
	// It moves six units: five of one cluster, and the group.
	want := "; a plan made anew would relieve it by 7 moves, of which the move budget has room for 1 now"
	if got := w.last.Candidate.Verdict; !strings.Contains(got, want) {
		t.Errorf("the verdict is %q, want in it %q", got, want)
	}
}

// What moves would have saved, and an even share of before, are loads: in another unit they are no measure of what is now.
func TestLoadsOfAnotherUnitAreForgotten(t *testing.T) {
	w := shippedPlans(t, 60)
	a := w.on(0)[0]
	w.setLoad(a, 75) // a slight overload, which would pay for a move after hours
	w.cycles(30, func(int) {})
	before := w.last.Memory
	if before.Savings.Of[0] == 0 || before.Even.Load == 0 {
		t.Fatalf("nothing was saved, %v, or no even share kept, %v", before.Savings, before.Even)
	}
	w.in.Config.Index.PNorm.Weights = map[string]config.Decimal{"apps": "0.5"}
	w.step(time.Minute)
	after := w.last.Memory
	if got, want := after.Even.Load, before.Even.Load/2; math.Abs(float64(got-want)) > 0.01*float64(want) {
		t.Errorf("the even share kept is %s, want half of %s", got, before.Even.Load)
	}
	if got, most := after.Savings.Of[0], before.Savings.Of[0]/20; got > most {
		t.Errorf("%v was saved within a minute of loads in the new unit, want at most %v", got, most)
	}
}
