package cycle

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// TestMoreReplicasThanAnybodyHasEndNobody: who may scale the workload, or write its env, writes any number; nothing is held here, and
// what is planned stays as small as a fleet can be.
func TestMoreReplicasThanAnybodyHasEndNobody(t *testing.T) {
	w := newWorld(1, 2, 3)
	w.in.Config.Mode = plan.Observe
	env := strconv.Itoa(math.MaxInt32)
	w.in.Workload.Replicas, w.in.Workload.EnvReplicas = discover.MostReplicas, &env
	w.cycle()
	if n := w.last.Next.ControllerReplicas; w.last.Next.Replicas != 2000 || n != 2000 {
		t.Errorf("%d replicas and an env of %d are planned", w.last.Next.Replicas, n)
	}
	var said []string
	for _, p := range w.last.Problems {
		if p.Kind == "TooManyReplicas" {
			said = append(said, p.Message)
		}
	}
	want := []string{`StatefulSet "argocd-application-controller" asks for 2000 replicas or more, and as many is all that is planned for: scale it`}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
