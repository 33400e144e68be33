package locks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/types"

	"ballast/certs"
	"ballast/e2e/plane/network"
	"ballast/e2e/site"
)

// What an end-to-end run cannot wait for: API server and pods of a plane learn of a change within milliseconds. But a webhook
// whose certificate was deleted, and so its optional volume emptied, no longer watches the file and looks for it every 10 s.
const hasten = `[
  {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--settle=2s"},
  {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--overlap=12s"}
]`

func selfSignedInstallation(components ...string) installation {
	return installation{Overlay: "self-signed", Components: components, Patches: []types.Patch{{
		Patch: hasten, Target: &types.Selector{ResId: resID("Deployment", "ballast-certs")},
	}}}
}

func selfSigned(w *world) {
	It("makes the webhook work from nothing", func(ctx SpecContext) {
		w.killCertManager()
		w.kubectl(ctx, "delete", "certificates.cert-manager.io,issuers.cert-manager.io", "--all")
		w.kubectl(ctx, "delete", "deployment", site.Webhook)
		w.kubectl(ctx, "delete", "secret", certs.LeafTLS, certs.CA)
		w.kubectl(ctx, "delete", "mutatingwebhookconfiguration", certs.DefaultSettings().Configuration())
		since := time.Now()
		w.install(ctx, selfSignedInstallation("fail-closed"))
		w.recovered(ctx, since, "self-signed, installed from nothing")
		w.expectBystandersPass(ctx)
		w.expectEnforced(ctx)
		Expect(w.certificateProblems(ctx)).To(BeEmpty())
	}, SpecTimeout(patience))

	It("puts back at once what somebody takes away", func(ctx SpecContext) {
		since := time.Now()
		w.kubectl(ctx, "patch", "mutatingwebhookconfiguration", certs.DefaultSettings().Configuration(), "--type=json", "-p", `[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)
		Eventually(func() []string { return w.certificateProblems(ctx) }).Should(BeEmpty())
		w.recovered(ctx, since, "self-signed, a caBundle was removed")
	}, SpecTimeout(patience))

	It("changes nothing by a run beside it, once all is well", func(ctx SpecContext) {
		versions := func() []string {
			return []string{w.secret(ctx, certs.LeafTLS).ResourceVersion, w.secret(ctx, certs.CASecret).ResourceVersion, fmt.Sprintf("%x", w.bundles(ctx))}
		}
		Eventually(func() int { return w.trusted(ctx) }).Should(Equal(1))
		before := versions()
		_, _, err := w.RunBallast(ctx, w.Plane.KubeconfigPath(), "certs", "--once")
		Expect(err).NotTo(HaveOccurred())
		Expect(versions()).To(Equal(before))
	}, SpecTimeout(patience))

	It("comes back when every pod and every certificate is gone", func(ctx SpecContext) {
		w.scale(ctx, "ballast-certs", "certs", 0)
		w.scale(ctx, site.Webhook, "webhook", 0)
		w.kubectl(ctx, "delete", "secret", certs.LeafTLS, certs.CASecret)
		w.expectBystandersPass(ctx)
		w.expectAway(ctx, true)
		since := time.Now()
		w.scale(ctx, site.Webhook, "webhook", 2)
		w.scale(ctx, "ballast-certs", "certs", 1)
		w.recovered(ctx, since, "self-signed, all of it was gone")
		Eventually(func() error { return w.webhookAvailable(ctx) }).Should(Succeed())
	}, SpecTimeout(patience))

	It("rotates the leaf and the CA without a failed write", func(ctx SpecContext) {
		Eventually(func() int { return w.trusted(ctx) }).Should(Equal(1))
		writing := w.startWriting(ctx)
		connections := w.Plane.Proxy().Connections(network.AllPods)

		w.expectRenewed(ctx, "the leaf", certs.LeafTLS, func() {})
		w.expectRenewed(ctx, "the CA", certs.CASecret, func() {
			Eventually(func() int { return w.trusted(ctx) }).Should(Equal(2), "old and new together")
		})
		writes, failed := writing()
		Expect(failed).To(BeEmpty())
		Expect(w.certificateProblems(ctx)).To(BeEmpty())
		dialled := w.Plane.Proxy().Connections(network.AllPods) - connections
		Expect(dialled).To(BeNumerically(">=", 2), "each caBundle makes the API server dial anew")
		AddReportEntry("rotation", fmt.Sprintf("%d writes, none failed, over %d connections", writes, dialled), ReportEntryVisibilityAlways)
	}, SpecTimeout(patience))

	It("prints no key", func(ctx SpecContext) {
		pods, err := w.Pods(ctx, "certs")
		Expect(err).NotTo(HaveOccurred())
		Expect(pods).To(HaveLen(1))
		log, err := w.Plane.PodLog(pods[0].Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(log).To(And(ContainSubstring("issued a CA"), Not(ContainSubstring("PRIVATE KEY"))))
		for _, name := range []string{certs.LeafTLS, certs.CASecret} {
			key := strings.Split(string(w.secret(ctx, name).Data["tls.key"]), "\n")[1]
			Expect(log).NotTo(ContainSubstring(key[:16]), name)
		}
	}, SpecTimeout(patience))
}

// expectRenewed deletes a Secret of certificates and waits until every pod serves another leaf, and the caBundle is at rest.
func (w *world) expectRenewed(ctx context.Context, what, secret string, meanwhile func()) {
	GinkgoHelper()
	before := w.served(ctx)
	since := time.Now()
	w.kubectl(ctx, "delete", "secret", secret)
	meanwhile()
	Eventually(func(g Gomega) {
		for pod, serial := range w.served(ctx) {
			g.Expect(serial).NotTo(Equal(before[pod]), pod)
		}
		g.Expect(w.trusted(ctx)).To(Equal(1))
		g.Expect(w.certificateProblems(ctx)).To(BeEmpty())
	}).Should(Succeed())
	AddReportEntry("renewed", fmt.Sprintf("%s: %.1f s", what, time.Since(since).Seconds()), ReportEntryVisibilityAlways)
}

// maxWrites bounds the writer of each worker, whatever happens.
const maxWrites = 5000

// startWriting writes wrong shards, and gives what ends that and tells of it. Each has to be put back within the write.
func (w *world) startWriting(ctx context.Context) (end func() (writes int, failed []string)) {
	const workers, pace = 3, 10 * time.Millisecond
	stop := make(chan struct{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	var writes int
	var failed []string
	for range workers {
		wg.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for range maxWrites {
				got, err := w.tryShard(ctx, wrong)
				mu.Lock()
				writes++
				if err != nil || got != w.right() {
					failed = append(failed, fmt.Sprintf("write %d: shard %q, %v", writes, got, err))
				}
				mu.Unlock()
				select {
				case <-stop:
					return
				case <-tick.C:
				}
			}
		})
	}
	return func() (int, []string) {
		close(stop)
		wg.Wait()
		return writes, failed
	}
}

// served is the serial number of the leaf that each webhook pod shows.
func (w *world) served(ctx context.Context) map[string]string {
	GinkgoHelper()
	pods, err := w.Pods(ctx, "webhook")
	Expect(err).NotTo(HaveOccurred())
	serials := map[string]string{}
	for _, pod := range pods {
		address, err := w.Plane.PodAddress(pod.Status.PodIP)
		Expect(err).NotTo(HaveOccurred())
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, "9443"))
		Expect(err).NotTo(HaveOccurred())
		serials[pod.Name] = conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
		Expect(conn.Close()).To(Succeed())
	}
	Expect(serials).To(HaveLen(2))
	return serials
}

func (w *world) secret(ctx context.Context, name string) *corev1.Secret {
	GinkgoHelper()
	s, err := w.Client.CoreV1().Secrets(w.Fleet.Namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return s
}

func (w *world) bundles(ctx context.Context) (bundles [][]byte) {
	GinkgoHelper()
	c, err := w.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, certs.DefaultSettings().Configuration(), metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, h := range c.Webhooks {
		bundles = append(bundles, h.ClientConfig.CABundle)
	}
	Expect(bundles).To(HaveLen(webhooks))
	return bundles
}

// trusted is the number of CAs in the caBundles, which are alike; -1 if they are not.
func (w *world) trusted(ctx context.Context) int {
	GinkgoHelper()
	bundles := w.bundles(ctx)
	for _, b := range bundles {
		if !bytes.Equal(b, bundles[0]) || !x509.NewCertPool().AppendCertsFromPEM(b) {
			return -1
		}
	}
	return bytes.Count(bundles[0], []byte("BEGIN CERTIFICATE"))
}

// certificateProblems are those that `ballast` itself would tell of, over all four webhooks.
func (w *world) certificateProblems(ctx context.Context) (problems []string) {
	GinkgoHelper()
	leaf, err := w.Client.CoreV1().Secrets(w.Fleet.Namespace).Get(ctx, certs.LeafTLS, metav1.GetOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	for _, b := range w.bundles(ctx) {
		for _, p := range certs.Check(leaf.Data["tls.crt"], leaf.Data["tls.key"], b, certs.DefaultSettings().DNSNames(), time.Now()) {
			problems = append(problems, p.Error())
		}
	}
	return problems
}
