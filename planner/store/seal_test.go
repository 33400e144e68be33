package store

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

// keyed is a Store over a fake API server, with a Secret that is shipped empty.
func keyed() *Store {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "ballast-plan-key", UID: "1"}}
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	return New(Options{Client: c, Reader: c, Namespace: "argocd", Plan: "ballast-plan", History: "ballast-history", Key: "ballast-plan-key"})
}

// A Store that was not unsealed believes nothing, whoever wrote it.
func TestNothingIsBelievedBeforeTheKeyIsKnown(t *testing.T) {
	s := keyed()
	text, err := codec.Encode(plan.Plan{Revision: 1, MaxReplicas: 1, Target: plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{Data: map[string]string{"plan": text}}
	cm.Annotations = map[string]string{plan.AnnotationDigest: plan.Digest(text)}
	if d := s.Judge(cm); d.Plan != nil || !errors.Is(d.PlanErr, ErrForeign) {
		t.Errorf("believed %v, error %v", d.Plan, d.PlanErr)
	}
	if err := s.Unseal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := s.Judge(cm); d.Plan != nil {
		t.Error("a plan without a MAC is believed")
	}
	cm.Annotations[plan.AnnotationMAC] = s.voucher().vouch(text)
	if d := s.Judge(cm); d.Plan == nil || d.Plan.Revision != 1 {
		t.Errorf("its own plan is not believed: %v", d.PlanErr)
	}
}

// Of a history only what a planner wrote counts: each key for itself.
func TestAForgedHistoryIsLeftOut(t *testing.T) {
	s := keyed()
	if err := s.Unseal(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := map[string][]byte{"votes": []byte("ours"), "fleet.json.gz": []byte("too"), "plan.7.json.gz": []byte("plan")}
	if err := s.voucher().vouchAll(data); err != nil {
		t.Fatal(err)
	}
	data["votes"] = []byte("forged")
	data["plan.9.json.gz"] = data["plan.7.json.gz"] // our own plan under another name
	kept, foreign := s.voucher().own(data)
	if len(kept) != 2 || string(kept["fleet.json.gz"]) != "too" || string(kept["plan.7.json.gz"]) != "plan" {
		t.Errorf("kept %q", kept)
	}
	want := []string{"plan.9.json.gz is not this installation's own: its MAC is missing or wrong", "votes is not this installation's own: its MAC is missing or wrong"}
	if strings.Join(foreign, "; ") != strings.Join(want, "; ") {
		t.Errorf("left out %q, want %q", foreign, want)
	}
	for name, macs := range map[string]string{"none": "", "no JSON": "{", "too long": strings.Repeat(" ", maxMACs) + "{}"} {
		data[keyMACs] = []byte(macs)
		if kept, _ := s.voucher().own(data); len(kept) != 0 {
			t.Errorf("%s: kept %q", name, kept)
		}
	}
	reader := New(Options{})
	if kept, foreign := reader.voucher().own(data); len(kept) != 4 || foreign != nil {
		t.Errorf("for people everything is shown; kept %d, left out %q", len(kept), foreign)
	}
}
