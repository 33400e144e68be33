package peer

import (
	"strings"
	"testing"
)

// An alias makes any number of bytes of a few: no manifest needs one.
func TestAManifestWithAnAliasIsRefused(t *testing.T) {
	bomb := "kind: ScalingPolicy\na: &a \"" + strings.Repeat("<", 1000) + "\"\nb: [" + strings.Repeat("*a,", 1000) + "*a]\n"
	_, err := Kind([]byte(bomb))
	if err == nil || err.Error() != "reading the manifest: line 2 has an anchor or alias: write the value out" {
		t.Errorf("it is answered %v", err)
	}
}

// The second HVPA's intervals say something else: read as the first's manifest they would be left out in silence.
func TestTheSecondHVPAsManifestIsRefused(t *testing.T) {
	_, err := ReadHVPA([]byte("kind: Hvpa\nspec: {scaleIntervals: [{maxReplicas: 4, maxCpu: 2}]}\n"))
	const want = "spec.scaleIntervals are of HVPA's branch hvpa-v2, which no release has: write weightBasedScalingIntervals instead"
	if err == nil || err.Error() != want {
		t.Errorf("it is answered %v", err)
	}
}
