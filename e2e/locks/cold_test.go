package locks

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/e2e/site"
)

// cold installs the webhook configuration first and cert-manager last.
func cold(w *world) {
	shipped := installation{Overlay: "cert-manager"}
	closed := installation{Overlay: "cert-manager", Components: []string{"fail-closed"}}
	const configuration = "MutatingWebhookConfiguration"
	certificates := []string{"Issuer", "Certificate"}

	It("lets every write pass while there is only a webhook configuration", func(ctx SpecContext) {
		w.install(ctx, closed, configuration)
		Eventually(func() error { _, err := w.tryShard(ctx, w.right(), "All"); return err }).ShouldNot(Succeed()) // it is in force
		w.expectBystandersPass(ctx)
		w.expectAway(ctx, true)
		w.install(ctx, shipped, configuration)
		Eventually(func() error { _, err := w.tryShard(ctx, w.right(), "All"); return err }).Should(Succeed())
		w.expectBystandersPass(ctx)
		// Nothing is left behind: a planner that comes now takes the fleet over as it finds it, wrong shards included.
		w.expectAway(ctx, false, metav1.DryRunAll)
	}, SpecTimeout(firstPatience))

	It("lets every write pass while the webhook waits for its certificate", func(ctx SpecContext) {
		var rest []string
		for _, doc := range w.documents(shipped) {
			if kind := kindOf(doc); !slices.Contains(certificates, kind) {
				rest = append(rest, kind)
			}
		}
		w.install(ctx, shipped, rest...)
		Eventually(func() (*site.Plan, error) { return w.Plan(ctx) }).Should(HaveField("Mode", "Hold"))
		w.expectBystandersPass(ctx)
		w.expectAway(ctx, false)
		w.expectHealed(ctx) // by the planner, which needs no certificate
		w.install(ctx, shipped, certificates...)
		w.expectBystandersPass(ctx)
		w.expectAway(ctx, false)
	}, SpecTimeout(patience))

	It("enforces once cert-manager has come, at last", func(ctx SpecContext) {
		since := time.Now()
		Expect(w.Plane.StartCertManager(ctx)).To(Succeed())
		w.recovered(ctx, since, "cert-manager came last")
		w.expectBystandersPass(ctx)
		w.expectEnforced(ctx)
	}, SpecTimeout(patience))
}
