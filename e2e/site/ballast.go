package site

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// The names that ballast is installed under.
const (
	PlanConfigMap = "ballast-plan"
	Planner       = "ballast-planner"
	Webhook       = "ballast-webhook"
	Lease         = "ballast-argocd-application-controller"
	PlannerUser   = "system:serviceaccount:argocd:ballast-planner"
	configMap     = "ballast-config"
)

// Config is a PlannerConfig: over the defaults, what an end-to-end run cannot wait for, and the Prometheus's address.
func (s *Site) Config(mode string) map[string]any {
	return map[string]any{
		"apiVersion": "ballast.argoproj.io/v1alpha1",
		"kind":       "PlannerConfig",
		"mode":       mode,
		"interval":   "10s",
		"target":     map[string]any{"namespace": s.Fleet.Namespace},
		"poll":       map[string]any{"prometheus": map[string]any{"url": s.Prometheus, "timeout": "5s"}},
		"partition":  map[string]any{"lpt": map[string]any{}}, // its plans are known beforehand, move for move
		"evaluate":   map[string]any{"mostWanted": map[string]any{"window": "20s", "minSamples": 2}},
		// What moves, moves at once, and Applications are none: Argo CD is simulated. Live rollouts are for those who
		// ask.
		"change":  map[string]any{"moves": map[string]any{"rate": []any{}}, "restarts": map[string]any{"every": "0s"}},
		"rollout": map[string]any{"default": map[string]any{}},
	}
}

// BuildBallast builds the command from this checkout into a file, with the race detector if asked.
func BuildBallast(ctx context.Context, file string, race bool) error {
	if err := DependOnSources(ctx); err != nil {
		return err
	}
	args := []string{"build", "-o", file}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "ballast/cmd/ballast")...)
	if !race {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building ballast: %w: %s", err, out)
	}
	return nil
}

// DependOnSources makes a test that builds ballast depend on all that ballast is built from: go test's cache follows
// the files that a test looks at, not those that a compiler reads for it, and would call an old result good after a
// change elsewhere.
func DependOnSources(ctx context.Context) error {
	const files = `{{$dir := .Dir}}{{with .Module}}{{if .Main}}{{.GoMod}}{{range $.GoFiles}}
{{$dir}}/{{.}}{{end}}{{range $.EmbedFiles}}
{{$dir}}/{{.}}{{end}}{{end}}{{end}}`
	out, err := exec.CommandContext(ctx, "go", "list", "-deps", "-f", files, "ballast/cmd/ballast").Output()
	if err != nil {
		return fmt.Errorf("listing what ballast is built from: %w", err)
	}
	for _, file := range strings.Fields(string(out)) {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("looking at a file that ballast is built from: %w", err)
		}
	}
	return nil
}

// RunBallast runs a command of ballast's as a person at a terminal does, and gives what it printed.
func (s *Site) RunBallast(ctx context.Context, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, s.ballast, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), errOut.String(), fmt.Errorf("running ballast %s: %w: %s", strings.Join(args, " "), err,
			errOut.String())
	}
	return out.String(), errOut.String(), nil
}

// Plans runs `ballast plan`, whose exit code 2 says that something would change, and answers whether it does.
func (s *Site) Plans(ctx context.Context, kubeconfig string, args ...string) (stdout, stderr string, changes bool, err error) {
	stdout, stderr, err = s.RunBallast(ctx, kubeconfig, append([]string{"plan"}, args...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return stdout, stderr, true, nil
	}
	return stdout, stderr, false, err
}

// InstallBallast applies the shipped overlay and returns when both Deployments are available and the API server knows
// the webhook's CA.
func (s *Site) InstallBallast(ctx context.Context, config map[string]any) error {
	if err := s.Configure(ctx, config); err != nil {
		return err
	}
	return s.RunBallastsPods(ctx)
}

// RunBallastsPods gives ballast's pods their processes, once its manifests are applied, and returns when both
// Deployments are available and the API server knows the webhook's CA.
func (s *Site) RunBallastsPods(ctx context.Context) error {
	if err := s.Plane.RunPods(ctx, s.ballast); err != nil {
		return fmt.Errorf("running ballast's pods: %w", err)
	}
	if err := s.Available(ctx); err != nil {
		return err
	}
	configurations := s.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	return Poll(ctx, func(ctx context.Context) error {
		c, err := configurations.Get(ctx, "ballast."+s.Fleet.Namespace, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("getting the webhook configuration: %w", err)
		}
		for _, w := range c.Webhooks {
			if len(w.ClientConfig.CABundle) == 0 {
				return fmt.Errorf("webhook %q has no caBundle yet", w.Name)
			}
		}
		return nil
	})
}

// Available returns when each of ballast's Deployments has all its pods ready.
func (s *Site) Available(ctx context.Context) error {
	return Poll(ctx, func(ctx context.Context) error {
		return cmp.Or(s.Deployed(ctx, Planner), s.Deployed(ctx, Webhook))
	})
}

// Deployed is nil if a Deployment has the pods that it asks for, all ready, of its present template.
func (s *Site) Deployed(ctx context.Context, name string) error {
	d, err := s.Client.AppsV1().Deployments(s.Fleet.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting deployment %q: %w", name, err)
	}
	st, want := d.Status, *d.Spec.Replicas
	if st.ObservedGeneration < d.Generation || st.Replicas != want || st.ReadyReplicas != want || st.UpdatedReplicas != want {
		return fmt.Errorf("deployment %q has %d pods, %d ready, %d updated, want %d", name, st.Replicas,
			st.ReadyReplicas, st.UpdatedReplicas, want)
	}
	return nil
}

// Configure applies the shipped overlay with that configuration, as a person does who changes it.
func (s *Site) Configure(ctx context.Context, config map[string]any) error {
	manifests, err := s.overlay(ctx, config)
	if err != nil {
		return err
	}
	if _, _, err := s.Plane.KubectlStdin(ctx, bytes.NewReader(manifests), "", "apply", "-f", "-"); err != nil {
		return fmt.Errorf("applying ballast's manifests: %w", err)
	}
	return nil
}

// Reconfigure changes the configuration alone, in one write: what begins by it is seen from its beginning, where to apply the
// whole overlay takes longer than a short rollout.
func (s *Site) Reconfigure(ctx context.Context, config map[string]any) error {
	file, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("marshalling the configuration: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"config.yaml": string(file)}})
	if err != nil {
		return fmt.Errorf("marshalling the configuration's patch: %w", err)
	}
	maps := s.Client.CoreV1().ConfigMaps(s.Fleet.Namespace)
	if _, err := maps.Patch(ctx, configMap, apitypes.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("changing ballast's configuration: %w", err)
	}
	return nil
}

// overlay builds a person's own overlay over manifests/overlays/cert-manager: it differs in the configuration.
func (s *Site) overlay(ctx context.Context, config map[string]any) ([]byte, error) {
	file, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("marshalling the configuration: %w", err)
	}
	patch, err := yaml.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: configMap, Namespace: s.Fleet.Namespace},
		Data:       map[string]string{"config.yaml": string(file)},
	})
	if err != nil {
		return nil, fmt.Errorf("marshalling the configuration's ConfigMap: %w", err)
	}
	dir := filepath.Join(s.Plane.Dir(), "overlay")
	base, err := relativeBase(ctx, dir)
	if err != nil {
		return nil, err
	}
	kustomization, err := yaml.Marshal(types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{base},
		Patches:   append([]types.Patch{{Patch: string(patch)}}, s.Patches...),
	})
	if err != nil {
		return nil, fmt.Errorf("marshalling the kustomization: %w", err)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "kustomization.yaml"), kustomization, 0o644)); err != nil {
		return nil, fmt.Errorf("writing the overlay: %w", err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building the overlay: %w", err)
	}
	return built.AsYaml()
}

// relativeBase is the way from a folder to the shipped overlay: kustomize takes no absolute one.
func relativeBase(ctx context.Context, dir string) (string, error) {
	manifests, err := manifests(ctx)
	if err != nil {
		return "", err
	}
	base, err := filepath.Rel(dir, filepath.Join(manifests, "overlays", "cert-manager"))
	if err != nil {
		return "", fmt.Errorf("finding the shipped overlay from %q: %w", dir, err)
	}
	return base, nil
}

// manifests is the checkout's folder of that name.
func manifests(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	return filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "manifests"), nil
}
