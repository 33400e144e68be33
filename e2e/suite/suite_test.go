// Package suite asserts ballast's main job by its values on a real control plane: what stands on the API server after
// each thing that people, other programs and failures do. It writes nothing that ballast should write.
package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"ballast/e2e/assets"
	"ballast/e2e/fleet"
	"ballast/e2e/site"
)

// patience is how long a spec may take on a busy machine; firstPatience is that of the first one, which the start counts
// for, with the first build of a machine in it.
const (
	patience      = 6 * time.Minute
	firstPatience = 25 * time.Minute
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "ballast on a real control plane")
}

// world is one installation that all specs share: they run in this order, as the life of an installation does.
type world struct {
	*site.Site
	binaries   assets.Binaries
	alice, bob string // kubeconfigs: she works in Argo CD's namespace, he may only read there
}

// config says what a replica may carry: the heaviest cluster makes 0.261 of the fleet, and of this capacity four replicas hold
// it, with a tenth to spare. Without a capacity the number of replicas would stay.
func (w *world) config(mode string) map[string]any {
	c := w.Config(mode)
	c["partition"] = map[string]any{"lpt": map[string]any{}, "capacity": "0.3"}
	return c
}

var _ = Describe("ballast", Ordered, ContinueOnFailure, func() {
	w := &world{}
	BeforeAll(func(ctx SpecContext) { w.start(ctx) }, NodeTimeout(firstPatience))
	AfterAll(func() { w.stop() })
	JustAfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() && w.Site != nil {
			AddReportEntry("what ballast said last", w.LastWords(ctx, 30))
		}
	})

	Describe("before it is installed", func() { preview(w) })
	Describe("observing", func() { observing(w) })
	Describe("holding", func() { holding(w) })
	Describe("taking its plan into force", func() { enforcing(w) })
	Describe("writes against the plan", func() { writes(w) })
	Describe("people's switches", func() { switches(w) })
	Describe("pins", func() { pins(w) })
	Describe("clusters that come and go", func() { clusters(w) })
	Describe("deciding", func() { deciding(w) })
	Describe("failures", func() { failures(w) })
	Describe("rights", func() { rights(w) })
	Describe("uninstalling", func() { uninstalling(w) })
})

// startReplica is the shard that a cluster Secret has before ballast comes: in the order of their names, in turn.
func startReplica(f *fleet.Fleet, name string) int { return slices.Index(f.Names(), name) % f.Replicas }

func (w *world) start(ctx context.Context) {
	GinkgoHelper()
	var err error
	w.binaries, err = assets.Build(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	ballast := GinkgoT().TempDir() + "/ballast"
	Expect(site.BuildBallast(ctx, ballast, true)).To(Succeed())
	w.Site, err = site.Start(context.WithoutCancel(ctx), site.Options{
		Binaries: w.binaries, Ballast: ballast, Fleet: fleet.Options{Seed: 1}, Log: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Plane.StartCertManager(ctx)).To(Succeed())
	Expect(w.InstallArgoCD(ctx, func(s *corev1.Secret) {
		s.Data["shard"] = []byte(strconv.Itoa(startReplica(w.Fleet, s.Name)))
	})).To(Succeed())
	Expect(w.Monitor(ctx)).To(Succeed())
	w.alice, err = w.Person(ctx, "alice")
	Expect(err).NotTo(HaveOccurred())
	w.bob, err = w.Reader(ctx, "bob")
	Expect(err).NotTo(HaveOccurred())
}

// stop ends everything, and looks through what the processes wrote: the binary runs with the race detector.
func (w *world) stop() {
	GinkgoHelper()
	if w.Site == nil {
		return
	}
	leaks, err := w.Leaks()
	races := w.logsWith("DATA RACE", "panic:")
	if CurrentSpecReport().Failed() {
		AddReportEntry("pods' logs", w.podLogs())
	}
	w.Stop()
	Expect(err).NotTo(HaveOccurred())
	Expect(leaks).To(BeEmpty(), "logs that show a cluster's credential")
	Expect(races).To(BeEmpty(), "logs with a data race or a panic")
}

func (w *world) logs() []string {
	entries, err := os.ReadDir(w.Plane.Dir() + "/pods")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it ended before ballast was installed
	}
	Expect(err).NotTo(HaveOccurred())
	var logs []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".log") {
			logs = append(logs, w.Plane.Dir()+"/pods/"+e.Name())
		}
	}
	return logs
}

func (w *world) logsWith(texts ...string) []string {
	var found []string
	for _, log := range w.logs() {
		data, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(string(data), t) }) {
			found = append(found, log)
		}
	}
	return found
}

func (w *world) podLogs() string {
	var b strings.Builder
	for _, log := range w.logs() {
		data, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&b, "== %s\n%s\n", log, data)
	}
	return b.String()
}
