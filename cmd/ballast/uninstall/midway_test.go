package uninstall

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/uninstall/objects"
	"ballast/planner/conflicts"
	"ballast/planner/plan"
)

// midway is an installation at rest, with a planner that begins a stop of all replicas at the worst moment, and ends it once it sees a
// freeze or break-glass.
type midway struct {
	*testing.T
	client.WithWatch
	stopped int // how many stops began
}

func startMidway(t *testing.T) *midway {
	t.Helper()
	m := &midway{T: t, WithWatch: stoppedSite(t, 4, 4, "argocd").(client.WithWatch)}
	settled(t, m)
	holder := "ballast-planner-a"
	m.must(m.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-" + fixture.ControllerName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(fixture.Noon))}}))
	m.must(m.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-planner", Labels: map[string]string{objects.PartOf: "ballast"}}}))
	return m
}

func (m *midway) must(err error) { m.Helper(); fixture.MustDo(m.T, err) }

// scales writes the workload's replicas.
func (m *midway) scales(replicas int32) {
	m.Helper()
	var set appsv1.StatefulSet
	m.must(m.Get(m.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
	set.Spec.Replicas = &replicas
	m.must(m.Update(m.Context(), &set))
}

func (m *midway) begins() {
	m.Helper()
	m.stopped++
	holds(m.T, m, "ballast-plan", &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: fixture.Noon, Replicas: 5, ControllerReplicas: 5,
		From: plan.Count{Replicas: 4, ControllerReplicas: 4}, Moves: map[string]int{}, Was: map[string]int{}})
	m.scales(0)
}

func (m *midway) ends() {
	m.Helper()
	holds(m.T, m, "ballast-plan", nil)
	m.scales(4)
}

// replicas are the workload's.
func (m *midway) replicas() int32 {
	m.Helper()
	var set appsv1.StatefulSet
	m.must(m.Get(m.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
	return *set.Spec.Replicas
}

// TestNoStopThatBeginsMidwayIsCut: a person's last look may be seconds old when break-glass comes, and a planner decides for longer.
func TestNoStopThatBeginsMidwayIsCut(t *testing.T) {
	const glass, freeze = plan.AnnotationEnforcement, plan.AnnotationPaused
	for name, test := range map[string]struct {
		before, racing, after bool // the break-glass
	}{
		"none begins":                           {},
		"after the last look":                   {before: true},
		"while break-glass is written":          {racing: true},
		"by a planner that did not see it":      {after: true},
		"twice, before it and by such planners": {before: true, after: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := startMidway(t)
			o := &options{plan: "ballast-plan", history: "ballast-history", keepPlan: true, timeout: time.Minute, every: time.Millisecond, now: func() time.Time { return fixture.Noon }}
			o.cluster.Namespace = "argocd"
			target, w, goesOn, err := o.target(t.Context(), m)
			if m.must(err); goesOn {
				t.Fatal("a rollout goes on already")
			}
			looks, raced, stopping := 0, false, test.before
			if test.before {
				m.begins()
			}
			c := interceptor.NewClient(m.WithWatch, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					body, err := patch.Data(object)
					m.must(err)
					writes := func(name string) bool { return strings.Contains(string(body), `"`+name+`":"`) }
					if test.racing && !raced && writes(glass) {
						m.begins()
						raced, stopping = true, true
					}
					if err := c.Patch(ctx, object, patch, options...); err != nil {
						return err
					}
					switch {
					case stopping && writes(freeze):
						m.ends()
						stopping = false
					case test.after && writes(glass):
						m.begins()
						stopping = true
					}
					return nil
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					_, looks := list.(*appsv1.StatefulSetList) // for the env, and finds it stopped under break-glass: the planner turns back
					var cm corev1.ConfigMap
					m.must(c.Get(ctx, client.ObjectKey{Namespace: "argocd", Name: "ballast-plan"}, &cm))
					if stopping && looks && cm.Annotations[glass] == "off" {
						t.Error("uninstall goes on while a stop is under way")
					}
					return c.List(ctx, list, options...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					err := c.Get(ctx, key, object, options...)
					if _, lease := object.(*coordinationv1.Lease); lease && stopping && test.after && m.glass() {
						if looks++; looks == 3 {
							m.ends()
							stopping = false
						}
					}
					return err
				},
			})
			var out bytes.Buffer
			if err := o.carryOut(t.Context(), c, o.steps(target, w), &out); err != nil {
				t.Errorf("it ends with %v\n%s", err, out.String())
			}
			stops := map[bool]int{true: 1}[test.before] + map[bool]int{true: 1}[test.racing] + map[bool]int{true: 1}[test.after]
			if got := m.replicas(); got != 4 || stopping || m.stopped != stops {
				t.Errorf("%d replicas are left after %d stops, want 4 after %d", got, m.stopped, stops)
			}
		})
	}
}

// glass reports whether enforcement is off.
func (m *midway) glass() bool {
	m.Helper()
	var cm corev1.ConfigMap
	m.must(m.Get(m.Context(), client.ObjectKey{Namespace: "argocd", Name: "ballast-plan"}, &cm))
	return cm.Annotations[plan.AnnotationEnforcement] == "off"
}

// TestAFleetThatIsStoppedAsThePlannerGoesIsTold, with the plan that says how many there were.
func TestAFleetThatIsStoppedAsThePlannerGoesIsTold(t *testing.T) {
	m := startMidway(t)
	o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Minute, every: time.Millisecond, now: func() time.Time { return fixture.Noon }}
	o.cluster.Namespace = "argocd"
	target, w, _, err := o.target(t.Context(), m)
	m.must(err)
	c := interceptor.NewClient(m.WithWatch, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if object.GetName() == "ballast-planner" {
				m.scales(0)
			}
			return c.Delete(ctx, object, options...)
		}})
	err = o.carryOut(t.Context(), c, o.steps(target, w), &bytes.Buffer{})
	const want = "StatefulSet argocd-application-controller has no replicas, and nobody would bring them back"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("it ends with %v, want %q", err, want)
	}
	if left := leftOf(t, m); !slices.ContainsFunc(left, func(what string) bool { return strings.HasPrefix(what, "ConfigMap ballast-plan") }) {
		t.Errorf("the plan is gone: %v", left)
	}
}

// TestNoFreezeIsWrittenOver by the one that has a rollout end: who froze it meanwhile keeps theirs.
func TestNoFreezeIsWrittenOver(t *testing.T) {
	m := startMidway(t)
	o := &options{plan: "ballast-plan", history: "ballast-history"}
	o.cluster.Namespace = "argocd"
	sale := map[string]string{plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a sale"}
	raced := false
	c := interceptor.NewClient(m.WithWatch, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if !raced {
			raced = true
			var cm corev1.ConfigMap
			m.must(c.Get(ctx, client.ObjectKey{Namespace: "argocd", Name: "ballast-plan"}, &cm))
			cm.Annotations[plan.AnnotationPaused], cm.Annotations[plan.AnnotationPausedReason] = "true", "a sale"
			m.must(c.Update(ctx, &cm))
		}
		return c.Patch(ctx, object, patch, options...)
	}})
	m.must(o.maps().Freeze(t.Context(), c))
	m.must(o.maps().Thaw(t.Context(), c))
	var cm corev1.ConfigMap
	m.must(m.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: "ballast-plan"}, &cm))
	delete(cm.Annotations, plan.AnnotationDigest)
	if diff := cmp.Diff(sale, cm.Annotations); diff != "" {
		t.Errorf("what stands beside the plan (-want +got):\n%s", diff)
	}
}

// TestWhatUninstallLookedAtIsLookedAtAgain: while it waits a workload may opt out, or in again, go, or be made anew.
func TestWhatUninstallLookedAtIsLookedAtAgain(t *testing.T) {
	const glass, freeze = plan.AnnotationEnforcement, plan.AnnotationPaused
	change := func(m *midway, changes func(*appsv1.StatefulSet)) {
		var set appsv1.StatefulSet
		m.must(m.Get(m.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
		changes(&set)
		m.must(m.Update(m.Context(), &set))
	}
	optsOut := func(m *midway) {
		change(m, func(s *appsv1.StatefulSet) {
			s.Annotations, s.Spec.Template.Spec.Containers[0].Env[0].Value = map[string]string{plan.AnnotationUnmanaged: "true"}, "7"
		})
	}
	goes := func(m *midway) {
		m.must(m.Delete(m.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fixture.ControllerName}}))
	}
	const aligned = "- ARGOCD_CONTROLLER_REPLICAS = spec.replicas (4), and the pods that read it\n"
	const opted = "StatefulSet argocd-application-controller opted out of ballast, and its ARGOCD_CONTROLLER_REPLICAS stays as it is: " +
		"where it is not spec.replicas (4), clusters added later may have no owner, or several, until you make it so\n"
	const gone = "StatefulSet argocd-application-controller is not there any more, so that it has no ARGOCD_CONTROLLER_REPLICAS to change\n"
	for name, test := range map[string]struct {
		before, midway func(*midway)
		at             string // the annotation that is written before that
		env, says      string
	}{
		"it opts out while a stop ends": {nil, func(m *midway) { m.ends(); optsOut(m) }, freeze, "7", aligned + "  by now " + opted},
		"it opts out under break-glass": {nil, optsOut, glass, "7", aligned + "  by now " + opted},
		"it opts in again": {func(m *midway) {
			change(m, func(s *appsv1.StatefulSet) { s.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"} })
		}, func(m *midway) {
			m.ends()
			change(m, func(s *appsv1.StatefulSet) {
				s.Annotations = nil
			})
		}, freeze, "4", "- " + opted + "  by now " + strings.TrimPrefix(aligned, "- ")},
		"it goes while a stop goes on":    {nil, goes, freeze, "", aligned + "  by now " + gone},
		"it goes under break-glass":       {nil, goes, glass, "", aligned + "  by now " + gone},
		"nothing happens to it meanwhile": {nil, func(*midway) {}, glass, "4", aligned},
	} {
		t.Run(name, func(t *testing.T) {
			m := startMidway(t)
			if test.before != nil {
				test.before(m)
			}
			o := &options{plan: "ballast-plan", history: "ballast-history", timeout: 20 * time.Second, every: time.Millisecond,
				now: func() time.Time { return fixture.Noon }}
			o.cluster.Namespace = "argocd"
			target, w, _, err := o.target(t.Context(), m)
			m.must(err)
			if test.at == freeze {
				m.begins()
			}
			type option = client.PatchOption
			c := interceptor.NewClient(m.WithWatch, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object,
				patch client.Patch, options ...option) error {
				body, err := patch.Data(object)
				m.must(err)
				if err := c.Patch(ctx, object, patch, options...); err != nil {
					return err
				}
				if strings.Contains(string(body), `"`+test.at+`":"`) {
					test.midway(m)
				}
				return nil
			}})
			var out strings.Builder
			err = o.carryOut(t.Context(), c, o.steps(target, w), &out)
			if err != nil || !strings.Contains(out.String(), "\n"+test.says+"- the webhook configuration\n") {
				t.Errorf("it ends with %v and says %s\nwant %s", err, out.String(), test.says)
			}
			var set appsv1.StatefulSet
			env := ""
			if err := m.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set); err == nil {
				env = set.Spec.Template.Spec.Containers[0].Env[0].Value
			}
			if env != test.env {
				t.Errorf("the env is %q, want %q", env, test.env)
			}
		})
	}
}

// TestUninstallGoesWithoutAWorkload: of an Argo CD that is gone ballast can be taken out, its Lease, too.
func TestUninstallGoesWithoutAWorkload(t *testing.T) {
	for name, test := range map[string]struct {
		noPlan bool
		asks   string
		step   string
	}{
		"that the plan is of": {false, "Take ballast out of argocd, where StatefulSet argocd-application-controller is not there any more? [y/N]",
			"StatefulSet argocd-application-controller is not there any more, so that it has no ARGOCD_CONTROLLER_REPLICAS to change"},
		"and without a plan": {true, "Take ballast out of argocd, where there is no application-controller? [y/N]",
			"there is no application-controller, so that it has no ARGOCD_CONTROLLER_REPLICAS to change"},
	} {
		t.Run(name, func(t *testing.T) {
			m := startMidway(t)
			o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Minute, every: time.Millisecond, now: func() time.Time { return fixture.Noon }}
			o.cluster.Namespace = "argocd"
			m.must(m.Delete(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fixture.ControllerName}}))
			lease := &coordinationv1.Lease{}
			m.must(m.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: "ballast-" + fixture.ControllerName}, lease))
			lease.Annotations = map[string]string{conflicts.AnnotationPlan: "argocd/ballast-plan"}
			m.must(m.Update(t.Context(), lease))
			if test.noPlan {
				m.must(m.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-plan"}}))
			}
			var said strings.Builder
			target, w, goesOn, err := o.agreed(t.Context(), m, strings.NewReader("y\n"), &said)
			if m.must(err); goesOn || !strings.Contains(said.String(), test.asks) {
				t.Errorf("a rollout goes on: %t, and the person hears %q", goesOn, said.String())
			}
			steps := o.steps(target, w)
			if steps[1].what != test.step {
				t.Errorf("it says %q, want %q", steps[1].what, test.step)
			}
			m.must(o.carryOut(t.Context(), m, steps, &bytes.Buffer{}))
			if left := leftOf(t, m); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestUninstallSaysNothingIsGoneThatRuns: what an overlay labelled otherwise is named before anything is changed, and what a GitOps tool
// puts back before the plan goes.
func TestUninstallSaysNothingIsGoneThatRuns(t *testing.T) {
	deployment := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, Labels: map[string]string{objects.PartOf: "platform"}}}
	}
	configuration := admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "ballast.argocd", Labels: map[string]string{objects.PartOf: "platform"}},
		Webhooks: []admissionv1.MutatingWebhook{{Name: "clusters.ballast.argoproj.io", ClientConfig: admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Namespace: "argocd", Name: "ballast-webhook"}}}}}
	const lacks = ` is ballast's by its name or by whom it calls, and lacks the label app.kubernetes.io/part-of=ballast`
	const again = ` is there again, or still: take it out of what puts it back`
	for name, test := range map[string]struct {
		before, again client.Object
		named, says   string
	}{
		"all is known":                 {},
		"a webhook labelled as theirs": {before: deployment("ballast-webhook"), says: `Deployment "ballast-webhook"` + lacks},
		"a configuration":              {before: &configuration, says: `MutatingWebhookConfiguration "ballast.argocd"` + lacks},
		"one that is named":            {before: &configuration, named: "ballast.argocd"},
		"somebody's of another name":   {before: deployment("planner")},
		"a planner that comes back":    {again: deployment("ballast-planner"), says: `Deployment "ballast-planner"` + again},
	} {
		t.Run(name, func(t *testing.T) {
			m := startMidway(t)
			o := &options{plan: "ballast-plan", history: "ballast-history", webhooks: test.named, timeout: time.Minute, every: time.Millisecond, now: func() time.Time { return fixture.Noon }}
			o.cluster.Namespace = "argocd"
			if test.before != nil {
				m.must(m.Create(t.Context(), test.before.DeepCopyObject().(client.Object)))
			}
			c := interceptor.NewClient(m.WithWatch, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					err := c.Delete(ctx, object, options...)
					if test.again != nil && object.GetName() == test.again.GetName() {
						m.must(c.Create(ctx, test.again.DeepCopyObject().(client.Object)))
					}
					return err
				}})
			target, w, _, err := o.target(t.Context(), c)
			if err == nil {
				err = o.carryOut(t.Context(), c, o.steps(target, w), &bytes.Buffer{})
			} else if m.glass() {
				t.Error("break-glass comes first")
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.says) || (got == "") != (test.says == "") {
				t.Errorf("it ends with %q, want %q", got, test.says)
			}
			kept := slices.ContainsFunc(leftOf(t, m), func(what string) bool { return strings.HasPrefix(what, "ConfigMap ballast-plan") })
			if kept != (test.says != "") {
				t.Errorf("the plan is left: %t", kept)
			}
		})
	}
}
