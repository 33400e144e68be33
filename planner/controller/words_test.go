package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"ballast/planner/change"
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
			if l.plan.newest().Paused != (paused == "true") {
				t.Fatal("the watch told nobody")
			}
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
	l := b.newLoop()
	cycle := func() {
		t.Helper()
		if _, err := l.guarded(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	l.memory.Changes.Trip = &change.Trip{At: b.clock.Now(), Reason: change.OOMKilled, Why: "a wave did harm"}
	for range 3 {
		cycle()
		if got := b.planMap().Annotations[plan.AnnotationTripped]; got != "a wave did harm" || l.memory.Changes.Trip == nil {
			t.Fatalf("tripped %q, trip %+v, though nobody ended it", got, l.memory.Changes.Trip)
		}
		b.must(b.client.Delete(b.ctx, b.planMap()))
	}
	cycle()
	b.must(b.client.Delete(b.ctx, b.planMap()))
	l.plan.heard = heard{known: true} // who heard of no word, since the annotation was too long to be kept
	cycle()
	cycle()
	if got := b.planMap().Annotations[plan.AnnotationTripped]; got != "a wave did harm" || l.memory.Changes.Trip == nil {
		t.Errorf("tripped %q, trip %+v, though nobody ended it", got, l.memory.Changes.Trip)
	}
}
