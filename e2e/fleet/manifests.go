package fleet

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// The names of the upstream installation.
const (
	Workload        = "argocd-application-controller"
	ReplicasEnv     = "ARGOCD_CONTROLLER_REPLICAS"
	SecretTypeLabel = "argocd.argoproj.io/secret-type"

	configMap      = "argocd-cm"
	paramsMap      = "argocd-cmd-params-cm"
	metricsPort    = 8082
	nameLabel      = "app.kubernetes.io/name"
	partOfLabel    = "app.kubernetes.io/part-of"
	componentLabel = "app.kubernetes.io/component"
)

// Canary begins every bearer token of the fleet: where it shows up, Secret data has leaked.
const Canary = "canary-bearer-token-"

// Installation is what Argo CD consists of before it has clusters and before ballast comes, in the order of creation.
func (f *Fleet) Installation() []runtime.Object {
	return []runtime.Object{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}},
		f.configMap(configMap, nil), f.configMap(paramsMap, nil), f.StatefulSet(),
	}
}

// Secrets are the cluster Secrets as Argo CD makes them, without a shard.
func (f *Fleet) Secrets() []*corev1.Secret {
	secrets := make([]*corev1.Secret, len(f.Clusters))
	for i, c := range f.Clusters {
		secrets[i] = f.Secret(c)
	}
	return secrets
}

// Secret is a cluster's Secret as Argo CD makes it, without a shard.
func (f *Fleet) Secret(c Cluster) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: c.Name, Namespace: f.Namespace,
			Labels:      map[string]string{SecretTypeLabel: "cluster"},
			Annotations: map[string]string{"managed-by": "argocd.argoproj.io"},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"name": []byte(c.Name), "server": []byte(c.Server), "config": clusterConfig(c.Name)},
	}
}

func clusterConfig(name string) []byte {
	type tlsClientConfig struct {
		Insecure bool   `json:"insecure"`
		CAData   string `json:"caData"`
	}
	config, err := json.Marshal(struct {
		BearerToken     string          `json:"bearerToken"`
		TLSClientConfig tlsClientConfig `json:"tlsClientConfig"`
	}{Canary + name, tlsClientConfig{CAData: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"}})
	if err != nil {
		panic(fmt.Sprintf("marshalling strings: %v", err))
	}
	return config
}

func (f *Fleet) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: f.Namespace, Labels: map[string]string{nameLabel: name, partOfLabel: "argocd"},
		},
		Data: data,
	}
}

// StatefulSet is the application-controller's, as upstream's manifests have it with that many replicas.
func (f *Fleet) StatefulSet() *appsv1.StatefulSet {
	selector := map[string]string{nameLabel: Workload}
	return &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: Workload, Namespace: f.Namespace,
			Labels: map[string]string{nameLabel: Workload, partOfLabel: "argocd",
				componentLabel: "application-controller"},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas:    ptr.To(int32(f.Replicas)),
			ServiceName: Workload,
			Selector:    &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec: corev1.PodSpec{
					ServiceAccountName:           "default",
					AutomountServiceAccountToken: ptr.To(false),
					Containers:                   []corev1.Container{f.container()},
				},
			},
		},
	}
}

func (f *Fleet) container() corev1.Container {
	fromConfig := func(env, from, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: env, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: from}, Key: key, Optional: ptr.To(true),
		}}}
	}
	return corev1.Container{
		Name:  Workload,
		Image: "quay.io/argoproj/argocd:v3.2.11",
		Args:  []string{"/usr/local/bin/argocd-application-controller"},
		Env: []corev1.EnvVar{
			fromConfig("ARGOCD_RECONCILIATION_TIMEOUT", configMap, "timeout.reconciliation"),
			{Name: ReplicasEnv, Value: fmt.Sprint(f.Replicas)},
			fromConfig("ARGOCD_CONTROLLER_SHARDING_ALGORITHM", paramsMap, "controller.sharding.algorithm"),
		},
		Ports: []corev1.ContainerPort{{ContainerPort: metricsPort, Name: "metrics"}},
	}
}
