package suite

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/certs"
	"ballast/e2e/fleet"
	"ballast/e2e/site"
	"ballast/planner/store"
)

func uninstalling(w *world) {
	It("goes in an order that leaves every cluster with an owner", func(ctx SpecContext) {
		w.kubectl(ctx, "annotate", "configmap", site.PlanConfigMap, "ballast.argoproj.io/enforcement=off")
		Eventually(func() int {
			w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=5")
			return w.state(ctx).Replicas
		}).Should(Equal(5))
		before := w.state(ctx)
		Expect(before.Env).To(Equal("4"), "an env that does not fit, which a new cluster would suffer from")
		_, _, err := w.RunBallast(ctx, w.Plane.KubeconfigPath(), "uninstall", "--yes")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.state(ctx)).To(Equal(state{before.Shards, 5, "5"}))
		Expect(w.WaitReady(ctx, 5)).To(Succeed())
		Expect(w.uninstallOrder()).To(Equal([]string{"patch statefulsets", "delete mutatingwebhookconfigurations", "delete deployments"}))
	}, SpecTimeout(patience))

	It("leaves nothing behind", func(ctx SpecContext) {
		stdout, _, err := w.Plane.Kubectl(ctx, "", "-n", w.Fleet.Namespace, "get", "-l", "app.kubernetes.io/part-of=ballast", "--ignore-not-found", "-o", "name",
			"deployments,services,serviceaccounts,roles,rolebindings,configmaps,poddisruptionbudgets,networkpolicies,priorityclasses,certificates,issuers")
		Expect(err).NotTo(HaveOccurred())
		Expect(stdout).To(BeEmpty())
		_, err = w.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "ballast."+w.Fleet.Namespace, metav1.GetOptions{})
		Expect(err).To(MatchError(ContainSubstring("not found")))
		Expect(w.Plan(ctx)).To(BeNil())
		for _, name := range []string{certs.CA, certs.CASecret, certs.LeafTLS, store.KeyName(site.PlanConfigMap)} {
			_, err = w.Client.CoreV1().Secrets(w.Fleet.Namespace).Get(ctx, name, metav1.GetOptions{})
			Expect(err).To(MatchError(ContainSubstring("not found")), "no key may be left")
		}
		Eventually(func() ([]corev1.Pod, error) { return w.Pods(ctx, "planner") }).Should(BeEmpty())
		Eventually(func() ([]corev1.Pod, error) { return w.Pods(ctx, "webhook") }).Should(BeEmpty())
	}, SpecTimeout(patience))

	It("leaves Argo CD to itself: a cluster that is added then has an owner", func(ctx SpecContext) {
		Expect(w.apply(ctx, w.Fleet.Secret(w.Fleet.Another("after-1")), "create")).To(BeEmpty())
		Expect(w.state(ctx).Shards["after-1"]).To(BeEmpty())
		Eventually(func() []string { return w.Exporter.Owners()["after-1"] }).Should(HaveLen(1))
		for name, owners := range w.Exporter.Owners() {
			Expect(owners).To(HaveLen(1), name)
		}
	}, SpecTimeout(patience))

	It("gives people their application-controller back", func(ctx SpecContext) {
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=2")).To(BeEmpty())
		Expect(w.state(ctx).Replicas).To(Equal(2))
	}, SpecTimeout(patience))
}

// uninstallOrder is what the administrator wrote last, of what must come in an order, each kind at its first write.
func (w *world) uninstallOrder() []string {
	GinkgoHelper()
	events, err := w.Audit()
	Expect(err).NotTo(HaveOccurred())
	var order []string
	for _, e := range events {
		what := e.Verb + " " + e.Resource
		if e.User != "plane-admin" || slices.Contains(order, what) {
			continue
		}
		if what == "patch statefulsets" || e.Verb == "delete" && (e.Resource == "mutatingwebhookconfigurations" || e.Resource == "deployments") {
			order = append(order, what)
		}
	}
	return order
}
