package suite

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"ballast/e2e/fleet"
)

func rights(w *world) {
	canI := func(ctx SpecContext, account string, args ...string) string {
		GinkgoHelper()
		args = append([]string{"auth", "can-i", "-n", w.Fleet.Namespace, "--as=system:serviceaccount:argocd:" + account}, args...)
		stdout, _, _ := w.Plane.Kubectl(ctx, "", args...) // "no" is an exit code too
		return strings.TrimSpace(stdout)
	}

	It("lets the webhook read the plan ConfigMap and nothing else", func(ctx SpecContext) {
		for line := range strings.Lines(canI(ctx, "ballast-webhook", "--list", "--no-headers")) {
			Expect(line).NotTo(MatchRegexp(`^(secrets|\*|statefulsets|deployments|pods)\b`), "what the webhook may do")
			if strings.HasPrefix(line, "configmaps") {
				Expect(strings.Join(strings.Fields(line), " ")).To(Equal("configmaps [] [ballast-plan] [get list watch]"))
			}
		}
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			Expect(canI(ctx, "ballast-webhook", verb, "secrets")).To(Equal("no"), verb)
		}
	}, SpecTimeout(patience))

	It("lets the planner write no Secret anew and delete nothing", func(ctx SpecContext) {
		for _, verb := range []string{"create", "update", "delete", "deletecollection"} {
			Expect(canI(ctx, "ballast-planner", verb, "secrets")).To(Equal("no"), verb)
			Expect(canI(ctx, "ballast-planner", verb, "statefulsets.apps")).To(Equal("no"), verb)
		}
		Expect(canI(ctx, "ballast-planner", "patch", "secrets", "-n", "default")).To(Equal("no"))
		Expect(canI(ctx, "ballast-planner", "update", "configmaps/argocd-cm")).To(Equal("no"))
		for _, verb := range []string{"create", "update", "delete", "deletecollection"} {
			Expect(canI(ctx, "ballast-planner", verb, "applications.argoproj.io")).To(Equal("no"), verb)
		}
		Expect(canI(ctx, "ballast-planner", "patch", "applications.argoproj.io", "-n", "default")).To(Equal("no"))
	}, SpecTimeout(patience))

	It("lets it do all that it does: nothing was forbidden to it", func() {
		Expect(w.logsWith("is forbidden", "cannot create resource", "cannot patch resource")).To(BeEmpty())
	})

	It("writes events that a person finds at the plan", func(ctx SpecContext) {
		stdout, _, err := w.Plane.Kubectl(ctx, w.alice, "-n", w.Fleet.Namespace, "get", "events", "--field-selector", "involvedObject.name=ballast-plan", "-o", "custom-columns=REASON:.reason")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(stdout)).To(ContainElements("PlanWritten", "LeaderElected"))
	}, SpecTimeout(patience))

	It("shows no credential in its metrics", func(ctx SpecContext) {
		for component, metric := range map[string]string{"planner": "ballast_planner_", "webhook": "ballast_webhook_"} {
			pods, err := w.Pods(ctx, component)
			Expect(err).NotTo(HaveOccurred())
			Expect(pods).To(HaveLen(2))
			for _, pod := range pods {
				text, err := w.Metrics(ctx, pod)
				Expect(err).NotTo(HaveOccurred())
				Expect(text).To(ContainSubstring(metric), pod.Name)
				Expect(text).NotTo(ContainSubstring(fleet.Canary), pod.Name)
			}
		}
	}, SpecTimeout(patience))
}
