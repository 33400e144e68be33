package manifests

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tiny are n keys of up to four characters, without values.
func tiny(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out["a"+strconv.FormatInt(int64(i), 36)] = ""
	}
	return out
}

// writesWhatOthersMadeLarge: an expression that walks what others wrote costs too much one day, and the planner could then
// never mend the object. Each object is as its writer may make it, and the planner writes its own field there.
func (b *baseBed) writesWhatOthersMadeLarge(t *testing.T) {
	b.writesLargeSecrets(t)
	b.writesLargeWorkloads(t)
	b.nudgesLargeApplications(t)
}

// makeLarge makes an object without the list of its fields' writers, which takes the API server far longer than the object.
func (b *baseBed) makeLarge(t *testing.T, o client.Object, change func()) {
	t.Helper()
	b.must(t, b.person.Create(t.Context(), o))
	change()
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
	b.must(t, b.person.Update(t.Context(), o))
}

func (b *baseBed) writesLargeSecrets(t *testing.T) {
	const onlyRead = "of a cluster's Secret the planner writes data.shard, and nothing else that Argo CD reads"
	large := func(name string, change func(*corev1.Secret)) *corev1.Secret {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster"}}, Data: secretData()}
		b.makeLarge(t, o, func() { change(o) })
		return o
	}
	keys := func(n int) func(*corev1.Secret) {
		return func(o *corev1.Secret) {
			for key := range tiny(n) {
				o.Data[key] = nil
			}
		}
	}
	b.try(t, large("keys-60000", keys(60_000)), types.MergePatchType, []patched{
		{"the shard among 60000 keys", `{"data":{"shard":"Mw=="}}`, ""},
		{"no shard among 60000 keys", `{"data":{"shard":null}}`, ""},
		{"a server among 60000 keys", `{"data":{"server":"Yg=="}}`, onlyRead},
		{"a project for a token among 60000 keys", `{"data":{"config":null,"project":"YQ=="}}`, onlyRead},
		{"no token among 60000 keys", `{"data":{"config":null}}`, onlyShard},
		{"a key more than 60000", `{"data":{"shard":"Mw==","more":"YQ=="}}`, onlyShard},
		{"the label among 60000 keys", `{"metadata":{"labels":{"argocd.argoproj.io/secret-type":null}}}`, noLabels},
	})
	b.try(t, large("keys-4900", keys(4900)), types.MergePatchType, []patched{
		{"the shard among 4900 keys", `{"data":{"shard":"Mw=="}}`, ""},
		{"another of 4900 keys", `{"data":{"a1":"Yg=="}}`, onlyShard},
		{"one of 4900 keys for another", `{"data":{"a1":null,"b1":""}}`, onlyShard},
		{"the shard for one of 4900 keys", `{"data":{"a1":null,"shard":"Mw=="}}`, onlyShard},
	})
	b.try(t, large("notes-50000", func(o *corev1.Secret) { o.Annotations = tiny(50_000) }), types.MergePatchType, []patched{
		{"the shard under 50000 annotations", `{"data":{"shard":"Mw=="}}`, ""},
		{"a server under 50000 annotations", `{"data":{"server":"Yg=="}}`, onlyShard},
		{"an annotation less of 50000", `{"metadata":{"annotations":{"a1":null}}}`, onlyAnnotations},
	})
}

// largeSet is a StatefulSet of its own.
func (b *baseBed) largeSet(t *testing.T, name string, change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	t.Helper()
	_, _, o, _ := b.fleet()
	o.Name = name
	b.makeLarge(t, o, func() { change(o) })
	return o
}

func (b *baseBed) writesLargeWorkloads(t *testing.T) {
	const env = "/spec/template/spec/containers/0/env"
	ops := func(ops ...string) string { return "[" + strings.Join(ops, ",") + "]" }
	op := func(path, value string) string {
		return fmt.Sprintf(`{"op":"add","path":%q,"value":%s}`, path, value)
	}
	its := func(index int) string {
		return fmt.Sprintf(`{"op":"replace","path":"%s/%d","value":{"name":%q,"value":"9"}}`, env, index, envReplicas)
	}
	var each []string // every entry of the name, as envOps does
	for i := range 2400 {
		each = append(each, its(i+3))
	}
	all := strings.Join(append(each, its(1)), ",")
	const restart = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt"
	step := ops(op("/spec/replicas", "9"), its(1), op(restart, `"now"`)) // all that the planner writes
	image := op("/spec/template/spec/containers/0/image", `"mallory"`)
	proxy := op(env+"/-", `{"name":"HTTPS_PROXY","value":"http://mallory"}`)
	more := op(env+"/-", fmt.Sprintf(`{"name":%q,"value":"9"}`, envReplicas))
	containers := func(n int) func(*appsv1.StatefulSet) {
		return func(o *appsv1.StatefulSet) {
			o.Spec.Template.Annotations = map[string]string{"note": "a"}
			for i := range n {
				o.Spec.Template.Spec.Containers = append(o.Spec.Template.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "x"})
			}
		}
	}
	entries := func(n int, name, value string) func(*appsv1.StatefulSet) {
		return func(o *appsv1.StatefulSet) {
			o.Spec.Template.Annotations = map[string]string{"note": "a"}
			of := &o.Spec.Template.Spec.Containers[0]
			for range n {
				of.Env = append(of.Env, corev1.EnvVar{Name: name, Value: value})
			}
		}
	}
	notes := func(of map[string]string) func(*appsv1.StatefulSet) {
		return func(o *appsv1.StatefulSet) {
			o.Annotations, o.Spec.Template.Annotations = of, map[string]string{"note": "a"}
		}
	}
	podNotes := func(of map[string]string) func(*appsv1.StatefulSet) {
		return func(o *appsv1.StatefulSet) { o.Spec.Template.Annotations = of }
	}
	const once = "of a container's env the planner writes ARGOCD_CONTROLLER_REPLICAS once"
	for name, c := range map[string]struct {
		change func(*appsv1.StatefulSet)
		tried  []patched
	}{
		"notes-50000": {notes(tiny(50_000)), []patched{{"a step", step, ""}, {"an image", ops(image), onlyResources},
			{"an annotation less", `[{"op":"remove","path":"/metadata/annotations/a1"}]`, onlyAnnotations}}},
		"pod-notes-50000": {podNotes(tiny(50_000)), []patched{{"a step", step, ""}, {"another", ops(op("/spec/template/metadata/annotations/inject", `"yes"`)), onlyRestart}}},
		"containers-250":  {containers(250), []patched{{"a step", step, ""}, {"an image", ops(image), onlyResources}, {"a proxy", ops(proxy), onlyEnv}}},
		"containers-1000": {containers(1000), []patched{{"a step", step, ""}, {"an account", ops(op("/spec/template/spec/serviceAccountName", `"default"`)), onlyContainers}}},
		"env-2400":        {entries(2400, "E", "1"), []patched{{"a step", step, ""}, {"an image", ops(image), onlyResources}, {"a proxy", ops(proxy), onlyEnv}}},
		"env-60000":       {entries(60_000, "E", "1"), []patched{{"a step", step, ""}}},
		"duplicates-2400": {entries(2400, envReplicas, "x"), []patched{
			{"a scale", ops(op("/spec/replicas", "9"), op(restart, `"now"`)), ""},
			{"a step", ops(op("/spec/replicas", "9"), all, op(restart, `"now"`)), ""},
			{"a proxy", ops(proxy), "ballast-planner." + b.namespace}}},
		"duplicates-70": {entries(70, envReplicas, "x"), []patched{{"a step", step, ""}, {"one more", ops(more), once}}},
		"no-duplicate":  {entries(0, "", ""), []patched{{"one more", ops(more), once}, {"one for another", ops(more, `{"op":"remove","path":"`+env+`/1"}`), ""}}},
	} {
		o := b.largeSet(t, name, c.change)
		t.Run(name, func(t *testing.T) { b.try(t, o, types.JSONPatchType, c.tried) })
		b.must(t, b.person.Delete(t.Context(), o))
	}
}

func (b *baseBed) nudgesLargeApplications(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"project": "default", "destination": map[string]any{"server": "https://10.0.0.1"}}}}
	u.SetAPIVersion("argoproj.io/v1alpha1")
	u.SetKind("Application")
	u.SetNamespace(b.namespace)
	u.SetName("notes-50000")
	b.makeLarge(t, u, func() { u.SetAnnotations(tiny(50_000)) })
	b.try(t, u, types.MergePatchType, []patched{
		{"a refresh under 50000 annotations", `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`, ""},
		{"another of 50000 annotations", `{"metadata":{"annotations":{"inject":"b"}}}`, "of an Application the planner writes"},
	})
	b.must(t, b.person.Delete(t.Context(), u))
}
