package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

func preview(w *world) {
	It("plans with read-only rights and no configuration, and changes nothing", func(ctx SpecContext) {
		before := w.versions(ctx)
		// The fullest replica is about where the shipped partition begins to relieve it: by one cluster, or not yet.
		shipped, _, _, err := w.Plans(ctx, w.bob, "--prometheus="+w.Prometheus, "--all")
		Expect(err).NotTo(HaveOccurred())
		Expect(shipped).To(MatchRegexp(`(?m)^Would be: makespan over mean 1\.(0[0-9] on 3 replicas, 1 move|1[5-7] on 3 replicas, 0 moves)$`))
		Expect(shipped).NotTo(ContainSubstring(fleet.Canary))

		lpt := filepath.Join(GinkgoT().TempDir(), "lpt.yaml")
		text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\npartition: {lpt: {}}\n"
		Expect(os.WriteFile(lpt, []byte(text), 0o600)).To(Succeed())
		stdout, said, changes, err := w.Plans(ctx, w.bob, "--prometheus="+w.Prometheus, "--config="+lpt, "--all")
		Expect(err).NotTo(HaveOccurred())
		Expect(changes).To(BeTrue(), "exit code 2")
		Expect(said).NotTo(ContainSubstring("ballast: "), "an answer is no error")
		Expect(stdout).To(MatchRegexp(`(?m)^Would be: makespan over mean 1\.0[01] on 3 replicas, [0-9]+ moves$`), "nothing says that a replica cannot carry what it carries")
		moves := regexp.MustCompile(`(?m)^ *([a-z]+-[a-z]+-[0-9]) +[0-9.]+ +([0-9]) +([0-9]) +[A-Z][A-Za-z]+ *$`).FindAllStringSubmatch(stdout, -1)
		Expect(moves).NotTo(BeEmpty())
		for _, move := range moves {
			Expect(move[2]).To(Equal(strconv.Itoa(startReplica(w.Fleet, move[1]))), move[1])
			Expect(move[3]).NotTo(Equal(move[2]), move[1])
		}
		Expect(stdout).NotTo(ContainSubstring(fleet.Canary))
		Expect(w.versions(ctx)).To(Equal(before))
		Expect(w.Plan(ctx)).To(BeNil())
	}, SpecTimeout(firstPatience))
}

func observing(w *world) {
	var before map[string]string

	It("is installed from the shipped manifests", func(ctx SpecContext) {
		before = w.versions(ctx)
		Expect(w.InstallBallast(ctx, w.config("Observe"))).To(Succeed())
	}, SpecTimeout(patience))

	It("writes revision 1: the fleet as it is", func(ctx SpecContext) {
		p := w.planSoon(ctx, "want a plan", func(p site.Plan) bool { return p.Revision == 1 })
		want := map[string]int{}
		for _, name := range w.Fleet.Names() {
			want[name] = startReplica(w.Fleet, name)
		}
		Expect(p.Replica()).To(Equal(want))
		Expect(p.Mode).To(Equal("Observe"))
		Expect([]int{p.Replicas, p.ControllerReplicas, p.MaxReplicas}).To(Equal([]int{3, 3, 16}))
		Expect(p.PlannerUser).To(Equal(site.PlannerUser))
		Expect(p.Annotation("revision")).To(Equal("1"))
		Expect(p.Annotation("decided-by")).To(HavePrefix(site.Planner))
		Expect(time.Parse(time.RFC3339, p.Annotation("decided-at"))).To(BeTemporally("~", time.Now(), patience))
	}, SpecTimeout(patience))

	It("touches nothing", func(ctx SpecContext) {
		Consistently(func() map[string]string { return w.versions(ctx) }, "12s", "1s").Should(Equal(before))
		Expect(w.plan(ctx).Revision).To(Equal(1), "an unchanged fleet writes no plan")
	}, SpecTimeout(patience))

	It("lets every write pass, and says so in the audit log", func(ctx SpecContext) {
		cluster := w.Fleet.Names()[0]
		Expect(w.setShard(ctx, cluster, 2)).To(BeEmpty())
		Expect(w.state(ctx).Shards[cluster]).To(Equal("2"))
		Expect(w.lastRecord()).To(Equal(record{"patch", "secrets " + cluster, "Observing", "shard=2", "-", 1}))
		w.planSoon(ctx, "want the plan to follow", func(p site.Plan) bool { return p.Clusters[cluster].Replica == 2 })
		Expect(w.setShard(ctx, cluster, startReplica(w.Fleet, cluster))).To(BeEmpty())
		w.planSoon(ctx, "want the plan to follow back", func(p site.Plan) bool {
			return p.Clusters[cluster].Replica == startReplica(w.Fleet, cluster)
		})
	}, SpecTimeout(patience))
}

func holding(w *world) {
	It("keeps what is, and moves and scales nothing", func(ctx SpecContext) {
		before := w.state(ctx)
		Expect(w.Configure(ctx, w.config("Hold"))).To(Succeed())
		p := w.planSoon(ctx, "want mode Hold", func(p site.Plan) bool { return p.Mode == "Hold" })
		Consistently(func() state { return w.state(ctx) }, "12s", "1s").Should(Equal(before))
		Expect(w.plan(ctx).Replica()).To(Equal(p.Replica()))
		Expect(w.planned(ctx, p)).To(Equal(before))
	}, SpecTimeout(patience))

	It("puts back what somebody changes", func(ctx SpecContext) {
		cluster := w.Fleet.Names()[0]
		revision := w.plan(ctx).Revision
		Expect(w.setShard(ctx, cluster, 2)).To(ConsistOf(
			"ballast: shard 2 was asked, 0 stays (plan " + strconv.Itoa(revision) + `); to pin, add "` + cluster + `: 2" to data.pins of ConfigMap ballast-plan`))
		Expect(w.state(ctx).Shards[cluster]).To(Equal("0"))
	}, SpecTimeout(patience))
}
