package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/planner/store"
)

// passesOverNobody: where writes of no meaning have the planner write by content, what a person asks for at that moment is seen first,
// and is not taken away.
func passesOverNobody(t *testing.T, w *world) {
	annotates := func(name, value string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Annotations[plan.Group+"/"+name] = value }
	}
	forgets := func(name string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { delete(cm.Annotations, plan.Group+"/"+name) }
	}
	pins := func(text string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = text }
	}
	quotes := "# " + strings.Repeat("\"", people.MaxPinsBytes-10) + "\n"
	brackets := strings.Repeat("<", plan.MaxNoteBytes-len(",1=2026-11-21T12:00:00Z")) // an entry that is no cordon leaves the others
	nothing := func(*corev1.ConfigMap) {}
	for name, test := range map[string]struct {
		before, meanwhile func(*corev1.ConfigMap)
		written           bool
	}{
		"nothing but noise":              {nothing, annotates("noise", "1"), true},
		"who froze it, for people":       {annotates("paused-by", "alice"), annotates("paused-by", "bob"), true},
		"a comment in the pins":          {pins("a: 1\n"), pins("# why\na: 1\n"), false}, // a text is tested, and not what it says
		"a freeze":                       {nothing, annotates("paused", "true"), false},
		"break-glass":                    {nothing, annotates("enforcement", "off"), false},
		"a cordon":                       {nothing, annotates("cordon", "1=2026-11-21T12:00:00Z"), false},
		"a cordon that is longer":        {annotates("cordon", "1=2026-11-21T12:00:00Z"), annotates("cordon", "1=2026-11-22T12:00:00Z"), false},
		"a freeze that ends":             {annotates("paused", "true"), forgets("paused"), false},
		"another revision to go back":    {annotates("rollback-to", "3"), annotates("rollback-to", "2"), false},
		"the same revision":              {annotates("rollback-to", "3"), annotates("noise", "1"), true},
		"what is accepted":               {nothing, annotates("accept-discovery", "12"), false},
		"a pin":                          {nothing, pins("a: 1\n"), false},
		"another pin":                    {pins("a: 1\n"), pins("a: 0\n"), false},
		"a pin as before":                {pins("a: 1\n"), annotates("noise", "1"), true},
		"pins that nobody reads":         {pins(strings.Repeat("\x01", 600<<10)), annotates("noise", "1"), true},
		"pins with the most escapes":     {pins("# " + strings.Repeat("<", people.MaxPinsBytes-10) + "\na: 1\n"), annotates("noise", "1"), true},
		"of those another":               {pins(quotes + "a: 1\n"), pins(quotes + "a: 0\n"), false},
		"a cordon with the most escapes": {annotates("cordon", brackets+",1=2026-11-21T12:00:00Z"), annotates("noise", "1"), true},
		"of that another": {
			annotates("cordon", brackets+",1=2026-11-21T12:00:00Z"), annotates("cordon", brackets+",1=2026-11-22T12:00:00Z"), false,
		},
		"all with the most escapes": {func(cm *corev1.ConfigMap) {
			for _, name := range []string{"paused", "enforcement", "cordon", "accept-discovery", "rollback-to", "rebase", "tripped"} {
				annotates(name, strings.Repeat("<", plan.MaxNoteBytes))(cm)
			}
			pins(strings.Repeat("<", people.MaxPinsBytes))(cm)
		}, annotates("noise", "1"), true},
		"annotations that nobody reads": {annotates("cordon", strings.Repeat("\x01", 200<<10)), annotates("noise", "1"), true},
		"both": {func(cm *corev1.ConfigMap) {
			annotates("cordon", strings.Repeat("\x01", 200<<10))(cm)
			pins(strings.Repeat("\x01", 600<<10))(cm)
		}, annotates("noise", "1"), true},
	} {
		t.Run(name, func(t *testing.T) {
			of := *w
			of.t = t
			if base := of.read(); base.Exists() {
				of.must(of.client.Delete(of.ctx, of.stored()))
			}
			of.write(of.read(), newPlan("a"), 0)
			of.edit(test.before)
			base, happened := of.read(), false
			raced := interceptor.NewClient(of.client, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if patch.Type() != types.JSONPatchType {
						return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, object.GetName(), errors.New("somebody writes without end"))
					}
					of.edit(test.meanwhile)
					happened = true
					return c.Patch(ctx, object, patch, options...)
				}})
			s := store.New(store.Options{Client: raced, Reader: of.client, Namespace: of.Namespace, Plan: of.Plan, History: of.History, Key: of.Key})
			of.must(s.Unseal(of.ctx))
			set := map[string]*string{plan.AnnotationRollback: nil, plan.AnnotationBlocked: new(string)}
			_, err := s.Annotate(of.ctx, base, set)
			_, there := of.stored().Annotations[plan.AnnotationBlocked]
			if written := err == nil; written != test.written || there != test.written || !happened {
				t.Errorf("written: %t (%v), and it stands: %t, want %t", written, err, there, test.written)
			}
			if !test.written && !errors.Is(err, store.ErrConflict) {
				t.Errorf("it ends with %v, want a lost race", err)
			}
		})
	}
}
