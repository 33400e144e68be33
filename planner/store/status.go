package store

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// WriteStatus writes what the leader says of how things are. Nobody decides where clusters go by it, so that it is for
// no version: the last leader to say something is right.
func (s *Store) WriteStatus(ctx context.Context, now status.Status) error {
	text, err := now.Encode()
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: status.Name(s.Plan)}}
	c := change{Data: map[string]*string{status.Key: &text}, BinaryData: map[string]*[]byte{status.Key: nil}}
	err = s.patchStatus(ctx, cm, c)
	if err != nil && !apierrors.IsNotFound(err) {
		if stands, _ := s.get(ctx, cm.Name); stands != nil {
			c.Metadata.ManagedFields = patchable.FewManagers(stands.ManagedFields)
			err = s.patchStatus(ctx, cm, c.withoutBytes(stands))
		}
	}
	if apierrors.IsNotFound(err) {
		cm.Labels, cm.Data = labels(), map[string]string{status.Key: text}
		err = s.Client.Create(ctx, cm, client.FieldOwner(plan.FieldManager))
	}
	if apierrors.IsInvalid(err) {
		err = answer.Unquoted(err)
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %q in %q: %w", cm.Name, s.Namespace, err)
	}
	return nil
}

func (s *Store) patchStatus(ctx context.Context, cm *corev1.ConfigMap, c change) error {
	patch, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return s.Client.Patch(ctx, cm, client.RawPatch(types.StrategicMergePatchType, patch),
		client.FieldOwner(plan.FieldManager))
}

// ReadStatus reads it; nil where no leader ever wrote one.
func (s *Store) ReadStatus(ctx context.Context) (*status.Status, error) {
	cm, err := s.get(ctx, status.Name(s.Plan))
	if err != nil || cm == nil {
		return nil, err
	}
	read, err := status.Parse(cm.Data[status.Key])
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %q in %q: %w", cm.Name, s.Namespace, err)
	}
	return &read, nil
}
