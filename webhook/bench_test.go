package webhook

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"ballast/planner/plan"
	"ballast/webhook/decision"
	"ballast/webhook/inforce"
	"ballast/webhook/intake"
	"ballast/webhook/objects"
)

// sized is a plan of n clusters with names of 69 characters, among them the fixture's.
func sized(n int) plan.Plan {
	p := fleet()
	for i := len(p.Clusters); i < n; i++ {
		name := fmt.Sprintf("cluster-%s-%05d", strings.Repeat("x", 55), i)
		p.Clusters[name] = plan.Row{Replica: i % 4, Load: "0.000123", Server: plan.ServerHash(name)}
	}
	return p
}

// pinsToCome are pins of n clusters that no plan knows, with names as long as an exporter's of a cloud account are, which
// have little in common: what a search for the nearest takes longest for.
func pinsToCome(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%s: 1\n", mixed(i))
	}
	return b.String()
}

// mixed is a name of 82 letters like no other.
func mixed(i int) string {
	sum := sha512.Sum512(fmt.Append(nil, i))
	return hex.EncodeToString(sum[:41])
}

// mixedPlan is a plan of n clusters with such names.
func mixedPlan(n int) plan.Plan {
	p := fleet()
	for i := range n {
		p.Clusters["c"+mixed(-1-i)] = plan.Row{Replica: i % 4, Load: "0.000123"}
	}
	return p
}

// TestPinsOfAFleetToComeAreJudgedInTime: after 2 s the API server would go on without an answer, and a bad pin pass. The bound
// has room for the race detector on a busy machine; a search for every pin would take minutes there.
func TestPinsOfAFleetToComeAreJudgedInTime(t *testing.T) {
	const generous = 10 * time.Second
	stands := object(t, mixedPlan(7400), "")
	s := knowing(t, stands)
	start := time.Now()
	v := decision.Plan(s, decision.Request{User: person}, edited(stands, func(o *objects.Plan) { o.HasPins, o.Pins = true, pinsToCome(500) }), stands)
	if took := time.Since(start); took > generous || len(v.Warnings) != 5 || v.Reason != plan.InPlan {
		t.Errorf("reason %s, %d warnings after %s", v.Reason, len(v.Warnings), took)
	}
	// And so are mistakes that stood before.
	old := edited(stands, func(o *objects.Plan) { o.HasPins, o.Pins = true, strings.ReplaceAll(pinsToCome(2900), ": 1", ": 99") })
	start = time.Now()
	v = decision.Plan(s, decision.Request{User: person}, edited(old, func(o *objects.Plan) { o.Pins = "prod-eu: 1\n" + o.Pins }), old)
	if took := time.Since(start); took > generous || v.Reason != plan.InPlan {
		t.Errorf("reason %s after %s: %s", v.Reason, took, v.Denied)
	}
}

func BenchmarkDecide(b *testing.B) {
	secret := []byte(clusterSecret)
	unknown := []byte(strings.Replace(clusterSecret, "prod-eu", "unknown", 1))
	set := []byte(workloadWith("9", `{"name":"application-controller","env":[{"name":"A","value":"1"},{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"9"}]}`))
	for _, clusters := range []int{100, 7500} {
		stands := object(b, sized(clusters), "")
		s := knowing(b, stands)
		configMap, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": stands.Annotations}, "data": map[string]string{"plan": stands.Plan, "pins": "prod-eu: 1\n"}})
		if err != nil {
			b.Fatal(err)
		}
		toCome, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": stands.Annotations}, "data": map[string]string{"plan": stands.Plan, "pins": pinsToCome(500)}})
		if err != nil {
			b.Fatal(err)
		}
		for _, tc := range []struct {
			name   string
			decide func(*inforce.State, *review) (decision.Verdict, error)
			rv     review
			want   plan.Reason
		}{
			{"cluster", reviewCluster, review{Request: decision.Request{Namespace: "argocd", Name: "prod-eu", User: person}, object: secret, old: secret}, plan.Restored},
			{"newCluster", reviewCluster, review{Request: decision.Request{Namespace: "argocd", Name: "unknown", User: person, Create: true}, object: unknown}, plan.Assigned},
			{"controller", reviewController, review{Request: decision.Request{Namespace: "argocd", Name: workload, Kind: plan.StatefulSet, User: person}, object: set}, plan.Restored},
			{"scale", reviewScale, review{Request: decision.Request{Namespace: "argocd", Name: workload, Kind: plan.StatefulSet, User: person}, object: []byte(`{"spec":{"replicas":9}}`)}, plan.Restored},
			{"pod", reviewPod, review{Request: decision.Request{Namespace: "argocd", Name: workload + "-0", User: person, Create: true}, object: []byte(podOf(workload+"-0", `{"name":"application-controller"}`))}, plan.InPlan},
			{"unknownPins", reviewPlan, review{Request: decision.Request{Namespace: "argocd", Name: "ballast-plan", User: person}, object: toCome, old: configMap}, plan.InPlan},
			{"plan", reviewPlan, review{Request: decision.Request{Namespace: "argocd", Name: "ballast-plan", User: person}, object: configMap, old: configMap}, plan.InPlan},
		} {
			b.Run(fmt.Sprintf("kind=%s/clusters=%d", tc.name, clusters), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if v, err := tc.decide(s, &tc.rv); err != nil || v.Reason != tc.want {
						b.Fatalf("reason %s: %v", v.Reason, err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("kind=newPlan/clusters=%d", clusters), func(b *testing.B) {
			b.ReportAllocs()
			data := map[string]string{plan.KeyPlan: stands.Plan}
			for b.Loop() {
				if next := inforce.Of(identity(), nil).Next(data, stands.Annotations); next.View == nil {
					b.Fatal("no plan")
				}
			}
		})
	}
}

// floor decodes a review and allows it, and does nothing else: the least that any webhook costs.
func floor() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	})
}

// typed does what ours does for a cluster Secret the usual way: the whole object decoded, and again for the old one.
func typed() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var object, old corev1.Secret
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err == nil {
			err = json.Unmarshal(review.Request.Object.Raw, &object)
		}
		if err == nil {
			err = json.Unmarshal(review.Request.OldObject.Raw, &old)
		}
		if err != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &kind,
			Patch: []byte(`[{"op":"replace","path":"/data/shard","value":"Mw=="}]`), Warnings: []string{"ballast: " + string(object.Data["shard"]) + string(old.Data["shard"])}}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	})
}

// requestOf is an update of a cluster Secret of some size, as the API server sends it.
func requestOf(b testing.TB, size int) []byte {
	token := make([]byte, size*3/4)
	if _, err := rand.Read(token); err != nil {
		b.Fatal(err)
	}
	secret := strings.Replace(clusterSecret, "Y2FuYXJ5LXRva2Vu", base64.StdEncoding.EncodeToString(token), 1)
	return admissionRequest(b, func(r *admissionv1.AdmissionRequest) {
		r.Object.Raw, r.OldObject.Raw = []byte(secret), []byte(strings.Replace(secret, "MQ==", "Mw==", 1))
	})
}

// BenchmarkHandler compares a whole call over TLS with the floor and with typed decoding, in one run; the client's part
// is in each.
func BenchmarkHandler(b *testing.B) {
	for _, clusters := range []int{100, 7500} {
		ours := NewHandler(&plans{known: inforce.Of(identity(), plan.NewView(sized(clusters), nil))}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
		for _, size := range []int{4 << 10, 64 << 10} {
			body := requestOf(b, size)
			for _, h := range []struct {
				name string
				http.Handler
			}{{"floor", keeping(floor())}, {"ours", ours}, {"typed", keeping(typed())}} {
				b.Run(fmt.Sprintf("clusters=%d/secret=%dKiB/%s", clusters, size>>10, h.name), func(b *testing.B) { benchmarkCalls(b, h.Handler, body) })
			}
		}
	}
}

// keeping has the server keep the connections of a handler that is not ours.
func keeping(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		intake.Reviewed(r)
		h.ServeHTTP(w, r)
	})
}

// BenchmarkServe is the handler alone, without a network.
func BenchmarkServe(b *testing.B) {
	ours := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	for _, size := range []int{4 << 10, 64 << 10} {
		body := requestOf(b, size)
		for name, h := range map[string]http.Handler{"floor": floor(), "ours": ours, "mini": mini(), "typed": typed()} {
			b.Run(fmt.Sprintf("secret=%dKiB/%s", size>>10, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/clusters", bytes.NewReader(body)))
					if w.Code != http.StatusOK {
						b.Fatal(w.Code)
					}
				}
			})
		}
	}
}

func benchmarkCalls(b *testing.B, h http.Handler, body []byte) {
	call := caller(b, h, body)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

// caller serves a handler over TLS and calls it with a body, on one connection.
func caller(t testing.TB, h http.Handler, body []byte) func() {
	t.Helper()
	s := serve(t, h)
	client := s.client()
	t.Cleanup(client.CloseIdleConnections)
	return func() {
		resp, err := client.Post("https://"+s.address+"/clusters", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode, err)
		}
		resp.Body.Close()
	}
}

// TestACallAllocatesLittle holds what a call for a Secret of 4 KiB may allocate, over TLS and the client included. Under the
// race detector pools forget a part of what they keep: there, the same test is run again without it.
func TestACallAllocatesLittle(t *testing.T) {
	if raced() {
		out, err := exec.CommandContext(t.Context(), "go", "test", "-race=false", "-count=1", "-run=^TestACallAllocatesLittle$", "-v", ".").CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestACallAllocatesLittle")) {
			t.Errorf("without the race detector: %v\n%s", err, out)
		}
		return
	}
	const limit = 130
	h := NewHandler(&plans{known: inforce.Of(identity(), plan.NewView(sized(7500), nil))}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	n := testing.AllocsPerRun(500, caller(t, h, requestOf(t, 4<<10)))
	t.Logf("a call allocates %.0f times", n)
	if n > limit {
		t.Errorf("a call allocates %.0f times, want at most %d", n, limit)
	}
}

// raced reports whether this binary was built with the race detector.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestADecisionCostsTheSameWhateverThePlansSize counts allocations, which no other work of the machine changes.
func TestADecisionCostsTheSameWhateverThePlansSize(t *testing.T) {
	secret := []byte(clusterSecret)
	unknown := []byte(strings.Replace(clusterSecret, "prod-eu", "unknown", 1))
	set := []byte(workloadWith("9", `{"name":"application-controller","env":[{"name":"ARGOCD_CONTROLLER_REPLICAS","value":"9"}]}`))
	on := func(name, kind string) decision.Request {
		return decision.Request{Namespace: "argocd", Name: name, Kind: kind, User: person}
	}
	small, large := inforce.Of(identity(), plan.NewView(sized(100), nil)), inforce.Of(identity(), plan.NewView(sized(7500), nil))
	for name, tc := range map[string]struct {
		decide func(*inforce.State, *review) (decision.Verdict, error)
		review review
		want   plan.Reason
	}{
		"a cluster":     {reviewCluster, review{Request: on("prod-eu", ""), object: secret, old: secret}, plan.Restored},
		"a new cluster": {reviewCluster, review{Request: on("unknown", ""), object: unknown}, plan.Assigned},
		"a workload":    {reviewController, review{Request: on(workload, plan.StatefulSet), object: set}, plan.Restored},
		"a scale":       {reviewScale, review{Request: on(workload, plan.StatefulSet), object: []byte(`{"spec":{"replicas":9}}`)}, plan.Restored},
	} {
		allocs := func(s *inforce.State) float64 {
			return testing.AllocsPerRun(200, func() {
				if v, err := tc.decide(s, &tc.review); err != nil || v.Reason != tc.want {
					t.Fatalf("%s: reason %s: %v", name, v.Reason, err)
				}
			})
		}
		// Under the race detector fmt's pool forgets at random, which is one or two.
		if at100, at7500 := allocs(small), allocs(large); math.Abs(at100-at7500) > 2 || at100 == 0 {
			t.Errorf("%s: %v allocations under a plan of 100 clusters, %v under one of 7,500", name, at100, at7500)
		}
	}
}

// miniSecret is what a decision reads of a cluster Secret, for a decoder that takes structs.
type miniSecret struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Immutable *bool `json:"immutable"`
	Data      struct {
		Shard  *[]byte `json:"shard"`
		Server []byte  `json:"server"`
	} `json:"data"`
}

// mini does what ours does for a cluster Secret by sigs.k8s.io/json and structs of the fields that are read.
func mini() http.Handler {
	type request struct {
		UID       string `json:"uid"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Operation string `json:"operation"`
		UserInfo  struct {
			Username string `json:"username"`
		} `json:"userInfo"`
		Object    miniSecret `json:"object"`
		OldObject miniSecret `json:"oldObject"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion string  `json:"apiVersion"`
			Request    request `json:"request"`
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = kjson.UnmarshalCaseSensitivePreserveInts(body, &review)
		}
		if err != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{Response: &admissionv1.AdmissionResponse{UID: types.UID(review.Request.UID), Allowed: true, PatchType: &kind,
			Patch: []byte(`[{"op":"replace","path":"/data/shard","value":"Mw=="}]`), Warnings: []string{"ballast: " + string(*review.Request.Object.Data.Shard)}}})
	})
}
