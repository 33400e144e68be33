package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/apply/workloadpatch"
	"ballast/planner/diff"
	"ballast/planner/ownership/podlist"
	"ballast/planner/patchable"
	"ballast/planner/plan"
)

// ErrNoResize says that the API server has no subresource pods/resize, which Kubernetes 1.33 was the first to have by
// default.
var ErrNoResize = errors.New("the API server has no pods/resize, which Kubernetes 1.33 and newer have")

func (a *Applier) podWrite(target plan.Target, s diff.PatchPod) write {
	value := s
	value.Why = ""
	return write{pod: s.Pod, value: value.String(), try: func(ctx context.Context) (string, error) { return a.writePod(ctx, target, s) }}
}

// writePod changes what the pod's container asks for, by the subresource that nothing else can be changed by. What its
// node makes of it, its conditions tell.
func (a *Applier) writePod(ctx context.Context, target plan.Target, s diff.PatchPod) (string, error) {
	key := types.NamespacedName{Namespace: target.Namespace, Name: s.Pod}
	var live corev1.Pod
	if err := a.Reader.Get(ctx, key, &live); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("sizing pod %q: it is gone: %w", key, errRefused)
	} else if err != nil {
		return "", fmt.Errorf("reading pod %q: %w", key, err)
	}
	at := slices.IndexFunc(live.Spec.Containers, func(c corev1.Container) bool { return c.Name == target.Container })
	if why := maySize(&live, target, at, s); why != "" {
		return "", fmt.Errorf("sizing pod %q: %s: %w", key, why, errRefused)
	}
	c := live.Spec.Containers[at]
	lacks := plan.Resources{Requests: workloadpatch.Unlike(c.Resources.Requests, s.Size.Requests),
		Limits: workloadpatch.Unlike(c.Resources.Limits, s.Size.Limits)}
	if len(lacks.Requests)+len(lacks.Limits) == 0 {
		return "", errUnchanged
	}
	err := a.resizePod(ctx, &live, c.Name, lacks)
	if keepsLimit(err) {
		a.limits.learn(a.Clock.Now())
		rest := diff.KeepingMemory(podlist.PodSize(&live, &live.Spec.Containers[at]), lacks)
		if len(rest.Requests)+len(rest.Limits) == 0 {
			return "", fmt.Errorf("sizing pod %q: the API server lowers no memory limit of a running pod: %w", key,
				errRefused)
		}
		err = a.resizePod(ctx, &live, c.Name, rest)
	}
	switch {
	case err == nil:
		return sizeManager(live.ManagedFields), nil
	case noSubresource(err):
		a.resize.learn(a.Clock.Now())
		return "", fmt.Errorf("sizing pod %q: %w: %w", key, ErrNoResize, errRefused)
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("sizing pod %q: it is gone: %w", key, errRefused)
	}
	return sizeManager(live.ManagedFields), fmt.Errorf("sizing pod %q: %w", key, answer.Unquoted(err))
}

// resizePod asks for a container's size by the subresource, for the pod that was read.
func (a *Applier) resizePod(ctx context.Context, live *corev1.Pod, container string, size plan.Resources) error {
	patch, err := sizePatch(live, container, size)
	if err != nil {
		return err
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	merge := client.RawPatch(types.StrategicMergePatchType, patch)
	return a.Client.SubResource("resize").Patch(ctx, object, merge, client.FieldOwner(plan.FieldManager))
}

// KeepsLimits reports whether the API server was seen to lower no memory limit of a running pod, as Kubernetes 1.33
// does not.
func (a *Applier) KeepsLimits() bool { return a.limits.wait(a.Clock.Now()) > 0 }

// keepsLimit reports whether an API server refuses a pod's size for its lower memory limit.
func keepsLimit(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseType(field.ErrorTypeForbidden) &&
			strings.Contains(c.Message, "memory limits cannot be decreased")
	})
}

// maySize says why a pod that was read just now must not be sized; an empty reason says that it may.
func maySize(live *corev1.Pod, target plan.Target, at int, s diff.PatchPod) string {
	switch {
	case s.UID != "" && s.UID != string(live.UID):
		return "it is another one than was looked at"
	case live.DeletionTimestamp != nil:
		return "it is being deleted"
	case !podlist.Belongs(live, target, ""):
		return "it is no pod of the workload's any more"
	case live.Annotations[plan.AnnotationUnmanaged] == "true":
		return "it is annotated as unmanaged"
	case at < 0:
		return fmt.Sprintf("it has no container %q", target.Container)
	}
	return podlist.PodSize(live, &live.Spec.Containers[at]).Misfit(s.Size)
}

// sizePatch is the strategic merge patch of a container's resources, for the pod of that UID. It takes out what holds a
// time that JSON does not have, with which no patch is read; of the status it changes nothing.
func sizePatch(live *corev1.Pod, container string, size plan.Resources) ([]byte, error) {
	resources := map[string]map[string]string{}
	if len(size.Requests) > 0 {
		resources["requests"] = size.Requests
	}
	if len(size.Limits) > 0 {
		resources["limits"] = size.Limits
	}
	meta := map[string]any{"uid": string(live.UID)}
	patch := map[string]any{"metadata": meta, "spec": map[string]any{"containers": []map[string]any{{"name": container,
		"resources": resources}}}}
	if few := patchable.FewManagers(live.ManagedFields); few != nil {
		meta["managedFields"] = few
	}
	if patchable.HoldsBeyondJSON(live.Status) {
		patch["status"] = nil
	}
	return json.Marshal(patch)
}

// noSubresource reports whether an API server does not know the path, which is no answer of the pod's.
func noSubresource(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// sizeManager is the field manager, other than ballast's, that wrote a pod's size last by its subresource; empty where
// nobody is known.
func sizeManager(entries []metav1.ManagedFieldsEntry) string {
	var last metav1.ManagedFieldsEntry
	for _, e := range entries {
		if e.Subresource != "resize" || e.Manager == plan.FieldManager {
			continue
		}
		if last.Time == nil || e.Time != nil && e.Time.After(last.Time.Time) {
			last = e
		}
	}
	return last.Manager
}
