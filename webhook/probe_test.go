package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"ballast/planner/plan/probing"
)

// asksPlan is a write to the plan ConfigMap that changes nothing but the annotation of the probe.
func asksPlan(t testing.TB, user string, dryRun bool, value string) []byte {
	t.Helper()
	stands := object(t, fleet(), "")
	doc := func(value string) []byte {
		annotations := map[string]string{}
		for k, v := range stands.Annotations {
			annotations[k] = v
		}
		if value != "" {
			annotations[probing.AnnotationProbe] = value
		}
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "ballast-plan", "annotations": annotations}, "data": map[string]string{"plan": stands.Plan}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return admissionRequest(t, func(r *admissionv1.AdmissionRequest) {
		r.Resource.Resource, r.Name, r.UserInfo.Username, r.DryRun = "configmaps", "ballast-plan", user, ptr.To(dryRun)
		r.Object, r.OldObject = runtime.RawExtension{Raw: doc(value)}, runtime.RawExtension{Raw: doc("")}
	})
}

// TestAProbeOfThePlanIsAnswered, and nothing else is: neither what would be stored nor what a person asks.
func TestAProbeOfThePlanIsAnswered(t *testing.T) {
	question := probing.Question("4711")
	answer, _ := probing.Answer(question)
	for name, tc := range map[string]struct {
		user   string
		dryRun bool
		value  string
		want   string
	}{
		"the planner's question": {plannerUser, true, question, `[{"op":"replace","path":"/metadata/annotations/ballast.argoproj.io~1probe","value":"` + answer + `"}]`},
		"of the shipped planner": {shippedUser, true, question, `[{"op":"replace","path":"/metadata/annotations/ballast.argoproj.io~1probe","value":"` + answer + `"}]`},
		"one that is stored":     {plannerUser, false, question, ""},
		"a person's":             {person, true, question, ""},
		"a second pass":          {plannerUser, true, answer, ""},
		"no question":            {plannerUser, true, "4711", ""},
		"one without a nonce":    {plannerUser, true, probing.Question(""), ""},
		"one that is too long":   {plannerUser, true, probing.Question(strings.Repeat("4", 65)), ""},
		"none":                   {plannerUser, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(&plans{known: knowing(t, object(t, fleet(), ""))}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
			got := ask(t, h, "/plan", asksPlan(t, tc.user, tc.dryRun, tc.value))
			if !got.Allowed || string(got.Patch) != tc.want || got.AuditAnnotations["reason"] != "InPlan" {
				t.Errorf("allowed %t, reason %s, patch %s; want %s", got.Allowed, got.AuditAnnotations["reason"], got.Patch, tc.want)
			}
		})
	}
}

// TestEachProbeComesOnAConnectionOfItsOwn: the one that it came on is closed behind it, and it is told whether that was new.
func TestEachProbeComesOnAConnectionOfItsOwn(t *testing.T) {
	s := serve(t, NewHandler(&plans{known: withPlan(nil, nil), live: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard()))
	client := s.client()
	calls := func(path, user string, dryRun bool) string {
		t.Helper()
		resp, err := client.Post("https://"+s.address+path, "application/json", bytes.NewReader(admissionRequest(t, func(r *admissionv1.AdmissionRequest) {
			r.UserInfo.Username, r.DryRun = user, ptr.To(dryRun)
		})))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &review); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
		}
		said := "nothing"
		for _, w := range review.Response.Warnings {
			switch w {
			case probing.ProbedOnNew:
				said = "new"
			case probing.ProbedOnUsed:
				said = "used"
			}
		}
		return fmt.Sprintf("says %s, closed %t", said, resp.Close)
	}
	var got []string
	for _, call := range []struct {
		path, user string
		dryRun     bool
	}{
		{"/clusters", person, false}, {"/clusters", person, true}, {"/clusters", plannerUser, false}, // one connection for all of these
		{"/clusters", plannerUser, true}, {"/clusters", plannerUser, true}, {"/plan", plannerUser, true},
		{"/clusters", person, true}, {"/controllers", plannerUser, true}, {"/scale", plannerUser, true},
	} {
		got = append(got, calls(call.path, call.user, call.dryRun))
	}
	want := []string{
		"says nothing, closed false", "says nothing, closed false", "says nothing, closed false",
		"says used, closed true", "says new, closed true", "says new, closed true",
		"says nothing, closed false", "says used, closed true", "says new, closed true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
