package validation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Bounds of size policies.
const (
	mostSizeRules = size.MaxRules // of all policies: each is worked out for each replica in each cycle
	mostHeadroom  = 1000          // percent
	mostReserve   = 90            // percent of a node

	mostSizeInterval = config.Duration(24 * time.Hour)
	leastMoveAway    = config.Duration(10 * time.Minute) // a node that is scaled up or replaced takes minutes
)

// sizeRuleKey is what a rule of a higher priority replaces.
type sizeRuleKey struct {
	list     config.SizeList
	resource string
	name     string
}

func key(r config.SizeRule) sizeRuleKey { return sizeRuleKey{r.List, r.Resource, r.Name} }

func validateSize(c config.PlannerConfig, p *field.Path) (errs field.ErrorList) {
	if len(c.Size.Policies) > 0 || c.Size.Apply != "" { // inputs that were saved before there were sizes have neither
		errs = only(p.Child("apply"), c.Size.Apply, config.InPlace, config.Template)
	}
	errs = append(errs, validateSizeLimits(c.Size.Limits, p.Child("limits"))...)
	errs = append(errs, validateSizeCap(c.Size.NodeCap, p.Child("nodeCap"))...)
	errs = append(errs, between(p.Child("interval"), c.Size.Interval, 0, mostSizeInterval)...)
	errs = append(errs, validateMoveAway(c, p.Child("moveAway"))...)
	p = p.Child("policies")
	named, rules := map[string]int{}, 0
	for i, policy := range c.Size.Policies {
		at := p.Index(i)
		errs = append(errs, validateSizeName(policy.Name, at.Child("name"))...)
		if before, twice := named[policy.Name]; twice && policy.Name != "" {
			errs = append(errs, field.Invalid(at.Child("name"), policy.Name,
				fmt.Sprintf("is the name of policies[%d], too: give each its own", before)))
		}
		named[policy.Name] = i
		if c.Size.Defaults && policy.Name == config.ShippedPolicy {
			const why = "is the name of the policy that size.defaults switches on: give yours another"
			errs = append(errs, field.Invalid(at.Child("name"), policy.Name, why))
		}
		errs = append(errs, between(at.Child("priority"), policy.Priority, -config.MostPriority,
			config.MostPriority)...)
		if len(policy.Rules) == 0 {
			errs = append(errs, field.Required(at.Child("rules"),
				"write a rule, like {list: requests, resource: memory, base: 1Gi}, or delete the policy"))
		}
		for k, rule := range policy.Rules {
			errs = append(errs, validateSizeRule(c, rule, at.Child("rules").Index(k))...)
			errs = append(errs, sameRule(c, i, k, at.Child("rules").Index(k))...)
		}
		rules += len(policy.Rules)
	}
	if rules > mostSizeRules {
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			fmt.Sprintf("have %d rules: leave %d at most", rules, mostSizeRules)))
	}
	return errs
}

// validateMoveAway refuses what no pod would ever leave its size for, and moves that stop or restart replicas.
func validateMoveAway(c config.PlannerConfig, p *field.Path) (errs field.ErrorList) {
	if c.Size.MoveAway == nil {
		return nil
	}
	if c.Size.Apply == config.Template {
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			"goes by what nodes say of pods that are resized in place, and size.apply is template: delete one of them"))
	}
	if c.Rollout.Live == nil {
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			"moves clusters by itself, and only rollout.live restarts and stops nothing for that: set rollout.live, or delete it"))
	}
	return append(errs, required(p.Child("after"), c.Size.MoveAway.After, leastMoveAway, mostSizeInterval)...)
}

func validateSizeName(name string, p *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(p, "give the policy a name, like ours: messages and metrics call it by that")}
	}
	for _, message := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(p, name, message))
	}
	return errs
}

// sameRule refuses a rule that an earlier one of the same priority has too: nobody could say which of them holds.
func sameRule(c config.PlannerConfig, policy, rule int, p *field.Path) field.ErrorList {
	mine := c.Size.Policies[policy]
	for i, other := range c.Size.Policies[:policy+1] {
		for k, r := range other.Rules {
			if i == policy && k >= rule {
				break
			}
			if other.Priority == mine.Priority && key(r) == key(mine.Rules[rule]) {
				return field.ErrorList{field.Invalid(p, field.OmitValueType{}, fmt.Sprintf(
					"is for the same list, resource and name as policies[%d].rules[%d], of the same priority: give it a name of its own to add it, or its policy a higher priority to replace that one", i, k))}
			}
		}
	}
	return nil
}

func validateSizeRule(c config.PlannerConfig, r config.SizeRule, p *field.Path) (errs field.ErrorList) {
	if r.Name != "" {
		errs = append(errs, validateSizeName(r.Name, p.Child("name"))...)
	}
	if want := c.Target.Container; r.Container != "" && want != "" && r.Container != want {
		errs = append(errs, field.Invalid(p.Child("container"), r.Container,
			fmt.Sprintf("is not the application-controller's, which target.container says is %q: leave it out; ballast sizes no other", want)))
	}
	for _, wrong := range c.Size.Rule(r).Wrong() {
		errs = append(errs, field.Invalid(p.Child(wrong.Field), field.OmitValueType{}, wrong.Why))
	}
	for _, d := range []struct {
		name string
		of   *config.SizeDelay
	}{{"delayScaleDown", r.DelayScaleDown}, {"delayScaleUp", r.DelayScaleUp}} {
		if d.of != nil && *d.of == (config.SizeDelay{}) {
			errs = append(errs, field.Required(p.Child(d.name),
				"write max, delaySeconds or both: without them nothing is held back"))
		}
	}
	errs = append(errs, boundless(c.Size, r, p)...)
	return append(errs, append(validateInput(r, p), validateScope(c, r, p)...)...)
}

// boundless refuses what others may make grow without an end, the number of clusters or what an autoscaler says: who
// may create Secrets, or write that autoscaler, would size pods by it as no node can.
// What nodeCap.fromNodes reads is no end: while the nodes are not known it bounds nothing.
func boundless(s config.Size, r config.SizeRule, p *field.Path) field.ErrorList {
	most := map[string]config.Quantity{size.CPU: s.NodeCap.CPU, size.Memory: s.NodeCap.Memory}[r.Resource]
	ends := r.Max != "" || most != ""
	grows := map[config.Source]string{config.FromVPA: "whoever may write the VPA raises what it says",
		config.FromHPA: "whoever may write the HPA raises what it says"}[config.SourceOf(r.Input)]
	if r.Input == config.InputClusters {
		grows = "whoever may create cluster Secrets raises their number"
	}
	if grows == "" || ends {
		return nil
	}
	return field.ErrorList{field.Required(p.Child("max"), fmt.Sprintf(
		"write the most that it may come to, or what a node can give as size.nodeCap.%s: %s", r.Resource, grows))}
}

func validateInput(r config.SizeRule, p *field.Path) (errs field.ErrorList) {
	if r.Input == "" {
		errs = append(errs, withoutInput(r, p)...)
		return errs
	}
	if slope := r.Slope.Parsed(); slope.IsZero() {
		errs = append(errs, field.Required(p.Child("slope"), "write how much each unit of the input adds, like 10m"))
	}
	if r.Per != "" {
		errs = append(errs, positive(r.Per, p.Child("per"))...)
	}
	return errs
}

// withoutInput refuses what only counts with one.
func withoutInput(r config.SizeRule, p *field.Path) (errs field.ErrorList) {
	for _, f := range []struct {
		name string
		set  bool
	}{{"slope", r.Slope != ""}, {"scope", r.Scope != ""}, {"per", r.Per != ""}, {"segments", len(r.Segments) > 0}} {
		if f.set {
			errs = append(errs, field.Invalid(p.Child(f.name), field.OmitValueType{},
				"counts for nothing without an input: write one, or delete it"))
		}
	}
	return errs
}

func positive(q config.Quantity, p *field.Path) field.ErrorList {
	if parsed := q.Parsed(); parsed.Sign() <= 0 {
		return field.ErrorList{field.Invalid(p, string(q), "is not above 0")}
	}
	return nil
}

func validateSizeLimits(l config.SizeLimits, p *field.Path) (errs field.ErrorList) {
	for _, of := range []struct {
		name string
		*config.Headroom
	}{{size.CPU, l.CPU}, {size.Memory, l.Memory}} {
		switch {
		case of.Headroom == nil:
		case of.Percentage < 0 || of.Percentage > mostHeadroom:
			errs = append(errs, field.Invalid(p.Child(of.name, "percentage"), of.Percentage.String(),
				fmt.Sprintf("is not between 0%% and %s", config.Percent(mostHeadroom))))
		case of.Value == "" && of.Percentage == 0:
			errs = append(errs, field.Required(p.Child(of.name),
				"write value, percentage or both, or leave it out: the limit then grows and shrinks as the request does"))
		}
	}
	return errs
}

func validateSizeCap(n config.SizeCap, p *field.Path) (errs field.ErrorList) {
	for _, of := range []struct {
		name string
		most config.Quantity
	}{{size.CPU, n.CPU}, {size.Memory, n.Memory}} {
		if of.most != "" {
			errs = append(errs, positive(of.most, p.Child(of.name))...)
		}
	}
	if from := n.FromNodes; from != nil {
		errs = append(errs, between(p.Child("fromNodes", "reserve"), from.Reserve, 0, mostReserve)...)
	}
	return errs
}

// validateScope refuses what an input has not got.
func validateScope(c config.PlannerConfig, r config.SizeRule, at *field.Path) field.ErrorList {
	given := r.Scope != ""
	ofReplicas := isOfReplicas(c, r.Input) || config.SourceOf(r.Input) == config.FromPods
	p := at.Child("scope")
	switch {
	case given && config.IsOfFleet(r.Input) && r.Scope != config.ScopeTotal:
		return wrong(p, string(r.Scope), fmt.Sprintf("is not that of %s: write total, or leave it out",
			ofFleetName(r.Input)))
	case r.Input == config.InputClusters && r.Scope == config.ScopeCluster:
		return wrong(p, string(r.Scope), "has one cluster, whichever it is: write replica, or total")
	case isOfReplicas(c, r.Input) && c.Target.Kind == plan.Deployment:
		return wrong(at.Child("input"), r.Input, "is a metric of replicas, and the pods of a Deployment have no ordinals by which they are replicas")
	case given && ofReplicas && r.Scope != config.ScopeReplica:
		return wrong(p, string(r.Scope), "is not that of what each replica has for itself: write replica, or leave it out")
	}
	return nil
}

func wrong(p *field.Path, value, why string) field.ErrorList {
	return field.ErrorList{field.Invalid(p, value, why)}
}

func ofFleetName(input string) string {
	if input == config.InputReplicas {
		return "the number of replicas"
	}
	return fmt.Sprintf("%s, which is one for all", input)
}

func isOfReplicas(c config.PlannerConfig, input string) bool {
	p := c.Poll.Prometheus
	return p != nil && slices.ContainsFunc(p.OfReplicas(), func(m config.Metric) bool { return m.ID == input })
}
