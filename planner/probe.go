package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
)

const (
	// probeEvery is how long the answer of a probe is believed; one that failed is asked again at the next cycle.
	probeEvery = 5 * time.Minute
	// probeFresh is how old an answer may be on which a rollout begins.
	probeFresh = 10 * time.Second
)

// Probe asks whether the webhook is there and holds the plan: it writes a wrong number of replicas to the workload, by a
// server-side dry-run, and looks for the plan's in the answer. A webhook configuration without a caBundle or a Service
// without endpoints looks well from everywhere else, for its failurePolicy lets writes pass.
func Probe(ctx context.Context, c client.Client, p plan.Plan) (holds bool, err error) {
	wrong := p.Replicas + 1
	patch, err := json.Marshal(map[string]any{"spec": map[string]int{"replicas": wrong}})
	if err != nil {
		return false, fmt.Errorf("probing the webhook: %w", err)
	}
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: p.Target.Kind})
	w.SetNamespace(p.Target.Namespace)
	w.SetName(p.Target.Name)
	if err := c.Patch(ctx, w, client.RawPatch(types.MergePatchType, patch), client.DryRunAll); err != nil {
		return false, fmt.Errorf("probing the webhook by a dry-run on %s %q: %w", p.Target.Kind, p.Target.Name, err)
	}
	got, _, err := unstructured.NestedInt64(w.Object, "spec", "replicas")
	if err != nil {
		return false, fmt.Errorf("probing the webhook: %w", err)
	}
	return got == int64(p.Replicas), nil
}

// probed is the last answer of a probe.
type probed struct {
	at    time.Time
	holds bool
}

// enforcement is whether the webhook holds the plan in force, nil where that cannot be asked: nothing is enforced, or the
// number of replicas is not the plan's to hold. The answer is as old as fresh allows.
func (l *Loop) enforcement(ctx context.Context, in Inputs, fresh time.Duration) *bool {
	p := in.InForce
	if l.Probe == nil || p == nil || !p.Mode.Enforced() || p.FreeReplicas || in.BreakGlass || in.Workload.Unmanaged {
		l.probed = probed{}
		l.Metrics.enforcement.Reset()
		return nil
	}
	age := l.Clock.Since(l.probed.at)
	if l.probed.holds && age >= 0 && age < fresh {
		return &l.probed.holds
	}
	holds, err := l.Probe(ctx, *p)
	if err != nil {
		l.Log.Error(err, "the probe of the webhook failed")
	}
	l.probed = probed{at: l.Clock.Now(), holds: holds}
	l.Metrics.enforcement.WithLabelValues().Set(boolGauge(holds))
	return &holds
}
