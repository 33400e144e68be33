package configmaps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/steer"
	"ballast/planner/answer"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/printable"
	"ballast/planner/status"
	"ballast/planner/store"
)

// Keep leaves no plan under which the next installation would enforce nothing. It comes last: nothing of this
// one is there any more that the annotation kept quiet.
func (m Maps) Keep(ctx context.Context, c client.Client) error {
	if err := m.deleteConfigMap(ctx, c, status.Name(m.Plan)); err != nil { // whose word was it?
		return err
	}
	if err := m.Thaw(ctx, c); err != nil {
		return err
	}
	// A history that cannot be written leaves no plan under which nothing is enforced.
	return errors.Join(m.forgetWords(ctx, c), m.Enforcement(ctx, c, nil))
}

// refuses is for how long the API server may go by admission policies that were deleted: it reads them anew each
// second.
const refuses = 15 * time.Second

// forgetWords takes this installation's break-glass, freeze and pins out of the history, which has them for a plan that
// somebody deletes. The policies, which were deleted a moment ago, leave the history to the planner.
func (m Maps) forgetWords(ctx context.Context, c client.Client) error {
	history := store.New(store.Options{Client: c, Namespace: m.Namespace, History: m.History})
	var refused error
	err := wait.PollUntilContextTimeout(ctx, m.Every, refuses, true, func(ctx context.Context) (bool, error) {
		err := history.ForgetWords(ctx)
		if apierrors.IsForbidden(err) {
			refused = err
			return false, nil
		}
		return err == nil, err
	})
	if refused != nil && wait.Interrupted(err) {
		return refused
	}
	return err
}

// Enforcement writes the annotation, or takes it away by nil.
func (m Maps) Enforcement(ctx context.Context, c client.Client, value *string) error {
	return m.Annotate(ctx, c, func(*corev1.ConfigMap) (map[string]*string, error) {
		return map[string]*string{plan.AnnotationEnforcement: value}, nil
	})
}

// Edits say which annotations beside the plan are to be written, or to go by nil, where that stands. None: nothing is
// written.
type Edits func(stands *corev1.ConfigMap) (map[string]*string, error)

// lostRaces is how often a write is made for what stands by then, against whoever writes at the same time: for some
// seconds.
func lostRaces() wait.Backoff {
	return wait.Backoff{Steps: 20, Duration: 10 * time.Millisecond, Factor: 1.3, Jitter: 0.5}
}

// Annotate writes annotations beside the plan for what stands, and for no other state of it; without a plan ConfigMap
// there is nothing to do.
func (m Maps) Annotate(ctx context.Context, c client.Client, decide Edits) error {
	var last error
	_ = retry.RetryOnConflict(lostRaces(), func() error { last = m.annotateOnce(ctx, c, decide); return last })
	return last
}

func (m Maps) annotateOnce(ctx context.Context, c client.Client, decide Edits) error {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Plan}, cm); err != nil {
		return client.IgnoreNotFound(err)
	}
	set, err := decide(cm)
	if err != nil || len(set) == 0 {
		return err
	}
	meta := patchable.Meta{UID: cm.UID, ResourceVersion: cm.ResourceVersion, Annotations: set,
		ManagedFields: patchable.FewManagers(cm.ManagedFields)}
	patch, err := meta.MergePatch()
	if err != nil {
		return fmt.Errorf("encoding the annotations of ConfigMap %q: %w", m.Plan, err)
	}
	err = c.Patch(ctx, cm, client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsInvalid(err) { // with the whole ConfigMap where no patch of it can be made
		err = answer.Unquoted(err)
	}
	return client.IgnoreNotFound(err)
}

// Freeze keeps the planner from beginning anything after the rollout that ends. Who froze it meanwhile is not written
// over.
func (m Maps) Freeze(ctx context.Context, c client.Client) error {
	return m.Annotate(ctx, c, func(cm *corev1.ConfigMap) (map[string]*string, error) {
		if configmap.Parse(nil, cm.Annotations).Paused {
			return nil, nil
		}
		return map[string]*string{plan.AnnotationPaused: ptr.To("true"),
			plan.AnnotationPausedReason: ptr.To(steer.FrozenByUninstall)}, nil
	})
}

// Thaw ends that freeze, and no other: the next installation that goes on with this plan must decide.
func (m Maps) Thaw(ctx context.Context, c client.Client) error {
	return m.Annotate(ctx, c, func(cm *corev1.ConfigMap) (map[string]*string, error) {
		if cm.Annotations[plan.AnnotationPausedReason] != steer.FrozenByUninstall {
			return nil, nil
		}
		return map[string]*string{plan.AnnotationPaused: nil, plan.AnnotationPausedReason: nil}, nil
	})
}

// Delete deletes them, and what vouches for them.
func (m Maps) Delete(ctx context.Context, c client.Client) error {
	for _, name := range []string{status.Name(m.Plan), m.Plan, m.History} {
		if err := m.deleteConfigMap(ctx, c, name); err != nil {
			return err
		}
	}
	// Without its plans the key vouches for nothing.
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: store.KeyName(m.Plan)}}
	if err := c.Delete(ctx, key); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %q: %w", key.Name, err)
	}
	return nil
}

func (m Maps) deleteConfigMap(ctx context.Context, c client.Client, name string) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name}}
	if err := c.Delete(ctx, cm); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ConfigMap %q: %w", name, err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(cm), cm); err == nil && len(cm.Finalizers) > 0 {
		return fmt.Errorf("deleting ConfigMap %q: it waits for its finalizers %s; "+
			"where nobody is to take them off: "+
			`kubectl -n %s patch configmap %s --type=merge -p '{"metadata":{"finalizers":null}}'`,
			name, printable.Text(strings.Join(cm.Finalizers, ", "), 500), m.Namespace, name)
	}
	return nil
}
