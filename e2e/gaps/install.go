package gaps

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

const (
	programLabel = "plane.ballast/program"
	// nowhere is a repo-server that is not there. A controller asks it only after it has taken the cluster, so nothing
	// that is measured here waits for it.
	nowhere = "127.0.0.1:1"
)

// installController applies upstream's manifests. They differ in what an installation sets as well, by the ConfigMaps
// that upstream's StatefulSet reads: addresses, intervals, the algorithm, and log lines with the whole of their time.
// The pod's template gets the label by which it is a real process.
func (s *Site) installController(ctx context.Context) error {
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Fleet.Namespace}}
	if err := s.Apply(ctx, "", namespace); err != nil {
		return fmt.Errorf("creating the namespace: %w", err)
	}
	password := rand.Text()
	redis, err := s.Plane.StartRedis(ctx, s.options.ArgoCD, password)
	if err != nil {
		return fmt.Errorf("starting Redis: %w", err)
	}
	settings, err := s.settings(redis)
	if err != nil {
		return err
	}
	workload, err := s.workload()
	if err != nil {
		return err
	}
	if err := s.applyFiles(ctx, "*-crd.yaml", "argocd-application-controller-[cr]*.yaml", "argocd-application-controller-sa.yaml"); err != nil {
		return err
	}
	if err := site.Poll(ctx, s.crdsServed); err != nil {
		return err
	}
	auth := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "argocd-redis", Namespace: s.Fleet.Namespace},
		StringData: map[string]string{"auth": password},
	}
	return s.Apply(ctx, "", append(settings, auth, defaultProject(s.Fleet.Namespace), workload)...)
}

// crdsServed is nil when Applications and AppProjects can be made. kubectl wait does not wait for a CRD that has no
// condition yet: that is an error.
func (s *Site) crdsServed(ctx context.Context) error {
	if _, _, err := s.Plane.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=30s", "crd/applications.argoproj.io", "crd/appprojects.argoproj.io"); err != nil {
		return fmt.Errorf("waiting for the CRDs: %w", err)
	}
	return nil
}

// applyFiles applies on the server's side: the CRDs are too large for kubectl's own annotation.
func (s *Site) applyFiles(ctx context.Context, patterns ...string) error {
	args := []string{"apply", "--server-side", "--namespace=" + s.Fleet.Namespace}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(s.options.ArgoCD.Manifests(), pattern))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("finding manifests %q: %w", pattern, errors.Join(os.ErrNotExist, err))
		}
		for _, f := range files {
			args = append(args, "-f", f)
		}
	}
	if _, _, err := s.Plane.Kubectl(ctx, "", args...); err != nil {
		return fmt.Errorf("applying upstream's manifests: %w", err)
	}
	return nil
}

// settings are upstream's two ConfigMaps with this installation's values.
func (s *Site) settings(redis string) ([]runtime.Object, error) {
	values := map[string]map[string]string{
		"argocd-cm.yaml": {
			"timeout.reconciliation":        s.options.Resync.String(),
			"timeout.reconciliation.jitter": "0s",
			// Each cluster would be watched some sixty times over: all of them are one API server.
			"resource.inclusions": "- apiGroups: ['']\n  kinds: [ConfigMap]\n  clusters: ['*']\n",
		},
		"argocd-cmd-params-cm.yaml": {
			"redis.server":         redis,
			"repo.server":          nowhere,
			"log.format.timestamp": time.RFC3339Nano,
		},
	}
	if s.options.Algorithm != "" {
		values["argocd-cmd-params-cm.yaml"]["controller.sharding.algorithm"] = s.options.Algorithm
	}
	objects := make([]runtime.Object, 0, len(values))
	for _, file := range []string{"argocd-cm.yaml", "argocd-cmd-params-cm.yaml"} {
		cm := &corev1.ConfigMap{}
		if err := s.read(file, cm); err != nil {
			return nil, err
		}
		cm.Namespace = s.Fleet.Namespace
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		for key, value := range values[file] {
			cm.Data[key] = value
		}
		objects = append(objects, cm)
	}
	return objects, nil
}

// workload is upstream's StatefulSet or, with dynamic cluster distribution, its Deployment.
func (s *Site) workload() (runtime.Object, error) {
	if s.options.Dynamic {
		return s.deployment()
	}
	sts := &appsv1.StatefulSet{}
	if err := s.read("argocd-application-controller-statefulset.yaml", sts); err != nil {
		return nil, err
	}
	sts.Namespace = s.Fleet.Namespace
	sts.Spec.Replicas = ptr.To(int32(s.options.Replicas))
	sts.Spec.Template.Labels[programLabel] = fleet.Workload
	sts.Spec.Template.Spec.Containers[0].Resources.Requests = s.options.Requests
	for i := range sts.Spec.Template.Spec.Containers[0].Env {
		if e := &sts.Spec.Template.Spec.Containers[0].Env[i]; e.Name == fleet.ReplicasEnv {
			e.Value = strconv.Itoa(s.options.ControllerReplicas)
		}
	}
	return sts, nil
}

// deployment has what upstream's documents tell people to add. No shorter time between heartbeats is allowed, and Argo
// CD's default is as short.
func (s *Site) deployment() (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if err := s.read("argocd-application-controller-deployment.yaml", d); err != nil {
		return nil, err
	}
	d.Namespace = s.Fleet.Namespace
	d.Spec.Replicas = ptr.To(int32(s.options.Replicas))
	d.Spec.Template.Labels[programLabel] = fleet.Workload
	c := &d.Spec.Template.Spec.Containers[0]
	c.Env = append(c.Env,
		corev1.EnvVar{Name: "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", Value: "true"},
		corev1.EnvVar{Name: "ARGOCD_CONTROLLER_HEARTBEAT_TIME", Value: "10"})
	return d, nil
}

func (s *Site) read(file string, object any) error {
	data, err := os.ReadFile(filepath.Join(s.options.ArgoCD.Manifests(), file))
	if err != nil {
		return fmt.Errorf("reading upstream's manifest: %w", err)
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(data), object); err != nil {
		return fmt.Errorf("reading upstream's manifest %q: %w", file, err)
	}
	return nil
}
