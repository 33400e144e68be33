package gaps

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"ballast/e2e/fleet"
	"ballast/e2e/gaps/timeline"
)

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

// manager is the ServiceAccount that Argo CD is in each cluster, as `argocd cluster add` makes it.
const (
	manager          = "argocd-manager"
	managerNamespace = "kube-system"
	tokenLife        = 24 * time.Hour
)

// addClusters makes each cluster's Secret and one Application that deploys there: without one Argo CD leaves a cluster
// alone.
func (s *Site) addClusters(ctx context.Context) error {
	token, err := s.managerToken(ctx)
	if err != nil {
		return err
	}
	config, err := s.clusterConfig(token)
	if err != nil {
		return err
	}
	for i, c := range s.Clusters {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: c.Name, Namespace: s.Fleet.Namespace,
				Labels:      map[string]string{fleet.SecretTypeLabel: "cluster"},
				Annotations: map[string]string{"managed-by": "argocd.argoproj.io"},
			},
			Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{"name": []byte(c.Name), "server": []byte(c.Server), "config": config},
		}
		if shard := s.options.Shard(i); shard != "" {
			secret.Data["shard"] = []byte(shard)
		}
		if _, err := s.Client.CoreV1().Secrets(s.Fleet.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating cluster secret %q: %w", c.Name, err)
		}
		if err := s.AddApplication(ctx, c, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// AddApplication makes an Application of that name that deploys into a cluster.
func (s *Site) AddApplication(ctx context.Context, c timeline.Cluster, name string) error {
	app := application(s.Fleet.Namespace, name, c)
	if _, err := s.objects.Resource(applications).Namespace(s.Fleet.Namespace).Create(ctx, app, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating application %q: %w", name, err)
	}
	return nil
}

func (s *Site) managerToken(ctx context.Context) (string, error) {
	meta := metav1.ObjectMeta{Name: manager, Namespace: managerNamespace}
	err := s.Apply(ctx, "",
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: manager},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: manager, Namespace: managerNamespace}},
		})
	if err != nil {
		return "", fmt.Errorf("creating the clusters' service account: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLife.Seconds()))}}
	token, err := s.Client.CoreV1().ServiceAccounts(managerNamespace).CreateToken(ctx, manager, request,
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting a token of service account %q: %w", manager, err)
	}
	return token.Status.Token, nil
}

// clusterConfig names the server's certificate by one of its own names: it has none for a cluster's address.
func (s *Site) clusterConfig(token string) ([]byte, error) {
	type tlsClientConfig struct {
		ServerName string `json:"serverName"`
		CAData     []byte `json:"caData"`
	}
	config, err := json.Marshal(struct {
		BearerToken     string          `json:"bearerToken"`
		TLSClientConfig tlsClientConfig `json:"tlsClientConfig"`
	}{token, tlsClientConfig{ServerName: "kubernetes.default.svc", CAData: s.Plane.Config().CAData}})
	if err != nil {
		return nil, fmt.Errorf("marshalling the clusters' configuration: %w", err)
	}
	return config, nil
}

func application(namespace, name string, c timeline.Cluster) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"project": "default",
			"source": map[string]any{"repoURL": "https://git.example.com/fleet.git", "path": name,
				"targetRevision": "HEAD"},
			"destination": map[string]any{"server": c.Server, "namespace": "default"},
		},
	}}
}

func defaultProject(namespace string) runtime.Object {
	anything := []any{map[string]any{"group": "*", "kind": "*"}}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
		"metadata": map[string]any{"name": "default", "namespace": namespace},
		"spec": map[string]any{
			"sourceRepos":              []any{"*"},
			"destinations":             []any{map[string]any{"server": "*", "namespace": "*"}},
			"clusterResourceWhitelist": anything,
		},
	}}
}
