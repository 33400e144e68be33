package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/plan"
)

func meta(name string, l map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "argocd", Labels: l}
}

func pod(containers ...corev1.Container) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
}

func planOf(kind, name string) *plan.Plan {
	return &plan.Plan{Target: plan.Target{Kind: kind, Namespace: "argocd", Name: name}}
}

// TestWhatNumbersThePodsIsRead: Argo CD takes ARGOCD_CONTROLLER_SHARD before the number in the pod's name, unless it is negative or none.
func TestWhatNumbersThePodsIsRead(t *testing.T) {
	two := int32(2)
	shard := func(value string, from *corev1.EnvVarSource) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: meta("ac", nil), Spec: appsv1.StatefulSetSpec{Replicas: &two,
			Template: pod(corev1.Container{Name: "argocd-application-controller",
				Env: []corev1.EnvVar{{Name: discover.EnvShard, Value: value, ValueFrom: from}}})}}
	}
	later := shard("", nil)
	later.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 2}
	first := shard("", nil)
	first.Spec.Ordinals = &appsv1.StatefulSetOrdinals{}
	alone := func(value string) *appsv1.StatefulSet {
		s := shard(value, nil)
		s.Spec.Replicas = nil
		return s
	}
	const all = `the pod template of StatefulSet "ac" has the env ARGOCD_CONTROLLER_SHARD "0": each of its pods takes itself for that replica, and none for another, whose clusters nobody reconciles; take it out`
	for name, test := range map[string]struct {
		of   *appsv1.StatefulSet
		want string
	}{
		"neither":                          {shard("", nil), ""},
		"every pod is 0":                   {shard("0", nil), all},
		"the one pod is 0":                 {alone("0"), ""},
		"the one pod is 1":                 {alone("1"), strings.Replace(all, `"0"`, `"1"`, 1)},
		"by a negative number":             {shard("-1", nil), ""},
		"by no number":                     {shard("x", nil), ""},
		"by one beyond what Argo CD reads": {shard("4294967296", nil), ""},
		"by the pod's name":                {shard("", &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}), ""},
		"by an annotation": {shard("", &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['shard']"}}),
			strings.Replace(all, `"0"`, `"by reference"`, 1)},
		"by a label": {shard("", &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['shard']"}}),
			strings.Replace(all, `"0"`, `"by reference"`, 1)},
		"by a limit": {shard("", &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}),
			strings.Replace(all, `"0"`, `"by reference"`, 1)},
		"by the pod's index": {shard("", &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}), ""},
		"by a ConfigMap, which says the same to all": {shard("", &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "shard"}}),
			strings.Replace(all, `"0"`, `"by reference"`, 1)},
		"ordinals from 0": {first, ""},
		"ordinals from 2": {later, `spec.ordinals.start of StatefulSet "ac" is 2: its pods' numbers begin there, and nobody reconciles the clusters of the replicas below; set it to 0`},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := fromStatefulSet(test.of).read("", nil)
			if diff := cmp.Diff(test.want, w.Renumbered(0)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if only := strings.Contains(w.OnlyReplica0(0), `"0", which is right for one replica`); only != (name == "the one pod is 0") {
				t.Errorf("of a second replica it says %q", w.OnlyReplica0(0))
			}
		})
	}
	for planned, one := range map[int]bool{0: true, 1: true, 2: false} {
		w, err := fromStatefulSet(alone("0")).read("", nil)
		if only := w.OnlyReplica0(planned) != ""; err != nil || only != one || (w.Renumbered(planned) == "") != one {
			t.Errorf("of one replica where the plan has %d: %q, %q, %v", planned, w.OnlyReplica0(planned), w.Renumbered(planned), err)
		}
	}
	if !Differ(first, later) {
		t.Error("another first ordinal runs no cycle")
	}
}

func TestFindTarget(t *testing.T) {
	three, four := int32(3), "4"
	controller := map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}
	server := map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "server"}
	helm := &appsv1.StatefulSet{ObjectMeta: meta("rel-argocd-application-controller", controller),
		Spec: appsv1.StatefulSetSpec{Replicas: &three, Template: pod(corev1.Container{Name: "application-controller", Env: []corev1.EnvVar{
			{Name: "ARGOCD_CONTROLLER_REPLICAS", Value: "4"}, {Name: "ARGOCD_CONTROLLER_SHARDING_ALGORITHM", Value: "round-robin"}}})},
		Status: appsv1.StatefulSetStatus{ReadyReplicas: 2, UpdatedReplicas: 1, CurrentRevision: "r1", UpdateRevision: "r2", ObservedGeneration: 6}}
	helm.Generation = 7
	upstream := &appsv1.StatefulSet{ObjectMeta: meta("argocd-application-controller", controller),
		Spec: appsv1.StatefulSetSpec{Template: pod(corev1.Container{Name: "proxy"}, corev1.Container{Name: "argocd-application-controller", Env: []corev1.EnvVar{
			{Name: "ARGOCD_CONTROLLER_SHARDING_ALGORITHM", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "controller.sharding.algorithm"}}}}})}}
	dynamic := &appsv1.Deployment{ObjectMeta: meta("argocd-application-controller", controller),
		Spec: appsv1.DeploymentSpec{Replicas: &three, Template: pod(corev1.Container{Name: "c", Env: []corev1.EnvVar{{Name: "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", Value: "true"}}})}}
	most := int32(math.MaxInt32)
	vast := &appsv1.Deployment{ObjectMeta: dynamic.ObjectMeta, Spec: appsv1.DeploymentSpec{Replicas: &most, Template: pod(corev1.Container{Name: "c"})}}
	dynamic.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"}
	everywhere, some := "", "team-a,team-b,sre-*"
	told := &appsv1.StatefulSet{ObjectMeta: meta("example-application-controller", controller), Spec: appsv1.StatefulSetSpec{Template: pod(corev1.Container{Name: "operator",
		Command: []string{"argocd-application-controller", "--application-namespaces", "team-a,team-b", "--dynamic-cluster-distribution-enabled", "--sharding-method"},
		Args:    []string{"consistent-hashing", "--application-namespaces=sre-*", "--application-namespaces"},
		Env:     []corev1.EnvVar{{Name: "ARGOCD_CONTROLLER_SHARDING_ALGORITHM", Value: "legacy"}, {Name: "ARGOCD_APPLICATION_NAMESPACES", Value: "elsewhere"}}})}}
	own := &appsv1.StatefulSet{ObjectMeta: meta("argocd-application-controller", controller), Spec: appsv1.StatefulSetSpec{Template: pod(corev1.Container{Name: "c",
		Args: []string{"--dynamic-cluster-distribution-enabled=false"},
		Env:  []corev1.EnvVar{{Name: "ARGOCD_APPLICATION_NAMESPACES"}, {Name: "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", Value: "true"}}})}}
	told.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2048Mi"), "ephemeral-storage": resource.MustParse("1Gi")},
		Limits:   corev1.ResourceList{"memory": resource.MustParse("4Gi")}}
	api := &appsv1.Deployment{ObjectMeta: meta("argocd-server", server), Spec: appsv1.DeploymentSpec{Template: pod(corev1.Container{Name: "server"})}}
	same := func(name, env string) corev1.Container {
		return corev1.Container{Name: name, Args: []string{"/usr/local/bin/argocd-application-controller"}, Env: []corev1.EnvVar{{Name: discover.EnvReplicas, Value: env}}}
	}
	bare := &appsv1.StatefulSet{ObjectMeta: meta("argocd-application-controller", nil), Spec: appsv1.StatefulSetSpec{Template: pod(same("application-controller", "4"))}}
	cache := &appsv1.StatefulSet{ObjectMeta: meta("argocd-redis", nil), Spec: appsv1.StatefulSetSpec{Template: pod(corev1.Container{Name: "application-controller"})}}
	doubled := &appsv1.StatefulSet{ObjectMeta: meta("argocd-application-controller", controller),
		Spec: appsv1.StatefulSetSpec{Template: pod(same("argocd-application-controller", "4"), same("application-controller", "1"))}}
	seven, held := "7", &plan.Resources{Requests: map[string]string{"cpu": "1"}}
	ofContainer := func(name string) *plan.Plan {
		p := planOf("StatefulSet", "argocd-application-controller")
		p.Target.Container, p.ControllerReplicas, p.Resources = name, 7, held
		return p
	}
	deployed := planOf("Deployment", "argocd-application-controller")
	deployed.Target.Container = "old"
	argocd := plan.Target{Namespace: "argocd"}
	tests := map[string]struct {
		objects    []client.Object
		target     plan.Target
		of         *plan.Plan
		wantTarget plan.Target
		want       discover.Workload
		wantErr    string
	}{
		"Helm, whatever the release is called": {
			objects: []client.Object{helm, api}, target: argocd,
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "rel-argocd-application-controller", Container: "application-controller"},
			want: discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "rel-argocd-application-controller", Container: "application-controller", Replicas: 3,
				ReadyReplicas: 2, UpdatedReplicas: 1, CurrentRevision: "r1", UpdateRevision: "r2", Generation: 7, ObservedGeneration: 6, EnvReplicas: &four, Algorithm: "round-robin"},
		},
		"upstream, with its settings by reference": {
			objects: []client.Object{upstream, api}, target: argocd,
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "argocd-application-controller"},
			want:       discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "argocd-application-controller", Replicas: 1},
		},
		"more replicas than anybody has": {
			objects: []client.Object{vast}, target: argocd,
			wantTarget: plan.Target{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c"},
			want:       discover.Workload{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c", Replicas: 2000},
		},
		"a Deployment": {
			objects: []client.Object{dynamic, api}, target: argocd,
			wantTarget: plan.Target{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c"},
			want:       discover.Workload{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c", Replicas: 3, DynamicDistribution: true, Unmanaged: true},
		},
		"the operator, whose command line goes before the env": {
			objects: []client.Object{told}, target: argocd,
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "example-application-controller", Container: "operator"},
			want: discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "example-application-controller", Container: "operator", Replicas: 1,
				Algorithm: "consistent-hashing", DynamicDistribution: true, ApplicationNamespaces: &some,
				Resources: &plan.Resources{Requests: map[string]string{"cpu": "1500m", "ephemeral-storage": "1Gi", "memory": "2Gi"}, Limits: map[string]string{"memory": "4Gi"}}},
		},
		"its own namespace alone, and a switch that is off": {
			objects: []client.Object{own}, target: argocd,
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "c"},
			want:       discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "c", Replicas: 1, ApplicationNamespaces: &everywhere},
		},
		"two, and the kind decides": {
			objects: []client.Object{dynamic, upstream}, target: plan.Target{Namespace: "argocd", Kind: "Deployment"},
			wantTarget: plan.Target{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c"},
			want:       discover.Workload{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c", Replicas: 3, DynamicDistribution: true, Unmanaged: true},
		},
		"by its name, without labels": {
			objects: []client.Object{api, helm}, target: plan.Target{Namespace: "argocd", Name: "argocd-server", Container: "server"},
			wantTarget: plan.Target{Kind: "Deployment", Namespace: "argocd", Name: "argocd-server", Container: "server"},
			want:       discover.Workload{Kind: "Deployment", Namespace: "argocd", Name: "argocd-server", Container: "server", Replicas: 1},
		},
		"two": {
			objects: []client.Object{helm, dynamic, api}, target: argocd,
			wantErr: `finding the application-controller in "argocd": 2 fit: Deployment argocd-application-controller, StatefulSet rel-argocd-application-controller; set target.kind and target.name`,
		},
		"two, and the plan is of one": {
			objects: []client.Object{upstream, dynamic, api}, target: argocd, of: planOf("StatefulSet", "argocd-application-controller"),
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "argocd-application-controller"},
			want: discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "argocd-application-controller", Replicas: 1,
				Beside: "Deployment argocd-application-controller"},
		},
		"two of that name, and the plan is of one": {
			objects: []client.Object{upstream, dynamic}, target: plan.Target{Namespace: "argocd", Name: "argocd-application-controller"}, of: planOf("Deployment", "argocd-application-controller"),
			wantTarget: plan.Target{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c"},
			want: discover.Workload{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c", Replicas: 3, DynamicDistribution: true, Unmanaged: true,
				Beside: "StatefulSet argocd-application-controller"},
		},
		"another, where that of the plan is gone": {
			objects: []client.Object{dynamic, api}, target: argocd, of: planOf("StatefulSet", "argocd-application-controller"),
			wantErr: `finding the application-controller in "argocd": the plan is of StatefulSet argocd-application-controller, which is not there or lacks Argo CD's labels; ` +
				`would fit: Deployment argocd-application-controller; set target.kind and target.name if another is the one`,
		},
		"none, where that of the plan is gone": {
			objects: []client.Object{api}, target: argocd, of: planOf("StatefulSet", "argocd-application-controller"),
			wantErr: `finding the application-controller in "argocd": the plan is of StatefulSet argocd-application-controller, which is not there or lacks Argo CD's labels; ` +
				`would fit: none; set target.kind and target.name if another is the one`,
		},
		"that of the plan has lost its labels": {
			objects: []client.Object{bare, dynamic}, target: argocd, of: planOf("StatefulSet", "argocd-application-controller"),
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller"},
			want: discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller", Replicas: 1,
				EnvReplicas: &four, Beside: "Deployment argocd-application-controller"},
		},
		"what a plan names has no labels and runs something else": {
			objects: []client.Object{cache, dynamic}, target: argocd, of: planOf("StatefulSet", "argocd-redis"),
			wantErr: `finding the application-controller in "argocd": the plan is of StatefulSet argocd-redis, which is not there or lacks Argo CD's labels; ` +
				`would fit: Deployment argocd-application-controller; set target.kind and target.name if another is the one`,
		},
		"a container that looks the same beside that of the plan": {
			objects: []client.Object{doubled}, target: argocd, of: ofContainer("argocd-application-controller"),
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "argocd-application-controller"},
			want:       discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "argocd-application-controller", Replicas: 1, EnvReplicas: &four},
		},
		"two that look the same, and no plan": {
			objects: []client.Object{doubled}, target: argocd,
			wantErr: `reading StatefulSet "argocd-application-controller": finding the application-controller's container: none of "argocd-application-controller", "application-controller" ` +
				`stands out by the command argocd-application-controller, the env ARGOCD_CONTROLLER_REPLICAS or its name; set target.container`,
		},
		"two that look the same, and a plan of another container": {
			objects: []client.Object{doubled}, target: argocd, of: ofContainer("main"),
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "main"},
			want: discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "main", ContainerGone: true, Replicas: 1,
				EnvReplicas: &seven, Resources: held},
		},
		"the container that a person named was renamed, where a plan is of the workload": {
			objects: []client.Object{dynamic}, target: plan.Target{Namespace: "argocd", Container: "main"}, of: deployed,
			wantTarget: plan.Target{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c"},
			want: discover.Workload{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c", Replicas: 3,
				DynamicDistribution: true, Unmanaged: true},
		},
		"the container that a person named is gone, where a plan is of the workload": {
			objects: []client.Object{doubled}, target: plan.Target{Namespace: "argocd", Container: "other"}, of: ofContainer("main"),
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "other"},
			want: discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-application-controller", Container: "other", ContainerGone: true, Replicas: 1,
				EnvReplicas: &seven, Resources: held},
		},
		"that of the plan has lost its labels and runs something else, and nothing else fits": {
			objects: []client.Object{cache, api}, target: argocd, of: planOf("StatefulSet", "argocd-redis"),
			wantTarget: plan.Target{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-redis", Container: "application-controller"},
			want:       discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "argocd-redis", Container: "application-controller", Replicas: 1},
		},
		"another, which a person named": {
			objects: []client.Object{dynamic, api}, target: plan.Target{Namespace: "argocd", Kind: "Deployment"}, of: planOf("StatefulSet", "argocd-application-controller"),
			wantTarget: plan.Target{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c"},
			want:       discover.Workload{Kind: "Deployment", Namespace: "argocd", Name: "argocd-application-controller", Container: "c", Replicas: 3, DynamicDistribution: true, Unmanaged: true},
		},
		"none": {
			objects: []client.Object{api}, target: argocd,
			wantErr: `finding the application-controller in "argocd": no StatefulSet or Deployment with the labels app.kubernetes.io/part-of=argocd and ` +
				`app.kubernetes.io/component=application-controller; there are: Deployment argocd-server; set target.kind and target.name`,
		},
		"nothing at all": {
			target:  plan.Target{Namespace: "argocd", Kind: "StatefulSet", Name: "x"},
			wantErr: `finding the application-controller in "argocd": no StatefulSet called "x"; there are: none; set target.kind and target.name`,
		},
		"no such container": {
			objects: []client.Object{upstream}, target: plan.Target{Namespace: "argocd", Container: "main"},
			wantErr: `reading StatefulSet "argocd-application-controller": it has no container "main", only "proxy", "argocd-application-controller"; mend target.container`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target, workload, err := FindTarget(t.Context(), fake.NewClientBuilder().WithObjects(test.objects...).Build(), test.target, test.of)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(test.wantErr, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantTarget, target); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, workload); diff != "" {
				t.Errorf("workload (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAWorkloadOfWhatIsNoTextIsKnown: the fake API server goes by JSON, and would make text of it.
func TestAWorkloadOfWhatIsNoTextIsKnown(t *testing.T) {
	for note, want := range map[string]bool{"a": false, "\u00e9": false, "\xff": true} {
		meta := metav1.ObjectMeta{Name: "c", Annotations: map[string]string{"note": note}}
		set, deployment := fromStatefulSet(&appsv1.StatefulSet{ObjectMeta: meta}), fromDeployment(&appsv1.Deployment{ObjectMeta: meta})
		if set.workload.NoText != want || deployment.workload.NoText != want {
			t.Errorf("%q: %t and %t, want %t", note, set.workload.NoText, deployment.workload.NoText, want)
		}
		secret := secrets.FromSecret(&corev1.Secret{ObjectMeta: meta})
		typed := secrets.FromSecret(&corev1.Secret{Type: corev1.SecretType(note)})
		if secret.NoText != want || typed.NoText != want {
			t.Errorf("a Secret with %q: %t and %t, want %t", note, secret.NoText, typed.NoText, want)
		}
	}
}

// TestAnUpdateThatChangesNothingPlannedWithRunsNoCycle, and one that does, does.
func TestAnUpdateThatChangesNothingPlannedWithRunsNoCycle(t *testing.T) {
	secret := func(change func(*corev1.Secret)) any {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: "argocd", UID: "uid-prod",
			Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			Data: map[string][]byte{"name": []byte("prod"), "server": []byte("https://prod"), "shard": []byte("1")}}
		change(s)
		kept, err := secrets.Transform(labels.SelectorFromSet(s.Labels))(s)
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	set := func(change func(*appsv1.StatefulSet)) any {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "controller", Namespace: "argocd"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}}
		s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: discover.EnvReplicas, Value: "3"}}}}
		change(s)
		return s
	}
	deployment := func(change func(*appsv1.Deployment)) any {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "controller", Namespace: "argocd"}}
		change(d)
		return d
	}
	asItIs := secret(func(*corev1.Secret) {})
	for name, test := range map[string]struct {
		before, after any
		want          bool
	}{
		"a Secret told again": {asItIs, asItIs, false},
		"a Secret's token and annotation": {asItIs, secret(func(s *corev1.Secret) {
			s.Data["config"], s.ResourceVersion = []byte(`{"bearerToken":"x"}`), "2"
			s.Annotations = map[string]string{"a": "b"}
		}), false},
		"a Secret's shard":        {asItIs, secret(func(s *corev1.Secret) { s.Data["shard"] = []byte("2") }), true},
		"a Secret's server":       {asItIs, secret(func(s *corev1.Secret) { s.Data["server"] = []byte("https://b") }), true},
		"a Secret's pin":          {asItIs, secret(func(s *corev1.Secret) { s.Annotations = map[string]string{plan.AnnotationPin: "1"} }), true},
		"a Secret on its way out": {asItIs, secret(func(s *corev1.Secret) { s.DeletionTimestamp = new(metav1.Now()) }), true},
		"a Secret made anew":      {asItIs, secret(func(s *corev1.Secret) { s.UID = "another" }), true},
		"a workload's managed fields": {set(func(*appsv1.StatefulSet) {}), set(func(s *appsv1.StatefulSet) {
			s.ManagedFields, s.ResourceVersion = []metav1.ManagedFieldsEntry{{Manager: "m"}}, "2"
		}), false},
		"a workload's replicas":      {set(func(*appsv1.StatefulSet) {}), set(func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(4)) }), true},
		"a workload's ready pods":    {set(func(*appsv1.StatefulSet) {}), set(func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 1 }), true},
		"a workload's env":           {set(func(*appsv1.StatefulSet) {}), set(func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Env[0].Value = "1" }), true},
		"a workload that opts out":   {set(func(*appsv1.StatefulSet) {}), set(func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} }), true},
		"a Deployment told again":    {deployment(func(*appsv1.Deployment) {}), deployment(func(*appsv1.Deployment) {}), false},
		"a Deployment's generation":  {deployment(func(*appsv1.Deployment) {}), deployment(func(d *appsv1.Deployment) { d.Generation = 2 }), true},
		"what this knows nothing of": {&corev1.ConfigMap{}, &corev1.ConfigMap{}, true},
	} {
		if got := Differ(test.before, test.after); got != test.want {
			t.Errorf("%s runs a cycle: %t, want %t", name, got, test.want)
		}
	}
}
