package suite

import (
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	}, SpecTimeout(time.Minute))

	It("lets the planner write no Secret anew and delete nothing", func(ctx SpecContext) {
		for _, verb := range []string{"create", "update", "delete", "deletecollection"} {
			Expect(canI(ctx, "ballast-planner", verb, "secrets")).To(Equal("no"), verb)
			Expect(canI(ctx, "ballast-planner", verb, "statefulsets.apps")).To(Equal("no"), verb)
		}
		Expect(canI(ctx, "ballast-planner", "patch", "secrets", "-n", "default")).To(Equal("no"))
		Expect(canI(ctx, "ballast-planner", "update", "configmaps/argocd-cm")).To(Equal("no"))
	}, SpecTimeout(time.Minute))

	It("lets it do all that it does: nothing was forbidden to it", func() {
		Expect(w.logsWith("is forbidden", "cannot create resource", "cannot patch resource")).To(BeEmpty())
	})

	It("writes events that a person finds at the plan", func(ctx SpecContext) {
		stdout, _, err := w.Plane.Kubectl(ctx, w.alice, "-n", w.Fleet.Namespace, "get", "events", "--field-selector", "involvedObject.name=ballast-plan", "-o", "custom-columns=REASON:.reason")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(stdout)).To(ContainElements("PlanWritten", "LeaderElected"))
	}, SpecTimeout(time.Minute))

	It("shows no credential in its metrics", func(ctx SpecContext) {
		pods, err := w.Client.CoreV1().Pods(w.Fleet.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=ballast"})
		Expect(err).NotTo(HaveOccurred())
		Expect(pods.Items).To(HaveLen(4))
		for _, pod := range pods.Items {
			address, err := w.Plane.PodAddress(pod.Status.PodIP)
			Expect(err).NotTo(HaveOccurred())
			response, err := http.Get("http://" + net.JoinHostPort(address, "8080") + "/metrics")
			Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(body)).To(ContainSubstring("ballast_"), pod.Name)
			Expect(string(body)).NotTo(ContainSubstring(fleet.Canary), pod.Name)
		}
	}, SpecTimeout(time.Minute))
}
