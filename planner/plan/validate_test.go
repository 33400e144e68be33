package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"ballast/planner/plan"
	"ballast/planner/plan/fixture"
)

func TestGroupsThatCannotBeEnforcedAreRefused(t *testing.T) {
	p := fixture.Example()
	p.Cordoned = []int{-1}
	p.Groups = map[string]plan.ClusterGroup{"both": {Apart: "a", Together: "b"}, "neither": {}, "odd": {Apart: "a", At: []int{plan.ReplicaLimit}},
		"long": {Together: strings.Repeat("a", 4097)}, "many": {Apart: "a", At: make([]int, 1001)}}
	want := `cordoned: -1 is not between 0 and 999999
groups[both]: it has not one of apart and together
groups[long]: its selector has 4097 bytes, and at most 4096 are read
groups[many].at: it has 1001 replicas, and at most 1000 are read
groups[neither]: it has not one of apart and together
groups[odd].at: 1000000 is not between 0 and 999999`
	if got := fmt.Sprint(p.Validate()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
