package configmap

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/fixture"
)

func TestParse(t *testing.T) {
	text, err := codec.Encode(fixture.Example())
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{plan.KeyPlan: text, plan.KeyPins: "prod-eu: 3\nprod-us: 16\n"}
	d := Parse(data, map[string]string{plan.AnnotationDigest: plan.Digest(text), plan.AnnotationPaused: "true", plan.AnnotationAcceptDiscovery: "3"})
	if d.Plan == nil || d.PlanErr != nil || d.Plan.Revision != 17 {
		t.Fatalf("plan %+v, %v", d.Plan, d.PlanErr)
	}
	if !d.Paused || d.BreakGlass || d.AcceptDiscovery == nil || *d.AcceptDiscovery != 3 {
		t.Errorf("annotations read as %+v", d)
	}
	if d.Pins["prod-eu"] != 3 || len(d.PinProblems) != 1 || d.PinProblems[0].Name != "prod-us" {
		t.Errorf("pins %v, problems %v", d.Pins, d.PinProblems)
	}
	data[plan.KeyPlan] += "#\n"
	if d := Parse(data, map[string]string{plan.AnnotationDigest: plan.Digest(text), plan.AnnotationEnforcement: "off"}); d.Plan != nil || !errors.Is(d.PlanErr, ErrDigest) || !d.BreakGlass {
		t.Errorf("an edited plan was read as %+v, want ErrDigest and break-glass", d)
	}
}

func TestParseReadsWhatPeopleAndTheLeaderAskOfEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        Document
	}{
		"nothing": {nil, Document{}},
		"each as it is written, with a plan or without": {
			map[string]string{"ballast.argoproj.io/cordon": "3=2026-11-20T17:00:00Z", "ballast.argoproj.io/rollback-to": "12", "ballast.argoproj.io/tripped": "prod-eu was orphaned"},
			Document{Cordon: "3=2026-11-20T17:00:00Z", Rollback: "12", Tripped: "prod-eu was orphaned"},
		},
		"why and by whom it was paused does not pause": {
			map[string]string{"ballast.argoproj.io/paused-reason": "an upgrade", "ballast.argoproj.io/paused-by": "alice"}, Document{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Parse(nil, test.annotations), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What nobody vouches for is not decoded: a hash allocates next to nothing, a decoder thousands of times.
func TestTheDigestIsComparedBeforeAnythingIsDecoded(t *testing.T) {
	text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: Plan\ny: [" + strings.Repeat("a,", 10_000) + "]\n"
	for name, test := range map[string]struct {
		digest string
		most   float64
		least  float64
	}{
		"another's": {plan.Digest(text + " "), 100, 0},
		"its own":   {plan.Digest(text), math.Inf(1), 1000},
	} {
		t.Run(name, func(t *testing.T) {
			got := testing.AllocsPerRun(3, func() {
				Parse(map[string]string{plan.KeyPlan: text}, map[string]string{plan.AnnotationDigest: test.digest})
			})
			if got > test.most || got < test.least {
				t.Errorf("%v allocations, want %v to %v", got, test.least, test.most)
			}
		})
	}
}
