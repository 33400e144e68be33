package webhook

import (
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/plan"
)

// TestNothingCrashesADecision feeds every decision with JSON of any shape under the keys that it reads.
func TestNothingCrashesADecision(t *testing.T) {
	keys := []string{"metadata", "data", "spec", "replicas", "template", "containers", "env", "name", "value", "labels", "annotations", "shard", "server", "plan", "pins",
		"resources", "requests", plan.EnvReplicas, plan.SecretTypeLabel, plan.AnnotationPin, plan.AnnotationDigest}
	var draw func(t *rapid.T, depth int) any
	draw = func(t *rapid.T, depth int) any {
		switch n := rapid.IntRange(0, 9).Draw(t, "shape"); {
		case n < 5 && depth < 6:
			object := map[string]any{}
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				object[rapid.SampledFrom(keys).Draw(t, "key")] = draw(t, depth+1)
			}
			return object
		case n < 6 && depth < 6:
			return []any{draw(t, depth+1), draw(t, depth+1)}
		case n < 7:
			return rapid.Float64Range(-1e12, 1e12).Draw(t, "number")
		case n < 8:
			return nil
		default:
			return rapid.SampledFrom(append(keys, "cluster", "Mw==", "x: 1", "\x00\"\\")).Draw(t, "text")
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		for _, k := range kinds() {
			rv := review{Request: drawRequest(t), object: document(t, draw(t, 0)), old: document(t, draw(t, 0))}
			v, err := k.decide(s, &rv)
			if err == nil {
				apply(t, string(rv.object), v.Patches)
			}
		}
	})
}
