package plan

import (
	"strings"
	"testing"
	"time"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// TestSizesGolden: what is wanted and held, and of what waits the reason, since when, until when, and what would be.
func TestSizesGolden(t *testing.T) {
	since := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	of := func(request, limit string) plan.Resources {
		return plan.Resources{Requests: map[string]string{"memory": request}, Limits: map[string]string{"memory": limit}}
	}
	inPlace := &resize.Sizing{Apply: config.InPlace, Replicas: []resize.ReplicaSize{
		{Replica: 0, Wanted: of("1Gi", "2Gi"), InForce: of("1Gi", "2Gi")}, {Replica: 1, Wanted: of("3Gi", "6Gi"), InForce: of("1Gi", "2Gi")},
	}, Blocked: []resize.Blocked{{Replica: 1, Resource: "memory", Direction: change.Up, Reason: change.OutsideMaintenance,
		From: "1Gi", To: "3Gi", Since: since, Until: since.Add(13 * time.Hour), Why: "the next maintenance window begins then"}}}
	byTemplate := &resize.Sizing{Apply: config.Template, Replicas: []resize.ReplicaSize{{Replica: size.All, Wanted: of("3Gi", "6Gi")}},
		Blocked: []resize.Blocked{{Replica: size.All, Resource: "memory", Direction: change.Up, Reason: change.RolloutInProgress,
			To: "3Gi", Since: since}}}
	var text strings.Builder
	for _, s := range []*resize.Sizing{nil, inPlace, byTemplate} {
		if err := writeSizes(&text, s); err != nil {
			t.Fatal(err)
		}
	}
	writeCounts(&text, &cycle.Counts{Blocked: []resize.Blocked{{Replica: size.All, Resource: resize.ResourceReplicas,
		Direction: change.In, Reason: change.Paradoxical, From: "4", To: "3", Since: since}}})
	writeMoves(&text, []resize.Blocked{{Replica: size.All, Resource: resize.ResourceClusters, Direction: change.Moves, Reason: change.OutsideMaintenance,
		From: "0", To: "3", Since: since, Until: since.Add(13 * time.Hour), Why: "the next maintenance window begins then"}})
	fixture.Golden(t, "sizes", text.String())
}
