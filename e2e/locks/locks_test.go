package locks

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"ballast/e2e/assets"
	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

func TestLocks(t *testing.T) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // thousands of writes are put back here, each with a warning
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "ballast locks nobody out")
}

// recovery is the promise: after any failure, without a manual step. The soak holds ballast to it, on a machine that does nothing else.
const recovery = 60 * time.Second

// patience is how long a spec may take on a busy machine; firstPatience is that of the first one, which the start counts for, with the
// first build of a machine in it.
const (
	patience      = 6 * time.Minute
	firstPatience = 25 * time.Minute
)

const (
	webhooks  = 5 // that are shipped
	clusters  = 6
	certifier = "cert-manager"
	elsewhere = "elsewhere" // a namespace that is none of ballast's business
)

// world is one installation that all specs share, in this order.
type world struct {
	*site.Site
	count int // of the writes so far, so that each writes something new
}

var _ = Describe("ballast", Ordered, func() {
	w := &world{}
	BeforeAll(func(ctx SpecContext) { w.start(ctx) }, NodeTimeout(firstPatience))
	AfterAll(func() { w.stop() })
	JustAfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() && w.Site != nil {
			AddReportEntry("what ballast said last", w.LastWords(ctx, 30))
		}
	})

	Describe("installed cold, in an odd order", func() { cold(w) })
	Describe("with failurePolicy Ignore", func() { failures(w, false) })
	Describe("with failurePolicy Fail for cluster Secrets", func() { failures(w, true) })
	Describe("without cert-manager", func() { selfSigned(w) })
	Describe("with a floor", func() { floor(w) })
	Describe("rights", func() { rights(w) })
})

// start brings Argo CD up, and leaves cert-manager's CRDs behind without anybody who acts on them.
func (w *world) start(ctx context.Context) {
	GinkgoHelper()
	binaries, err := assets.Build(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	ballast := GinkgoT().TempDir() + "/ballast"
	Expect(site.BuildBallast(ctx, ballast, false)).To(Succeed())
	w.Site, err = site.Start(context.WithoutCancel(ctx), site.Options{
		Binaries: binaries, Ballast: ballast, Fleet: fleet.Options{Seed: 1, Clusters: clusters}, Log: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Plane.StartCertManager(ctx)).To(Succeed())
	w.killCertManager()
	Expect(w.InstallArgoCD(ctx, func(s *corev1.Secret) { s.Data["shard"] = []byte(strconv.Itoa(w.shard(s.Name))) })).To(Succeed())
	Expect(w.Monitor(ctx)).To(Succeed())
	Expect(w.Plane.RunPods(ctx, ballast)).To(Succeed())
	w.prepareBystanders(ctx)
}

func (w *world) stop() {
	GinkgoHelper()
	if w.Site == nil {
		return
	}
	leaks, err := w.Leaks()
	w.Stop()
	Expect(err).NotTo(HaveOccurred())
	Expect(leaks).To(BeEmpty(), "logs that show a cluster's credential")
}

// shard is the one that a cluster has, and that the plan holds: the fleet as it was found.
func (w *world) shard(name string) int { return slices.Index(w.Fleet.Names(), name) % w.Fleet.Replicas }

// killCertManager ends the process that the plane started last under that name.
func (w *world) killCertManager() {
	GinkgoHelper()
	pid := 0
	for _, p := range w.Plane.Processes() {
		if p.Name == certifier {
			pid = p.PID
		}
	}
	Expect(pid).NotTo(BeZero())
	Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
	Eventually(func() error { return syscall.Kill(pid, 0) }).Should(MatchError(syscall.ESRCH))
}

// config holds what is, with the env at maxReplicas as rollout live has it.
func (w *world) config() map[string]any {
	config := w.Config("Hold")
	config["partition"] = map[string]any{"maxReplicas": w.Fleet.Replicas}
	return config
}

// scale sets a Deployment's replicas and waits until it has no pod, if that is what it is to have.
func (w *world) scale(ctx context.Context, deployment, component string, replicas int) {
	GinkgoHelper()
	w.kubectl(ctx, "scale", "deployment", deployment, "--replicas="+strconv.Itoa(replicas))
	if replicas == 0 {
		Eventually(func() ([]corev1.Pod, error) { return w.Pods(ctx, component) }).Should(BeEmpty())
	}
}

func (w *world) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, _, err := w.Plane.Kubectl(ctx, "", append([]string{"-n", w.Fleet.Namespace}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// recovered waits until a write of a wrong shard is put back again, and tells how long that took.
func (w *world) recovered(ctx context.Context, since time.Time, after string) {
	GinkgoHelper()
	w.enforces(ctx)
	took := time.Since(since)
	most := 3 * recovery
	if os.Getenv("BALLAST_SOAK_RECOVERY") != "" {
		most = recovery
	}
	Expect(took).To(BeNumerically("<", most))
	AddReportEntry("recovered", fmt.Sprintf("%s: %.1f s", after, took.Seconds()), ReportEntryVisibilityAlways)
}

func (w *world) enforces(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		got, err := w.tryShard(ctx, wrong, metav1.DryRunAll)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(w.right()))
	}).WithContext(ctx).Should(Succeed())
}
