package rollouts

import (
	"fmt"
	"strings"

	"ballast/e2e/gaps/timeline"
)

// mode is one of ballast's ways from a plan to the next.
type mode string

const (
	live       mode = "live"
	x0y        mode = "x0y"
	defaults   mode = "default"
	deployment mode = "deployment" // live, of a Deployment whose pods claim their slots
)

func (w *world) rollout(m mode) map[string]any {
	if m == deployment {
		m = live
	}
	settings := map[mode]map[string]any{
		live:     {"maxMovesPerWave": w.perWave},
		x0y:      {},
		defaults: {"rolloutRestart": true}, // nobody else would wake a new owner for an hour
	}
	return map[string]any{string(m): settings[m], "stageTimeout": "3m"}
}

// config is what a person writes who wants that many replicas in that mode. What is measured is acted upon at once; a
// cluster's load is 1, or heavyLoad.
func (w *world) config(m mode, replicas int) map[string]any {
	c := w.Config("Enforce")
	c["rollout"] = w.rollout(m)
	c["partition"] = map[string]any{"lpt": map[string]any{}, "replicas": replicas}
	c["normalize"] = map[string]any{"none": map[string]any{}}
	c["index"] = map[string]any{"pNorm": map[string]any{"weights": map[string]any{"load": "1"}}}
	c["evaluate"] = map[string]any{"none": map[string]any{}}
	c["failover"] = map[string]any{"after": failoverAfter[m], "settle": "10s"}
	c["poll"].(map[string]any)["prometheus"].(map[string]any)["metrics"] = []any{map[string]any{
		"id": "load", "query": load(w.heavy), "match": map[string]any{"label": "dest_server"}, "noData": "0",
	}}
	return c
}

// failoverAfter is how long a replica must be unwell. Argo CD gives a Deployment's pod the slot of one that is gone when that
// was silent for 30 s, and the pod asks every 10 s: failover has no business there.
var failoverAfter = map[mode]string{live: "10s", x0y: "10s", defaults: "10s", deployment: "90s"}

// patient is config, but levels nothing out for now: Argo CD's algorithms leave fleets uneven.
func (w *world) patient(m mode, replicas int) map[string]any {
	c := w.config(m, replicas)
	c["evaluate"] = map[string]any{"mostWanted": map[string]any{"window": "1h", "minSamples": 300}}
	return c
}

// heavyLoad is that of a cluster that weighs as much as several.
const heavyLoad = 3

// load asks Argo CD's own metrics which clusters there are: of an application-controller's past nothing is there yet that
// could be measured, and how much a cluster weighs does not matter here.
func load(heavy []timeline.Cluster) string {
	every := `group by (dest_server) (last_over_time(argocd_app_info{ {{.pods}},dest_server!="" }[10m]))`
	if len(heavy) == 0 {
		return every
	}
	var servers []string
	for _, c := range heavy {
		servers = append(servers, c.Server)
	}
	some := strings.Replace(every, `!=""`, fmt.Sprintf("=~%q", strings.Join(servers, "|")), 1)
	return fmt.Sprintf("%d * %s or %s", heavyLoad, some, every)
}
