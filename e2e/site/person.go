package site

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Apply runs kubectl apply over the objects as whom the kubeconfig names; empty is the administrator.
func (s *Site) Apply(ctx context.Context, kubeconfig string, objects ...runtime.Object) error {
	var documents bytes.Buffer
	encoder := json.NewEncoder(&documents) // JSON documents in a row are read as YAML documents are
	for _, o := range objects {
		if err := encoder.Encode(o); err != nil {
			return fmt.Errorf("marshalling an object of kind %q: %w", o.GetObjectKind().GroupVersionKind().Kind, err)
		}
	}
	_, _, err := s.Plane.KubectlStdin(ctx, &documents, kubeconfig, "apply", "-f", "-")
	return err
}

// Person makes a user who may do in Argo CD's namespace what a platform team does there, and gives her kubeconfig.
func (s *Site) Person(ctx context.Context, user string) (kubeconfig string, err error) {
	return s.user(ctx, user, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "events"},
			Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/resize"}, Verbs: []string{"get", "update", "patch"}},
		{
			APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "statefulsets/scale", "deployments",
				"deployments/scale"},
			Verbs: []string{"get", "list", "watch", "update", "patch"},
		},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list"}},
	})
}

// Reader makes a user who may only read in Argo CD's namespace, and gives her kubeconfig.
func (s *Site) Reader(ctx context.Context, user string) (kubeconfig string, err error) {
	read := []string{"get", "list", "watch"}
	return s.user(ctx, user, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps", "pods"}, Verbs: read},
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "deployments"}, Verbs: read},
	})
}

func (s *Site) user(ctx context.Context, user string, rules []rbacv1.PolicyRule) (string, error) {
	kubeconfig, err := s.Plane.KubeconfigFor(user)
	if err != nil {
		return "", fmt.Errorf("making a kubeconfig for %q: %w", user, err)
	}
	meta := metav1.ObjectMeta{Name: user, Namespace: s.Fleet.Namespace}
	err = s.Apply(ctx, "",
		&rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	if err != nil {
		return "", fmt.Errorf("giving %q her role: %w", user, err)
	}
	return kubeconfig, nil
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
