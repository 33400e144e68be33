package archive

import (
	"math/rand/v2"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/sim"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// TestPeopleAreToldOnceOfAHistoryThatIsFull, and again where it fills up anew.
func TestPeopleAreToldOnceOfAHistoryThatIsFull(t *testing.T) {
	var told []string
	emit := func(_ discover.Workload, events ...telemetry.Event) {
		for _, e := range events {
			if e.Reason == "HistoryFull" {
				told = append(told, e.Type+": "+e.Message)
			}
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	a := &Archive{Options: &wiring.Options{Log: logr.Discard(), Emit: emit, Config: config.Default, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Clock: clocktesting.NewFakeClock(sim.Epoch),
		Store: store.New(store.Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history"})}}
	noise, coin := make([]byte, 950<<10), rand.NewChaCha8([32]byte{})
	if _, err := coin.Read(noise); err != nil {
		t.Fatal(err)
	}
	const said = "Warning: the history has no room for all of it: 0 earlier plans (nobody can go back to them) and 1 parts of the memory are left out: newer; " +
		"see whether there are cluster Secrets that nobody needs, or with very long names"
	for i, full := range []bool{true, true, false, true} {
		told = nil
		parts := map[string][]byte{}
		if full {
			parts["newer"] = noise
		}
		a.history.Parts = parts
		if _, err := a.save(t.Context(), memory.Memory{}); err != nil {
			t.Fatal(err)
		}
		var want []string
		if i == 0 || i == 3 {
			want = []string{said}
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("write %d (-want +got):\n%s", i, diff)
		}
	}
}
