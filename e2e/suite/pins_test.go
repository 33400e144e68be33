package suite

import (
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"ballast/e2e/site"
)

func pins(w *world) {
	const cluster, other = "stage-us-1", "stage-us-2"
	var p site.Plan
	BeforeEach(func(ctx SpecContext) { p = w.known(ctx) })

	pinned := func(ctx SpecContext, name string, replica int) {
		GinkgoHelper()
		Eventually(func() string { return w.state(ctx).Shards[name] }).Should(Equal(strconv.Itoa(replica)))
		w.planSoon(ctx, "want the row pinned", func(p site.Plan) bool { return p.Clusters[name].Replica == replica && p.Clusters[name].Pinned })
		Eventually(func() []string { return w.Exporter.Owners()[name] }).Should(Equal(w.owned(ctx, w.plan(ctx))[name]))
	}

	It("moves a pinned cluster, and no other", func(ctx SpecContext) {
		before, target := w.state(ctx), (p.Clusters[cluster].Replica+1)%p.Replicas
		warnings, err := w.setPins(ctx, fmt.Sprintf("# noisy neighbours\n%s: %d  # alice\n", cluster, target))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty())
		Expect(w.lastRecord()).To(Equal(record{
			"patch", "configmaps " + site.PlanConfigMap, "InPlan", fmt.Sprintf("pins.%s=%d", cluster, target), fmt.Sprintf("pins.%s=%d", cluster, target), p.Revision,
		}))
		pinned(ctx, cluster, target)
		before.Shards[cluster] = strconv.Itoa(target)
		Expect(w.state(ctx)).To(Equal(before))
	}, SpecTimeout(patience))

	It("keeps it there against a hand", func(ctx SpecContext) {
		at := p.Clusters[cluster].Replica
		wrong := (at + 1) % p.Replicas
		Expect(w.setShard(ctx, cluster, wrong)).To(ConsistOf(fmt.Sprintf(
			"ballast: shard %d was asked, pin %d stays; change the pin: data.pins of ConfigMap ballast-plan, or its annotation", wrong, at)))
		Expect(w.lastRecord()).To(Equal(record{
			"patch", "secrets " + cluster, "Pinned", fmt.Sprintf("shard=%d", wrong), fmt.Sprintf("shard=%d", at), p.Revision,
		}))
	}, SpecTimeout(patience))

	It("refuses a pin that cannot be, with its line and the mend", func(ctx SpecContext) {
		_, err := w.setPins(ctx, p.Pins+"prod-eu-1: 99\n")
		Expect(err).To(MatchError(ContainSubstring("ballast: pins line 3: prod-eu-1: replica 99 is not below maxReplicas 16: choose 0 to 15, or raise maxReplicas")))
		Expect(w.lastRecord()).To(Equal(record{"patch", "configmaps " + site.PlanConfigMap, "PinRefused", "pins.prod-eu-1=99", "-", p.Revision}))
		Expect(w.plan(ctx).Pins).To(Equal(p.Pins))
	}, SpecTimeout(patience))

	It("takes a pin of a cluster that is none, and names the nearest", func(ctx SpecContext) {
		warnings, err := w.setPins(ctx, p.Pins+"prod-eu-11: 1\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ConsistOf("ballast: pin prod-eu-11: no such cluster in the plan yet; did you mean prod-eu-1?"))
		_, err = w.setPins(ctx, p.Pins)
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(patience))

	It("makes a pin of a row that kubectl edit changes, and keeps the comments", func(ctx SpecContext) {
		target := (p.Clusters[other].Replica + 1) % p.Replicas
		warnings, err := w.edit(ctx, fmt.Sprintf(`s/^\( *%s: {replica: \)[0-9]*/\1%d/`, other, target), "configmap", site.PlanConfigMap)
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ConsistOf(fmt.Sprintf("ballast: these rows became pins in data.pins: %s: %d", other, target)))
		Expect(w.plan(ctx).Pins).To(Equal(p.Pins + fmt.Sprintf("%s: %d\n", other, target)))
		pinned(ctx, other, target)
	}, SpecTimeout(patience))

	It("puts back what else is written into the plan", func(ctx SpecContext) {
		warnings, err := w.edit(ctx, `s/^    replicas: [0-9]*/    replicas: 9/`, "configmap", site.PlanConfigMap)
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ConsistOf(fmt.Sprintf("ballast: data.plan is the planner's, revision %d stays: only a row's replica can be edited; it becomes a pin", p.Revision)))
		Expect(w.plan(ctx).Text).To(Equal(p.Text))
	}, SpecTimeout(patience))

	It("moves nothing when the pins are taken away", func(ctx SpecContext) {
		before := w.state(ctx)
		_, err := w.setPins(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		w.planSoon(ctx, "want no row pinned", func(p site.Plan) bool { return !p.Clusters[cluster].Pinned && !p.Clusters[other].Pinned })
		Expect(w.plan(ctx).Replica()).To(Equal(p.Replica()))
		Expect(w.state(ctx)).To(Equal(before))
	}, SpecTimeout(patience))
}
