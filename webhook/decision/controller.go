package decision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
	"ballast/planner/printable"
	"ballast/webhook/inforce"
	"ballast/webhook/objects"
	"ballast/webhook/steering"
)

// Controller answers a write to the application-controller's workload: spec.replicas, the replicas that its
// container is told by env, and that container's resources are what the plan says. Of old only the annotations count.
func Controller(s *inforce.State, r Request, object, old objects.Workload) Verdict {
	v := decideController(s, r, object, old)
	v.note(changedNotes(steering.OnWorkload, object.Notes, old.Notes))
	v.warnMistyped(steering.OnWorkload, object.Notes, old.Notes)
	return v
}

func decideController(s *inforce.State, r Request, object, old objects.Workload) Verdict {
	v := Verdict{Revision: s.Revision()}
	name := ""
	if s != nil && s.View != nil {
		name = s.View.Plan.Target.Container
	}
	at := objects.FindController(object.Containers, name)
	v.Requested = requestedOf(s, object, at)
	why, enforcing := s.Enforcing()
	switch {
	case !enforcing:
		v.Reason = why
		return v
	case object.Unmanaged, !targets(s, r):
		v.Reason = plan.Unmanaged
		return v
	}
	v.holdReplicas(s, r, object)
	v.holdContainer(s, r, object, old, at)
	switch {
	case s.StopLapsed(r.At):
		v.Reason = plan.StalePlan
	case len(v.Patches) > 0:
		v.Reason = s.Enforced(plan.Restored)
	case v.Reason == "":
		v.Reason = s.Enforced(plan.InPlan)
	}
	return v
}

// requestedOf lists what the write asked for of everything that may be enforced.
func requestedOf(s *inforce.State, object objects.Workload, at int) []Field {
	list := []Field{{fieldReplicas, ""}}
	if object.HasReplicas {
		list[0].Value = strconv.Itoa(object.Replicas)
	}
	if at < 0 {
		return list
	}
	list = append(list, Field{plan.EnvReplicas, object.Containers[at].PrintedEnv()})
	if s == nil {
		return list
	}
	for _, h := range s.Resources {
		list = append(list, Field{h.Section + "." + h.Name,
			printableQuantity(object.Containers[at].Section(h.Section)[h.Name])})
	}
	return list
}

func (v *Verdict) holdReplicas(s *inforce.State, r Request, object objects.Workload) {
	want := s.View.Plan.Replicas
	switch {
	case s.View.Plan.FreeReplicas:
		return
	case s.StopLapsed(r.At):
		v.warnLapsed(s, object.Replicas)
		return
	}
	v.Enforced = append(v.Enforced, Field{fieldReplicas, strconv.Itoa(want)})
	if object.HasReplicas && object.Replicas == want {
		return
	}
	v.Patches = append(v.Patches, Op{replaceOrAdd(object.HasReplicas), "/spec/replicas", want})
	v.warnReplicas(orNone(object.HasReplicas, object.Replicas), want)
}

func (v *Verdict) holdContainer(s *inforce.State, r Request, object, old objects.Workload, at int) {
	if object.Overfull {
		v.warn(fmt.Sprintf("ballast: the pod template is too large to be read here; the planner sets %s",
			plan.EnvReplicas))
		return
	}
	if at < 0 {
		v.warn(fmt.Sprintf("ballast: no container runs %s, so %s is not held", podspec.ControllerCommand,
			plan.EnvReplicas))
		return
	}
	c := object.Containers[at]
	prefix := "/spec/template/spec/containers/" + strconv.Itoa(at)
	// A Deployment distributes by its own spec.replicas; the env counts there only for who set it. 0 is never held:
	// with it, every pod owns every cluster.
	want := s.View.Plan.ControllerReplicas
	if joins(s.View.Plan, object, old) {
		want = s.View.Plan.NextControllerReplicas
	}
	if want > 0 && (r.Kind != plan.Deployment || len(c.Env) > 0) {
		v.holdEnv(c, prefix+"/env", want)
	}
	v.holdResources(c, prefix+"/resources", v.fitting(c, s))
}

// fitting are the quantities of the plan that the container can have beside what the write has of others: where its own
// limit is below the plan's request, that request would have the API server refuse the whole write.
func (v *Verdict) fitting(c objects.Container, s *inforce.State) []inforce.Quantity {
	if len(s.Resources) == 0 {
		return nil
	}
	asks := plan.Resources{Requests: c.Requests, Limits: c.Limits}
	_, above := asks.Fitting(*s.View.Plan.Resources)
	if len(above) == 0 {
		return s.Resources
	}
	v.Reason = plan.Immutable
	sized := asks.With(*s.View.Plan.Resources)
	for _, name := range above {
		v.warn(fmt.Sprintf("ballast: %s passes as asked: with plan %d its request %s would be above its limit %s",
			name, v.Revision, printableQuantity(sized.Requests[name]), printableQuantity(sized.Limits[name])))
	}
	return slices.DeleteFunc(slices.Clone(s.Resources), func(h inforce.Quantity) bool { return slices.Contains(above, h.Name) })
}

// holdEnv sets every entry of the env in place, so that the order stays and no duplicate comes up.
func (v *Verdict) holdEnv(c objects.Container, path string, replicas int) {
	want := strconv.Itoa(replicas)
	v.Enforced = append(v.Enforced, Field{plan.EnvReplicas, want})
	before := len(v.Patches)
	entry := map[string]string{"name": plan.EnvReplicas, "value": want}
	switch {
	case !c.HasEnv:
		v.Patches = append(v.Patches, Op{"add", path, []map[string]string{entry}})
	case len(c.Env) == 0:
		v.Patches = append(v.Patches, Op{"add", path + "/-", entry})
	}
	for _, e := range c.Env {
		place := path + "/" + strconv.Itoa(e.Index)
		switch {
		case e.Reference:
			v.Patches = append(v.Patches, Op{"replace", place, entry})
		case e.Value != want:
			v.Patches = append(v.Patches, Op{replaceOrAdd(e.HasValue), place + "/value", want})
		}
	}
	if asked := c.PrintedEnv(); asked != "" && asked != want && len(v.Patches) > before {
		v.warn(fmt.Sprintf("ballast: %s %s was asked, %s stays (plan %d)", plan.EnvReplicas, asked, want, v.Revision))
	}
}

// holdResources holds the quantities that the plan names and leaves others alone.
func (v *Verdict) holdResources(c objects.Container, path string, want []inforce.Quantity) {
	missing := map[string]map[string]string{} // a section that has to be made whole
	var replaced []string
	for _, h := range want {
		v.Enforced = append(v.Enforced, Field{h.Section + "." + h.Name, h.Text})
		got := c.Section(h.Section)[h.Name]
		if q, err := plan.ReadQuantity(got); err == nil && q.Cmp(h.Value) == 0 {
			continue
		}
		if got != "" {
			replaced = append(replaced, h.Section+"."+h.Name)
		}
		if c.Section(h.Section) == nil {
			if missing[h.Section] == nil {
				missing[h.Section] = map[string]string{}
			}
			missing[h.Section][h.Name] = h.Text
			continue
		}
		_, there := c.Section(h.Section)[h.Name]
		v.Patches = append(v.Patches, Op{replaceOrAdd(there), path + "/" + h.Section + "/" + patchable.Pointer(h.Name),
			h.Text})
	}
	switch {
	case len(missing) > 0 && !c.HasResources:
		v.Patches = append(v.Patches, Op{"add", path, missing})
	default:
		for _, section := range sortedKeys(missing) {
			v.Patches = append(v.Patches, Op{"add", path + "/" + section, missing[section]})
		}
	}
	if len(replaced) > 0 {
		v.warn(fmt.Sprintf("ballast: %s stay as planned (plan %d)", strings.Join(replaced, ", "), v.Revision))
	}
}

func printableQuantity(s string) string {
	if s == "" {
		return ""
	}
	q, err := plan.ReadQuantity(s)
	if err != nil {
		return printable.Invalid
	}
	return q.String()
}

func replaceOrAdd(there bool) string {
	if there {
		return "replace"
	}
	return "add"
}

func orNone(has bool, n int) string {
	if !has {
		return "no"
	}
	return strconv.Itoa(n)
}
