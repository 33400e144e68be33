package manifests

import (
	"context"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/e2e/apiserver"
)

// TestNoNodeMakesAPodThatPassesForAnothers on a real API server, as the policy is shipped and brought to another namespace.
func TestNoNodeMakesAPodThatPassesForAnothers(t *testing.T) {
	config := apiserver.Start(t)
	everybodyCreatesPods(t, clientOf(t, config, ""))
	for _, at := range []struct{ dir, namespace, workload string }{
		{overlays()["cert-manager"], "argocd", "argocd-application-controller"},
		{overlays()["retarget-example"], namespace, workload},
	} {
		t.Run(at.namespace, func(t *testing.T) {
			b := installNodePolicy(t, config, at.dir, at.namespace, at.workload)
			t.Run("what is refused", b.refusesWhatPassesForAnothers)
			t.Run("what passes", b.letsEverythingElsePass)
			t.Run("a kubelet's other writes", b.leavesTheKubeletItsPods)
		})
	}
}

// nodeBed is a namespace under the policy, and a kubelet of the cluster.
type nodeBed struct {
	namespace, workload string
	config              *rest.Config
	person, kubelet     client.Client
}

// everybodyCreatesPods gives to all what Kubernetes' own authorizers give to kubelets and controllers.
func everybodyCreatesPods(t *testing.T, person client.Client) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "pods"}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "pods/status"}, Verbs: []string{"create", "update", "patch", "delete"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "pods"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}}},
	} {
		if err := person.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *nodeBed) as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(b.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installNodePolicy returns once the policy is in force.
func installNodePolicy(t *testing.T, config *rest.Config, dir, namespace, workload string) *nodeBed {
	t.Helper()
	in, name := decode(t, build(t, dir)), "ballast-pods."+namespace
	b := &nodeBed{namespace: namespace, workload: workload, config: config, person: clientOf(t, config, "")}
	b.kubelet = b.as(t, "system:node:n1", "system:nodes")
	policy, binding := in.Policies[name], in.PolicyBindings[name]
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &policy, &binding} {
		if err := b.person.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.person.Delete(context.WithoutCancel(t.Context()), o) })
	}
	(&policyBed{}).until(t, name+" is in force", func() bool {
		return apierrors.IsForbidden(b.kubelet.Create(t.Context(), b.mirror("x", labelsOf("ballast", "")), client.DryRunAll))
	})
	return b
}

// mirror is a pod as the kubelet of node n1 makes it, to show a static pod.
func (b *nodeBed) mirror(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: labels,
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "a", "kubernetes.io/config.source": "file"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "6c9d2a10-0000-4000-8000-000000000000", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
}

func (b *nodeBed) refusesWhatPassesForAnothers(t *testing.T) {
	const (
		ours    = "a node creates no pod with the label app.kubernetes.io/name: ballast"
		replica = "a node creates no pod with the name of a replica of the application-controller"
	)
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		told string
	}{
		"behind the webhook's Service": {b.mirror("a-n1", labelsOf("ballast", "webhook")), ours},
		"scraped as a planner":         {b.mirror("a-n1", labelsOf("ballast", "planner")), ours},
		"with that label alone":        {b.mirror("a-n1", labelsOf("ballast", "")), ours},
		"a replica":                    {b.mirror(b.workload+"-0", nil), replica},
		"a replica that is to come":    {b.mirror(b.workload+"-127", labelsOf("etcd", "")), replica},
	} {
		t.Run(name, func(t *testing.T) { told(t, b.kubelet.Create(t.Context(), c.pod, client.DryRunAll), c.told) })
	}
	noMirror := b.mirror("a", labelsOf("ballast", "webhook"))
	noMirror.Annotations, noMirror.OwnerReferences = nil, nil
	told(t, b.kubelet.Create(t.Context(), noMirror, client.DryRunAll), ours)
}

func labelsOf(name, component string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/component": component}
}

func (b *nodeBed) letsEverythingElsePass(t *testing.T) {
	elsewhere := b.mirror(b.workload+"-0", labelsOf("ballast", "webhook"))
	elsewhere.Namespace = metav1.NamespaceDefault
	told(t, b.kubelet.Create(t.Context(), elsewhere, client.DryRunAll), "")
	for _, pod := range []*corev1.Pod{
		b.mirror("etcd-n1", nil), b.mirror("etcd-n1", labelsOf("etcd", "webhook")),
		b.mirror(b.workload+"-n1", nil), b.mirror(b.workload+"-0-n1", nil), b.mirror(b.workload+"-", nil), b.mirror(b.workload, nil),
		b.mirror("x-"+b.workload+"-0", nil),
	} {
		if pod.Name == b.workload+"-" {
			pod.Name, pod.GenerateName = "", pod.Name+"x"
		}
		t.Run("a mirror pod "+pod.Name, func(t *testing.T) { told(t, b.kubelet.Create(t.Context(), pod, client.DryRunAll), "") })
	}
	others := map[string]client.Client{
		"Kubernetes' controllers": b.as(t, "system:kube-controller-manager"),
		"a controller's account":  b.as(t, "system:serviceaccount:kube-system:statefulset-controller", "system:serviceaccounts"),
		"an administrator":        b.as(t, "admin", "system:masters"),
		"a person":                b.as(t, "system:node:somebody"),
	}
	for _, who := range slices.Sorted(maps.Keys(others)) {
		t.Run(who, func(t *testing.T) {
			for _, pod := range []*corev1.Pod{b.mirror(b.workload+"-0", nil), b.mirror("ballast-webhook-5d-x", labelsOf("ballast", "webhook"))} {
				told(t, others[who].Create(t.Context(), pod, client.DryRunAll), "")
			}
		})
	}
}

// leavesTheKubeletItsPods: those of ballast and the replicas, which controllers made and a node runs.
func (b *nodeBed) leavesTheKubeletItsPods(t *testing.T) {
	for _, pod := range []*corev1.Pod{b.mirror(b.workload+"-0", nil), b.mirror("ballast-webhook-5d-x", labelsOf("ballast", "webhook"))} {
		pod.Annotations, pod.OwnerReferences = nil, nil
		told(t, b.person.Create(t.Context(), pod), "")
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7", PodIPs: []corev1.PodIP{{IP: "10.0.0.7"}}}
		told(t, b.kubelet.Status().Update(t.Context(), pod), "")
		told(t, b.kubelet.Delete(t.Context(), pod, client.GracePeriodSeconds(0)), "")
	}
}
