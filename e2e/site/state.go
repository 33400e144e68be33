package site

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ballast/e2e/fleet"
)

// Plan is the plan ConfigMap as somebody outside of ballast reads it.
type Plan struct {
	Revision           int            `json:"revision"`
	Mode               string         `json:"mode"`
	PlannerUser        string         `json:"plannerUser"`
	Replicas           int            `json:"replicas"`
	ControllerReplicas int            `json:"controllerReplicas"`
	MaxReplicas        int            `json:"maxReplicas"`
	NextEnv            int            `json:"nextControllerReplicas"`
	Clusters           map[string]Row `json:"clusters"`
	Rollout            *Rollout       `json:"rollout"`

	ResourceVersion string            `json:"-"`
	Text            string            `json:"-"`
	Pins            string            `json:"-"`
	Annotations     map[string]string `json:"-"`
}

// Row is one cluster's line.
type Row struct {
	Replica int    `json:"replica"`
	Load    string `json:"load"`
	Pinned  bool   `json:"pinned"`
}

// Rollout is a change under way.
type Rollout struct {
	Stage    string         `json:"stage"`
	Replicas int            `json:"replicas"`
	Moves    map[string]int `json:"moves"`
}

// Annotation is one of the plan's own.
func (p Plan) Annotation(name string) string { return p.Annotations["ballast.argoproj.io/"+name] }

// Replica lists the replica of each cluster.
func (p Plan) Replica() map[string]int {
	replicas := make(map[string]int, len(p.Clusters))
	for name, row := range p.Clusters {
		replicas[name] = row.Replica
	}
	return replicas
}

// Plan reads the plan ConfigMap; nil while there is none.
func (s *Site) Plan(ctx context.Context) (*Plan, error) {
	cm, err := s.Client.CoreV1().ConfigMaps(s.Fleet.Namespace).Get(ctx, PlanConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting the plan: %w", err)
	}
	p := &Plan{ResourceVersion: cm.ResourceVersion, Text: cm.Data["plan"], Pins: cm.Data["pins"],
		Annotations: cm.Annotations}
	if err := yaml.Unmarshal([]byte(p.Text), p); err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	return p, nil
}

// Secrets are the cluster Secrets by name.
func (s *Site) Secrets(ctx context.Context) (map[string]corev1.Secret, error) {
	list, err := s.Client.CoreV1().Secrets(s.Fleet.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: fleet.SecretTypeLabel + "=cluster"})
	if err != nil {
		return nil, fmt.Errorf("listing cluster secrets: %w", err)
	}
	secrets := make(map[string]corev1.Secret, len(list.Items))
	for _, secret := range list.Items {
		secrets[secret.Name] = secret
	}
	return secrets, nil
}

// Shards are data.shard of each cluster Secret, empty where it has none.
func (s *Site) Shards(ctx context.Context) (map[string]string, error) {
	secrets, err := s.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	shards := make(map[string]string, len(secrets))
	for name, secret := range secrets {
		shards[name] = string(secret.Data["shard"])
	}
	return shards, nil
}

// StatefulSet is the application-controller's.
func (s *Site) StatefulSet(ctx context.Context) (*appsv1.StatefulSet, error) {
	sts, err := s.Client.AppsV1().StatefulSets(s.Fleet.Namespace).Get(ctx, fleet.Workload, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting stateful set %q: %w", fleet.Workload, err)
	}
	return sts, nil
}

// EnvReplicas is ARGOCD_CONTROLLER_REPLICAS in a StatefulSet, empty where it has none.
func EnvReplicas(sts *appsv1.StatefulSet) string {
	for _, c := range sts.Spec.Template.Spec.Containers {
		for _, env := range c.Env {
			if env.Name == fleet.ReplicasEnv {
				return env.Value
			}
		}
	}
	return ""
}

// Leaks lists the logs, the audit log among them, in which a credential of a cluster shows.
func (s *Site) Leaks() ([]string, error) {
	var leaks []string
	err := filepath.WalkDir(s.Plane.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(fleet.Canary)) {
			leaks = append(leaks, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the logs: %w", err)
	}
	return leaks, nil
}
