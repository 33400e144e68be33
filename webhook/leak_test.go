package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"ballast/planner/plan"
)

// TestAnAnswerTellsNoMoreOfThePlanThanItsRequestCarried: whoever reaches the port may claim to be the API server, and that
// anything is written or stored. An answer names no row of the plan in force that the request did not bring.
func TestAnAnswerTellsNoMoreOfThePlanThanItsRequestCarried(t *testing.T) {
	stands := object(t, fleet(), "prod-us: 1\n")
	text, digest := stands.Plan, stands.Annotations[plan.AnnotationDigest]
	configMap := func(data, annotations map[string]string) []byte {
		meta := map[string]any{"name": "ballast-plan"}
		if annotations != nil {
			meta["annotations"] = annotations
		}
		doc, err := json.Marshal(map[string]any{"metadata": meta, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	empty := configMap(nil, nil)
	whole := configMap(map[string]string{"plan": text}, stands.Annotations)
	broken := configMap(map[string]string{"plan": "x"}, nil)
	claimed := configMap(map[string]string{"plan": "x"}, map[string]string{plan.AnnotationDigest: digest, plan.AnnotationRevision: "17"})
	for name, tc := range map[string]struct {
		operation   admissionv1.Operation
		object, old []byte
		carried     bool // the request carried the plan, with which it may be answered
	}{
		"an empty one is created":                         {admissionv1.Create, empty, nil, false},
		"a broken one is created":                         {admissionv1.Create, broken, nil, false},
		"one that claims the plan's digest is created":    {admissionv1.Create, claimed, nil, false},
		"an empty one stays empty":                        {admissionv1.Update, empty, empty, false},
		"a broken one becomes empty":                      {admissionv1.Update, empty, broken, false},
		"an empty one becomes broken":                     {admissionv1.Update, broken, empty, false},
		"one that claims the plan's digest becomes empty": {admissionv1.Update, empty, claimed, false},
		"one without an object before it":                 {admissionv1.Update, empty, nil, false},
		"the plan becomes empty":                          {admissionv1.Update, empty, whole, true},
	} {
		t.Run(name, func(t *testing.T) {
			body := admissionRequest(t, func(r *admissionv1.AdmissionRequest) {
				r.Resource.Resource, r.Name, r.Operation, r.Object.Raw, r.OldObject.Raw = "configmaps", "ballast-plan", tc.operation, tc.object, tc.old
			})
			w := httptest.NewRecorder()
			h := NewHandler(&plans{known: knowing(t, stands), live: knowing(t, stands)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/plan", bytes.NewReader(body)))
			var got admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Response == nil {
				t.Fatalf("status %d: %v", w.Code, err)
			}
			said := w.Body.String() + string(got.Response.Patch)
			for _, row := range []string{"prod-eu", "prod-us", plan.ServerHash("https://us.example")} {
				if strings.Contains(said, row) && !tc.carried {
					t.Errorf("it tells of %s: %s", row, got.Response.Patch)
				}
			}
		})
	}
}

// TestAnAnswerAboutAClusterNamesNoOther: whoever may ask learns the replica of the name or server that he brings along, the revision,
// and no other cluster's name or server.
func TestAnAnswerAboutAClusterNamesNoOther(t *testing.T) {
	secret := func(name, server string) []byte {
		doc, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			"data":     map[string]string{"server": base64Of(server), "shard": base64Of("2")},
		})
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	stands := object(t, fleet(), "prod-us: 1\n")
	for name, tc := range map[string]struct {
		cluster, server string
		want            string // requested and enforced
	}{
		"a name of the plan":                     {"prod-eu", "https://other.example", "shard=2 shard=3"},
		"a name that is pinned":                  {"prod-us", "https://other.example", "shard=2 shard=1"},
		"another name, for a server of the plan": {"guess", "https://us.example", "shard=2 shard=1"},
		"another name and server":                {"guess", "https://other.example", "shard=2 shard=2"},
	} {
		t.Run(name, func(t *testing.T) {
			body := admissionRequest(t, func(r *admissionv1.AdmissionRequest) {
				r.Name, r.Operation, r.Object.Raw, r.OldObject.Raw = tc.cluster, admissionv1.Create, secret(tc.cluster, tc.server), nil
			})
			h := NewHandler(&plans{known: knowing(t, stands)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
			got := ask(t, h, "/clusters", body)
			if told := got.AuditAnnotations["requested"] + " " + got.AuditAnnotations["enforced"]; told != tc.want {
				t.Errorf("it tells %q, want %q", told, tc.want)
			}
			said, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range []string{"prod-eu", "prod-us", "us.example", plan.ServerHash("https://us.example")} {
				if own := other == tc.cluster || strings.Contains(tc.server, other); !own && strings.Contains(string(said)+string(got.Patch), other) {
					t.Errorf("it names %s: %s", other, said)
				}
			}
		})
	}
}
