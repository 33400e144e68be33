package canary

import (
	"context"
	"maps"
	"os"
	"strconv"
	"strings"
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

func TestCanary(t *testing.T) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // the writes whose warnings count are made by kubectl
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(3 * time.Minute) // a thousand Secrets, on a busy machine
	SetDefaultEventuallyPollingInterval(time.Second)
	RunSpecs(t, "no token shows")
}

// clusters is how many Secrets hold a token: a slice of the thousand that make soak asks for.
var clusters = count("BALLAST_CANARY_SECRETS", 200)

func count(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

const (
	patience = 5 * time.Minute
	// firstPatience is that of the first spec, which the start counts for, with the first build of a machine in it.
	firstPatience = 25 * time.Minute
	// webhookLimit is the promise for a webhook process, resident.
	webhookLimit = 64 << 10 // KiB
)

// world is one installation with that many clusters.
type world struct {
	*site.Site
	told []string // what kubectl printed: answers, warnings and refusals
}

var _ = Describe("with a token in each of many Secrets", Ordered, ContinueOnFailure, func() {
	w := &world{}
	var shards map[string]string
	BeforeAll(func(ctx SpecContext) { w.start(ctx) }, NodeTimeout(firstPatience))
	AfterAll(func() { w.stop() })

	It("stamps them all", func(ctx SpecContext) {
		w.install(ctx, "Hold")
		Expect(w.Available(ctx)).To(Succeed())
		w.planSoon(ctx, "all clusters in a plan", func(p site.Plan) bool { return len(p.Clusters) == clusters })
		w.enforcesSoon(ctx)
		shards = w.shards(ctx)
	}, SpecTimeout(firstPatience))

	It("answers writes of all kinds", func(ctx SpecContext) { w.writeAll(ctx) }, SpecTimeout(patience))

	It("heals what was pasted while every write passed", func(ctx SpecContext) { w.pasteBehindItsBack(ctx) }, SpecTimeout(patience))

	It("moves clusters by vote", func(ctx SpecContext) {
		w.install(ctx, "Enforce")
		p := w.planSoon(ctx, "a plan that was elected and rolled out", func(p site.Plan) bool {
			return p.Mode == "Enforce" && p.Rollout == nil && !maps.Equal(planned(p), shards)
		})
		Eventually(func() map[string]string { return w.shards(ctx) }).Should(Equal(planned(p)))
	}, SpecTimeout(patience))

	It("shows no token anywhere", func(ctx SpecContext) { w.expectNoToken(ctx) }, SpecTimeout(patience))

	It("stays small", func(ctx SpecContext) { w.expectSmall(ctx) }, SpecTimeout(patience))
})

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
	n := 0
	Expect(w.InstallArgoCD(ctx, func(s *corev1.Secret) {
		s.Data["shard"] = []byte(strconv.Itoa(n % w.Fleet.Replicas))
		n++
	})).To(Succeed())
	Expect(w.Monitor(ctx)).To(Succeed())
	Expect(w.Plane.RunPods(ctx, ballast)).To(Succeed())
}

func (w *world) stop() {
	if w.Site != nil {
		w.Stop()
	}
}

func (w *world) shards(ctx context.Context) map[string]string {
	GinkgoHelper()
	shards, err := w.Shards(ctx)
	Expect(err).NotTo(HaveOccurred())
	return shards
}

// planned are the shards that a plan asks for.
func planned(p site.Plan) map[string]string {
	shards := map[string]string{}
	for name, replica := range p.Replica() {
		shards[name] = strconv.Itoa(replica)
	}
	return shards
}

func (w *world) planSoon(ctx context.Context, what string, is func(site.Plan) bool) site.Plan {
	GinkgoHelper()
	var seen site.Plan
	Eventually(func(g Gomega) {
		p, err := w.Plan(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p).NotTo(BeNil())
		seen = *p
		g.Expect(is(seen)).To(BeTrue(), "%s; it is revision %d, %s, %d clusters, rollout %+v", what, p.Revision, p.Mode, len(p.Clusters), p.Rollout)
	}).WithContext(ctx).Should(Succeed())
	return seen
}

// enforcesSoon waits until a wrong shard comes back right from a dry run.
func (w *world) enforcesSoon(ctx context.Context) {
	GinkgoHelper()
	name := w.Fleet.Names()[0]
	Eventually(func(g Gomega) {
		secret := w.Fleet.Secret(w.Fleet.Clusters[0])
		secret.Data["shard"] = []byte("77")
		got, err := w.Client.CoreV1().Secrets(w.Fleet.Namespace).Update(ctx, secret, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		g.Expect(err).NotTo(HaveOccurred())
		p, err := w.Plan(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got.Data["shard"])).To(Equal(strconv.Itoa(p.Clusters[name].Replica)))
	}).WithContext(ctx).Should(Succeed())
}

// kubectl runs a command and keeps all that it printed to its user's terminal.
func (w *world) kubectl(ctx context.Context, stdin string, args ...string) (stderr string, err error) {
	stdout, stderr, err := w.Plane.KubectlStdin(ctx, strings.NewReader(stdin), "", append([]string{"-n", w.Fleet.Namespace}, args...)...)
	w.told = append(w.told, stdout, stderr) // the error quotes the command, with what was pasted into it
	return stderr, err
}
