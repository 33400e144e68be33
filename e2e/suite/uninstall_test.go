package suite

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/fleet"
)

func uninstalling(w *world) {
	It("goes in an order that leaves every cluster with an owner", func(ctx SpecContext) {
		before := w.state(ctx)
		_, _, err := w.RunBallast(ctx, w.Plane.KubeconfigPath(), "uninstall", "--yes")
		Expect(err).NotTo(HaveOccurred())
		now := w.state(ctx)
		Expect(now.Shards).To(Equal(before.Shards))
		Expect([]any{now.Replicas, now.Env}).To(Equal([]any{before.Replicas, before.Env}))
		_, err = w.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "ballast", metav1.GetOptions{})
		Expect(err).To(MatchError(ContainSubstring("not found")))
		deployments, err := w.Client.AppsV1().Deployments(w.Fleet.Namespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(deployments.Items).To(BeEmpty())
		Expect(w.Plan(ctx)).To(BeNil())
	}, SpecTimeout(time.Minute))

	It("leaves Argo CD to itself: a cluster that is added then has an owner", func(ctx SpecContext) {
		Expect(w.apply(ctx, w.Fleet.Secret(w.Fleet.Another("after-1")), "create")).To(BeEmpty())
		Expect(w.state(ctx).Shards["after-1"]).To(BeEmpty())
		Eventually(func() []string { return w.Exporter.Owners()["after-1"] }).Should(HaveLen(1))
		for name, owners := range w.Exporter.Owners() {
			Expect(owners).To(HaveLen(1), name)
		}
	}, SpecTimeout(time.Minute))

	It("gives people their application-controller back", func(ctx SpecContext) {
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=5")).To(BeEmpty())
		Expect(w.state(ctx).Replicas).To(Equal(5))
	}, SpecTimeout(time.Minute))
}
