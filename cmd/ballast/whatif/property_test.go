package whatif

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/failover"
	"ballast/planner/plan"
)

func (s Stand) total() (sum plan.Load, clusters int) {
	for _, r := range s.Replicas {
		sum, clusters = sum+r.Load, clusters+r.Clusters
	}
	return sum, clusters
}

// Whatever is supposed, the load is that of the clusters there would be, each of them is on one replica, none goes to one that
// is lost, and the inputs are as they were.
func TestWhatIsSupposedIsAllThatChanges(t *testing.T) {
	for _, enforced := range []bool{true, false} {
		in := seen(t)
		if !enforced { // the first look at a fleet: there is no plan yet
			in.InForce, in.Config.Mode = nil, plan.Observe
		}
		before, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		makes := map[string]plan.Load{} // what each cluster does alone
		for i := range 9 {
			name := fmt.Sprintf("c%03d", i)
			gone, err := ask(in, change{remove: []string{name}})
			if err != nil {
				t.Fatal(err)
			}
			was, _ := gone.Now.total()
			is, _ := gone.With.total()
			makes[name] = was - is
		}
		rapid.Check(t, func(t *rapid.T) {
			c := change{add: rapid.IntRange(0, 30).Draw(t, "add")}
			c.lose = rapid.SliceOfNDistinct(rapid.IntRange(0, 1), 0, 2, rapid.ID).Draw(t, "lose")
			if c.add > 0 {
				c.like = "c008"
			}
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 0, 4, rapid.ID).Draw(t, "remove") {
				c.remove = append(c.remove, fmt.Sprintf("c%03d", i))
			}
			c.capacity = rapid.SampledFrom([]string{"", "0.05", "0.3", "2"}).Draw(t, "capacity")
			if c.capacity == "" {
				c.replicas = rapid.SampledFrom([]string{"", "2", "7"}).Draw(t, "replicas")
			}
			if c.check() != nil {
				return // nothing is supposed
			}
			a, err := ask(in, c)
			if err != nil {
				t.Fatal(err)
			}
			checkAnswer(t, makes, c, a)
		})
		if after, _ := json.Marshal(in); !slices.Equal(before, after) {
			t.Error("the inputs changed")
		}
	}
}

func checkAnswer(t *rapid.T, makes map[string]plan.Load, c change, a *Answer) {
	want, clusters := a.Now.total()
	if c.add > 0 {
		want += plan.Load(c.add) * makes[c.like]
	}
	for _, name := range c.remove {
		want -= makes[name]
	}
	if got, n := a.With.total(); got != want || n != clusters+c.add-len(c.remove) {
		t.Errorf("%d clusters make %s, want %d that make %s", n, got, clusters+c.add-len(c.remove), want)
	}
	if !a.With.Settled {
		t.Errorf("it is not at rest: %s", a.Verdict)
	}
	for _, m := range a.Moves {
		if slices.Contains(c.lose, m.To) {
			held := 2*len(c.lose) > len(a.With.Replicas) // what came there before the loss stays
			if !held {
				t.Errorf("%s goes to replica %d, which is lost", m.Cluster, m.To)
			}
		}
	}
	if len(c.lose) > 0 {
		checkLoss(t, c.lose, a)
	}
}

// checkLoss: nothing fails over for more than half of the fleet, and all that is lost together leaves together otherwise.
func checkLoss(t *rapid.T, lost []int, a *Answer) {
	kept := 0
	for _, r := range a.With.Replicas {
		if slices.Contains(lost, r.Replica) {
			kept += r.Clusters
		}
	}
	most := 2*len(lost) > len(a.With.Replicas)
	if l := a.Lost; most != (l.Held != "") || l.Stay != kept || !most && kept > 0 || most && l.AtOnce+l.Later > 0 {
		t.Errorf("of %d replicas %v are lost: %d go at once, %d later, %d stay (%q), where %d stand there",
			len(a.With.Replicas), lost, l.AtOnce, l.Later, l.Stay, l.Held, kept)
	}
	if most && a.Fit.Fits != No {
		t.Errorf("it fits (%s), though nobody takes what is lost", a.Fit.Fits)
	}
	for _, n := range a.Lost.Notes {
		if n.Kind == failover.HourWaits {
			t.Errorf("one waits for the other's hour: %s", n.Message)
		}
	}
}
