package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
)

// TestNobodyIsAccusedOfAnOwnWriteWhoseAnswerWasLost: the history that stands is the planner's, and the next write is over that one.
func TestNobodyIsAccusedOfAnOwnWriteWhoseAnswerWasLost(t *testing.T) {
	b := newBed(t, anyServer.Start(t), plan.Hold, 3, 2, 1)
	l, _ := b.start()
	b.idle(l)
	b.loses("patch ballast-history", errCut)
	b.addCluster("new", 5)
	b.cycles(l, 1)
	var history corev1.ConfigMap
	b.get(&history, "ballast-history")
	if history.BinaryData["plan.2.json.gz"] == nil {
		t.Fatalf("the write whose answer was lost is not stored: %v", namesIn(history.BinaryData))
	}
	b.cycles(l, 1)
	b.addCluster("newer", 5)
	b.cycles(l, 1)
	b.get(&history, "ballast-history")
	if told := b.told("HistoryReplaced"); len(told) != 0 || history.BinaryData["plan.3.json.gz"] == nil {
		t.Errorf("told %q; the history has %v", told, namesIn(history.BinaryData))
	}
}
