package suite

import (
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"ballast/e2e/fleet"
	"ballast/e2e/plane/network"
	"ballast/e2e/site"
)

func failures(w *world) {
	var p site.Plan
	BeforeEach(func(ctx SpecContext) {
		p = w.planSoon(ctx, "want nothing under way", func(p site.Plan) bool { return p.Rollout == nil })
	})

	It("moves nothing when the leader is killed and the other takes over", func(ctx SpecContext) {
		pod, err := w.Leader(ctx)
		Expect(err).NotTo(HaveOccurred())
		before := w.versions(ctx)
		Expect(w.Crash(ctx, pod)).To(HavePrefix(site.Planner))
		Consistently(func() map[string]string { return w.versions(ctx) }, "12s", "1s").Should(Equal(before))
		Expect(w.plan(ctx).Annotation("digest")).To(Equal(p.Annotation("digest")))
		Expect(w.Available(ctx)).To(Succeed())
	}, SpecTimeout(patience))

	It("keeps enforcing while no planner runs", func(ctx SpecContext) {
		w.kubectl(ctx, "scale", "deployment", site.Planner, "--replicas=0")
		Eventually(func() ([]corev1.Pod, error) { return w.Pods(ctx, "planner") }).Should(BeEmpty())
		Expect(w.setShard(ctx, fleet.Giant, "3"+"3")).To(HaveLen(1))
		Expect(w.apply(ctx, w.Fleet.Secret(w.Fleet.Another("edge-sa-1")), "create")).To(BeEmpty())
		now := w.state(ctx)
		Expect(now.Shards["edge-sa-1"]).To(MatchRegexp("^[0-3]$"))
		delete(now.Shards, "edge-sa-1")
		Expect(now).To(Equal(w.planned(ctx, p)))
		w.kubectl(ctx, "scale", "deployment", site.Planner, "--replicas=2")
		Expect(w.Available(ctx)).To(Succeed())
		w.planSoon(ctx, "want the planner to take the new cluster over", func(p site.Plan) bool { _, planned := p.Clusters["edge-sa-1"]; return planned })
	}, SpecTimeout(patience))

	It("mends what was written while no webhook answered, a workload at 0 before all", func(ctx SpecContext) {
		w.Plane.Proxy().Refuse(network.AllPods)
		DeferCleanup(func() { w.Plane.Proxy().Allow(network.AllPods) })
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=0")).To(BeEmpty())
		Expect(w.lastEvent()).To(And(HaveField("Resource", "statefulsets/scale"), HaveField("FailedOpen", true), HaveField("Code", BeNumerically("==", 200))))
		Eventually(func() int { return w.state(ctx).Replicas }).Should(Equal(p.Replicas))
		w.setShard(ctx, fleet.Giant, "-1")
		Eventually(func() state { return w.state(ctx) }).Should(Equal(w.planned(ctx, p)))
		w.Plane.Proxy().Allow(network.AllPods)
		Expect(w.WaitReady(ctx, p.Replicas)).To(Succeed())
		Eventually(w.Exporter.Owners).Should(Equal(w.owned(ctx, p)))
	}, SpecTimeout(patience))

	It("keeps the plan while Prometheus is away", func(ctx SpecContext) {
		w.Plane.StopPrometheus()
		before := w.versions(ctx)
		Consistently(func() string { return w.plan(ctx).Text }, "22s", "1s").Should(Equal(p.Text))
		Expect(w.versions(ctx)).To(Equal(before))
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=1")).To(HaveLen(1))
		Expect(w.apply(ctx, w.Fleet.Secret(w.Fleet.Another("edge-af-1")), "create")).To(BeEmpty())
		shard := w.state(ctx).Shards["edge-af-1"]
		p := w.planSoon(ctx, "want the new cluster in the plan", func(p site.Plan) bool { _, planned := p.Clusters["edge-af-1"]; return planned })
		Expect(strconv.Itoa(p.Clusters["edge-af-1"].Replica)).To(Equal(shard))
		Expect(w.state(ctx)).To(Equal(w.planned(ctx, p)))
	}, SpecTimeout(patience))
}
