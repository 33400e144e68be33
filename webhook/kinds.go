package webhook

import (
	"ballast/planner/plan"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/intake"
	"ballast/webhook/objects"
	"ballast/webhook/rawjson"
)

// kind is one webhook: its name in metrics and logs, its path, and its decision.
type kind struct {
	name, path string
	decide     func(*inforce.State, *review) (decision.Verdict, error)
}

// kinds are the five webhooks of the configuration.
func kinds() []kind {
	return []kind{
		{"clusters", "/clusters", withObject(reviewCluster)},
		{"controllers", "/controllers", withObject(reviewController)},
		{"scale", "/scale", withObject(reviewScale)},
		{kindPlan, "/plan", withObject(reviewPlan)},
		{"pods", "/pods", withObject(reviewPod)},
	}
}

// withObject refuses a request without an object, which no patch could apply to.
func withObject(decide func(*inforce.State, *review) (decision.Verdict, error)) func(*inforce.State, *review) (decision.Verdict, error) {
	return func(s *inforce.State, rv *review) (decision.Verdict, error) {
		if rv.object.Kind() != '{' {
			return decision.Verdict{}, rawjson.ErrMalformed
		}
		return decide(s, rv)
	}
}

const kindPlan = "plan"

func reviewCluster(s *inforce.State, rv *review) (decision.Verdict, error) {
	object, err := objects.DecodeSecret(rv.object)
	if err != nil {
		return decision.Verdict{}, err
	}
	old, err := objects.DecodeSecret(rv.old)
	if err != nil {
		return decision.Verdict{}, err
	}
	object.LeftOut, old.LeftOut = leavesOut(s, rv.object), leavesOut(s, rv.old)
	object.Groups = groupsOf(s, rv.object)
	return decision.Cluster(s, rv.Request, object, old), nil
}

func reviewController(s *inforce.State, rv *review) (decision.Verdict, error) {
	object, err := objects.DecodeWorkload(rv.object)
	if err != nil {
		return decision.Verdict{}, err
	}
	old := objects.Workload{Notes: objects.Notes(rv.old.Field("metadata").Field("annotations"))}
	if s.AwaitsTemplate() && !rv.old.Absent() {
		if old, err = objects.DecodeWorkload(rv.old); err != nil {
			old = objects.Workload{Notes: objects.Notes(rv.old.Field("metadata").Field("annotations")), Overfull: true}
		}
	}
	return decision.Controller(s, rv.Request, object, old), nil
}

func reviewScale(s *inforce.State, rv *review) (decision.Verdict, error) {
	object, err := objects.DecodeScale(rv.object)
	if err != nil {
		return decision.Verdict{}, err
	}
	return decision.Scale(s, rv.Request, object), nil
}

func reviewPod(s *inforce.State, rv *review) (decision.Verdict, error) {
	object, err := objects.DecodePod(rv.object)
	if err != nil {
		return decision.Verdict{}, err
	}
	return decision.Pod(s, rv.Request, object), nil
}

func reviewPlan(s *inforce.State, rv *review) (decision.Verdict, error) {
	if rv.Name != s.ConfigMap || rv.Namespace != s.Namespace {
		return decision.Verdict{Reason: plan.Unmanaged, Revision: s.Revision()}, nil // an API server without matchConditions asks about every ConfigMap
	}
	object, old, err := readPlans(rv)
	if s.IsPlanner(rv.User) { // who is admitted whatever it writes
		v := decision.Plan(s, rv.Request, object, old)
		probePlan(&v, rv)
		return v, nil
	}
	if err != nil {
		return decision.Verdict{}, err
	}
	return decision.Plan(s, rv.Request, object, old), nil
}

func readPlans(rv *review) (object, old objects.Plan, err error) {
	if object, err = objects.DecodePlan(rv.object, intake.RequestLimit); err != nil {
		return object, old, err
	}
	old, err = objects.DecodePlan(rv.old, intake.StoredLimit)
	return object, old, err
}

// leavesOut reports whether an object is none of the Secrets that the planner takes for clusters.
func leavesOut(s *inforce.State, object rawjson.Node) bool {
	return s != nil && s.Selector != nil && !object.Absent() &&
		!s.Selector.Matches(objects.Labels(object.Field("metadata").Field("labels")))
}

// groupsOf are the plan's groups that an object's labels put it in.
func groupsOf(s *inforce.State, object rawjson.Node) []string {
	if s == nil || s.Arrivals == nil || object.Absent() {
		return nil
	}
	return s.Arrivals.Groups(objects.Labels(object.Field("metadata").Field("labels")))
}
