package controller_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"ballast/planner/change/harm"
	"ballast/planner/cycle/memory"
	"ballast/planner/plan"
)

// TestWhoeverDeletesThePlanTakesNoWordBack: between two cycles, too, when nobody has read what a person wrote last.
func TestWhoeverDeletesThePlanTakesNoWordBack(t *testing.T) {
	server := anyServer.Start(t)
	t.Run("a freeze holds, and its end does", func(t *testing.T) { keepsTheLastWord(t, server) })
	t.Run("a trip stays one", func(t *testing.T) { keepsATrip(t, server) })
}

func keepsTheLastWord(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Enforce, lognormal(5, 12)...)
	l, _ := b.start()
	b.cycles(l, 2)
	for range 2 {
		for _, paused := range []string{"true", ""} {
			b.edit(func(cm *corev1.ConfigMap) {
				delete(cm.Annotations, plan.AnnotationPaused)
				if paused != "" {
					annotate(cm, plan.AnnotationPaused, paused)
				}
			})
			b.seen(l)
			b.stirred(l) // a cycle waits for quiet, since the watch told of it
			b.must(b.client.Delete(b.ctx, b.planMap()))
			l.Changed()
			b.quieten(l)
			b.calm(l)
			b.cycles(l, 1)
			if got := b.planMap().Annotations[plan.AnnotationPaused]; got != paused {
				t.Errorf("the last word was %q, and it came back with %q", paused, got)
			}
		}
	}
}

func keepsATrip(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Enforce, lognormal(5, 12)...)
	first, end := b.start()
	b.cycles(first, 2)
	end()
	b.remember(func(m *memory.Memory) {
		m.Changes.Trip = &harm.Trip{At: b.clock.Now(), Reason: harm.OOMKilled, Why: "a wave did harm"}
	})
	l := b.newLoop()
	cycle := func() {
		t.Helper()
		if _, err := l.Once(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	holds := func() {
		t.Helper()
		if got, trip := b.planMap().Annotations[plan.AnnotationTripped], b.saved().Changes.Trip; got != "a wave did harm" || trip == nil {
			t.Fatalf("tripped %q, trip %+v, though nobody ended it", got, trip)
		}
	}
	for range 3 {
		cycle()
		holds()
		b.must(b.client.Delete(b.ctx, b.planMap()))
	}
	cycle()
	b.edit(func(cm *corev1.ConfigMap) {
		annotate(cm, plan.AnnotationTripped, strings.Repeat("x", plan.MaxNoteBytes+1))
	})
	b.seen(l) // an annotation that is too long to be kept
	b.must(b.client.Delete(b.ctx, b.planMap()))
	cycle()
	cycle()
	holds()
}
