package source

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/memory"
	"ballast/planner/evaluate"
)

// TestThePlanGoesByAllThatTheLeaderRemembers, as the next leader would: "would" is what will be. What cannot be read is told.
func TestThePlanGoesByAllThatTheLeaderRemembers(t *testing.T) {
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	cycled := cycle.Run(fixture.SeenCycle(t, "elected-move")).Memory
	left := memory.Memory{HoldOff: noon, Savings: evaluate.Savings{At: noon, Of: map[int]float64{3: 0.5}}, LastGood: cycled.LastGood,
		Votes: evaluate.Vote{Basis: "b", Since: noon.Add(-time.Hour), Ballots: []evaluate.Ballot{{At: noon, Key: "k"}}}}
	if len(left.LastGood.IDs) == 0 {
		t.Fatal("the cycle has no last good values")
	}
	parts, stale := left.Parts(nil)
	if len(stale) > 0 {
		t.Fatal(stale)
	}
	read := func(parts map[string][]byte) (memory.Memory, error) {
		cfg := config.Default()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: cfg.Plan.History}, BinaryData: parts}
		c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(cm).Build()
		known, _, err := readHistory(t.Context(), keptBy(c, cfg))
		return known, err
	}
	got, err := read(parts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{left.HoldOff, left.Savings.Of, left.Votes, left.LastGood}, []any{got.HoldOff, got.Savings.Of, got.Votes, got.LastGood}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var told []string
	for name := range parts {
		broken := map[string][]byte{name: []byte("no part")}
		if _, err := read(broken); err == nil {
			t.Errorf("nobody reads %s", name)
		} else {
			told = append(told, err.Error())
		}
	}
	for _, part := range []string{"the votes", "the last good values", "what limits changes", "what was known of moves", "what was known of the fleet"} {
		if !strings.Contains(strings.Join(told, "\n"), "reading "+part+": ") {
			t.Errorf("%s: not among %q", part, told)
		}
	}
}
