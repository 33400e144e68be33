package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/plan"
)

// put patches the ConfigMap as it was read, or creates it where it was not there, and answers it as it is stored. A
// race is lost and never won by force, but for one over what the planner does not go by.
func (s *Store) put(ctx context.Context, name string, base *corev1.ConfigMap, c change) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	var err error
	if base == nil {
		cm.Labels, cm.Annotations, cm.Data, cm.BinaryData = labels(), present(c.Metadata.Annotations), present(c.Data),
			present(c.BinaryData)
		err = s.Client.Create(ctx, cm, client.FieldOwner(plan.FieldManager))
	} else {
		cm, err = s.over(ctx, base, c)
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // by what somebody brought meanwhile, or by this write
			if written := s.insist(ctx, base, c); written != nil {
				return written, nil
			}
		}
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), base != nil && apierrors.IsNotFound(err):
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, ErrConflict)
	case immutable(base) && apierrors.IsInvalid(err): // asked all the same: it may be gone meanwhile
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, ErrImmutable)
	case answer.TooLarge(err) && base != nil:
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w: %s; the API server says: %w", name, s.Namespace,
			ErrFull, roomiest(base), err)
	case apierrors.IsInvalid(err): // with the whole ConfigMap where no patch of it can be made
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, answer.Unquoted(err))
	case err != nil:
		return nil, fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, err)
	}
	return cm, nil
}
