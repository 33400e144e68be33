package connect

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
	"ballast/planner/plan/configmap"
)

// ReadDocument reads the plan ConfigMap; without one, or without the right to read it, there is no plan.
func ReadDocument(ctx context.Context, c client.Reader, cfg config.PlannerConfig) (configmap.Document, error) {
	var cm corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: cfg.Target.Namespace, Name: cfg.Plan.ConfigMap}, &cm)
	switch {
	case apierrors.IsNotFound(err):
		return configmap.Document{}, nil
	case err != nil:
		return configmap.Document{}, fmt.Errorf("reading ConfigMap %q in %q: %w", cfg.Plan.ConfigMap,
			cfg.Target.Namespace, err)
	}
	return configmap.Parse(cm.Data, cm.Annotations), nil
}

// ExplainDenied says which rights reading a fleet takes.
func ExplainDenied(err error, namespace string) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && apierrors.IsForbidden(err) {
		return fmt.Errorf("%w\nplan needs get and list on secrets, configmaps, statefulsets and deployments in %q", err,
			namespace)
	}
	return err
}
