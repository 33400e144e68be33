package input

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestARecordedCycleIsReadAndWrittenTheSame: files that `ballast plan --save-inputs` wrote keep what looks beside the
// plan found, and the slots of a dynamic distribution, whichever packages their types are in.
func TestARecordedCycleIsReadAndWrittenTheSame(t *testing.T) {
	parts := []string{
		`"neighbours":[{"kind":"Autoscaled","subject":"HPA argocd/grow","message":"it scales it"},` +
			`{"kind":"","subject":"","message":""}]`,
		`"installation":[{"kind":"KubernetesTooOld","subject":"Kubernetes",` +
			`"message":"upgrade Kubernetes"}]`,
		`"observed":{"known":true,"dynamic":true,"slots":[` +
			`{"shard":0,"state":"Silent","controller":"a","silence":61000000000},{"shard":1,"state":"Free"}]}`,
	}
	var in Inputs
	if err := json.Unmarshal([]byte("{"+strings.Join(parts, ",")+"}"), &in); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s\nbecame\n%s", part, text)
		}
	}
	text, err = json.Marshal(Inputs{})
	if err != nil || strings.Contains(string(text), "neighbours") || strings.Contains(string(text), "installation") {
		t.Errorf("nothing found is written as %s, %v", text, err)
	}
}
