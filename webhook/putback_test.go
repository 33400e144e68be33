package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/plan/probing"
	"ballast/webhook/decision"
	"ballast/webhook/objects"
)

var began = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func writeBy(user string, at time.Time, dryRun bool) *review {
	return &review{Request: decision.Request{User: user, At: at}, dryRun: dryRun}
}

// Whose write is put back, or refused, is counted by user; a dry-run, what agrees with the plan and what the planner writes are not.
func TestWhoseWritesWerePutBackIsCounted(t *testing.T) {
	p, state := newPutBacks(began), withPlan(nil, nil)
	restored, denied := decision.Verdict{Reason: plan.Restored}, decision.Verdict{Reason: plan.PinRefused, Denied: "no such replica"}
	for range 2 {
		p.note(state, writeBy("alice", began.Add(time.Minute), false), restored, true)
	}
	p.note(state, writeBy("alice", began.Add(2*time.Minute), false), denied, true)
	p.note(state, writeBy("bob", began.Add(time.Hour), false), decision.Verdict{Reason: plan.PlanKept}, true)
	p.note(state, writeBy("carol", began, true), restored, true)
	p.note(state, writeBy("dave", began, false), decision.Verdict{Reason: plan.InPlan}, true)
	p.note(state, writeBy(plannerUser, began, false), restored, true)
	p.note(state, writeBy("a\x1b[2Jb", began, false), restored, true)
	got, ok := probing.ParsePutBack(p.told().Encode())
	want := []probing.UserWrites{{User: "alice", PutBack: 2, Refused: 1, Last: began.Add(2 * time.Minute)}, {User: `a\u001b[2Jb`, PutBack: 1, Last: began},
		{User: "bob", PutBack: 1, Last: began.Add(time.Hour)}}
	if diff := cmp.Diff(want, got.Users); !ok || diff != "" || !got.Since.Equal(began) {
		t.Errorf("since %s (-want +got):\n%s", got.Since, diff)
	}
}

// ServiceAccounts have long names that begin alike: each has a row of its own, with its name as far as there is room.
func TestUsersWhoseNamesBeginAlikeAreToldApart(t *testing.T) {
	p, state := newPutBacks(began), withPlan(nil, nil)
	by := func(user string, writes int) {
		for range writes {
			p.note(state, writeBy(user, began, false), decision.Verdict{Reason: plan.Restored}, true)
		}
	}
	const account = "system:serviceaccount:openshift-gitops:openshift-gitops-argocd-"
	by(account+"application-controller", 4)
	by(account+"server", 3)
	long := strings.Repeat("ü", 300)
	by(long+"a", 2)
	by(long+"b", 1)
	cut := strings.Repeat("ü", 125) + "…" // 253 bytes
	want := []probing.UserWrites{{User: account + "application-controller", PutBack: 4, Last: began},
		{User: account + "server", PutBack: 3, Last: began},
		{User: cut, PutBack: 2, Last: began}, {User: cut, PutBack: 1, Last: began}}
	got, ok := probing.ParsePutBack(p.told().Encode())
	if diff := cmp.Diff(want, got.Users); !ok || diff != "" {
		t.Errorf("%t (-want +got):\n%s", ok, diff)
	}
	p = newPutBacks(began)
	for i := range probing.MostUsers {
		by(fmt.Sprint(strings.Repeat("<", 2*maxUserKept-i), i), i+1)
		by(fmt.Sprint(i, strings.Repeat("<", 2*maxUserKept)), 1)
	}
	got, ok = probing.ParsePutBack(p.told().Encode())
	const ofOne = probing.MostUsers * (probing.MostUsers + 1) / 2 // those that begin alike as far as a webhook looks
	if !ok || len(got.Users) != probing.MostUsers || got.Users[0].PutBack != ofOne {
		t.Errorf("%t: of endless names %d rows, the first %d", ok, len(got.Users), got.Users[0].PutBack)
	}
}

// Whatever users there are, a webhook remembers a bounded number, and no write is lost.
func TestAWebhookRemembersFewUsers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, state := newPutBacks(began), withPlan(nil, nil)
		writes := rapid.IntRange(0, 3*mostUsers).Draw(t, "writes")
		for i := range writes {
			user := fmt.Sprint("u", rapid.IntRange(0, 2*mostUsers).Draw(t, "user"))
			p.note(state, writeBy(user, began.Add(time.Duration(i)*time.Second), false), decision.Verdict{Reason: plan.Restored}, true)
		}
		told, ok := probing.ParsePutBack(p.told().Encode())
		sum := told.Others
		for _, u := range told.Users {
			sum += u.PutBack
		}
		if !ok || len(p.users) > mostUsers || sum != writes {
			t.Fatalf("%t: %d users remembered, %d writes of %d", ok, len(p.users), sum, writes)
		}
	})
}

// TestThePlannersProbeIsToldWhoseWritesWerePutBack, by a patch of a dry-run; and nobody else is.
func TestThePlannersProbeIsToldWhoseWritesWerePutBack(t *testing.T) {
	stands := edited(object(t, fleet(), ""), func(o *objects.Plan) { o.Annotations[plan.AnnotationMAC] = "proof" })
	h := NewHandler(&plans{known: knowing(t, stands)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	back := ask(t, h, "/clusters", admissionRequest(t, func(r *admissionv1.AdmissionRequest) { r.UserInfo.Username = "alice" }))
	if back.AuditAnnotations["reason"] != string(plan.Restored) {
		t.Fatalf("alice's write is answered %v", back.AuditAnnotations)
	}
	asks := func(path, user, mac string, dryRun bool) (patch []decision.Op) {
		doc, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "ballast-plan", "annotations": map[string]string{
			probing.AnnotationPutBack: probing.PutBackAsked, plan.AnnotationMAC: mac}}, "data": map[string]string{"plan": stands.Plan}})
		if err != nil {
			t.Fatal(err)
		}
		got := ask(t, h, path, admissionRequest(t, func(r *admissionv1.AdmissionRequest) {
			r.Resource.Resource, r.Name, r.UserInfo.Username, r.DryRun = "configmaps", "ballast-plan", user, ptr.To(dryRun)
			r.Object, r.OldObject = runtime.RawExtension{Raw: doc}, runtime.RawExtension{Raw: doc}
		}))
		if len(got.Patch) > 0 {
			if err := json.Unmarshal(got.Patch, &patch); err != nil {
				t.Fatal(err)
			}
		}
		return patch
	}
	for name, others := range map[string][]decision.Op{
		"alice": asks("/plan", "alice", "proof", true), "a write that is stored": asks("/plan", plannerUser, "proof", false),
		"who says that he is the planner, and cannot read the plan": asks("/plan", plannerUser, "", true),
		"who guesses": asks("/plan", plannerUser, "prooh", true), "another path": asks("/controllers", plannerUser, "proof", true),
	} {
		for _, op := range others {
			if strings.Contains(fmt.Sprint(op), "alice") {
				t.Errorf("%s is told %v", name, op)
			}
		}
	}
	patch := asks("/plan", plannerUser, "proof", true)
	if len(patch) != 1 || patch[0].Op != "replace" || patch[0].Path != "/metadata/annotations/ballast.argoproj.io~1probe-putback" {
		t.Fatalf("the patch is %v", patch)
	}
	told, ok := probing.ParsePutBack(fmt.Sprint(patch[0].Value))
	if !ok || len(told.Users) != 1 {
		t.Fatalf("told is %+v", told)
	}
	if u := told.Users[0]; u.User != "alice" || u.PutBack != 1 || !told.Unverified {
		t.Errorf("told is %+v", told)
	}
}
