package workload

import (
	"context"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// kubelet is what the kubelet knows as it starts a container: the data of ConfigMaps and of Secrets, by their names.
type kubelet struct {
	maps, secrets map[string]map[string]string
}

// env is what a container of the pod with that number gets for a variable, as kubelet's makeEnvironmentVariables works it out; false: it
// does not start.
func (k kubelet) env(c corev1.Container, name string, pod int) (value string, starts bool) {
	all := map[string]string{}
	for _, source := range c.EnvFrom {
		var data map[string]string
		var there bool
		var optional *bool
		if ref := source.ConfigMapRef; ref != nil {
			data, there = k.maps[ref.Name]
			optional = ref.Optional
		} else {
			data, there = k.secrets[source.SecretRef.Name]
			optional = source.SecretRef.Optional
		}
		if !there && !ptr.Deref(optional, false) {
			return "", false
		}
		for key, value := range data {
			all[source.Prefix+key] = value
		}
	}
	for _, e := range c.Env {
		value, there, optional := e.Value, true, false
		switch from := e.ValueFrom; {
		case from == nil && value == "$(OTHER)":
			if other, known := all["OTHER"]; known {
				value = other
			}
		case from == nil:
		case from.ConfigMapKeyRef != nil:
			value, there = k.maps[from.ConfigMapKeyRef.Name][from.ConfigMapKeyRef.Key]
			optional = ptr.Deref(from.ConfigMapKeyRef.Optional, false)
		case from.SecretKeyRef != nil:
			value, there = k.secrets[from.SecretKeyRef.Name][from.SecretKeyRef.Key]
			optional = ptr.Deref(from.SecretKeyRef.Optional, false)
		case from.FieldRef.FieldPath == "metadata.name":
			value = "argocd-application-controller-" + strconv.Itoa(pod)
		case from.FieldRef.FieldPath == "metadata.labels['apps.kubernetes.io/pod-index']":
			value = strconv.Itoa(pod)
		default: // an annotation of the template
			value = "1"
		}
		switch {
		case there:
			all[e.Name] = value
		case !optional:
			return "", false
		}
	}
	return all[name], true
}

// family is what the names of Argo CD's variables begin with, and short what follows: a key to which a prefix may be added.
const family = "ARGOCD_CONTROLLER_"

func short(name string) string { return strings.TrimPrefix(name, family) }

// anyContainer has random references for a variable.
func anyContainer(t *rapid.T, name string) corev1.Container {
	c := corev1.Container{Name: "c"}
	source := rapid.SampledFrom([]string{"a", "b", "gone", unread})
	optional := rapid.SampledFrom([]*bool{nil, ptr.To(true)})
	key := rapid.SampledFrom([]string{name, short(name), "none"})
	for range rapid.IntRange(0, 3).Draw(t, "envFrom") {
		of := corev1.LocalObjectReference{Name: source.Draw(t, "source")}
		from := corev1.EnvFromSource{Prefix: rapid.SampledFrom([]string{"", family, "X_"}).Draw(t, "prefix")}
		if rapid.IntRange(0, 3).Draw(t, "secret") == 0 {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: of, Optional: optional.Draw(t, "optional")}
		} else {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: of, Optional: optional.Draw(t, "optional")}
		}
		c.EnvFrom = append(c.EnvFrom, from)
	}
	for range rapid.IntRange(0, 3).Draw(t, "env") {
		e := corev1.EnvVar{Name: rapid.SampledFrom([]string{name, name, "OTHER"}).Draw(t, "name")}
		of := corev1.LocalObjectReference{Name: source.Draw(t, "of")}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			e.Value = rapid.SampledFrom([]string{"", "-1", "-0", "0", "+1", "2", "x", "4294967296"}).Draw(t, "value")
		case 1:
			e.Value = "$(OTHER)"
		case 2:
			e.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: of,
				Key: key.Draw(t, "key"), Optional: optional.Draw(t, "optional")}}
		case 3:
			e.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: of,
				Key: key.Draw(t, "key"), Optional: optional.Draw(t, "optional")}}
		case 4:
			e.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: rapid.SampledFrom([]string{"metadata.name",
				"metadata.labels['apps.kubernetes.io/pod-index']", "metadata.annotations['example.org/n']"}).Draw(t, "field")}}
		}
		c.Env = append(c.Env, e)
	}
	return c
}

// anyKubelet has random numbers in ConfigMaps and Secrets.
func anyKubelet(t *rapid.T, name string) kubelet {
	k := kubelet{maps: map[string]map[string]string{}, secrets: map[string]map[string]string{}}
	number := rapid.SampledFrom([]string{"", "-1", "0", "+1", "2", "x", "4294967296"})
	data := func() map[string]string {
		all := map[string]string{}
		for _, key := range []string{name, short(name), "OTHER"} {
			if rapid.Bool().Draw(t, key) {
				all[key] = number.Draw(t, "number")
			}
		}
		return all
	}
	for _, of := range []string{"a", "b", unread} {
		k.maps[of], k.secrets[of] = data(), data()
	}
	return k
}

// unread is a ConfigMap that the planner may not read.
const unread = "unread"

// Get answers as the API server does to the planner.
func (k kubelet) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	of := schema.GroupResource{Resource: "configmaps"}
	cm, is := o.(*corev1.ConfigMap)
	data, there := k.maps[key.Name]
	switch {
	case !is || key.Name == unread:
		return apierrors.NewForbidden(of, key.Name, nil)
	case !there:
		return apierrors.NewNotFound(of, key.Name)
	}
	cm.Data = data
	return nil
}

// List answers nobody.
func (kubelet) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
}

// TestNoNumberIsClaimedThatAContainerWouldNotHave, and one that pods have in common, and that cannot be read, is said to be unknown.
func TestNoNumberIsClaimedThatAContainerWouldNotHave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKubelet(t, discover.EnvShard)
		c := anyContainer(t, discover.EnvShard)
		w, err := found{workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd"}, object: &corev1.Pod{},
			pod: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}}.read("c", nil)
		if err == nil {
			err = follow(t.Context(), k, &w, c)
		}
		if err != nil {
			t.Fatal(err)
		}
		claimed, none := strconv.Atoi(w.FixedShard)
		pods := map[int]int{} // how many have each number
		for pod := range 3 {
			value, starts := k.env(c, discover.EnvShard, pod)
			if !starts {
				return
			}
			has, err := strconv.ParseInt(value, 10, 32)
			if err == nil && has >= 0 {
				pods[int(has)]++
			}
			if none == nil && (err != nil || int(has) != claimed) {
				t.Fatalf("%d is claimed (%s), and pod %d has %q", claimed, w.ShardSource, pod, value)
			}
		}
		for number, n := range pods {
			if n > 1 && w.FixedShard == "" && !w.ShardUnknown {
				t.Fatalf("%d pods have the number %d, and nothing is said of it", n, number)
			}
		}
		if w.ShardUnknown && w.Unnumbered() == "" || w.FixedShard != "" && w.Renumbered(2) == "" {
			t.Fatalf("people are told nothing of %q, unknown %t", w.FixedShard, w.ShardUnknown)
		}
	})
}

// TestNoReplicasAreSaidThatAContainerWouldNotCount: what a reference says of the number of replicas is what a pod that starts gets.
func TestNoReplicasAreSaidThatAContainerWouldNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKubelet(t, discover.EnvReplicas)
		c := anyContainer(t, discover.EnvReplicas)
		if !elsewhere(c, discover.EnvReplicas) {
			return
		}
		got, err := said(t.Context(), k, "argocd", c, discover.EnvReplicas)
		if err != nil {
			t.Fatal(err)
		}
		if value, starts := k.env(c, discover.EnvReplicas, 0); got != nil && starts && *got != value {
			t.Fatalf("the reference says %q, and a pod gets %q", *got, value)
		}
	})
}
