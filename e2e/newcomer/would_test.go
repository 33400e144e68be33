package newcomer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"ballast/e2e/site"
)

// would is what ballast plan -o json says of the candidate.
type would struct {
	Candidate struct {
		Moves []struct {
			Cluster  string
			From, To int
		}
		Replicas []struct{}
	}
}

// said is what ballast status -o json says of it, as the leader has it.
type said struct {
	Candidate *struct{ Replicas, Moves int }
}

// gauged levels by a metric that has the same values at each look: what differs between two answers is then who gave them.
func (w *walk) gauged(mode string) map[string]any {
	c := w.Config(mode)
	apps := map[string]any{"id": "apps", "query": `sum by (dest_server) (argocd_app_info{dest_server!=""})`, "noData": "0",
		"match": map[string]any{"label": "dest_server", "to": "server"}}
	c["poll"] = map[string]any{"prometheus": map[string]any{"url": w.Prometheus, "timeout": "5s", "metrics": []any{apps}}}
	c["index"] = map[string]any{"pNorm": map[string]any{"p": "1", "weights": map[string]any{"apps": "1"}}}
	return c
}

// TestWouldIsWhatWillBe: beside a planner that observes, ballast plan names as many moves as its leader does; and the leader makes those,
// and no other, once it may.
func TestWouldIsWhatWillBe(t *testing.T) {
	w := start(t, kustomize())
	must(t, w.Configure(t.Context(), w.gauged("Observe")))
	must(t, w.RunBallastsPods(t.Context()))
	before := w.planSoon(t, "the first plan is there", func(p site.Plan) bool { return p.Revision > 0 })
	var asked would
	w.soon(t, "the command and the leader say the same", func(ctx context.Context) error {
		var leader said
		asked = would{}
		text, _, changes, err := w.Plans(ctx, w.bob, "-o=json")
		if err == nil {
			err = json.Unmarshal([]byte(text), &asked)
		}
		if err != nil {
			return err
		}
		if text, _, err = w.RunBallast(ctx, w.bob, "status", "-o=json"); err == nil {
			err = json.Unmarshal([]byte(text), &leader)
		}
		if err != nil {
			return err
		}
		if leader.Candidate == nil {
			return errors.New("the leader has no candidate yet")
		}
		moves, replicas := len(asked.Candidate.Moves), len(asked.Candidate.Replicas)
		if moves == 0 || !changes || moves != leader.Candidate.Moves || replicas != leader.Candidate.Replicas {
			return fmt.Errorf("%d moves on %d replicas by the command, %+v by the leader", moves, replicas, *leader.Candidate)
		}
		return nil
	})
	want := before.Replica()
	for _, m := range asked.Candidate.Moves {
		if want[m.Cluster] != m.From || m.From == m.To {
			t.Errorf("%s would move from %d to %d, and is on %d", m.Cluster, m.From, m.To, want[m.Cluster])
		}
		want[m.Cluster] = m.To
	}
	since := time.Now()
	must(t, w.Configure(t.Context(), w.gauged("Enforce")))
	first := asked.Candidate.Moves[0]
	w.planSoon(t, "the leader makes those moves", func(p site.Plan) bool {
		return p.Mode == "Enforce" && p.Rollout == nil && p.Clusters[first.Cluster].Replica == first.To
	})
	w.soon(t, "it rests", func(ctx context.Context) error { return w.Settled(ctx, since) })
	p := w.agreed(t, "everything agrees with the plan", func(site.Plan) bool { return true })
	same(t, "the plan after the moves that were named", want, p.Replica())
}
