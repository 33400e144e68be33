package locks

import (
	"context"
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// wrong is a shard that no cluster has.
const wrong = "77"

const bystander = "bystander"

// prepareBystanders makes what stands by: objects that are not under the plan.
func (w *world) prepareBystanders(ctx context.Context) {
	GinkgoHelper()
	Expect(w.Apply(ctx, "", &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: elsewhere}})).To(Succeed())
	foreign := w.Fleet.Secret(w.Fleet.Another(bystander))
	foreign.Namespace = elsewhere
	Expect(w.Apply(ctx, "",
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: bystander, Namespace: w.Fleet.Namespace}},
		&coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Name: bystander, Namespace: w.Fleet.Namespace},
		}, foreign)).To(Succeed())
}

// expectBystandersPass writes to all that must never be refused. What is not installed yet is passed over.
func (w *world) expectBystandersPass(ctx context.Context) {
	GinkgoHelper()
	w.count++
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"locks/written":"%d"}}}`, w.count)
	merge, options := types.MergePatchType, metav1.PatchOptions{}
	core, ns := w.Client.CoreV1(), w.Fleet.Namespace
	secret := func(namespace, name string) error {
		_, err := core.Secrets(namespace).Patch(ctx, name, merge, patch, options)
		return err
	}
	configMap := func(name string) error {
		_, err := core.ConfigMaps(ns).Patch(ctx, name, merge, patch, options)
		return err
	}
	lease := func(name string) error {
		_, err := w.Client.CoordinationV1().Leases(ns).Patch(ctx, name, merge, patch, options)
		return err
	}
	for what, write := range map[string]func() error{
		"a Secret outside of the plan's label":  func() error { return secret(ns, bystander) },
		"a cluster Secret of another namespace": func() error { return secret(elsewhere, bystander) },
		"ballast's own serving Secret":          func() error { return secret(ns, "ballast-webhook-tls") },
		"Argo CD's ConfigMap":                   func() error { return configMap("argocd-cm") },
		"the plan":                              func() error { return configMap(site.PlanConfigMap) },
		"a Lease":                               func() error { return lease(bystander) },
		"the leader's Lease":                    func() error { return lease(site.Lease) },
		"a pod": func() error {
			_, err := core.Pods(ns).Patch(ctx, fleet.Workload+"-0", merge, patch, options)
			return err
		},
		"the application-controller": func() error {
			_, err := w.Client.AppsV1().StatefulSets(ns).Patch(ctx, fleet.Workload, merge, patch, options)
			return err
		},
		"its scale": func() error {
			scale := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, w.Fleet.Replicas)
			_, err := w.Client.AppsV1().StatefulSets(ns).Patch(ctx, fleet.Workload, merge, scale, options, "scale")
			return err
		},
		"the webhook's Deployment": func() error {
			_, err := w.Client.AppsV1().Deployments(ns).Patch(ctx, site.Webhook, merge, patch, options)
			return err
		},
	} {
		if err := write(); !apierrors.IsNotFound(err) {
			Expect(err).NotTo(HaveOccurred(), what)
		}
	}
	w.expectPodsComeAndGo(ctx)
}

func (w *world) expectPodsComeAndGo(ctx context.Context) {
	GinkgoHelper()
	pods := w.Client.CoreV1().Pods(elsewhere)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: bystander + "-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "any", Image: "any"}}},
	}
	// Its namespace's default ServiceAccount takes a moment.
	Eventually(func() (err error) { pod, err = pods.Create(ctx, pod, metav1.CreateOptions{}); return err }).Should(Succeed())
	Expect(pods.Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
}

// cluster is the Secret that is written to, and right the shard that the plan has for it.
func (w *world) cluster() string { return w.Fleet.Names()[1] }
func (w *world) right() string   { return strconv.Itoa(w.shard(w.cluster())) }

// tryShard writes a shard and gives the one that the API server answers with.
func (w *world) tryShard(ctx context.Context, shard string, dryRun ...string) (string, error) {
	patch := fmt.Appendf(nil, `{"stringData":{"shard":%q}}`, shard)
	s, err := w.Client.CoreV1().Secrets(w.Fleet.Namespace).Patch(ctx, w.cluster(), types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
	if err != nil {
		return "", err
	}
	return string(s.Data["shard"]), nil
}

// expectEnforced: a wrong shard is put back within the write.
func (w *world) expectEnforced(ctx context.Context) {
	GinkgoHelper()
	got, err := w.tryShard(ctx, wrong)
	Expect(err).NotTo(HaveOccurred())
	Expect(got).To(Equal(w.right()))
}

// expectAway: no webhook answers, so that the write passes as it is, or is refused where somebody chose so.
func (w *world) expectAway(ctx context.Context, closed bool, dryRun ...string) {
	GinkgoHelper()
	got, err := w.tryShard(ctx, wrong, dryRun...)
	if closed {
		Expect(apierrors.IsInternalError(err)).To(BeTrue(), "got shard %q, error %v", got, err)
		Expect(err).To(MatchError(ContainSubstring(`failed calling webhook "clusters.ballast.argoproj.io"`)))
		return
	}
	Expect(err).NotTo(HaveOccurred())
	Expect(got).To(Equal(wrong))
}

// expectHealed: what was written meanwhile is mended in the store.
func (w *world) expectHealed(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		s, err := w.Client.CoreV1().Secrets(w.Fleet.Namespace).Get(ctx, w.cluster(), metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return string(s.Data["shard"]), nil
	}).Should(Equal(w.right()))
}
