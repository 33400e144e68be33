package uninstall

import (
	"fmt"
	"maps"
	"strings"

	"ballast/cmd/ballast/say"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// mostSizes is how many replicas are named.
const mostSizes = 10

// sizesLeft says what becomes of the sizes that a plan holds: pods stay as they are, and what a restart changes; empty:
// of none.
func sizesLeft(p *plan.Plan, w discover.Workload) string {
	switch {
	case p == nil || p.Mode == plan.Observe:
		return ""
	case p.Resources != nil:
		return fmt.Sprintf("the pod template of %s %s keeps the size that ballast gave it: %s", w.Kind, w.Name,
			say.Size(*p.Resources))
	case p.Sizes == nil:
		return ""
	}
	template := plan.Resources{}
	if w.Resources != nil {
		template = *w.Resources
	}
	var changes []string
	for replica := range w.Replicas {
		size, held := p.SizeOf(replica)
		if !held {
			continue
		}
		if then := templateResources(template, size); !then.Same(size) {
			changes = append(changes, fmt.Sprintf("%s-%d gets %s instead of %s", w.Name, replica, say.Size(then),
				say.Size(size)))
		}
	}
	if len(changes) == 0 {
		return ""
	}
	if p.Target.Kind == plan.Deployment { // all of them have one
		_, rest, _ := strings.Cut(changes[0], " gets ")
		changes = []string{"each pod gets " + rest}
	}
	more := ""
	if n := len(changes) - mostSizes; n > 0 {
		changes, more = changes[:mostSizes], fmt.Sprintf("; and %d more", n)
	}
	return "pods keep the sizes that they have, and one that is made anew has the pod template's: " +
		strings.Join(changes, "; ") + more
}

// templateResources is what a template gives of the resources that a size names.
func templateResources(template, size plan.Resources) plan.Resources {
	pick := func(from, of map[string]string) map[string]string {
		out := maps.Clone(from)
		maps.DeleteFunc(out, func(name, _ string) bool { _, named := of[name]; return !named })
		return out
	}
	return plan.Resources{Requests: pick(template.Requests, size.Requests), Limits: pick(template.Limits, size.Limits)}
}
