package cycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// burst has Secrets come as somebody applies them, 25 before each of twelve plans, of which nothing is measured; the webhook answers
// each by the plan in force, or is away. It says how many came to each replica.
func (w *liveWorld) burst(answered bool) []int {
	came := make([]int, w.in.InForce.Replicas)
	var names []string
	for batch := range 12 {
		arrivals := placement.NewArrivals(plan.NewView(w.in.InForce.Clone(), w.in.Pins))
		for i := range 25 {
			s := sim.Secret(fmt.Sprintf("new-%02d-%02d", batch, i))
			s.Created = w.in.Now
			if answered {
				s.Shard = discover.ShardValue{State: discover.ShardValid, N: arrivals.Place(s.Server, plan.NoReplica, nil)}
			}
			w.in.Discovered.Secrets, names = append(w.in.Discovered.Secrets, s), append(names, s.Name)
		}
		w.step(5 * time.Second)
	}
	for _, name := range names {
		came[w.in.InForce.Clusters[name].Replica]++
	}
	return came
}

// TestABurstIsSpread: of hundreds of Secrets that come while one replica has room for seven more, it takes those that come before the
// next plan and its share of the others, though nothing is measured of any. And none of them moves for what is assumed of it.
func TestABurstIsSpread(t *testing.T) {
	for name, test := range map[string]struct {
		answered bool
		want     []int
	}{
		"the webhook answers": {answered: true, want: []int{88, 106, 106}},
		"the webhook is away": {want: []int{89, 105, 106}},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 60)
			capacity := config.Decimal("0.36") // of the whole fleet; a cluster makes a sixtieth
			w.in.Config.Partition.Capacity = &capacity
			for _, c := range w.on(2) {
				w.setLoad(c, 7)
			}
			w.step(time.Minute)
			if diff := cmp.Diff([]int{0, 1}, w.in.InForce.Full); diff != "" {
				t.Fatalf("full are (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, w.burst(test.answered)); diff != "" {
				t.Errorf("of 300 come to each replica (-want +got):\n%s", diff)
			}
			if row := w.in.InForce.Clusters["new-00-00"]; row.Load != "" {
				t.Errorf("the load of a cluster that nothing is known of is %q in the plan", row.Load)
			}
			if len(w.moved()) > 0 {
				t.Errorf("%v moved", w.moved())
			}
		})
	}
}
