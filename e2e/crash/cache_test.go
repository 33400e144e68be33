package crash_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crashCache is a leader's cache of Secrets and workloads, as its watches filled it last: it answers while the API server is
// gone, and it is behind what stands until deliver has told the news. Argo CD's own settings never change.
type crashCache struct {
	secrets map[string]*corev1.Secret
	set     *appsv1.StatefulSet
}

var _ client.Reader = (*crashCache)(nil)

// Get answers for Argo CD's settings.
func (c *crashCache) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	cm, ok := o.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("this cache has no %T", o)
	}
	if key.Name != "argocd-cm" {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	cm.Data = map[string]string{"cluster.inClusterEnabled": "false"}
	return nil
}

// List answers for cluster Secrets and workloads.
func (c *crashCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *corev1.SecretList:
		for _, name := range namesIn(c.secrets) {
			list.Items = append(list.Items, *c.secrets[name].DeepCopy())
		}
	case *appsv1.StatefulSetList:
		list.Items = append(list.Items, *c.set.DeepCopy())
	case *appsv1.DeploymentList: // there is none
	default:
		return fmt.Errorf("this cache has no %T", list)
	}
	return nil
}
