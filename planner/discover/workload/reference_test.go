package workload

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

func keyRef(name, key string, optional *bool) corev1.EnvVar {
	return corev1.EnvVar{Name: discover.EnvReplicas, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}}
}

func configMapSource(name, prefix string) corev1.EnvFromSource {
	return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func secretSource() corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "five"}}}
}

// TestWhatAReferenceSays is what the kubelet would give a pod that starts now.
func TestWhatAReferenceSays(t *testing.T) {
	five := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "five"}, Data: map[string]string{discover.EnvReplicas: "5", "n": "7", "REPLICAS": "9"}}
	three := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "three"}, Data: map[string]string{discover.EnvReplicas: "3"}}
	many := make([]corev1.EnvFromSource, mostSources+1)
	for i := range many {
		many[i] = configMapSource("none-"+strconv.Itoa(i), "")
	}
	for name, test := range map[string]struct {
		container corev1.Container
		want      *string
	}{
		"a key":                        {corev1.Container{Env: []corev1.EnvVar{keyRef("five", "n", nil)}}, ptr.To("7")},
		"a key that is not there":      {corev1.Container{Env: []corev1.EnvVar{keyRef("five", "m", nil)}}, nil},
		"an optional one":              {corev1.Container{Env: []corev1.EnvVar{keyRef("five", "m", ptr.To(true))}}, ptr.To("")},
		"of no ConfigMap":              {corev1.Container{Env: []corev1.EnvVar{keyRef("six", "n", ptr.To(true))}}, ptr.To("")},
		"the last entry":               {corev1.Container{Env: []corev1.EnvVar{keyRef("three", discover.EnvReplicas, nil), keyRef("five", "n", nil)}}, ptr.To("7")},
		"another variable":             {corev1.Container{Env: []corev1.EnvVar{{Name: discover.EnvReplicas, Value: "$(N)"}}}, nil},
		"a field":                      {corev1.Container{Env: []corev1.EnvVar{{Name: discover.EnvReplicas, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}, nil},
		"envFrom":                      {corev1.Container{EnvFrom: []corev1.EnvFromSource{configMapSource("five", "")}}, ptr.To("5")},
		"the last envFrom":             {corev1.Container{EnvFrom: []corev1.EnvFromSource{configMapSource("five", ""), configMapSource("three", "")}}, ptr.To("3")},
		"with a prefix":                {corev1.Container{EnvFrom: []corev1.EnvFromSource{configMapSource("five", "ARGOCD_CONTROLLER_")}}, ptr.To("9")},
		"with another prefix":          {corev1.Container{EnvFrom: []corev1.EnvFromSource{configMapSource("five", "X_")}}, ptr.To("")},
		"none has it":                  {corev1.Container{EnvFrom: []corev1.EnvFromSource{configMapSource("six", "")}}, ptr.To("")},
		"a Secret may have it":         {corev1.Container{EnvFrom: []corev1.EnvFromSource{secretSource()}}, nil},
		"a Secret may have it later":   {corev1.Container{EnvFrom: []corev1.EnvFromSource{configMapSource("five", ""), secretSource()}}, nil},
		"a ConfigMap has it after one": {corev1.Container{EnvFrom: []corev1.EnvFromSource{secretSource(), configMapSource("five", "")}}, ptr.To("5")},
		"too many":                     {corev1.Container{EnvFrom: many}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := said(t.Context(), fake.NewClientBuilder().WithObjects(five, three).Build(), "argocd", test.container, discover.EnvReplicas)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if !elsewhere(test.container, discover.EnvReplicas) {
				t.Error("its value is taken to stand in the template")
			}
		})
	}
}

// TestAReferenceThatMayNotBeReadIsUnknown, and no other error is taken for that.
func TestAReferenceThatMayNotBeReadIsUnknown(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "five", errors.New("no"))
	for of, fails := range map[error]bool{forbidden: false, errors.New("the API server is away"): true} {
		r := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return of
		}})
		got, err := said(t.Context(), r, "argocd", corev1.Container{Env: []corev1.EnvVar{keyRef("five", "n", nil)}}, discover.EnvReplicas)
		if got != nil || (err != nil) != fails {
			t.Errorf("of %v it gives %v, %v", of, got, err)
		}
	}
}

// TestANumberThatEnvFromGivesIsRead: one of a ConfigMap makes every pod that replica, and what a Secret may say is named.
func TestANumberThatEnvFromGivesIsRead(t *testing.T) {
	numbers := func(name, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}, Data: map[string]string{discover.EnvShard: value, "SHARD": "3"}}
	}
	from := func(sources ...corev1.EnvFromSource) corev1.Container { return corev1.Container{EnvFrom: sources} }
	own := from(secretSource())
	own.Env = []corev1.EnvVar{{Name: discover.EnvShard, Value: "-1"}}
	another := corev1.Container{Env: []corev1.EnvVar{{Name: discover.EnvShard, Value: "$(X)"}}}
	says := func(value string) corev1.EnvVar { return corev1.EnvVar{Name: discover.EnvShard, Value: value} }
	podName := corev1.EnvVar{Name: discover.EnvShard, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
	mayBeGone := corev1.EnvVar{Name: discover.EnvShard, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}, Key: "n", Optional: ptr.To(true)}}}
	twice := func(entries ...corev1.EnvVar) corev1.Container {
		return corev1.Container{Env: entries, EnvFrom: []corev1.EnvFromSource{configMapSource("zero", "")}}
	}
	for name, test := range map[string]struct {
		container corev1.Container
		shard     string
		unknown   bool
		source    string
	}{
		"a ConfigMap":              {from(configMapSource("zero", "")), "0", false, `"ARGOCD_CONTROLLER_SHARD" of ConfigMap "zero"`},
		"the last one":             {from(configMapSource("zero", ""), configMapSource("two", "")), "2", false, `"ARGOCD_CONTROLLER_SHARD" of ConfigMap "two"`},
		"by its prefix":            {from(configMapSource("two", "ARGOCD_CONTROLLER_")), "3", false, `"SHARD" of ConfigMap "two"`},
		"under another prefix":     {from(configMapSource("two", "X_")), "", false, ""},
		"what is no replica":       {from(configMapSource("below", "")), "", false, ""},
		"a ConfigMap without it":   {from(configMapSource("none", "")), "", false, ""},
		"a Secret may have it":     {from(configMapSource("zero", ""), secretSource()), "", true, ""},
		"an entry of its own wins": {own, "", false, ""},
		"another variable":         {another, "", true, ""},
		"no reference":             {corev1.Container{}, "", false, ""},

		"of two entries the last, a number":         {twice(says("-1"), says("2")), "2", false, ""},
		"of two entries the last, none":             {twice(says("2"), says("-1")), "", false, ""},
		"the pod's name after a number":             {twice(says("2"), podName), "", false, ""},
		"a number after the pod's name":             {twice(podName, says("2")), "2", false, ""},
		"another variable after a number":           {twice(says("2"), says("$(X)")), "", true, ""},
		"a number after another variable":           {twice(says("$(X)"), says("2")), "2", false, ""},
		"a key that may be gone leaves what was":    {twice(says("2"), mayBeGone), "by reference", false, ""},
		"a key that may be gone, and an own number": {twice(mayBeGone, says("-1")), "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := fake.NewClientBuilder().WithObjects(numbers("zero", "0"), numbers("two", "2"), numbers("below", "-1")).Build()
			test.container.Name = "c"
			w, err := found{workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd"}, object: &corev1.Pod{},
				pod: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{test.container}}}}.read("c", nil)
			if err == nil {
				err = follow(t.Context(), r, &w, test.container)
			}
			if w.ShardSource != test.source || test.source != "" && !strings.HasSuffix(w.Renumbered(2), "; take the key "+test.source+" out") {
				t.Errorf("it is by %q, want %q: %s", w.ShardSource, test.source, w.Renumbered(2))
			}
			if err != nil || w.FixedShard != test.shard || w.ShardUnknown != test.unknown || (w.Unnumbered() != "") != test.unknown {
				t.Errorf("shard %q, unknown %t, %v; want %q, %t", w.FixedShard, w.ShardUnknown, err, test.shard, test.unknown)
			}
		})
	}
}

// TestADeploymentsSwitchByReference: whether its clusters are distributed dynamically says with how many replicas its pods count.
func TestADeploymentsSwitchByReference(t *testing.T) {
	switches := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "switches"}, Data: map[string]string{"on": "true", "off": "false"}}
	by := func(key string) corev1.Container {
		e := keyRef("switches", key, nil)
		e.Name = discover.EnvDynamic
		return corev1.Container{Env: []corev1.EnvVar{e}}
	}
	flagged := by("none")
	flagged.Args = []string{flagDynamic}
	for name, test := range map[string]struct {
		container        corev1.Container
		kind             string
		dynamic, unknown bool
	}{
		"on":                            {by("on"), plan.Deployment, true, false},
		"off, which pods may not know":  {by("off"), plan.Deployment, false, true},
		"a key that nobody has":         {by("none"), plan.Deployment, false, true},
		"another variable":              {corev1.Container{Env: []corev1.EnvVar{{Name: discover.EnvDynamic, Value: "$(X)"}}}, plan.Deployment, false, true},
		"a Secret may have it":          {corev1.Container{EnvFrom: []corev1.EnvFromSource{secretSource()}}, plan.Deployment, false, true},
		"the command line has the word": {flagged, plan.Deployment, true, false},
		"a StatefulSet does not ask":    {by("none"), plan.StatefulSet, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.container.Name = "c"
			w, err := found{workload: discover.Workload{Kind: test.kind, Namespace: "argocd"}, object: &corev1.Pod{}, pod: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{test.container}}}}.read("c", nil)
			if err == nil {
				err = follow(t.Context(), fake.NewClientBuilder().WithObjects(switches).Build(), &w, test.container)
			}
			if err != nil || w.DynamicDistribution != test.dynamic || w.EnvUnknown != test.unknown {
				t.Errorf("dynamic %t, unknown %t, %v; want %t, %t", w.DynamicDistribution, w.EnvUnknown, err, test.dynamic, test.unknown)
			}
		})
	}
}
