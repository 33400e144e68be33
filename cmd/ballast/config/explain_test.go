package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An overlay's rule takes the place of the default's of that name, wherever it stands in the file.
func TestConfigExplainPrintsTheRulesThatHold(t *testing.T) {
	out, failure := runConfig(t, configHeader+`size:
  policies:
  - name: ours
    priority: 10
    rules:
    - {list: requests, resource: memory, base: 2Gi}
  - name: default
    rules:
    - {list: requests, resource: memory, base: 1Gi}
    - {name: apps, list: requests, resource: memory, slope: 100Mi, input: apps, per: 2, min: 256Mi, max: 8Gi}
`, "explain", "-")
	want := `size.apply is inPlace; rules of one list and resource add up
  list      resource  rule  of policy  value
  requests  memory    -     ours       2Gi
  requests  memory    apps  default    0 + 100Mi * apps of replica / 2, at least 256Mi, at most 8Gi
`
	if diff := cmp.Diff(want, out); diff != "" || failure != "" {
		t.Errorf("%s (-want +got):\n%s", failure, diff)
	}
	if out, _ := runConfig(t, configHeader, "explain", "-"); out != "No policy says how large replicas are: their requests and limits are yours.\n" {
		t.Errorf("without policies: %q", out)
	}
	_, failure = runConfig(t, configHeader+"size: {policies: [{name: a, rules: [{list: requests, resource: memory, slope: 1Mi, input: app}]}]}\n", "check", "-")
	if failure != `checking "-": 1 mistake` {
		t.Errorf("an input that there is not: %q", failure)
	}
}
