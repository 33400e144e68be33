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

	"ballast/planner/status"
)

// WriteStatus writes what the leader says of how things are. Nobody decides by it, so that it is for no version: the
// last leader to say something is right.
func (s *Store) WriteStatus(ctx context.Context, now status.Status) error {
	text, err := now.Encode()
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: status.Name(s.Plan)}}
	patch, err := json.Marshal(change{Data: map[string]*string{status.Key: &text}, BinaryData: map[string]*[]byte{status.Key: nil}})
	if err == nil {
		err = s.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager))
	}
	if apierrors.IsNotFound(err) {
		cm.Labels, cm.Data = labels(), map[string]string{status.Key: text}
		err = s.Client.Create(ctx, cm, client.FieldOwner(FieldManager))
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %q in %q: %w", cm.Name, s.Namespace, err)
	}
	return nil
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
