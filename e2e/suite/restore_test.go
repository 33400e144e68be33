package suite

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"ballast/e2e/fleet"
	"ballast/e2e/plane/network"
	"ballast/e2e/site"
)

// An installation of its own, whose backup is as old as its fleet: three replicas, another partition, a lower revision.
var _ = Describe("a backup of ballast's first day", Ordered, ContinueOnFailure, func() {
	w := &world{}
	BeforeAll(func(ctx SpecContext) { w.start(ctx) }, NodeTimeout(firstPatience))
	AfterAll(func() { w.stop() })

	restores(w)
})

// pinned is what a person wrote before the backup was made; it stands in it, and nothing else may ever become a pin.
const pinned = "# its neighbours are noisy\nstage-us-1: 2  # alice\n"

func restores(w *world) {
	var old backup
	var p site.Plan
	BeforeEach(func(ctx SpecContext) {
		if old.plan != nil {
			p = w.plan(ctx)
		}
	})

	It("is made before the fleet is levelled", func(ctx SpecContext) {
		Expect(w.InstallBallast(ctx, w.config("Hold"))).To(Succeed())
		w.planSoon(ctx, "want a plan", func(p site.Plan) bool { return p.Mode == "Hold" })
		_, err := w.setPins(ctx, pinned)
		Expect(err).NotTo(HaveOccurred())
		w.planSoon(ctx, "want the pin in the plan", func(p site.Plan) bool {
			return p.Clusters["stage-us-1"].Pinned && p.Clusters["stage-us-1"].Replica == 2
		})
		Eventually(func() string { return w.state(ctx).Shards["stage-us-1"] }).Should(Equal("2"))
		old = w.export(ctx)
		Expect(w.Configure(ctx, w.config("Enforce"))).To(Succeed())
		level := w.planSoon(ctx, "want it in force", func(p site.Plan) bool { return p.Mode == "Enforce" && p.Replicas == 4 && p.Rollout == nil })
		Eventually(func() state { return w.state(ctx) }).Should(Equal(w.planned(ctx, level)))
		Expect(w.WaitReady(ctx, 4)).To(Succeed())
		Expect(level.Revision).To(BeNumerically(">", old.revision))
		Expect(old.moved(level)).NotTo(BeEmpty(), "clusters that stood elsewhere when the backup was made")
	}, SpecTimeout(firstPatience))

	It("changes nothing when kubectl applies it", func(ctx SpecContext) {
		before, sts := w.state(ctx), w.statefulSet(ctx)
		warnings := ballasts(w.applyAll(ctx, old.objects()))
		Expect(warnings).To(ContainElements(
			"ballast: data.plan is the planner's, revision "+strconv.Itoa(p.Revision)+" stays: this is a backup; the planner goes on from there",
			"ballast: 3 replicas were asked, 4 stay (plan "+strconv.Itoa(p.Revision)+"); to fix a number, set partition.replicas in ballast-config",
			"ballast: "+fleet.ReplicasEnv+" 3 was asked, 4 stays (plan "+strconv.Itoa(p.Revision)+")"))
		Expect(warnings).To(HaveLen(len(old.moved(p))+3), "one for each cluster that would have moved, and these")
		Expect(w.state(ctx)).To(Equal(before))
		Expect(w.plan(ctx).Text).To(Equal(p.Text))
		Expect(w.plan(ctx).Pins).To(Equal(pinned))
		Expect(w.statefulSet(ctx).Status.UpdateRevision).To(Equal(sts.Status.UpdateRevision), "no pod restarts")
		Consistently(func() state { return w.state(ctx) }, "12s", "1s").Should(Equal(before))
		Expect(w.plan(ctx).Replica()).To(Equal(p.Replica()))
	}, SpecTimeout(patience))

	It("comes back with the plan's values when Velero makes its objects anew", func(ctx SpecContext) {
		before := w.state(ctx)
		w.withoutPlanner(ctx, func() {
			w.lose(ctx)
			w.velero(ctx, old)
			Expect(w.state(ctx)).To(Equal(before), "at once, and without a planner")
			cm, err := w.Client.CoreV1().ConfigMaps(w.Fleet.Namespace).Get(ctx, site.PlanConfigMap, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(cm.Data).To(HaveKeyWithValue("pins", pinned))
			Expect(cm.Data).NotTo(HaveKey("plan"), "the backup's was left out; the webhooks go on by the last one, and tell it to nobody")
		})
		w.levelAgain(ctx, p, before)
		Expect(w.plan(ctx).Revision).To(BeNumerically(">", p.Revision), "a revision never goes back")
	}, SpecTimeout(patience))

	It("is mended when Velero made its objects anew and no webhook answered", func(ctx SpecContext) {
		before := w.state(ctx)
		w.withoutPlanner(ctx, func() {
			w.Plane.Proxy().Refuse(network.AllPods)
			DeferCleanup(func() { w.Plane.Proxy().Allow(network.AllPods) })
			w.lose(ctx)
			_, stderr, err := w.Plane.KubectlStdin(ctx, strings.NewReader(asJSON(old.plan)), "", "create", "-f", "-")
			Expect(err).To(HaveOccurred(), "the API server's own policy has no plan but the planner's")
			Expect(stderr).To(ContainSubstring("are the planner's alone: pins go to data.pins"))
			old.plan = old.plan.DeepCopy() // so that a person restores what is theirs
			old.plan.Data, old.plan.Annotations = map[string]string{"pins": pinned}, nil
			w.velero(ctx, old)
			Expect(w.state(ctx)).To(Equal(old.state()), "nobody was there to say otherwise")
			w.Plane.Proxy().Allow(network.AllPods)
		})
		w.levelAgain(ctx, p, before)
		Expect(w.plan(ctx).Revision).To(BeNumerically(">", p.Revision), "a revision never goes back")
	}, SpecTimeout(patience))
}

// backup is what a backup of Argo CD's namespace has of what the plan holds, and the plan itself.
type backup struct {
	plan     *corev1.ConfigMap
	secrets  []runtime.Object // by their names
	workload *appsv1.StatefulSet

	revision int
	shards   map[string]string
}

// export reads a backup, without what a tool leaves out: who and when an object was.
func (w *world) export(ctx context.Context) backup {
	GinkgoHelper()
	b := backup{revision: w.plan(ctx).Revision, shards: w.state(ctx).Shards}
	var err error
	b.plan, err = w.Client.CoreV1().ConfigMaps(w.Fleet.Namespace).Get(ctx, site.PlanConfigMap, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	b.plan.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	secrets, err := w.Secrets(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		s := secrets[name]
		s.TypeMeta, s.ObjectMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, bare(s.ObjectMeta)
		b.secrets = append(b.secrets, &s)
	}
	b.workload = w.statefulSet(ctx)
	b.workload.TypeMeta, b.workload.Status = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, appsv1.StatefulSetStatus{}
	b.plan.ObjectMeta, b.workload.ObjectMeta = bare(b.plan.ObjectMeta), bare(b.workload.ObjectMeta)
	return b
}

func bare(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations}
}

// objects are in Velero's order: ConfigMaps, Secrets, then workloads.
func (b backup) objects() []runtime.Object {
	return append(append([]runtime.Object{b.plan}, b.secrets...), b.workload)
}

func (b backup) state() state {
	return state{b.shards, int(*b.workload.Spec.Replicas), site.EnvReplicas(b.workload)}
}

// moved are the clusters that a plan has elsewhere than the backup.
func (b backup) moved(p site.Plan) []string {
	var moved []string
	for name, shard := range b.shards {
		if strconv.Itoa(p.Clusters[name].Replica) != shard {
			moved = append(moved, name)
		}
	}
	return moved
}

// velero restores a backup as whoever may do all: each object made anew, in its order. The plan's digest has not come along
// with it: the annotation is another plan's.
func (w *world) velero(ctx context.Context, b backup) {
	GinkgoHelper()
	b.plan = b.plan.DeepCopy()
	if b.plan.Annotations != nil {
		b.plan.Annotations["ballast.argoproj.io/digest"] = strings.Repeat("0", 64)
	}
	for _, o := range b.objects() {
		_, _, err := w.Plane.KubectlStdin(ctx, strings.NewReader(asJSON(o)), "", "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
	}
}

func asJSON(o runtime.Object) string {
	GinkgoHelper()
	text, err := json.Marshal(o)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// lose deletes what a backup has.
func (w *world) lose(ctx context.Context) {
	GinkgoHelper()
	for _, what := range [][]string{
		{"statefulset", fleet.Workload}, {"secrets", "-l", fleet.SecretTypeLabel + "=cluster"}, {"configmap", site.PlanConfigMap},
	} {
		_, _, err := w.Plane.Kubectl(ctx, "", append([]string{"-n", w.Fleet.Namespace, "delete"}, what...)...)
		Expect(err).NotTo(HaveOccurred())
	}
}

// withoutPlanner does something while no planner runs, and waits for them to be back: workloads are restored last.
func (w *world) withoutPlanner(ctx context.Context, do func()) {
	GinkgoHelper()
	w.kubectl(ctx, "scale", "deployment", site.Planner, "--replicas=0")
	Eventually(func() ([]corev1.Pod, error) { return w.Pods(ctx, "planner") }).Should(BeEmpty())
	do()
	w.kubectl(ctx, "scale", "deployment", site.Planner, "--replicas=2")
	Expect(w.Available(ctx)).To(Succeed())
}

// levelAgain waits until everything stands as a plan has it, by a plan that says the same, and with no other pin.
func (w *world) levelAgain(ctx context.Context, p site.Plan, want state) {
	GinkgoHelper()
	now := w.planSoon(ctx, "want the same rows", func(now site.Plan) bool { return maps.Equal(now.Replica(), p.Replica()) && now.Rollout == nil })
	Expect([]int{now.Replicas, now.ControllerReplicas}).To(Equal([]int{p.Replicas, p.ControllerReplicas}))
	Eventually(func() state { return w.state(ctx) }).Should(Equal(want))
	Expect(w.WaitReady(ctx, p.Replicas)).To(Succeed())
	Eventually(w.Exporter.Owners).Should(Equal(w.owned(ctx, p)))
	Expect(w.plan(ctx).Pins).To(Equal(pinned))
	for name, row := range w.plan(ctx).Clusters {
		Expect(row.Pinned).To(Equal(name == "stage-us-1"), name)
	}
}

func (w *world) statefulSet(ctx context.Context) *appsv1.StatefulSet {
	GinkgoHelper()
	sts, err := w.StatefulSet(ctx)
	Expect(err).NotTo(HaveOccurred())
	return sts
}

// applyAll runs kubectl apply over an export as alice.
func (w *world) applyAll(ctx context.Context, objects []runtime.Object) []string {
	GinkgoHelper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	Expect(err).NotTo(HaveOccurred())
	warnings, err := w.try(ctx, string(text), "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	return warnings
}

// ballasts leaves kubectl's own warnings out.
func ballasts(warnings []string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool { return !strings.HasPrefix(w, "ballast: ") })
}
