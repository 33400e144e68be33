package repair

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// standsCache is a cache of cluster Secrets and one StatefulSet. It has no settings of Argo CD's.
type standsCache struct {
	secrets []corev1.Secret
	set     appsv1.StatefulSet
}

var _ client.Reader = standsCache{}

func (c standsCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
}

func (c standsCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *corev1.SecretList:
		list.Items = c.secrets
	case *appsv1.StatefulSetList:
		list.Items = []appsv1.StatefulSet{c.set}
	case *appsv1.DeploymentList: // there is none
	default:
		return fmt.Errorf("this cache has no %T", list)
	}
	return nil
}
