package suite

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

func switches(w *world) {
	var p site.Plan
	BeforeEach(func(ctx SpecContext) { p = w.plan(ctx) })
	annotate := func(ctx SpecContext, annotation string) {
		GinkgoHelper()
		w.kubectl(ctx, "annotate", "configmap", site.PlanConfigMap, annotation)
	}

	It("lets every write pass at once while enforcement is off, and heals when it is on again", func(ctx SpecContext) {
		const cluster = fleet.Giant
		right := stateOf(p).Shards[cluster]
		annotate(ctx, "ballast.argoproj.io/enforcement=off")
		Eventually(func(g Gomega) {
			g.Expect(w.setShard(ctx, cluster, "0")).To(BeEmpty())
			g.Expect(w.setShard(ctx, cluster, "1")).To(BeEmpty())
			g.Expect(w.state(ctx).Shards[cluster]).To(Equal("1"))
		}).Should(Succeed())
		Expect(w.lastRecord().Reason).To(Equal("Observing"))
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=5")).To(BeEmpty())
		Consistently(func() state { return w.state(ctx) }, "5s", "500ms").Should(And(
			HaveField("Replicas", 5), HaveField("Shards", HaveKeyWithValue(cluster, "1"))))
		annotate(ctx, "ballast.argoproj.io/enforcement-")
		Eventually(func() state { return w.state(ctx) }, "10s").Should(Equal(stateOf(p)))
		Expect(w.setShard(ctx, cluster, right)).To(BeEmpty())
		Expect(w.WaitReady(ctx, p.Replicas)).To(Succeed())
	}, SpecTimeout(time.Minute))

	It("decides nothing new while it is paused, and goes on enforcing", func(ctx SpecContext) {
		annotate(ctx, "ballast.argoproj.io/paused=true")
		_, err := w.setPins(ctx, "dev-ap-1: 4\n") // a replica that there is not yet
		Expect(err).NotTo(HaveOccurred())
		Consistently(func() int { return w.plan(ctx).Replicas }, "12s", "1s").Should(Equal(p.Replicas))
		Expect(w.plan(ctx).Rollout).To(BeNil())
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=1")).To(HaveLen(1))
		Expect(w.state(ctx).Replicas).To(Equal(p.Replicas))
	}, SpecTimeout(time.Minute))

	It("goes on when the pause ends: a pin beyond the replicas adds them", func(ctx SpecContext) {
		annotate(ctx, "ballast.argoproj.io/paused-")
		p := w.planSoon(ctx, "want five replicas", func(p site.Plan) bool { return p.Replicas == 5 && p.Rollout == nil })
		Expect(p.Clusters["dev-ap-1"]).To(And(HaveField("Replica", 4), HaveField("Pinned", true)))
		Eventually(func() state { return w.state(ctx) }).Should(Equal(stateOf(p)))
		Expect(w.WaitReady(ctx, 5)).To(Succeed())
		Eventually(w.Exporter.Owners).Should(Equal(owned(p)))
	}, SpecTimeout(time.Minute))

	It("goes back when that pin is gone", func(ctx SpecContext) {
		_, err := w.setPins(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		p := w.planSoon(ctx, "want four replicas", func(p site.Plan) bool { return p.Replicas == 4 && p.Rollout == nil })
		Eventually(func() state { return w.state(ctx) }).Should(Equal(stateOf(p)))
		Expect(w.WaitReady(ctx, 4)).To(Succeed())
		Eventually(w.Exporter.Owners).Should(Equal(owned(p)))
	}, SpecTimeout(2*time.Minute))
}
