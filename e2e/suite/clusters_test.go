package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/site"
)

// burst is how many clusters come at once, as many as somebody adds by a script, and burstWithin how soon all of them are there: within
// three of the planner's intervals here on a busy machine, so that few cycles see a part of them.
const (
	burst       = 50
	burstWithin = 30 * time.Second
)

// createAtOnce creates so many cluster Secrets in parallel. The API server's own times say how long it took, to a second.
func (w *world) createAtOnce(ctx context.Context, prefix string, n int) {
	GinkgoHelper()
	created, errs := make([]metav1.Time, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		secret := w.Fleet.Secret(w.Fleet.Another(fmt.Sprintf("%s-%d", prefix, i)))
		all.Go(func() {
			made, err := w.Client.CoreV1().Secrets(w.Fleet.Namespace).Create(ctx, secret, metav1.CreateOptions{})
			if errs[i] = err; err == nil {
				created[i] = made.CreationTimestamp
			}
		})
	}
	all.Wait()
	Expect(errors.Join(errs...)).NotTo(HaveOccurred())
	slices.SortFunc(created, func(a, b metav1.Time) int { return a.Compare(b.Time) })
	Expect(created[n-1].Sub(created[0].Time)).To(BeNumerically("<=", burstWithin))
}

func clusters(w *world) {
	const name = "prod-sa-1"
	var p site.Plan
	BeforeEach(func(ctx SpecContext) { p = w.known(ctx) })
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

	It("spreads fifty that come at once, without making a replica twice as full as the mean, and moves none of them afterwards", func(ctx SpecContext) {
		before := len(w.state(ctx).Shards)
		w.createAtOnce(ctx, "burst", burst)
		shards, versions := w.state(ctx).Shards, w.versions(ctx)
		carried := map[string]int{}
		for _, shard := range shards {
			Expect(shard).To(MatchRegexp("^[0-3]$"))
			carried[shard]++
		}
		Expect(shards).To(HaveLen(before + burst))
		for shard, n := range carried {
			Expect(n*p.Replicas).To(BeNumerically("<=", 2*len(shards)), "clusters on replica %s of %v", shard, carried)
		}
		p := w.planSoon(ctx, "want all in the plan", func(p site.Plan) bool { return len(p.Clusters) == len(w.Fleet.Clusters)+2+burst })
		Expect(w.planned(ctx, p).Shards).To(Equal(shards))
		Consistently(func() map[string]string { return w.versions(ctx) }, "10s", "1s").Should(Equal(versions), "nobody writes a new Secret again")
		Expect(w.plan(ctx).Replica()).To(Equal(p.Replica()))
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
		got := w.lastRecord() // by the plan of before, or already by the one without its row
		Expect(got.Revision).To(And(BeNumerically(">=", p.Revision), BeNumerically("<=", w.plan(ctx).Revision)))
		Expect(got).To(Equal(record{"patch", "secrets " + name, "Unmanaged", "shard=" + other, "-", got.Revision}))
		w.planSoon(ctx, "want its row gone", func(p site.Plan) bool { _, planned := p.Clusters[name]; return !planned })
		w.kubectl(ctx, "annotate", "secret", name, "ballast.argoproj.io/unmanaged-")
		w.planSoon(ctx, "want it where it is now", func(p site.Plan) bool { return w.planned(ctx, p).Shards[name] == other })
	}, SpecTimeout(patience))

	It("lets go of what is deleted without moving the rest", func(ctx SpecContext) {
		before := w.state(ctx)
		gone := []string{"delete", "secret"}
		for cluster := range p.Clusters {
			if !slices.Contains(w.Fleet.Names(), cluster) {
				gone = append(gone, cluster)
				delete(before.Shards, cluster)
			}
		}
		// More than half of the fleet goes at once: without a person's word that would be believed after half an hour.
		w.kubectl(ctx, "annotate", "configmap", site.PlanConfigMap, fmt.Sprintf("ballast.argoproj.io/accept-discovery=%d", len(w.Fleet.Names())))
		w.kubectl(ctx, gone...)
		Consistently(func() state { return w.state(ctx) }, "5s", "1s").Should(Equal(before))
		Expect(w.plan(ctx).Replica()).To(Equal(p.Replica()), "a row outlives its Secret by an hour")
	}, SpecTimeout(patience))
}
