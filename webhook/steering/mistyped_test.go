package steering

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/plan"
)

// TestAWarningOnAnAnnotationFits: whatever is written, a warning is one line of ASCII, and the shortest form of it is whole.
func TestAWarningOnAnAnnotationFits(t *testing.T) {
	const fits = 120 // bytes of a warning
	rapid.Check(t, func(t *rapid.T) {
		on := rapid.SampledFrom([]func() Surface{OnPlan, OnCluster(0), OnCluster(999_999), OnWorkload}).Draw(t, "on")
		name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"enforcement", "paused", "accept-discovery", "cordon", "rollback-to", "tripped", "pin", "unmanaged"})).Draw(t, "name")
		for _, forms := range Mistyped(on, map[string]string{plan.Group + "/" + name: rapid.String().Draw(t, "value")}, nil) {
			if shortest := forms[len(forms)-1]; len(shortest) > fits {
				t.Errorf("%d bytes: %s", len(shortest), shortest)
			}
			for _, form := range forms {
				if strings.ContainsFunc(form, func(r rune) bool { return r < 0x20 || r > 0x7e }) || !strings.HasPrefix(form, "ballast: ") {
					t.Errorf("not one line of ASCII: %q", form)
				}
			}
		}
	})
}
