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
		right := w.planned(ctx, p).Shards[cluster]
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
		Eventually(func() state { return w.state(ctx) }).Should(Equal(w.planned(ctx, p)))
		Expect(w.setShard(ctx, cluster, right)).To(BeEmpty())
		Expect(w.WaitReady(ctx, p.Replicas)).To(Succeed())
	}, SpecTimeout(patience))

	It("is paused: from here on it decides nothing new, and goes on enforcing", func(ctx SpecContext) {
		annotate(ctx, "ballast.argoproj.io/paused=true")
		_, err := w.setPins(ctx, "dev-ap-1: 4\n") // a replica that there is not yet
		Expect(err).NotTo(HaveOccurred())
		Consistently(func() site.Plan { return w.plan(ctx) }, "12s", "1s").Should(And(HaveField("Replicas", p.Replicas), HaveField("Rollout", BeNil())))
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=1")).To(HaveLen(1))
		Expect(w.state(ctx)).To(Equal(w.planned(ctx, p)))
		_, err = w.setPins(ctx, "")
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(patience))
}

// deciding ends the pause in which pins and clusters came and went: what has piled up is decided now.
func deciding(w *world) {
	settled := func(ctx SpecContext, replicas int) site.Plan {
		GinkgoHelper()
		after := time.Now()
		Eventually(func(ctx SpecContext) error { return w.Settled(ctx, after) }).WithContext(ctx).Should(Succeed())
		p := w.plan(ctx)
		Expect(p.Replicas).To(Equal(replicas))
		Expect(w.state(ctx)).To(Equal(w.planned(ctx, p)))
		Expect(w.WaitReady(ctx, replicas)).To(Succeed())
		Eventually(w.Exporter.Owners).Should(Equal(w.owned(ctx, p)))
		return p
	}

	It("adds a replica for a pin beyond the last one when the pause ends", func(ctx SpecContext) {
		_, err := w.setPins(ctx, "dev-ap-1: 4\n")
		Expect(err).NotTo(HaveOccurred())
		w.kubectl(ctx, "annotate", "configmap", site.PlanConfigMap, "ballast.argoproj.io/paused-")
		Expect(settled(ctx, 5).Clusters["dev-ap-1"]).To(And(HaveField("Replica", 4), HaveField("Pinned", true)))
	}, SpecTimeout(patience))

	It("takes it away again when the pin is gone", func(ctx SpecContext) {
		_, err := w.setPins(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		settled(ctx, 4)
	}, SpecTimeout(patience))
}
