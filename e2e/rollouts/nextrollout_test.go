package rollouts

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// withNextRollout is live whose env waits for a person's restart: the planner asks for it, and the webhook adds it to that write, so
// that every pod restarts once for both.
func withNextRollout(t *testing.T, w *world) {
	const replicas = 2
	sets := w.Client.AppsV1().StatefulSets(w.Fleet.Namespace)
	before, err := sets.Get(t.Context(), fleet.Workload, metav1.GetOptions{})
	must(t, err)
	generation := int64(0)
	c := w.drive(t, goal{replicas: replicas, reached: envStands}, func(ctx context.Context) error {
		config := w.config(live, replicas)
		config["rollout"].(map[string]any)[string(live)].(map[string]any)["adopt"] = "WithNextRollout"
		if err := w.Configure(ctx, config); err != nil {
			return err
		}
		if err := site.Poll(ctx, w.envWaits); err != nil {
			return err
		}
		restart := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`,
			time.Now().UTC().Format(time.RFC3339))
		set, err := sets.Patch(ctx, fleet.Workload, types.StrategicMergePatchType, []byte(restart), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("restarting the pods: %w", err)
		}
		generation = set.Generation
		if got := envOf(set); got != fmt.Sprint(maxReplicas) {
			return fmt.Errorf("the env of the restarted template is %q, want %d", got, maxReplicas)
		}
		return nil
	})
	w.note(t, live, "env with a restart", c).restarted(t, replicas, 1)
	after, err := sets.Get(t.Context(), fleet.Workload, metav1.GetOptions{})
	must(t, err)
	if after.Generation != generation || generation != before.Generation+1 {
		t.Errorf("generations are %d before, %d with the restart and %d at the end, want one more", before.Generation, generation, after.Generation)
	}
}

// envWaits is nil once the plan has the env that the next change of the template gets, and its own is as it was.
func (w *world) envWaits(ctx context.Context) error {
	p, err := w.Plan(ctx)
	if err != nil {
		return err
	}
	if p.NextEnv != maxReplicas || p.ControllerReplicas == maxReplicas {
		return fmt.Errorf("the plan's env is %d, and the next one %d, want %d", p.ControllerReplicas, p.NextEnv, maxReplicas)
	}
	return nil
}
