package doctor

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
func whetherInstalled() []Finding {
	return unknown("whether ballast is installed may not be read", (*seen)(nil).mayNot("get", "mutatingwebhookconfigurations"))
}

func (s *seen) checkCertManager() []Finding {
	switch {
	case s.certs:
		return ok("installed")
	case s.hidden:
		return unknown("its API is not served, and whether ballast is installed may not be read",
			selfSigned)
	case s.webhook != nil:
		return ok("not installed; the webhook has its certificate from elsewhere")
	}
	return warn("not installed", selfSigned)
}

// checkWebhook compares the installed configuration with the shipped one, and looks at the authority that it trusts.
func (s *seen) checkWebhook() (all []Finding) {
	if s.hidden {
		return whetherInstalled()
	}
	if s.webhook == nil {
		return ok("ballast's webhook is not installed: nothing is enforced")
	}
	if s.installErr != nil {
		all = unknown(s.installErr.Error(), "ballast doctor once more; what stays so is told by the leader, too: ballast status")
	}
	for _, f := range s.installed.Findings {
		if f.Kind != installation.TooOld {
			all = append(all, Finding{Result: Fault, Message: f.Message, Mend: again})
		}
	}
	for _, w := range s.webhook.Webhooks {
		if why := s.bundleFault(w.ClientConfig.CABundle); why != "" {
			return append(all, Finding{Result: Fault, Message: fmt.Sprintf("%s: %s", w.Name, why),
				Mend: "see that cert-manager's cainjector runs, or components/self-signed: kubectl -n " +
					s.namespace + " get certificates,certificaterequests"})
		}
	}
	if f := s.probed(); f != nil {
		return append(all, *f)
	}
	if len(all) > 0 {
		return all
	}
	why, mend := s.unprobed()
	if why != "" {
		return unknown(s.webhook.Name+" is as shipped, and its authority is valid; whether it holds the plan is not "+why, mend)
	}
	if s.condition(status.Enforced).Reason == status.Held {
		return ok("%s is as shipped, its authority is valid, and by what the leader said %s ago of its probe it holds the plan",
			s.webhook.Name, s.age())
	}
	return ok("%s is as shipped, and its authority is valid", s.webhook.Name)
}

// unprobed is why nobody knows whether the webhook holds the plan, and what mends that; empty where the leader says it.
func (s *seen) unprobed() (why, mend string) {
	pods := s.kubectl("get pods -l app.kubernetes.io/name=ballast", nil)
	switch {
	case apierrors.IsForbidden(s.saidErr):
		return "known: what the leader says may not be read", s.mayNot("get", "configmaps")
	case s.saidErr != nil:
		return "known: what the leader says cannot be read: " + s.saidErr.Error(), "run it again; " + pods
	case s.said == nil:
		return "probed: no leader", "have a planner run, whose leader probes it: " + pods
	case s.said.Ahead(s.now):
		return "known: the leader's clock is " + s.ahead(), setClocks
	case s.said.Old(s.now):
		return "known any more: the leader looked last " + s.age() + " ago", "have a planner run, whose leader probes it: " + pods
	case s.condition(status.Enforced) == nil:
		return "told: the leader says nothing of its probe", "ballast status"
	}
	return "", ""
}

// age is how long ago the leader said what it says.
func (s *seen) age() string { return say.Span(s.now.Sub(s.said.LookedAt)) }

// ahead is how far the leader's clock is from this one, where that is ahead.
func (s *seen) ahead() string {
	return say.Span(s.said.LookedAt.Sub(s.now)) + " ahead of this machine's"
}

// setClocks mends that nobody can tell how old the leader's word is.
const setClocks = "have NTP keep the clocks of the planner's node and of this machine; date -u shows this one"

// probed is what the leader's probe has against the webhook, nil where it has nothing.
func (s *seen) probed() *Finding {
	e := s.condition(status.Enforced)
	switch {
	case e == nil:
		return nil
	case e.Reason == status.NotHeld && s.said.Ahead(s.now):
		return &Finding{Result: Warning, Mend: setClocks,
			Message: "the leader, whose clock is " + s.ahead() + ", found that it does not hold the plan: " + e.Message}
	case e.Reason == status.NotHeld && s.said.Old(s.now):
		return &Finding{Result: Warning,
			Message: "the leader, which looked last " + s.age() + " ago, found that it does not hold the plan: " + e.Message,
			Mend:    s.kubectl("get pods -l app.kubernetes.io/name=ballast", nil) + ": while no planner leads none probes it anew"}
	case e.Reason == status.NotHeld:
		return &Finding{Result: Fault, Message: "the leader's probe finds since " + e.LastTransitionTime.UTC().Format(time.RFC3339) +
			" that it does not hold the plan: " + e.Message,
			Mend: s.kubectl("get pods,endpointslices -l app.kubernetes.io/name=ballast", nil) + "; docs/runbooks.md, BallastEnforcementDown"}
	case e.Reason == status.BreakGlass:
		return &Finding{Result: Warning, Message: e.Message + ": writes pass",
			Mend: s.kubectl("annotate configmap "+s.in.Config.Plan.ConfigMap+" "+plan.AnnotationEnforcement+"-", nil)}
	}
	return nil
}

// condition is one of the leader's, nil where it says nothing of it.
func (s *seen) condition(of status.Type) *status.Condition {
	if s.said == nil {
		return nil
	}
	for i := range s.said.Conditions {
		if s.said.Conditions[i].Type == of {
			return &s.said.Conditions[i]
		}
	}
	return nil
}

// bundleFault says why no API server would trust a webhook by this bundle.
func (s *seen) bundleFault(bundle []byte) string {
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
	case last.Before(s.now):
		return "the caBundle expired at " + last.UTC().Format(time.RFC3339)
	}
	return ""
}

func (s *seen) checkRights() []Finding {
	switch {
	case s.hidden:
		return whetherInstalled()
	case s.webhook == nil:
		return ok("ballast is not installed: none are needed")
	case apierrors.IsForbidden(s.rightsErr):
		return unknown("whether the planner has its rights may not be asked", s.mayNot("create", "subjectaccessreviews.authorization.k8s.io"))
	case s.rightsErr != nil:
		return unknown(s.rightsErr.Error(), "run it again; what a planner may not do stands in its log, too: "+
			s.kubectl("logs deploy/ballast-planner", nil))
	case len(s.denied) > 0:
		var lacks []string
		for _, r := range s.denied {
			lacks = append(lacks, ruleWords(r))
		}
		return []Finding{{Result: Fault, Message: "the planner lacks " + say.Plural(len(lacks), "right"), Subjects: lacks,
			Mend: again + "; what is to list nodes, for sizes, is component size-nodes"}}
	}
	return ok("the planner has every right that the manifests give it")
}

func ruleWords(r rbacv1.PolicyRule) string {
	of := r.Resources[0]
	if r.APIGroups[0] != "" {
		of += "." + r.APIGroups[0]
	}
	if len(r.ResourceNames) > 0 {
		of += " " + r.ResourceNames[0]
	}
	return r.Verbs[0] + " " + of
}

// checkLeader tells each condition that is not as it should be.
func (s *seen) checkLeader() (all []Finding) {
	switch {
	case s.hidden:
		return whetherInstalled()
	case s.webhook == nil && s.said == nil:
		return ok("ballast is not installed")
	case s.saidErr != nil:
		return unknown("what the leader says cannot be read", "the line looking says why")
	case s.said == nil:
		return fault("no leader has said yet how things are", "kubectl -n "+s.namespace+" logs deploy/ballast-planner")
	case s.said.Ahead(s.now):
		return fault("the leader's clock is "+s.ahead()+", so that nobody can tell how old what it says is", setClocks)
	case s.said.Old(s.now):
		return fault("the leader looked last "+s.age()+" ago",
			"kubectl -n "+s.namespace+" get pods -l app.kubernetes.io/name=ballast")
	}
	for _, c := range s.said.Conditions {
		good := status.True
		if c.Type == status.Degraded || c.Type == status.Progressing {
			good = status.False
		}
		told := c.Type == status.Enforced && s.webhook != nil // beside the webhook
		asItShouldBe := c.Status == good || c.Type == status.Progressing || c.Reason == status.Observing
		if asItShouldBe || told {
			continue
		}
		all = append(all, Finding{Result: Warning,
			Message: fmt.Sprintf("%s is %s since %s: %s: %s", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339), c.Reason,
				c.Message),
			Mend: "ballast status"})
	}
	all = append(all, s.unlisted()...)
	if len(all) == 0 {
		return ok("%s looked %s ago, and all is well", s.said.Leader, s.age())
	}
	return all
}
