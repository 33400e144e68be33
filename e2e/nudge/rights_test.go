package nudge_test

import (
	"errors"
	"os"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ballast/planner/nudge"
)

func expired() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410}}
}

// component is the rules that a component of the manifests grants.
func component(t *testing.T, name, file string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile("../../manifests/components/" + name + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole // a Role has no field that this one has not
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// base is what the planner may read in Argo CD's namespace without any component: nothing of it is an Application.
var base = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}

// as has the Nudger be a user of its own, with the base's rights.
func (w *world) as(name string) string {
	user := name + "-of-" + w.own
	w.grant(user, w.own, base)
	w.nudger = w.newNudger(user)
	return user
}

func (w *world) forbidden(want nudge.ForbiddenError) {
	w.t.Helper()
	application, err := w.nudger.Nudge(w.ctx, w.own, "cluster", eu, "")
	var got *nudge.ForbiddenError
	if application != "" || !errors.As(err, &got) || !apierrors.IsForbidden(err) {
		w.t.Fatalf("%q, %v", application, err)
	}
	w.equal(want, nudge.ForbiddenError{Verb: got.Verb, Namespace: got.Namespace})
}

func saysWhatIsForbidden(t *testing.T, w *world) {
	w.application(w.own, "a", eu, nil)
	w.as("planner")
	w.forbidden(nudge.ForbiddenError{Verb: "list", Namespace: w.own})
	w.watch("*")
	w.forbidden(nudge.ForbiddenError{Verb: "list", Namespace: w.own})
	w.equal([]nudge.ListingReason(nil), w.reasons())
}

func worksWithTheComponent(t *testing.T, w *world) {
	a := w.application(w.own, "a", eu, nil)
	user := w.as("planner")
	w.grant(user, w.own, component(t, "nudge", "role.yaml")...)
	w.equal(w.own+"/a", w.nudge(eu, ""))
	w.equal("normal", w.refresh(a))
}

func fallsBackToItsOwn(t *testing.T, w *world) {
	team := w.namespace("team-")
	w.application(team, "a", us, nil)
	w.application(w.own, "b", eu, nil)
	w.watch(team + ",team-*")
	user := w.as("planner")
	w.grant(user, w.own, component(t, "nudge", "role.yaml")...)
	for i := range 3 {
		w.clock.SetTime(start.Add(time.Duration(i) * time.Minute))
		w.equal([]string{w.own + "/b", ""}, []string{w.nudge(eu, ""), w.nudge(us, "")})
	}
	w.equal([]nudge.ListingProblem{
		{Reason: nudge.NamespaceForbidden, Message: "Applications are looked for in " + w.own + ", " + team + " only: the planner may not list them in all namespaces, as Argo CD's setting application.namespaces asks for; add component nudge-any-namespace"},
		{Reason: nudge.NamespaceForbidden, Message: `no Application is looked for in "` + team + `": the planner may not list them there; add component nudge-any-namespace, or a Role in that namespace`},
	}, w.problems)
}

func usesARoleInANamedNamespace(t *testing.T, w *world) {
	team := w.namespace("team-")
	w.application(team, "a", eu, nil)
	w.watch(team)
	user := w.as("planner")
	w.grant(user, w.own, component(t, "nudge", "role.yaml")...)
	w.grant(user, team, component(t, "nudge", "role.yaml")...)
	w.equal(team+"/a", w.nudge(eu, ""))
	w.equal([]nudge.ListingReason(nil), w.reasons())
}

func worksWithTheOtherComponent(t *testing.T, w *world) {
	team := w.namespace("team-")
	w.application(team, "a", eu, nil)
	w.watch("team-*")
	user := w.as("planner")
	w.grant(user, "", component(t, "nudge-any-namespace", "role.yaml")...)
	w.equal(team+"/a", w.nudge(eu, ""))
	w.equal([]nudge.ListingReason(nil), w.reasons())
}

func passesOverWhatItMayNotPatch(t *testing.T, w *world) {
	first, second := w.namespace("a-team-"), w.namespace("b-team-")
	w.application(first, "a", eu, nil)
	w.watch(first + "," + second)
	user := w.as("planner")
	readOnly := rbacv1.PolicyRule{APIGroups: []string{"argoproj.io"}, Resources: []string{"applications"}, Verbs: []string{"get", "list"}}
	w.grant(user, w.own, component(t, "nudge", "role.yaml")...)
	w.grant(user, first, readOnly)
	w.grant(user, second, component(t, "nudge", "role.yaml")...)
	w.forbidden(nudge.ForbiddenError{Verb: "patch", Namespace: first})
	w.application(second, "a", eu, nil)
	w.clock.SetTime(start.Add(keep + time.Minute)) // the listing of before is forgotten
	w.equal(second+"/a", w.nudge(eu, ""))
}
