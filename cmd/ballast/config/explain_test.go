package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
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
  input  comes from
  apps   a metric of clusters
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

// Nothing of a rule is left out: what rounds, smooths, holds back and bounds it.
func TestConfigExplainPrintsRulesInFull(t *testing.T) {
	out, failure := runConfig(t, configHeader+`size:
  policies:
  - name: ours
    rules:
    - list: requests
      resource: memory
      base: 1Gi
      slope: 100Mi
      input: apps
      scope: total
      per: 2
      segments: [{at: 4, every: 4}, {at: "2k", every: 100}]
      delayScaleUp: {delaySeconds: 90}
      delayScaleDown: {max: 20, delaySeconds: 3600}
      quantize: {base: 512Mi, step: 256Mi, stepRatio: 1.5, maxStep: 2Gi}
      smooth: {target: 90%, samples: 12}
      min: 256Mi
      max: 8Gi
    - {name: b, list: limits, resource: memory, base: 9Gi}
  - name: shadowed
    priority: -1
    rules:
    - {list: requests, resource: memory, base: 7Gi, quantize: {step: 1Gi}}
    - {list: requests, resource: cpu, slope: 10m, input: cores, smooth: {target: 80%, low: 60%, high: 95%}, delayScaleUp: {max: 5}, quantize: {step: 100m}}
`, "explain", "-")
	if failure != "" {
		t.Fatal(failure)
	}
	fixture.Golden(t, "explain-in-full", out)
}

// Each input says where it comes from, and what lets ballast read it.
func TestConfigExplainSaysWhereInputsComeFrom(t *testing.T) {
	out, failure := runConfig(t, configHeader+`poll:
  prometheus:
    metrics:
    - {id: workingSet, query: "max by (pod) (container_memory_working_set_bytes{ {{.targets}} })", match: {label: pod, to: replica}}
size:
  nodeCap: {cpu: 8, fromNodes: {}}
  policies:
  - name: ours
    rules:
    - {list: requests, resource: memory, slope: "2", input: workingSet}
    - {list: requests, resource: cpu, slope: 10m, input: cores}
    - {name: vpa, list: requests, resource: cpu, slope: 100m, input: vpaTargetCPU}
    - {name: hpa, list: requests, resource: cpu, slope: 1m, input: hpaReplicas}
    - {name: clusters, list: requests, resource: cpu, slope: 1m, input: clusters, max: "4"}
`, "explain", "-")
	want := `size.apply is inPlace; rules of one list and resource add up
  list      resource  rule      of policy  value
  requests  memory    -         ours       0 + 2 * workingSet of replica
  requests  cpu       -         ours       0 + 10m * cores of total
  requests  cpu       vpa       ours       0 + 100m * vpaTargetCPU of total
  requests  cpu       hpa       ours       0 + 1m * hpaReplicas of total
  requests  cpu       clusters  ours       0 + 1m * clusters of replica, at most 4
what size.nodeCap does not write is the largest node that the pods may run on, but 10% (component size-nodes)
  input         comes from
  clusters      the plan
  cores         the allocatable of all nodes of this cluster (component size-nodes)
  hpaReplicas   the HorizontalPodAutoscaler of the workload
  vpaTargetCPU  the VerticalPodAutoscaler of the workload
  workingSet    a metric of replicas, by the names of their pods
`
	if diff := cmp.Diff(want, out); diff != "" || failure != "" {
		t.Errorf("%s (-want +got):\n%s", failure, diff)
	}
	for name, text := range map[string]string{
		"a replica metric of a default metric's id": "poll: {prometheus: {metrics: [{id: apps, query: 'x{namespace=\"a\"}', match: {label: pod, to: replica}}]}}\n",
		"a metric of an input's name":               "poll: {prometheus: {metrics: [{id: cores, query: x, match: {label: server}}]}}\nindex: {pNorm: {weights: {cores: 1}}}\nsize: {policies: [{name: a, rules: [{list: requests, resource: cpu, slope: 1m, input: cores}]}]}\n",
	} {
		if _, failure := runConfig(t, configHeader+text, "check", "-"); failure != `checking "-": 1 mistake` {
			t.Errorf("%s: %q", name, failure)
		}
	}
}
