package controller_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/controller"
	"ballast/planner/plan"
)

// errCut is what a client hears where the answer is lost.
var errCut = apierrors.NewTimeoutError("the answer was cut", 1)

// TestAPlanWhoseAnswerWasLostLimits: the API server stores a plan by which rollout.x0y stops every replica, and its answer is lost, or the
// leader dies with it. Whoever goes on must know that the fleet restarted, else it may do so again within change.restarts.every.
func TestAPlanWhoseAnswerWasLostLimits(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		goOn   func(b *bed, l *controller.Loop, end func())
	}{
		"the leader lives on":  {errCut, func(b *bed, l *controller.Loop, _ func()) { b.cycles(l, 1) }},
		"the next one goes on": {errCut, func(b *bed, _ *controller.Loop, end func()) { end(); b.start() }},
		"a person wrote meanwhile": {errCut, func(b *bed, l *controller.Loop, _ func()) {
			b.edit(func(cm *corev1.ConfigMap) { annotate(cm, "example.org/x", "y") })
			b.cycles(l, 1)
		}},
		"it was sent twice, and answered as a conflict": {apierrors.NewConflict(corev1.Resource("configmaps"), "ballast-plan", errors.New("sent twice")),
			func(b *bed, l *controller.Loop, _ func()) { b.cycles(l, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, anyServer.Start(t), plan.Enforce, 3, 2, 1)
			b.config.Rollout.Live, b.config.Rollout.Default = nil, nil
			b.config.Rollout.X0Y = &config.X0YRollout{}
			l, end := b.start()
			b.cycles(l, 2)
			b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: 3\n" })
			b.loses("patch ballast-plan", c.answer)
			if apierrors.IsConflict(c.answer) { // which wakes the loop once more
				b.clock.Step(time.Duration(b.config.Interval))
				b.eventually("it is stored", func() bool { return b.plan().Rollout != nil })
				b.quieten(l)
				b.idle(l)
			} else {
				b.cycles(l, 1)
			}
			decided := b.plan().Rollout
			if decided == nil || decided.Replicas != 4 {
				t.Fatalf("the rollout that was stored is %+v", decided)
			}
			c.goOn(b, l, end)
			m := b.saved().Changes
			if at := decided.Since; !m.Restarted.Equal(at) || m.Cause != change.Pin || m.Why == "" {
				t.Errorf("remembered: a restart at %s, for %q (%q); want at %s, for %q", m.Restarted, m.Cause, m.Why, at, change.Pin)
			}
			if m.Pending != nil {
				t.Errorf("it is pending yet: %+v", m.Pending)
			}
		})
	}
}
