package locks

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// rights are the whole of what each ServiceAccount may do, beside what every authenticated user may.
func rights(w *world) {
	DescribeTable("are these and no others", func(ctx SpecContext, account string, inNamespace, anywhere []string) {
		Expect(w.grants(ctx, account, w.Fleet.Namespace)).To(Equal(inNamespace))
		Expect(w.grants(ctx, account, elsewhere)).To(Equal(anywhere))
		Expect(w.grants(ctx, account, "kube-system")).To(Equal(anywhere))
	},
		Entry("the planner's", SpecTimeout(patience), "ballast-planner", []string{
			"applications.argoproj.io [] [] [get list patch]",
			"configmaps [] [] [get list watch create]",
			"configmaps [] [ballast-history] [update patch]",
			"configmaps [] [ballast-plan-status] [update patch]",
			"configmaps [] [ballast-plan] [update patch]",
			"deployments.apps [] [] [get list watch]",
			"deployments.apps [] [argocd-application-controller] [patch]",
			"deployments.apps/scale [] [argocd-application-controller] [patch]",
			"events [] [] [create patch]",
			"events.events.k8s.io [] [] [create patch]",
			"horizontalpodautoscalers.autoscaling [] [] [list]",
			"leases.coordination.k8s.io [] [] [create]",
			"leases.coordination.k8s.io [] [ballast-argocd-application-controller] [get update]",
			"mutatingwebhookconfigurations.admissionregistration.k8s.io [] [ballast.argocd] [get]",
			"mutatingwebhookconfigurations.admissionregistration.k8s.io [] [ballast] [get]",
			"poddisruptionbudgets.policy [] [] [list]",
			"pods [] [] [get list watch]",
			"pods/resize [] [] [patch]",
			"replicasets.apps [] [] [list]",
			"scaledobjects.keda.sh [] [] [list]",
			"secrets [] [] [get list watch patch]",
			"statefulsets.apps [] [] [get list watch]",
			"statefulsets.apps [] [argocd-application-controller] [patch]",
			"statefulsets.apps/scale [] [argocd-application-controller] [patch]",
			"verticalpodautoscalers.autoscaling.k8s.io [] [] [list]",
		}, []string{
			"mutatingwebhookconfigurations.admissionregistration.k8s.io [] [ballast.argocd] [get]",
			"mutatingwebhookconfigurations.admissionregistration.k8s.io [] [ballast] [get]",
		}),
		Entry("the webhook's", SpecTimeout(patience), "ballast-webhook", []string{
			"configmaps [] [ballast-plan] [get list watch]",
		}, []string{}),
		Entry("of what makes certificates", SpecTimeout(patience), "ballast-certs", []string{
			"mutatingwebhookconfigurations.admissionregistration.k8s.io [] [ballast.argocd] [get watch patch]",
			"secrets [] [] [create]",
			"secrets [] [ballast-webhook-ca] [get update watch]",
			"secrets [] [ballast-webhook-tls] [get update watch]",
		}, []string{
			"mutatingwebhookconfigurations.admissionregistration.k8s.io [] [ballast.argocd] [get watch patch]",
		}),
	)
}

// grants are the lines of `kubectl auth can-i --list` that a ServiceAccount without any binding does not have.
func (w *world) grants(ctx context.Context, account, namespace string) []string {
	GinkgoHelper()
	everybody := w.canI(ctx, "nobody", namespace)
	Expect(everybody).NotTo(BeEmpty())
	return slices.DeleteFunc(w.canI(ctx, account, namespace), func(line string) bool { return slices.Contains(everybody, line) })
}

func (w *world) canI(ctx context.Context, account, namespace string) []string {
	GinkgoHelper()
	out, stderr, err := w.Plane.Kubectl(ctx, "", "auth", "can-i", "--list", "--no-headers", "-n", namespace, "--as=system:serviceaccount:"+w.Fleet.Namespace+":"+account)
	Expect(err).NotTo(HaveOccurred())
	Expect(stderr).To(BeEmpty(), "the list is whole")
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	slices.Sort(lines)
	return lines
}
