// Package installed has the checks of `ballast doctor` of an installed ballast.
package installed

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/look"
	"ballast/cmd/ballast/doctor/rights"
	"ballast/cmd/ballast/say"
	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// again is what mends whatever differs from what was shipped.
const again = "apply the manifests of this release again: kubectl apply -k on your overlay, or helm upgrade"

// selfSigned does without cert-manager.
const selfSigned = "kubectl apply -k manifests/overlays/self-signed, which needs none (the chart: certificates: self-signed); or install it"

// whetherInstalled is unknown to who may not read webhook configurations.
func whetherInstalled() []finding.Finding {
	return finding.Unknown.With("whether ballast is installed may not be read",
		finding.MayNot("get", "mutatingwebhookconfigurations"))
}

func CheckCertManager(s *look.Seen) []finding.Finding {
	switch {
	case s.Certs:
		return finding.Well("installed")
	case s.Hidden:
		return finding.Unknown.With("its API is not served, and whether ballast is installed may not be read",
			selfSigned)
	case s.Webhook != nil:
		return finding.Well("not installed; the webhook has its certificate from elsewhere")
	}
	return finding.Warning.With("not installed", selfSigned)
}

// CheckWebhook compares the installed configuration with the shipped one, and looks at the authority that it trusts.
func CheckWebhook(s *look.Seen) (all []finding.Finding) {
	if s.Hidden {
		return whetherInstalled()
	}
	if s.Webhook == nil {
		return finding.Well("ballast's webhook is not installed: nothing is enforced")
	}
	if s.InstallErr != nil {
		all = finding.Unknown.With(s.InstallErr.Error(),
			"ballast doctor once more; what stays so is told by the leader, too: ballast status")
	}
	for _, f := range s.Installed.Findings {
		if f.Kind != installation.TooOld {
			all = append(all, finding.Fault.With(f.Message, again)...)
		}
	}
	for _, w := range s.Webhook.Webhooks {
		if why := bundleFault(s.Now, w.ClientConfig.CABundle); why != "" {
			return append(all, finding.Fault.With(fmt.Sprintf("%s: %s", w.Name, why),
				"see that cert-manager's cainjector runs, or components/self-signed: kubectl -n "+
					s.Namespace+" get certificates,certificaterequests")...)
		}
	}
	if f := probed(s); f != nil {
		return append(all, *f)
	}
	if len(all) > 0 {
		return all
	}
	why, mend := unprobed(s)
	if why != "" {
		return finding.Unknown.With(s.Webhook.Name+" is as shipped, and its authority is valid; whether it holds the plan is not "+why, mend)
	}
	if condition(s, status.Enforced).Reason == status.Held {
		return finding.Well("%s is as shipped, its authority is valid, and by what the leader said %s ago of its probe it holds the plan",
			s.Webhook.Name, age(s))
	}
	return finding.Well("%s is as shipped, and its authority is valid", s.Webhook.Name)
}

// unprobed is why nobody knows whether the webhook holds the plan, and what mends that; empty where the leader says it.
func unprobed(s *look.Seen) (why, mend string) {
	pods := s.Kubectl("get pods -l app.kubernetes.io/name=ballast", nil)
	switch {
	case apierrors.IsForbidden(s.SaidErr):
		return "known: what the leader says may not be read", finding.MayNot("get", "configmaps")
	case s.SaidErr != nil:
		return "known: what the leader says cannot be read: " + s.SaidErr.Error(), "run it again; " + pods
	case s.Said == nil:
		return "probed: no leader", "have a planner run, whose leader probes it: " + pods
	case s.Said.Ahead(s.Now):
		return "known: the leader's clock is " + ahead(s), setClocks
	case s.Said.Old(s.Now):
		return "known any more: the leader looked last " + age(s) + " ago",
			"have a planner run, whose leader probes it: " + pods
	case condition(s, status.Enforced) == nil:
		return "told: the leader says nothing of its probe", "ballast status"
	}
	return "", ""
}

// age is how long ago the leader said what it says.
func age(s *look.Seen) string { return say.Span(s.Now.Sub(s.Said.LookedAt)) }

// ahead is how far the leader's clock is from this one, where that is ahead.
func ahead(s *look.Seen) string {
	return say.Span(s.Said.LookedAt.Sub(s.Now)) + " ahead of this machine's"
}

// setClocks mends that nobody can tell how old the leader's word is.
const setClocks = "have NTP keep the clocks of the planner's node and of this machine; date -u shows this one"

// probed is what the leader's probe has against the webhook, nil where it has nothing.
func probed(s *look.Seen) *finding.Finding {
	e := condition(s, status.Enforced)
	switch {
	case e == nil:
		return nil
	case e.Reason == status.NotHeld && s.Said.Ahead(s.Now):
		return &finding.Finding{Result: finding.Warning, Mend: setClocks,
			Message: "the leader, whose clock is " + ahead(s) + ", found that it does not hold the plan: " + e.Message}
	case e.Reason == status.NotHeld && s.Said.Old(s.Now):
		return &finding.Finding{Result: finding.Warning,
			Message: "the leader, which looked last " + age(s) + " ago, found that it does not hold the plan: " +
				e.Message,
			Mend: s.Kubectl("get pods -l app.kubernetes.io/name=ballast", nil) +
				": while no planner leads none probes it anew"}
	case e.Reason == status.NotHeld:
		return &finding.Finding{Result: finding.Fault, Message: "the leader's probe finds since " +
			e.LastTransitionTime.UTC().Format(time.RFC3339) +
			" that it does not hold the plan: " + e.Message,
			Mend: s.Kubectl("get pods,endpointslices -l app.kubernetes.io/name=ballast", nil) +
				"; docs/runbooks.md, BallastEnforcementDown"}
	case e.Reason == status.BreakGlass:
		return &finding.Finding{Result: finding.Warning, Message: e.Message + ": writes pass",
			Mend: s.Kubectl("annotate configmap "+s.In.Config.Plan.ConfigMap+" "+plan.AnnotationEnforcement+"-", nil)}
	}
	return nil
}

// condition is one of the leader's, nil where it says nothing of it.
func condition(s *look.Seen, of status.Type) *status.Condition {
	if s.Said == nil {
		return nil
	}
	for i := range s.Said.Conditions {
		if s.Said.Conditions[i].Type == of {
			return &s.Said.Conditions[i]
		}
	}
	return nil
}

// bundleFault says why no API server would trust a webhook by this bundle.
func bundleFault(now time.Time, bundle []byte) string {
	var last time.Time
	for rest := bytes.TrimSpace(bundle); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return "the caBundle cannot be read"
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "the caBundle cannot be read"
		}
		if c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	switch {
	case last.IsZero():
		return "it has no caBundle, so the API server can trust no webhook"
	case last.Before(now):
		return "the caBundle expired at " + last.UTC().Format(time.RFC3339)
	}
	return ""
}

func CheckRights(s *look.Seen) []finding.Finding {
	switch {
	case s.Hidden:
		return whetherInstalled()
	case s.Webhook == nil:
		return finding.Well("ballast is not installed: none are needed")
	case apierrors.IsForbidden(s.RightsErr):
		return finding.Unknown.With("whether the planner has its rights may not be asked",
			finding.MayNot("create", "subjectaccessreviews.authorization.k8s.io"))
	case s.RightsErr != nil:
		return finding.Unknown.With(s.RightsErr.Error(),
			"run it again; what a planner may not do stands in its log, too: "+
				s.Kubectl("logs deploy/ballast-planner", nil))
	case len(s.Denied) > 0:
		var lacks []string
		for _, r := range s.Denied {
			lacks = append(lacks, rights.Words(r))
		}
		return []finding.Finding{{Result: finding.Fault, Message: "the planner lacks " +
			say.Plural(len(lacks), "right"), Subjects: lacks,
			Mend: again + "; what is to list nodes, for sizes, is component size-nodes"}}
	}
	return finding.Well("the planner has every right that the manifests give it")
}

// CheckLeader tells each condition that is not as it should be.
func CheckLeader(s *look.Seen) (all []finding.Finding) {
	switch {
	case s.Hidden:
		return whetherInstalled()
	case s.Webhook == nil && s.Said == nil:
		return finding.Well("ballast is not installed")
	case s.SaidErr != nil:
		return finding.Unknown.With("what the leader says cannot be read", "the line looking says why")
	case s.Said == nil:
		return finding.Fault.With("no leader has said yet how things are",
			"kubectl -n "+s.Namespace+" logs deploy/ballast-planner")
	case s.Said.Ahead(s.Now):
		return finding.Fault.With("the leader's clock is "+ahead(s)+", so that nobody can tell how old what it says is",
			setClocks)
	case s.Said.Old(s.Now):
		return finding.Fault.With("the leader looked last "+age(s)+" ago",
			"kubectl -n "+s.Namespace+" get pods -l app.kubernetes.io/name=ballast")
	}
	for _, c := range s.Said.Conditions {
		good := status.True
		if c.Type == status.Degraded || c.Type == status.Progressing {
			good = status.False
		}
		told := c.Type == status.Enforced && s.Webhook != nil // beside the webhook
		asItShouldBe := c.Status == good || c.Type == status.Progressing || c.Reason == status.Observing
		if asItShouldBe || told {
			continue
		}
		all = append(all, finding.Warning.With(fmt.Sprintf("%s is %s since %s: %s: %s", c.Type, c.Status,
			c.LastTransitionTime.UTC().Format(time.RFC3339), c.Reason,
			c.Message),
			"ballast status")...)
	}
	for _, p := range s.Said.Problems { // the leader alone lists Applications with the planner's rights
		if p.Kind == "ApplicationsUnseen" {
			all = append(all, finding.Warning.With(p.Kind+": "+p.Message,
				"docs/rollouts.md, Applications in other namespaces")...)
		}
	}
	if len(all) == 0 {
		return finding.Well("%s looked %s ago, and all is well", s.Said.Leader, age(s))
	}
	return all
}
