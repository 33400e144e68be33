package apply

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/apply/workloadpatch"
	"ballast/planner/diff"
	"ballast/planner/patchable"
	"ballast/planner/plan"
)

func (a *Applier) workloadWrite(target plan.Target, s diff.PatchWorkload) write {
	value := s
	value.Why = ""
	return write{value: value.String(), try: func(ctx context.Context) (string, error) { return "", a.writeWorkload(ctx, target, s) }}
}

func (a *Applier) writeWorkload(ctx context.Context, target plan.Target, s diff.PatchWorkload) error {
	live, err := a.readWorkload(ctx, target)
	if err != nil {
		return err
	}
	switch {
	case live.DeletionTimestamp != nil:
		return fmt.Errorf("writing %s %q: it is being deleted: %w", target.Kind, target.Name, errRefused)
	case live.Annotations[plan.AnnotationUnmanaged] == "true":
		return fmt.Errorf("writing %s %q: it is annotated as unmanaged: %w", target.Kind, target.Name, errRefused)
	}
	ops, err := live.Ops(target.Container, s)
	if err != nil {
		return err
	}
	if len(ops) == 0 {
		return errUnchanged
	}
	if err := a.patchWorkload(ctx, target, live, ops, s); err != nil {
		said := answer.Unquoted(err)
		if refused := apierrors.IsForbidden(said) || apierrors.IsInvalid(said); refused || answer.Webhook(err) != "" {
			a.bringBack(ctx, live, s.Replicas)
		}
		return fmt.Errorf("writing %s %q: %w", target.Kind, target.Name, answer.Unquoted(err))
	}
	return nil
}

func (a *Applier) patchWorkload(
	ctx context.Context, target plan.Target, live workloadpatch.Workload, ops []workloadpatch.Op, s diff.PatchWorkload,
) error {
	kind, content := types.JSONPatchType, any(ops)
	if !patchable.IsText(live.Object) {
		kind, content = types.StrategicMergePatchType, live.Merge(target.Container, s)
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return err
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace,
		Name: target.Name}}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(target.Kind))
	return a.Client.Patch(ctx, object, client.RawPatch(kind, patch), client.FieldOwner(plan.FieldManager))
}

// bringBack writes the replicas alone, by the subresource that holds nothing else, where a fleet that was stopped is to
// come back and its workload takes no other write, whatever somebody made of it. What is left of the step is tried
// again, and says why it fails. Any other number goes with its env, or not at all.
func (a *Applier) bringBack(ctx context.Context, live workloadpatch.Workload, replicas *int) {
	stopped, asked := ptr.Deref(live.Replicas, 1) == 0, ptr.Deref(replicas, 0)
	if !stopped || asked == 0 {
		return
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]int{"replicas": asked},
		"metadata": map[string]any{"uid": live.UID, "resourceVersion": live.ResourceVersion}})
	if err == nil {
		scale := client.RawPatch(types.MergePatchType, patch)
		_ = a.Client.SubResource("scale").Patch(ctx, live.Object, scale,
			&client.SubResourcePatchOptions{SubResourceBody: &autoscalingv1.Scale{}})
	}
}

func (a *Applier) readWorkload(ctx context.Context, target plan.Target) (workloadpatch.Workload, error) {
	key := types.NamespacedName{Namespace: target.Namespace, Name: target.Name}
	var err error
	var w workloadpatch.Workload
	switch target.Kind {
	case plan.StatefulSet:
		var live appsv1.StatefulSet
		err = a.Reader.Get(ctx, key, &live)
		w = workloadpatch.Workload{ObjectMeta: live.ObjectMeta, Replicas: live.Spec.Replicas,
			Template: live.Spec.Template, Object: &live, Status: live.Status}
	case plan.Deployment:
		var live appsv1.Deployment
		err = a.Reader.Get(ctx, key, &live)
		w = workloadpatch.Workload{ObjectMeta: live.ObjectMeta, Replicas: live.Spec.Replicas,
			Template: live.Spec.Template, Object: &live, Status: live.Status}
	default:
		err = fmt.Errorf("kind %q is neither %s nor %s", target.Kind, plan.StatefulSet, plan.Deployment)
	}
	if apierrors.IsNotFound(err) {
		return w, fmt.Errorf("reading %s %q: it is gone: %w", target.Kind, key, errRefused)
	}
	if err != nil {
		return w, fmt.Errorf("reading %s %q: %w", target.Kind, key, err)
	}
	return w, nil
}
