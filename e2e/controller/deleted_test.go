package controller_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ballast/planner/cycle/belief"
	"ballast/planner/plan"
)

// TestAnInstallationAfterDeletedManifests: `kubectl delete -k` takes the plan's key along, and leaves plan and history. Whoever installs
// ballast again begins with the fleet as it is, and with what people wrote.
func TestAnInstallationAfterDeletedManifests(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Hold, 5, 4, 3, 2, 1, 1)
	l, end := b.start()
	b.cycles(l, 1)
	first := b.plan()
	to := (first.Clusters["c000"].Replica + 1) % first.Replicas
	b.edit(func(cm *corev1.ConfigMap) {
		cm.Data[plan.KeyPins] = "c000: " + string(rune('0'+to)) + "\n"
		cm.Annotations[plan.AnnotationPaused] = "true"
	})
	b.seen(l)
	b.quieten(l)
	b.eventually("the pin is in force", func() bool { return b.shards()["c000"] == string(rune('0'+to)) })
	b.idle(l)
	end()
	before, want := b.plan(), b.stands()
	b.must(b.client.Delete(b.ctx, newKeySecret(b.namespace)))
	b.must(b.client.Create(b.ctx, newKeySecret(b.namespace))) // with the new installation's manifests
	next, _ := b.start()
	b.cycles(next, 3)
	p := b.plan()
	if diff := cmp.Diff(replicasOf(before), replicasOf(p)); diff != "" || p.Revision <= before.Revision {
		t.Errorf("revision %d after %d, rows (-as they were +got):\n%s", p.Revision, before.Revision, diff)
	}
	if diff := cmp.Diff(want, b.stands()); diff != "" {
		t.Errorf("what stands (-as it was +got):\n%s", diff)
	}
	words := b.planMap()
	if words.Annotations[plan.AnnotationPaused] != "true" || !strings.Contains(words.Data[plan.KeyPins], "c000: ") {
		t.Errorf("people's words are %v and %q", words.Annotations, words.Data[plan.KeyPins])
	}
	if told := b.told(belief.PlanForeign); len(told) != 1 {
		t.Errorf("people were told %q", told)
	}
}

func replicasOf(p plan.Plan) map[string]int {
	of := map[string]int{}
	for name, row := range p.Clusters {
		of[name] = row.Replica
	}
	return of
}
