package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"ballast/cmd/ballast/serve"
)

func TestEveryPodIsHardened(t *testing.T) {
	in := decode(t, build(t, "base"))
	for name, d := range in.Deployments {
		pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
		wantPod := &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)), RunAsGroup: ptr.To(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		wantContainer := &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		if diff := cmp.Diff(wantPod, pod.SecurityContext) + cmp.Diff(wantContainer, c.SecurityContext); diff != "" {
			t.Errorf("%s -want +got:\n%s", name, diff)
		}
		if len(pod.Containers) != 1 || pod.HostNetwork || pod.HostPID || len(pod.InitContainers) > 0 {
			t.Errorf("%s has more than its one container, or its host's namespaces", name)
		}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s mounts its host's %s", name, v.HostPath.Path)
			}
		}
		for _, m := range c.VolumeMounts {
			if !m.ReadOnly || m.SubPath != "" {
				t.Errorf("%s mounts %s writable, or by subPath", name, m.Name)
			}
		}
	}
}

func TestBothDeploymentsRunAsAgreed(t *testing.T) {
	type shape struct {
		Replicas                              int32
		Account, Container, Image             string
		Args                                  []string
		Ports                                 map[string]int32
		Ready, Live                           string
		MaxUnavailable, MaxSurge, CPU, Memory string
		Spread                                []string
		Mounts                                map[string]string
		Env                                   map[string]string
	}
	env := map[string]string{"POD_IP": "status.podIP", "POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace", serve.MemoryVariable: "limits.memory"}
	spread := []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
	want := map[string]shape{
		"ballast-planner": {2, "ballast-planner", "ballast", "ballast:dev",
			[]string{"planner", "--config=/etc/ballast/config/config.yaml", "--bind-address=$(POD_IP)", "--metrics-port=8080", "--health-port=8081"},
			map[string]int32{"metrics": 8080, "health": 8081}, "/readyz health", "/healthz health", "1", "1", "50m", "128Mi", spread,
			map[string]string{"/etc/ballast/config": "ballast-config"}, env},
		"ballast-webhook": {2, "ballast-webhook", "ballast", "ballast:dev",
			[]string{"webhook", "--namespace=$(POD_NAMESPACE)", "--planner-user=system:serviceaccount:$(POD_NAMESPACE):ballast-planner", "--bind-address=$(POD_IP)", "--port=9443", "--metrics-port=8080", "--health-port=8081", "--cert-dir=/etc/ballast/tls"},
			map[string]int32{"webhook": 9443, "metrics": 8080, "health": 8081}, "/readyz health", "/healthz health", "0", "1", "50m", "64Mi", spread,
			map[string]string{"/etc/ballast/tls": "ballast-webhook-tls"}, env},
	}
	got := map[string]shape{}
	for name, d := range decode(t, build(t, "base")).Deployments {
		pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
		s := shape{Replicas: *d.Spec.Replicas, Account: pod.ServiceAccountName, Container: c.Name, Image: c.Image, Args: c.Args,
			Ports: map[string]int32{}, Mounts: mounts(pod), Env: map[string]string{}, Ready: probe(c.ReadinessProbe), Live: probe(c.LivenessProbe),
			MaxUnavailable: d.Spec.Strategy.RollingUpdate.MaxUnavailable.String(), MaxSurge: d.Spec.Strategy.RollingUpdate.MaxSurge.String(),
			CPU: c.Resources.Requests.Cpu().String(), Memory: c.Resources.Requests.Memory().String()}
		for _, p := range c.Ports {
			s.Ports[p.Name] = p.ContainerPort
		}
		for _, e := range c.Env {
			if from := e.ValueFrom; from.ResourceFieldRef != nil {
				s.Env[e.Name] = from.ResourceFieldRef.Resource
			} else {
				s.Env[e.Name] = from.FieldRef.FieldPath
			}
		}
		for _, constraint := range pod.TopologySpreadConstraints {
			s.Spread = append(s.Spread, constraint.TopologyKey)
		}
		got[name] = s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func probe(p *corev1.Probe) string { return p.HTTPGet.Path + " " + p.HTTPGet.Port.String() }

// mounts is what stands at each path.
func mounts(pod corev1.PodSpec) map[string]string {
	source := map[string]string{}
	for _, v := range pod.Volumes {
		if v.ConfigMap != nil {
			source[v.Name] = v.ConfigMap.Name
		}
		if v.Secret != nil {
			source[v.Name] = v.Secret.SecretName
		}
	}
	out := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		out[m.MountPath] = source[m.Name]
	}
	return out
}

func TestTheWebhookStartsBeforeItsCertificate(t *testing.T) {
	for name, dir := range overlays() {
		d := decode(t, build(t, dir)).Deployments["ballast-webhook"]
		want := []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "ballast-webhook-tls", Optional: ptr.To(true)}}}}
		if diff := cmp.Diff(want, d.Spec.Template.Spec.Volumes); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestMemoryIsLimitedAndCPUIsNot(t *testing.T) {
	for name, d := range decode(t, build(t, "base")).Deployments {
		limits := d.Spec.Template.Spec.Containers[0].Resources.Limits
		want := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(map[string]string{"ballast-planner": "512Mi", "ballast-webhook": "256Mi"}[name])}
		if diff := cmp.Diff(want, limits); diff != "" {
			t.Errorf("%s -want +got:\n%s", name, diff)
		}
	}
}

// TestPodsThatAreNotReadyKeepNoNodeFromBeingDrained: a budget of one counts those that are, and there may be none.
func TestPodsThatAreNotReadyKeepNoNodeFromBeingDrained(t *testing.T) {
	for overlay, dir := range overlays() {
		got := map[string]policyv1.PodDisruptionBudgetSpec{}
		for name, b := range decode(t, build(t, dir)).Budgets {
			b.Spec.Selector = nil // TestEverySelectorFindsItsPods compares it
			got[name] = b.Spec
		}
		want := policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)), UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow)}
		if diff := cmp.Diff(map[string]policyv1.PodDisruptionBudgetSpec{"ballast-planner": want, "ballast-webhook": want}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", overlay, diff)
		}
	}
}

// TestBallastIsNotEvictedFirst, nor does it evict others, and no quota of another class keeps it from starting; README.md's
// patch names another class.
func TestBallastIsNotEvictedFirst(t *testing.T) {
	classes := func(dir string) map[string]string {
		got := map[string]string{}
		for name, d := range decode(t, build(t, dir)).Deployments {
			got[name] = d.Spec.Template.Spec.PriorityClassName
		}
		return got
	}
	for overlay, dir := range overlays() {
		in := decode(t, build(t, dir))
		name := "ballast." + in.Deployments["ballast-webhook"].Namespace
		want := map[string]string{"ballast-planner": name, "ballast-webhook": name}
		if overlay == "self-signed" {
			want["ballast-certs"] = "" // the webhook serves on without it, for ten days at the least
		}
		if diff := cmp.Diff(want, classes(dir)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", overlay, diff)
		}
		got := in.PriorityClasses[name]
		if got.Value != 1000000 || *got.PreemptionPolicy != corev1.PreemptNever || got.GlobalDefault || len(in.PriorityClasses) != 1 {
			t.Errorf("%s: %d classes, %+v", overlay, len(in.PriorityClasses), got)
		}
	}
	want := map[string]string{"ballast-planner": "system-cluster-critical", "ballast-webhook": "system-cluster-critical", "ballast-certs": ""}
	if diff := cmp.Diff(want, classes("testdata/priority")); diff != "" {
		t.Errorf("patched: -want +got:\n%s", diff)
	}
}

func TestEverySelectorFindsItsPods(t *testing.T) {
	in := decode(t, build(t, "base"))
	finds := func(what string, selector map[string]string, d appsv1.Deployment) {
		for k, v := range selector {
			if d.Spec.Template.Labels[k] != v {
				t.Errorf("%s asks for %s=%s, the pods of %s have %q", what, k, v, d.Name, d.Spec.Template.Labels[k])
			}
		}
		if selector["app.kubernetes.io/component"] == "" {
			t.Errorf("%s finds the pods of both Deployments", what)
		}
	}
	for name, d := range in.Deployments {
		finds("the Deployment", d.Spec.Selector.MatchLabels, d)
		finds("the budget", in.Budgets[name].Spec.Selector.MatchLabels, d)
		for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
			finds("the spread over "+c.TopologyKey, c.LabelSelector.MatchLabels, d)
		}
	}
	finds("the Service", in.Services["ballast-webhook"].Spec.Selector, in.Deployments["ballast-webhook"])
	want := []corev1.ServicePort{{Name: "webhook", Port: 443, TargetPort: intstr.FromString("webhook")}}
	if diff := cmp.Diff(want, in.Services["ballast-webhook"].Spec.Ports, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
