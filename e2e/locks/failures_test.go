package locks

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"ballast/certs"
	"ballast/e2e/plane/network"
	"ballast/e2e/site"
)

// failures are what can go, one at a time and all at once. Of each: what is written meanwhile, and how it comes back.
func failures(w *world, closed bool) {
	whole := installation{Overlay: "cert-manager"}
	if closed {
		whole.Components = []string{"fail-closed"}
	}
	BeforeAll(func(ctx SpecContext) {
		w.install(ctx, whole)
		Expect(w.Available(ctx)).To(Succeed())
		w.enforces(ctx)
	}, NodeTimeout(patience))

	It("bears that no webhook pod can be reached", func(ctx SpecContext) {
		w.Plane.Proxy().Refuse(network.AllPods)
		DeferCleanup(func() { w.Plane.Proxy().Allow(network.AllPods) })
		w.expectBystandersPass(ctx)
		w.expectAway(ctx, closed)
		since := time.Now()
		w.Plane.Proxy().Allow(network.AllPods)
		w.recovered(ctx, since, "no pod was reached")
		w.expectHealed(ctx)
	}, SpecTimeout(patience))

	It("bears that every webhook pod is killed", func(ctx SpecContext) {
		since := time.Now()
		w.killPods(ctx, "webhook")
		w.expectBystandersPass(ctx)
		w.recovered(ctx, since, "every webhook pod was killed")
	}, SpecTimeout(patience))

	It("enforces without cert-manager and without a planner", func(ctx SpecContext) {
		w.killCertManager()
		w.scale(ctx, site.Planner, "planner", 0)
		w.expectBystandersPass(ctx)
		w.expectEnforced(ctx)
		w.scale(ctx, site.Planner, "planner", 2)
		Expect(w.Plane.StartCertManager(ctx)).To(Succeed())
	}, SpecTimeout(patience))

	It("bears that its serving Secret is deleted, and its pods with it", func(ctx SpecContext) {
		since := time.Now()
		w.kubectl(ctx, "delete", "secret", certs.LeafTLS)
		w.expectBystandersPass(ctx)
		w.kubectl(ctx, "delete", "pods", "--selector=app.kubernetes.io/component=webhook", "--wait=false")
		w.expectBystandersPass(ctx)
		Eventually(func() error { return w.webhookAvailable(ctx) }).Should(Succeed())
		w.recovered(ctx, since, "the serving Secret and the pods were deleted")
	}, SpecTimeout(patience))

	It("bears that all of it goes at once", func(ctx SpecContext) {
		w.killCertManager()
		w.scale(ctx, site.Planner, "planner", 0)
		w.scale(ctx, site.Webhook, "webhook", 0)
		w.kubectl(ctx, "delete", "secret", certs.LeafTLS, certs.CA)
		w.expectBystandersPass(ctx)
		w.expectAway(ctx, closed)
		since := time.Now()
		w.scale(ctx, site.Webhook, "webhook", 2)
		w.scale(ctx, site.Planner, "planner", 2)
		w.expectAway(ctx, closed)
		Expect(w.Plane.StartCertManager(ctx)).To(Succeed())
		w.recovered(ctx, since, "all of it was gone, CA and cert-manager too")
		w.expectHealed(ctx)
	}, SpecTimeout(patience))
}

func (w *world) killPods(ctx context.Context, component string) {
	GinkgoHelper()
	pods, err := w.Pods(ctx, component)
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range pods {
		if w.Plane.PodPID(pod.Namespace, pod.Name) != 0 {
			Expect(w.Plane.KillPod(ctx, pod.Namespace, pod.Name)).To(Succeed())
		}
	}
}

// webhookAvailable is nil if every webhook pod that there is, and no fewer than two, is ready.
func (w *world) webhookAvailable(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return w.Available(waiting)
}
