package suite

import (
	"fmt"
	"math"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// carried is what each replica of a plan has of the fleet's work, as the fleet makes it and not as it was measured.
func carried(f *fleet.Fleet, p site.Plan) map[int]float64 {
	of := map[int]float64{}
	for _, c := range f.Clusters {
		of[p.Replica()[c.Name]] += c.Work.Share(f.Total())
	}
	return of
}

func enforcing(w *world) {
	It("moves the clusters and scales to the plan of this fleet", func(ctx SpecContext) {
		Expect(w.Configure(ctx, w.config("Enforce"))).To(Succeed())
		p := w.planSoon(ctx, "want it in force", func(p site.Plan) bool { return p.Mode == "Enforce" && p.Replicas == 4 && p.Rollout == nil })
		Expect(p.Replica()).To(HaveLen(len(w.Fleet.Names())))
		shares := carried(w.Fleet, p)
		Expect(shares).To(HaveLen(4))
		alone := p.Replica()["prod-us-1"]
		heaviest := shares[alone]
		Expect(heaviest).To(BeNumerically("~", 0.2605, 0.0001), "replica %d, the heaviest cluster alone", alone)
		for replica, share := range shares {
			Expect(share).To(BeNumerically("<=", heaviest), "replica %d: no plan of this fleet is more level than its heaviest cluster", replica)
		}
		Expect([]int{p.Replicas, p.ControllerReplicas, p.MaxReplicas}).To(Equal([]int{4, 4, 16}))
		Eventually(func() state { return w.state(ctx) }).Should(Equal(w.planned(ctx, p)))
		Expect(w.WaitReady(ctx, 4)).To(Succeed())
		Eventually(w.Exporter.Owners).Should(Equal(w.owned(ctx, p)))
	}, SpecTimeout(patience))

	It("says in each row what the cluster costs: its share of the fleet", func(ctx SpecContext) {
		p, total := w.plan(ctx), w.Fleet.Total()
		for _, c := range w.Fleet.Clusters {
			want := c.Work.Share(total)
			if want == 0 { // nothing is known of it yet, within the hour that it came
				Expect(p.Clusters[c.Name].Load).To(BeElementOf("", "0.0000"), c.Name)
				continue
			}
			load, err := strconv.ParseFloat(p.Clusters[c.Name].Load, 64)
			Expect(err).NotTo(HaveOccurred(), c.Name)
			Expect(math.Abs(load-want)).To(BeNumerically("<=", 0.01*want), "%s has load %v, want %v", c.Name, load, want)
		}
	}, SpecTimeout(patience))

	It("says so to whoever may read", func(ctx SpecContext) {
		stdout, _, err := w.RunBallast(ctx, w.bob, "status")
		Expect(err).NotTo(HaveOccurred())
		p := w.plan(ctx)
		Expect(stdout).To(HavePrefix(fmt.Sprintf("Plan revision %d, Enforce, decided %s by %s", p.Revision, p.Annotation("decided-at"), p.Annotation("decided-by"))))
		Expect(stdout).To(ContainSubstring("Nothing differs from the plan."))
		Expect(stdout).To(MatchRegexp(`(?m)^Status   as the leader had it [0-9m]+s ago$`))
		Expect(stdout).To(MatchRegexp(`(?m)^  Enforced +True .* Held$`))
	}, SpecTimeout(patience))

	It("leaves an idle fleet alone", func(ctx SpecContext) {
		before, plan := w.versions(ctx), w.plan(ctx)
		Consistently(func() map[string]string { return w.versions(ctx) }, "12s", "1s").Should(Equal(before))
		Expect(w.plan(ctx).ResourceVersion).To(Equal(plan.ResourceVersion))
	}, SpecTimeout(patience))
}

// writes are the ways in which other people and programs write against the plan.
func writes(w *world) {
	const cluster = fleet.Giant
	var p site.Plan
	var generation int64
	BeforeEach(func(ctx SpecContext) { p, generation = w.plan(ctx), w.generation(ctx) })
	AfterEach(func(ctx SpecContext) {
		Expect(w.state(ctx)).To(Equal(w.planned(ctx, p)))
		Expect(w.generation(ctx)).To(Equal(generation), "what is put back whole changes no spec")
		Expect(w.plan(ctx).Text).To(Equal(p.Text))
	})

	replicasWarning := func(asked int) string {
		return fmt.Sprintf("ballast: %d replicas were asked, %d stay (plan %d); to fix a number, set partition.replicas in ballast-config", asked, p.Replicas, p.Revision)
	}
	envWarning := func(asked string) string {
		return fmt.Sprintf("ballast: %s %s was asked, %d stays (plan %d)", fleet.ReplicasEnv, asked, p.ControllerReplicas, p.Revision)
	}

	It("puts back a shard that kubectl patch sets", func(ctx SpecContext) {
		right := p.Clusters[cluster].Replica
		wrong := (right + 1) % p.Replicas
		Expect(w.setShard(ctx, cluster, wrong)).To(ConsistOf(fmt.Sprintf(
			`ballast: shard %d was asked, %d stays (plan %d); to pin, add "%s: %d" to data.pins of ConfigMap ballast-plan`, wrong, right, p.Revision, cluster, wrong)))
		Expect(w.lastRecord()).To(Equal(record{
			"patch", "secrets " + cluster, "Restored", fmt.Sprintf("shard=%d", wrong), fmt.Sprintf("shard=%d", right), p.Revision,
		}))
	}, SpecTimeout(patience))

	It("turns a wrong value that comes again and again into a write of nothing", func(ctx SpecContext) {
		wrong := (p.Clusters[cluster].Replica + 1) % p.Replicas
		w.setShard(ctx, cluster, wrong)
		w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=1")
		before := w.versions(ctx) // the first write of a manager is noted in managedFields
		w.setShard(ctx, cluster, wrong)
		w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=1")
		Expect(w.versions(ctx)).To(Equal(before))
	}, SpecTimeout(patience))

	It("puts back a shard that kubectl patch removes, and what is none", func(ctx SpecContext) {
		right := fmt.Sprintf("shard=%d", p.Clusters[cluster].Replica)
		w.kubectl(ctx, "patch", "secret", cluster, "--type=json", "-p", `[{"op":"remove","path":"/data/shard"}]`)
		Expect(w.lastRecord()).To(Equal(record{"patch", "secrets " + cluster, "Restored", "shard=-", right, p.Revision}))
		w.setShard(ctx, cluster, fleet.Canary+"pasted")
		Expect(w.lastRecord()).To(Equal(record{"patch", "secrets " + cluster, "Restored", "shard=invalid", right, p.Revision}))
	}, SpecTimeout(patience))

	It("keeps the shard when argocd-server writes the whole Secret anew", func(ctx SpecContext) {
		secrets := w.Client.CoreV1().Secrets(w.Fleet.Namespace)
		s, err := secrets.Get(ctx, cluster, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		delete(s.Data, "shard")
		_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(patience))

	It("puts back kubectl scale", func(ctx SpecContext) {
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=1")).To(ConsistOf(replicasWarning(1)))
		Expect(w.lastRecord()).To(Equal(record{
			"patch", "statefulsets/scale " + fleet.Workload, "Restored", "replicas=1", fmt.Sprintf("replicas=%d", p.Replicas), p.Revision,
		}))
		Expect(w.kubectl(ctx, "scale", "statefulset", fleet.Workload, "--replicas=0")).To(ConsistOf(replicasWarning(0)))
	}, SpecTimeout(patience))

	It("puts back kubectl edit", func(ctx SpecContext) {
		warnings, err := w.edit(ctx, `s/^  replicas: .*/  replicas: 2/`, "statefulset", fleet.Workload)
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ConsistOf(replicasWarning(2)))
		Expect(w.lastRecord()).To(Equal(record{
			"patch", "statefulsets " + fleet.Workload, "Restored",
			fmt.Sprintf("replicas=2 %s=%d", fleet.ReplicasEnv, p.ControllerReplicas),
			fmt.Sprintf("replicas=%d %s=%d", p.Replicas, fleet.ReplicasEnv, p.ControllerReplicas), p.Revision,
		}))
	}, SpecTimeout(patience))

	It("puts back the replicas and the env of a manifest that is applied", func(ctx SpecContext) {
		manifest := w.Fleet.StatefulSet()
		setEnv(manifest, "2")
		Expect(w.apply(ctx, manifest, "apply")).To(ConsistOf(replicasWarning(3), envWarning("2")))
		Expect(w.lastRecord()).To(Equal(record{
			"patch", "statefulsets " + fleet.Workload, "Restored", fmt.Sprintf("replicas=3 %s=2", fleet.ReplicasEnv),
			fmt.Sprintf("replicas=%d %s=%d", p.Replicas, fleet.ReplicasEnv, p.ControllerReplicas), p.Revision,
		}))
	}, SpecTimeout(patience))

	It("puts back the replicas and the env of a manifest that is applied on the server's side, dry or not", func(ctx SpecContext) {
		manifest := w.Fleet.StatefulSet()
		setEnv(manifest, "2")
		want := ConsistOf(replicasWarning(3), envWarning("2"))
		Expect(w.apply(ctx, manifest, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--field-manager=gitops")).To(want)
		sts, err := w.StatefulSet(ctx)
		Expect(err).NotTo(HaveOccurred())
		sts.Spec.Replicas = manifest.Spec.Replicas
		setEnv(sts, "2")
		_, err = w.Client.AppsV1().StatefulSets(w.Fleet.Namespace).Update(ctx, sts, metav1.UpdateOptions{FieldManager: sts.ManagedFields[0].Manager})
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(patience))
}

func (w *world) generation(ctx SpecContext) int64 {
	GinkgoHelper()
	sts, err := w.StatefulSet(ctx)
	Expect(err).NotTo(HaveOccurred())
	return sts.Generation
}

func setEnv(sts *appsv1.StatefulSet, value string) {
	env := sts.Spec.Template.Spec.Containers[0].Env
	for i := range env {
		if env[i].Name == fleet.ReplicasEnv {
			env[i].Value = value
		}
	}
}
