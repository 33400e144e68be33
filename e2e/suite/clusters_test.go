package suite

import (
	"fmt"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/site"
)

func clusters(w *world) {
	const name = "prod-sa-1"
	var p site.Plan
	BeforeEach(func(ctx SpecContext) { p = w.plan(ctx) })
	added := map[string]string{}

	It("gives a new cluster a shard the moment it exists, and keeps it there", func(ctx SpecContext) {
		Expect(w.apply(ctx, w.Fleet.Secret(w.Fleet.Another(name)), "create")).To(BeEmpty())
		shard := w.state(ctx).Shards[name]
		Expect(shard).To(MatchRegexp("^[0-3]$"))
		Expect(w.lastRecord()).To(Equal(record{"create", "secrets " + name, "Assigned", "shard=-", "shard=" + shard, p.Revision}))
		added[name] = shard
		p := w.planSoon(ctx, "want it in the plan", func(p site.Plan) bool { _, planned := p.Clusters[name]; return planned })
		Expect(strconv.Itoa(p.Clusters[name].Replica)).To(Equal(shard))
		Eventually(w.Exporter.Owners).Should(Equal(w.owned(ctx, p)))
	}, SpecTimeout(patience))

	It("gives it another one than it asks for, if that is not the plan's, and says so", func(ctx SpecContext) {
		secret := w.Fleet.Secret(w.Fleet.Another("prod-af-1"))
		secret.Data["shard"] = []byte("9")
		warnings := w.apply(ctx, secret, "create")
		shard := w.state(ctx).Shards[secret.Name]
		Expect(shard).To(MatchRegexp("^[0-3]$"))
		Expect(warnings).To(HaveLen(1))
		Expect(warnings[0]).To(HavePrefix(fmt.Sprintf("ballast: shard 9 was asked, %s stays (plan %d); to pin", shard, p.Revision)))
		added[secret.Name] = shard
	}, SpecTimeout(patience))

	It("spreads a burst, without making a replica twice as full as the others", func(ctx SpecContext) {
		for i := range 16 {
			secret := w.Fleet.Secret(w.Fleet.Another(fmt.Sprintf("burst-%d", i)))
			_, err := w.Client.CoreV1().Secrets(w.Fleet.Namespace).Create(ctx, secret, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		shards := w.state(ctx).Shards
		for i := range 16 {
			Expect(shards[fmt.Sprintf("burst-%d", i)]).To(MatchRegexp("^[0-3]$"))
		}
		p := w.planSoon(ctx, "want all in the plan", func(p site.Plan) bool { return len(p.Clusters) == len(w.Fleet.Clusters)+2+16 })
		Expect(w.planned(ctx, p).Shards).To(Equal(shards))
	}, SpecTimeout(patience))

	It("gives a Secret that is deleted and created again its replica back", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "secret", name)
		Eventually(func() map[string][]string { return w.Exporter.Owners() }).ShouldNot(HaveKey(name))
		Expect(w.apply(ctx, w.Fleet.Secret(w.Fleet.Another(name)), "create")).To(BeEmpty())
		Expect(w.state(ctx).Shards[name]).To(Equal(added[name]))
		Expect(w.lastRecord().Reason).To(Equal("Restored"))
	}, SpecTimeout(patience))

	It("leaves what a person took out alone", func(ctx SpecContext) {
		w.kubectl(ctx, "annotate", "secret", name, "ballast.argoproj.io/unmanaged=true")
		other := strconv.Itoa((p.Clusters[name].Replica + 1) % p.Replicas)
		Expect(w.setShard(ctx, name, other)).To(BeEmpty())
		Expect(w.state(ctx).Shards[name]).To(Equal(other))
		Expect(w.lastRecord()).To(Equal(record{"patch", "secrets " + name, "Unmanaged", "shard=" + other, "-", p.Revision}))
		w.planSoon(ctx, "want its row gone", func(p site.Plan) bool { _, planned := p.Clusters[name]; return !planned })
		w.kubectl(ctx, "annotate", "secret", name, "ballast.argoproj.io/unmanaged-")
		w.planSoon(ctx, "want it where it is now", func(p site.Plan) bool { return w.planned(ctx, p).Shards[name] == other })
	}, SpecTimeout(patience))

	It("lets go of what is deleted without moving the rest", func(ctx SpecContext) {
		before := w.state(ctx)
		for cluster := range p.Clusters {
			if !slices.Contains(w.Fleet.Names(), cluster) {
				w.kubectl(ctx, "delete", "secret", cluster)
				delete(before.Shards, cluster)
			}
		}
		Consistently(func() state { return w.state(ctx) }, "5s", "1s").Should(Equal(before))
		Expect(w.plan(ctx).Replica()).To(Equal(p.Replica()), "a row outlives its Secret by an hour")
	}, SpecTimeout(patience))
}
