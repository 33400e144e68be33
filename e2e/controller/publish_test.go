package controller_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"ballast/planner/plan"
	"ballast/planner/status"
)

const statusMap = "ballast-plan-status"

// said is a condition as it stands in the status, with the revision that it is of.
func (b *bed) said(kind status.Type) string {
	b.Helper()
	var cm corev1.ConfigMap
	b.get(&cm, statusMap)
	s, err := status.Parse(cm.Data[status.Key])
	b.must(err)
	for _, c := range s.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s of revision %d: %s %s, since %s", s.Leader, s.Revision, c.Status, c.Reason, c.LastTransitionTime.Sub(epoch))
		}
	}
	return ""
}

// problems are the subjects of what the status has of a kind.
func (b *bed) problems(kind string) (subjects []string) {
	b.Helper()
	var cm corev1.ConfigMap
	b.get(&cm, statusMap)
	s, err := status.Parse(cm.Data[status.Key])
	b.must(err)
	for _, p := range s.Problems {
		if p.Kind == kind {
			subjects = append(subjects, p.Subject)
		}
	}
	return subjects
}

// saysHowThingsAre: as soon as they change, once a minute otherwise, and never instead of what there is to do.
func saysHowThingsAre(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	b.config.Interval = b.config.Interval / 6 // 10 s
	l, _ := b.start()
	begun := b.clock.Now().Sub(epoch)
	says := func(what string, kind status.Type, want string) {
		t.Helper()
		b.eventually(what, func() bool { return b.said(kind) == want })
	}
	says("the first plan", status.Planning, fmt.Sprintf("planner-0 of revision 1: True Measured, since %s", begun))
	says("nobody asks the webhooks here", status.Enforced, fmt.Sprintf("planner-0 of revision 1: Unknown NotAsked, since %s", begun))
	written := b.tried("patch " + statusMap)
	b.cycles(l, 12)
	if n := b.tried("patch "+statusMap) - written; n != 2 {
		t.Errorf("two quiet minutes wrote the status %d times, want 2", n)
	}
	b.edit(func(cm *corev1.ConfigMap) { annotate(cm, plan.AnnotationPaused, "true") })
	b.seen(l)
	b.quieten(l)
	frozen := b.clock.Now().Sub(epoch)
	says("a freeze", status.Planning, fmt.Sprintf("planner-0 of revision 1: False Paused, since %s", frozen))
	b.idle(l)
	b.fail("get ballast-plan", errors.New("the API server is away"))
	b.clock.Step(time.Duration(b.config.Interval))
	says("a cycle that failed", status.Planning, fmt.Sprintf("planner-0 of revision 1: False CycleFailed, since %s", frozen))
	b.fail("get ballast-plan", nil)
	b.idle(l)
	b.cycles(l, 1)
	says("what holds now", status.Planning, fmt.Sprintf("planner-0 of revision 1: False Paused, since %s", frozen))
	b.must(b.client.Delete(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: statusMap}}))
	b.edit(func(cm *corev1.ConfigMap) { annotate(cm, plan.AnnotationPaused, "false") })
	b.cycles(l, 1)
	says("made anew", status.Planning, fmt.Sprintf("planner-0 of revision 1: True Measured, since %s", b.clock.Now().Sub(epoch)))
	var cm corev1.ConfigMap
	b.get(&cm, statusMap)
	if diff := cmp.Diff("ballast", cm.Labels["app.kubernetes.io/name"]); diff != "" {
		t.Errorf("whose it is (-want +got):\n%s", diff)
	}
	b.fail("patch "+statusMap, errors.New("forbidden"))
	b.edit(func(cm *corev1.ConfigMap) { cm.Data[plan.KeyPins] = "c000: 2\n" })
	b.cycles(l, 1)
	if row := b.plan().Clusters["c000"]; row.Replica != 2 || !row.Pinned {
		t.Errorf("while the status cannot be written, the pinned cluster has %+v", row)
	}
	if n := testutil.ToFloat64(l.Metrics.Writes.WithLabelValues("status", "failed")); n == 0 {
		t.Error("a status that was not written is not counted")
	}
	b.fail("patch "+statusMap, nil)
	b.cycles(l, 1)
	says("written as soon as it can be", status.Planning, fmt.Sprintf("planner-0 of revision 2: True Measured, since %s", b.clock.Now().Add(-2*time.Duration(b.config.Interval)).Sub(epoch)))
}

// keepsWhatTheLastLeaderSaid: since when a condition holds outlives who said it.
func keepsWhatTheLastLeaderSaid(t *testing.T, server *rest.Config) {
	b := newBed(t, server, plan.Hold, 3, 2, 1)
	l, end := b.start()
	since := b.said(status.Planning)
	b.cycles(l, 3)
	end()
	b.clock.Step(time.Hour)
	l, _ = b.start()
	b.idle(l)
	if got := b.said(status.Planning); got != since {
		t.Errorf("the next leader says %q, want %q", got, since)
	}
}
