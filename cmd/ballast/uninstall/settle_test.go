package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/steer"
	"ballast/planner/conflicts"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/store"
)

// leading is a namespace in which x0y has stopped every replica, and a planner that ends that as soon as it is frozen, with as
// many replicas as are given; none: it never does.
func leading(t *testing.T, o *options, renewed time.Time, back int32) client.Client {
	t.Helper()
	site := stoppedSite(t, 0, 0, "argocd")
	holder := "ballast-planner-a"
	fixture.MustDo(t, site.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-" + fixture.ControllerName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(renewed))}}))
	return interceptor.NewClient(site.(client.WithWatch), interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if err := c.Patch(ctx, object, patch, options...); err != nil || object.GetName() != o.plan || object.GetAnnotations()[plan.AnnotationPaused] != "true" || back == 0 {
			return err
		}
		var cm corev1.ConfigMap
		fixture.MustDo(t, c.Get(ctx, client.ObjectKeyFromObject(object), &cm))
		p, err := codec.Decode(cm.Data[plan.KeyPlan])
		fixture.MustDo(t, err)
		p.Rollout, p.Replicas, p.Revision = nil, int(back), p.Revision+1
		text, err := codec.Encode(p)
		fixture.MustDo(t, err)
		cm.Data[plan.KeyPlan], cm.Annotations[plan.AnnotationDigest] = text, plan.Digest(text)
		fixture.MustDo(t, c.Update(ctx, &cm))
		var set appsv1.StatefulSet
		fixture.MustDo(t, c.Get(ctx, client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}, &set))
		set.Spec.Replicas = &back
		return c.Update(ctx, &set)
	}})
}

func TestARolloutEndsBeforeBallastGoes(t *testing.T) {
	now := fixture.Noon
	for name, test := range map[string]struct {
		renewed time.Time
		step    time.Duration // which this machine's clock goes with each look
		back    int32
		timeout time.Duration
		says    string
	}{
		"a planner ends it": {now.Add(-2 * time.Second), time.Second, 4, time.Minute, ""},
		"a planner whose clock is an hour behind this machine's": {now.Add(-time.Hour), time.Second, 4, time.Minute, ""},
		"it does not end": {now.Add(-2 * time.Second), 0, 0, 50 * time.Millisecond,
			"it did not end within 50ms and is at Draining, in mode x0y: see `ballast status`, and run uninstall again, with a longer --timeout if need be"},
		"nobody leads, and all is stopped":                    {now.Add(-2 * time.Minute), time.Second, 0, time.Minute, "has no replicas, and nobody would bring them back"},
		"nobody leads, and the one who did was an hour ahead": {now.Add(time.Hour), time.Second, 0, time.Minute, "has no replicas, and nobody would bring them back"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{plan: "ballast-plan", history: "ballast-history", timeout: test.timeout, keepPlan: true, every: time.Millisecond, now: func() time.Time { now = now.Add(test.step); return now }}
			o.cluster.Namespace = "argocd"
			c := leading(t, o, test.renewed, test.back)
			_, w, goesOn, err := o.target(t.Context(), c)
			if err == nil && goesOn {
				goesOn = false
				_, w, err = o.settled(t.Context(), c, fixture.ControllerName)
			}
			if test.says != "" {
				cm := &corev1.ConfigMap{}
				fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: o.plan}, cm))
				if cm.Annotations[plan.AnnotationPaused] != "" {
					t.Error("its freeze stays")
				}
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("it ends with %v, want %q", err, test.says)
				}
				return
			}
			if err != nil || goesOn || w.Replicas != 4 {
				t.Fatalf("%d replicas, a rollout goes on: %t, %v", w.Replicas, goesOn, err)
			}
		})
	}
}

// TestARolloutOfEachModeEndsBeforeBallastGoes: in the midst of a wave, of a restart for another number, and of a stop of all replicas.
func TestARolloutOfEachModeEndsBeforeBallastGoes(t *testing.T) {
	stages := map[string]plan.Rollout{
		plan.ModeLive:    {Stage: plan.Moving, Replicas: 4, ControllerReplicas: 16, From: plan.Count{Replicas: 4, ControllerReplicas: 16}, Wave: 1, Waves: 2, Moves: map[string]int{"a": 1}, Was: map[string]int{}},
		plan.ModeDefault: {Stage: plan.Scaling, Replicas: 5, ControllerReplicas: 5, From: plan.Count{Replicas: 4, ControllerReplicas: 4}, Moves: map[string]int{}, Was: map[string]int{}},
		plan.ModeX0Y:     {Stage: plan.Draining, Replicas: 4, ControllerReplicas: 4, From: plan.Count{Replicas: 4, ControllerReplicas: 4}, Moves: map[string]int{}, Was: map[string]int{}},
	}
	for mode, rollout := range stages {
		for _, ends := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, a planner ends it: %t", mode, ends), func(t *testing.T) {
				o := &options{plan: "ballast-plan", history: "ballast-history", timeout: 50 * time.Millisecond, keepPlan: true, every: time.Millisecond, now: func() time.Time { return fixture.Noon }}
				o.cluster.Namespace = "argocd"
				back := int32(0)
				if ends {
					back, o.timeout = 4, time.Minute
				}
				c := leading(t, o, fixture.Noon.Add(-time.Second), back)
				rollout.Mode, rollout.Since = mode, fixture.Noon
				rollsOut(t, c, o.plan, rollout)
				_, w, err := o.settled(t.Context(), c, fixture.ControllerName)
				if want := fmt.Sprintf("it did not end within 50ms and is at %s, in mode %s", rollout.Stage, mode); !ends {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("it ends with %v, want %q", err, want)
					}
					return
				}
				if err != nil || w.Replicas != 4 {
					t.Errorf("%d replicas, want 4: %v", w.Replicas, err)
				}
			})
		}
	}
}

// answers is a person who thinks while things happen, and then answers.
type answers struct {
	meanwhile func()
	answer    string
}

func (a answers) Read(to []byte) (int, error) {
	a.meanwhile()
	return copy(to, a.answer), io.EOF
}

// TestARolloutThatBeginsWhileAPersonThinksIsNotCut by the break-glass that comes first: the question may stand for an hour.
func TestARolloutThatBeginsWhileAPersonThinksIsNotCut(t *testing.T) {
	wave := &plan.Rollout{Mode: plan.ModeLive, Stage: plan.Moving, Since: fixture.Noon, Replicas: 4, ControllerReplicas: 16,
		From: plan.Count{Replicas: 4, ControllerReplicas: 16}, Wave: 1, Waves: 2, Moves: map[string]int{"a": 1}, Was: map[string]int{}}
	stop := &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: fixture.Noon, Replicas: 4, ControllerReplicas: 4,
		From: plan.Count{Replicas: 0, ControllerReplicas: 4}, Moves: map[string]int{}, Was: map[string]int{}}
	for name, test := range map[string]struct {
		before, after *plan.Rollout
		leads         bool
		yes           bool
		answer        string
		goesOn        bool
		says          string
	}{
		"nothing begins":                        {nil, nil, true, false, "y\n", false, ""},
		"a wave begins":                         {nil, wave, true, false, "y\n", true, ""},
		"a wave begins, and nobody leads":       {nil, wave, false, false, "y\n", false, ""},
		"the wave ends":                         {wave, nil, true, false, "y\n", false, ""},
		"a wave begins, and the person says no": {nil, wave, true, false, "\n", false, "nothing was changed"},
		"a stop begins, and its leader dies": {nil, stop, false, false, "y\n", false,
			"rollout.x0y stops every replica of StatefulSet argocd-application-controller at this moment"},
		"nobody is asked": {wave, nil, true, true, "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{plan: "ballast-plan", history: "ballast-history", yes: test.yes, now: func() time.Time { return fixture.Noon }}
			o.cluster.Namespace = "argocd"
			c := stoppedSite(t, 4, 4, "argocd")
			if test.leads {
				holder := "ballast-planner-a"
				fixture.MustDo(t, c.Create(t.Context(), &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-" + fixture.ControllerName},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(fixture.Noon))}}))
			}
			holds(t, c, o.plan, test.before)
			var said strings.Builder
			_, w, goesOn, err := o.agreed(t.Context(), c, answers{func() { holds(t, c, o.plan, test.after) }, test.answer}, &said)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("it ends with %v, want %q", err, test.says)
				}
				return
			}
			if err != nil || goesOn != test.goesOn || w.Replicas != 4 {
				t.Errorf("%d replicas, a rollout goes on: %t, want %t; %v", w.Replicas, goesOn, test.goesOn, err)
			}
			const question = "Take ballast out of argocd, where StatefulSet argocd-application-controller has 4 replicas? [y/N]"
			if asked := strings.Contains(said.String(), question); asked == test.yes {
				t.Errorf("the person hears %q", said.String())
			}
		})
	}
}

// rollsOut puts a rollout into the plan that is in force.
func rollsOut(t *testing.T, c client.Client, name string, rollout plan.Rollout) {
	t.Helper()
	holds(t, c, name, &rollout)
}

// holds has the plan in force be in the midst of a rollout, or at rest by nil.
func holds(t *testing.T, c client.Client, name string, rollout *plan.Rollout) {
	t.Helper()
	var cm corev1.ConfigMap
	fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: name}, &cm))
	p, err := codec.Decode(cm.Data[plan.KeyPlan])
	fixture.MustDo(t, err)
	if p.Rollout, p.Replicas = rollout, 4; rollout != nil {
		p.Replicas, p.ControllerReplicas = rollout.From.Replicas, rollout.From.ControllerReplicas
	}
	text, err := codec.Encode(p)
	fixture.MustDo(t, err)
	cm.Data[plan.KeyPlan], cm.Annotations[plan.AnnotationDigest] = text, plan.Digest(text)
	fixture.MustDo(t, c.Update(t.Context(), &cm))
}

// TestWhatNoFreezeEndsIsNamed, and the freeze that kept nothing is taken away again.
func TestWhatNoFreezeEndsIsNamed(t *testing.T) {
	for annotation, says := range map[string]string{
		plan.AnnotationRollback: "take it back with `ballast rollback --off`",
		plan.AnnotationCordon:   "take it back with `ballast evacuate <replica> --off`",
		"":                      "it did not end within 50ms",
	} {
		o := &options{plan: "ballast-plan", history: "ballast-history", timeout: 50 * time.Millisecond, every: time.Millisecond, now: func() time.Time { return fixture.Noon }}
		o.cluster.Namespace = "argocd"
		c := leading(t, o, fixture.Noon, 0)
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: "argocd", Name: o.plan}
		fixture.MustDo(t, c.Get(t.Context(), key, cm))
		if annotation != "" {
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, annotation, "1=2026-11-21T12:00:00Z")
			fixture.MustDo(t, c.Update(t.Context(), cm))
		}
		if _, _, err := o.settled(t.Context(), c, fixture.ControllerName); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("with %q it ends with %v, want %q", annotation, err, says)
		}
		fixture.MustDo(t, c.Get(t.Context(), key, cm))
		if cm.Annotations[plan.AnnotationPaused] != "" {
			t.Errorf("with %q its freeze stays", annotation)
		}
	}
}

// TestAnotherInstallationsPlannerEndsNoRollout: who leads the workload by another plan is not waited for.
func TestAnotherInstallationsPlannerEndsNoRollout(t *testing.T) {
	for of, waits := range map[string]bool{"argocd/ballast-plan": true, "": true, "elsewhere/ballast-plan": false} {
		o := &options{plan: "ballast-plan", history: "ballast-history", now: func() time.Time { return fixture.Noon }}
		o.cluster.Namespace = "argocd"
		c := leading(t, o, fixture.Noon, 0)
		lease := &coordinationv1.Lease{}
		fixture.MustDo(t, c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: "ballast-" + fixture.ControllerName}, lease))
		lease.Annotations = map[string]string{conflicts.AnnotationPlan: of}
		fixture.MustDo(t, c.Update(t.Context(), lease))
		doc, err := connect.ReadDocument(t.Context(), c, o.config())
		fixture.MustDo(t, err)
		if got, err := o.underWay(t.Context(), c, doc, fixture.ControllerName); got != waits || err != nil {
			t.Errorf("with a lease of %q it waits: %t, %v; want %t", of, got, err, waits)
		}
	}
}

// TestOnlyItsOwnFreezeEnds with a plan that is kept: a person's is for the next installation, too.
func TestOnlyItsOwnFreezeEnds(t *testing.T) {
	for reason, want := range map[string]map[string]string{
		steer.FrozenByUninstall: {},
		"a sale":                {plan.AnnotationPaused: "true", plan.AnnotationPausedReason: "a sale"},
	} {
		o := &options{plan: "ballast-plan", history: "ballast-history"}
		o.cluster.Namespace = "argocd"
		c := stoppedSite(t, 4, 4, "argocd")
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: "argocd", Name: o.plan}
		fixture.MustDo(t, o.breakGlass(t.Context(), c))
		fixture.MustDo(t, o.maps().Freeze(t.Context(), c))
		fixture.MustDo(t, c.Get(t.Context(), key, cm))
		cm.Annotations[plan.AnnotationPausedReason] = reason
		fixture.MustDo(t, c.Update(t.Context(), cm))
		fixture.MustDo(t, o.maps().Keep(t.Context(), c))
		cm = &corev1.ConfigMap{}
		fixture.MustDo(t, c.Get(t.Context(), key, cm))
		delete(cm.Annotations, plan.AnnotationDigest)
		if diff := cmp.Diff(want, cm.Annotations, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("frozen for %q, left (-want +got):\n%s", reason, diff)
		}
	}
}

// TestPoliciesThatAreDeletedHoldForAMoment: the history is the planner's by them, and a plan that is kept must not stay without
// enforcement for it.
func TestPoliciesThatAreDeletedHoldForAMoment(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "ballast-history", errors.New("what is in ballast-history is the planner's alone"))
	for name, test := range map[string]struct {
		refusals int
		tries    int
		words    []byte // that the history has in the end
		says     string
	}{
		"they are gone": {0, 1, nil, ""},
		"they hold":     {2, 3, nil, ""},
		"they stay":     {math.MaxInt, 0, []byte("x"), "what is in ballast-history is the planner's alone"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{plan: "ballast-plan", history: "ballast-history", every: time.Millisecond}
			o.cluster.Namespace = "argocd"
			site, tries := stoppedSite(t, 4, 4, "argocd").(client.WithWatch), 0
			fixture.MustDo(t, site.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: o.history},
				BinaryData: map[string][]byte{store.PartWords: []byte("x")}}))
			fixture.MustDo(t, o.breakGlass(t.Context(), site))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := interceptor.NewClient(site, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if object.GetName() != o.history {
					return c.Patch(context.WithoutCancel(ctx), object, patch, opts...)
				}
				if tries++; tries > test.refusals {
					return c.Patch(ctx, object, patch, opts...)
				}
				if test.tries == 0 && tries == 3 {
					cancel() // as after 15 s
				}
				return forbidden
			}})
			err := o.maps().Keep(ctx, c)
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("it ends with %v, want %q", err, test.says)
			}
			var kept, history corev1.ConfigMap
			fixture.MustDo(t, site.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: o.plan}, &kept))
			fixture.MustDo(t, site.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: o.history}, &history))
			glass, stays := kept.Annotations[plan.AnnotationEnforcement]
			if words := history.BinaryData[store.PartWords]; stays || string(words) != string(test.words) || test.tries > 0 && tries != test.tries {
				t.Errorf("after %d tries enforcement is %q (%t), and the history has %q; want %d tries, no annotation and %q", tries, glass, stays, words, test.tries, test.words)
			}
		})
	}
}

// TestUninstallPatchesWhatNobodyPatches: the managers of the plan ConfigMap have a time that the API server cannot read
// back, so that it takes no patch but one that starts them anew.
func TestUninstallPatchesWhatNobodyPatches(t *testing.T) {
	o := &options{plan: "ballast-plan", history: "ballast-history"}
	o.cluster.Namespace = "argocd"
	for name, write := range map[string]func(context.Context, client.Client) error{"break-glass": o.breakGlass, "its end": o.maps().Keep, "freeze": o.maps().Freeze} {
		var bodies []string
		site := stoppedSite(t, 4, 4, "argocd").(client.WithWatch)
		fixture.MustDo(t, site.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: o.history}}))
		c := interceptor.NewClient(site, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, object, opts...)
				object.SetManagedFields([]metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}}})
				return err
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				body, err := patch.Data(object)
				bodies = append(bodies, string(body))
				return err
			}})
		fixture.MustDo(t, write(t.Context(), c))
		keeps := func(body string) bool { return !strings.Contains(body, `"managedFields":[{}]`) }
		patches := map[string]int{"break-glass": 1, "its end": 2, "freeze": 1} // the end is of the history, too
		if len(bodies) != patches[name] || slices.ContainsFunc(bodies, keeps) {
			t.Errorf("%s is written as %q", name, bodies)
		}
	}
}

// TestAWorkloadThatOptedOutKeepsItsEnv, and stops nothing: nobody of ballast writes to it, and people are told what is theirs to do.
func TestAWorkloadThatOptedOutKeepsItsEnv(t *testing.T) {
	o := &options{plan: "ballast-plan", history: "ballast-history", timeout: time.Second, every: time.Millisecond, now: time.Now}
	o.cluster.Namespace = "argocd"
	c := stoppedSite(t, 3, 4, "argocd")
	var set appsv1.StatefulSet
	key := client.ObjectKey{Namespace: "argocd", Name: fixture.ControllerName}
	fixture.MustDo(t, c.Get(t.Context(), key, &set))
	set.Annotations = map[string]string{plan.AnnotationUnmanaged: "true"}
	fixture.MustDo(t, c.Update(t.Context(), &set))
	target, w, _, err := o.target(t.Context(), c)
	fixture.MustDo(t, err)
	var said []string
	for _, step := range o.steps(target, w) {
		said = append(said, step.what)
		fixture.MustDo(t, step.do(t.Context(), c))
	}
	want := "StatefulSet argocd-application-controller opted out of ballast, and its ARGOCD_CONTROLLER_REPLICAS stays as it is: " +
		"where it is not spec.replicas (3), clusters added later may have no owner, or several, until you make it so"
	if said[1] != want {
		t.Errorf("people hear %q, want %q", said[1], want)
	}
	fixture.MustDo(t, c.Get(t.Context(), key, &set))
	if env := set.Spec.Template.Spec.Containers[0].Env[0].Value; env != "4" || *set.Spec.Replicas != 3 {
		t.Errorf("the env is %s and the replicas %d, want 4 and 3", env, *set.Spec.Replicas)
	}
}
