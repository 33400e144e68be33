package cycle

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
)

// The rows of one table are by the same loads: nothing of a candidate depends on what else is shown.
func TestAlternativesAreByTheSameLoads(t *testing.T) {
	w := newWorld(8, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1)
	w.in.Config.Partition, w.in.Config.Evaluate = config.Default().Partition, config.Default().Evaluate
	w.in.Workload.Replicas = 2
	env := "2"
	w.in.Workload.EnvReplicas = &env
	w.in.Discovered.Algorithm = "round-robin"
	w.step(t)
	var rows []string
	for _, a := range Alternatives(w.in, w.last) {
		rows = append(rows, fmt.Sprintf("%s: %d, %.2f, %d", a.Name, a.Replicas, a.Imbalance, a.Moves))
	}
	want := []string{"as it is: 2, 1.00, 0", "candidate: 2, 1.00, 0", "lpt: 2, 1.00, 0", "legacy: 2, 1.00, 10", "round-robin: 2, 1.00, 0", "consistent-hashing: 2, 1.55, 6"}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("alternatives (-want +got):\n%s", diff)
	}
}
