package archive

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/sim"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// TestWhatADecisionWasMadeByIsSavedBeforeIt: a leader that dies with its plan leaves the values that it decided by, not those of the cycle
// before. Of what moved, the next one believes no lower value for 20 minutes.
func TestWhatADecisionWasMadeByIsSavedBeforeIt(t *testing.T) {
	measured := func(value float64) measure.LastGood {
		return measure.LastGood{IDs: []string{"c0"},
			Columns: []measure.LastColumn{{ID: "apps", Values: []float64{value}, At: []int64{sim.Epoch.Unix()}, Measured: []bool{true}}}}
	}
	begins := func(in *input.Inputs, out *cycle.Outcome) {
		out.Changed = true
		out.Next.Rollout = &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: in.Now, Moves: map[string]int{"c0": 1}}
	}
	fails := func(in *input.Inputs, out *cycle.Outcome) { out.Memory.HoldOff = in.Now }
	for name, test := range map[string]struct {
		decides func(*input.Inputs, *cycle.Outcome)
		want    float64
	}{
		"a rollout":        {begins, 9},
		"a hold-off":       {fails, 9},
		"nothing is begun": {func(*input.Inputs, *cycle.Outcome) {}, 22},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
			a := &Archive{Options: &wiring.Options{Log: logr.Discard(), Config: config.Default,
				Metrics: telemetry.NewMetrics(prometheus.NewRegistry()), Clock: clocktesting.NewFakeClock(sim.Epoch), Emit: func(discover.Workload, ...telemetry.Event) {},
				Store: store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history"})}}
			in := input.Inputs{Now: sim.Epoch, Config: config.Default(), Workload: sim.Workload(), Memory: memory.Memory{LastGood: measured(22)}}
			if _, err := a.save(t.Context(), in.Memory); err != nil {
				t.Fatal(err)
			}
			out := cycle.Outcome{Memory: in.Memory}
			out.Memory.LastGood = measured(9)
			test.decides(&in, &out)
			a.SaveHoldOff(t.Context(), in, out)
			if err := a.SaveMoves(t.Context(), in, out); err != nil {
				t.Fatal(err)
			}
			next, dropped := memory.Of(a.history.Parts)
			if diff := cmp.Diff(measured(test.want), next.LastGood); diff != "" || len(dropped) > 0 {
				t.Errorf("what the next leader knows of the values (%v, -want +got):\n%s", dropped, diff)
			}
		})
	}
}
