package auditlog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
)

func TestPrintText(t *testing.T) {
	for text, want := range map[string]string{
		"alice":                     "alice",
		"Ålice Özil":                "Ålice Özil",
		"\x1b]0;root\a":             `\u001b]0;root\u0007`,
		"a\r\nb\tc":                 "a  b c",
		"right\u202eleft\u200b":     `right\u202eleft\u200b`,
		strings.Repeat("x", 256):    strings.Repeat("x", 256),
		strings.Repeat("x", 257):    strings.Repeat("x", 255) + "…",
		strings.Repeat("é", 10_000): strings.Repeat("é", 255) + "…",
	} {
		if got := printText(text); got != want {
			t.Errorf("%q is printed %q, want %q", text, got, want)
		}
	}
}

func TestEffectOf(t *testing.T) {
	type decision struct{ reason, requested, enforced string }
	for d, want := range map[decision]Effect{
		{"InPlan", "shard=3", "shard=3"}:                                             Agreed,
		{"InPlan", "pins.a=1", "pins.a=1"}:                                           Agreed,
		{"Restored", "shard=1", "shard=3"}:                                           Rewritten,
		{"Restored", "ARGOCD_CONTROLLER_REPLICAS=4", "ARGOCD_CONTROLLER_REPLICAS=4"}: Rewritten, // one of two entries differed
		{"Assigned", "shard=-", "shard=3"}:                                           Rewritten,
		{"Pinned", "shard=3", "shard=3"}:                                             Agreed,
		{"Pinned", "shard=1", "shard=3"}:                                             Rewritten,
		{"StalePlan", "replicas=4 requests.cpu=1", "replicas=4 requests.cpu=1000m"}:  Agreed,
		{"StalePlan", "replicas=4 requests.cpu=1", "replicas=4 requests.cpu=2"}:      Rewritten,
		{"StalePlan", "replicas=9", "-"}:                                             Agreed,
		{"PinAdded", "clusters.a=1", "pins.a=1"}:                                     Rewritten,
		{"PlanKept", "-", "-"}:                                                       Rewritten,
		{"PinRefused", "pins.a=invalid", "-"}:                                        Refused,
		{"FailedClosed", "-", "-"}:                                                   Refused,
		{"FailedOpen", "-", "-"}:                                                     Bypassed,
		{"Faulted", "-", "-"}:                                                        Faulted,
		{"NoPlan", "shard=1", "-"}:                                                   Passed,
		{"Observing", "shard=1", "-"}:                                                Passed,
		{"Unmanaged", "shard=1", "-"}:                                                Passed,
		{"Immutable", "shard=1", "-"}:                                                Passed,
		{"invalid", "-", "-"}:                                                        Unknown,
	} {
		if got := effectOf(d.reason, d.requested, d.enforced); got != want {
			t.Errorf("%+v has the effect %s, want %s", d, got, want)
		}
	}
}

// TestEveryReasonHasAnEffect fails for a reason that ballast learns and this package does not.
func TestEveryReasonHasAnEffect(t *testing.T) {
	for _, r := range plan.Reasons() {
		if got := effectOf(string(r), "-", "-"); got == Unknown {
			t.Errorf("reason %s has no effect", r)
		}
	}
}

func TestAccountOf(t *testing.T) {
	const sa = "system:serviceaccount:"
	for user, want := range map[string]Account{
		"alice":                 {Kind: Person},
		"system:admin":          {Kind: Person},
		"ci@example.com":        {Kind: Person},
		"system:node:node-1":    {Kind: ControlPlane},
		"system:kube-scheduler": {Kind: ControlPlane},
		sa + "kube-system:statefulset-controller":                    {Kind: ControlPlane},
		sa + "argocd:argocd-server":                                  {ServiceAccount, "people in Argo CD's UI and CLI"},
		sa + "gitops:openshift-gitops-argocd-application-controller": {ServiceAccount, "Git, by Argo CD"},
		sa + "flux-system:kustomize-controller":                      {ServiceAccount, "Git, by Flux"},
		sa + "eso:external-secrets":                                  {ServiceAccount, "a secret store"},
		sa + "argocd:ballast-planner":                                {ServiceAccount, "ballast itself"},
		sa + "argocd:eve-ballast-planner":                            {ServiceAccount, ""},
		sa + "build:gitlab-runner":                                   {ServiceAccount, "a pipeline"},
		sa + "build:prod-ci":                                         {ServiceAccount, "a pipeline"},
		sa + "build:civet":                                           {ServiceAccount, ""},
		sa + "keda:keda-operator":                                    {ServiceAccount, ""},
	} {
		if diff := cmp.Diff(want, AccountOf(user)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", user, diff)
		}
	}
}

func TestResult(t *testing.T) {
	for want, w := range map[string]Write{
		"written":             {Code: 201},
		"dry run":             {Code: 200, DryRun: true},
		"failed 409":          {Code: 409},
		"failed 500":          {Code: 500},
		"dry run, failed 504": {Code: 504, DryRun: true},

		"timed out, perhaps written": {Code: 504},
		"dry run, failed 422":        {Code: 422, DryRun: true},
		"panicked":                   {Code: 500, Panicked: true},
		"dry run, panicked":          {Panicked: true, DryRun: true},
	} {
		if got := w.Result(); got != want {
			t.Errorf("%+v came to %q, want %q", w, got, want)
		}
	}
}
