package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
)

const scalingPolicy = `apiVersion: scalingpolicy.kope.io/v1alpha1
kind: ScalingPolicy
metadata: {name: controller, namespace: argocd}
spec:
  scaleTargetRef: {kind: StatefulSet, name: argocd-application-controller}
  priority: 5
  containers:
  - name: application-controller
    resources:
      requests:
      - resource: cpu
        name: cores
        max: 4
        function:
          base: 200m
          input: cores
          slope: 1m
          per: 2
          segments: [{at: 4, every: 4}, {at: 32, every: 8}, {at: 500}]
          delayScaleDown: {max: 2, delaySeconds: 300}
      - resource: memory
        max: 8Gi
        function: {base: 1Gi, input: clusters, slope: 64Mi}
      limits:
      - resource: cpu
        function: {base: "2"}
  - name: metrics
    resources:
      requests:
      - resource: cpu
        function: {base: 10m}
`

// earlier is the form of CPVPS's earlier versions.
const earlier = `kind: ScalingPolicy
metadata: {name: earlier}
spec:
  containers:
  - name: c
    resources:
      limits:
      - {resource: cpu, base: 200m, input: load, slope: 10m, segments: [{at: 10, roundTo: 5}]}
  smoothing:
    delayScaleDown: {inputs: {load: 20}}
    percentile: {target: 0.8, lowThreshold: 0.6, highThreshold: 0.95}
`

const hvpa = `apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: controller}
spec:
  maintenanceTimeWindow: {begin: "233000+0100", end: "013000+0100"}
  hpa:
    deploy: true
    scaleDown: {updatePolicy: {updateMode: "Off"}}
    template: {spec: {minReplicas: 2, maxReplicas: 8, metrics: [{type: Resource}]}}
  vpa:
    scaleUp:
      updatePolicy: {updateMode: ScaleUp}
      stabilizationDuration: 3m
      minChange: {cpu: {value: 100m, percentage: 80}, memory: {value: "3"}}
    scaleDown:
      updatePolicy: {updateMode: MaintenanceWindow}
      stabilizationDuration: soon
      minChange: {cpu: {percentage: 0}}
    limitsRequestsGapScaleParams: {cpu: {percentage: 80, value: "1"}}
    template:
      spec:
        resourcePolicy:
          containerPolicies:
          - {containerName: application-controller, minAllowed: {memory: 400Mi}, maxAllowed: {memory: 3000Mi, cpu: 4}}
  weightBasedScalingIntervals:
  - {vpaWeight: 0, lastReplicaCount: 3}
  - {vpaWeight: 50, startReplicaCount: 3, lastReplicaCount: 5}
  - {vpaWeight: 60, startReplicaCount: 7}
`

// scaleUp is an Hvpa of an earlier version, with one policy for both directions.
const scaleUp = `kind: Hvpa
spec:
  vpa: {updatePolicy: {updateMode: ScaleUp}}
`

// noVPA has neither autoscaler.
const noVPA = `kind: Hvpa
spec:
  hpa: {deploy: false, template: {spec: {minReplicas: 2, maxReplicas: 4}}}
  vpa: {deploy: false}
`

// memoryAlone leaves cpu and all limits as they are.
const memoryAlone = `kind: Hvpa
spec:
  targetRef: {kind: StatefulSet, name: controller}
  vpa:
    template:
      spec:
        resourcePolicy:
          containerPolicies: [{containerName: c, controlledResources: [memory], controlledValues: RequestsOnly}]
`

func TestConvert(t *testing.T) {
	for name, test := range map[string]struct {
		manifest string
		flags    []string
	}{
		"a ScalingPolicy": {scalingPolicy, []string{"--container", "application-controller"}},
		"a ScalingPolicy without an end": {strings.Replace(scalingPolicy, "        max: 8Gi\n", "", 1),
			[]string{"--container", "application-controller"}},
		"a ScalingPolicy from earlier": {earlier, nil},
		"an Hvpa":                      {hvpa, nil},
		"an Hvpa of mode ScaleUp":      {scaleUp, nil},
		"an Hvpa at today's capacity":  {hvpa, []string{"--capacity", "0.5"}},
		"an Hvpa of memory alone":      {memoryAlone, nil},
		"an Hvpa without a VPA":        {noVPA, nil},
		"an Hvpa whose container is Off": {strings.Replace(memoryAlone, "controlledResources: [memory], controlledValues: RequestsOnly",
			"mode: \"Off\"", 1), nil},
		"an Hvpa without maxReplicas": {strings.Replace(hvpa, ", maxReplicas: 8", "", 1), []string{"--capacity", "0.5"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, failure := runConfig(t, test.manifest, append([]string{"convert", "-"}, test.flags...)...)
			if failure != "" {
				t.Fatal(failure)
			}
			asked := map[string]string{ // the resources for which a note asks the operator for the rule's max
				"a ScalingPolicy without an end": "size.policies[0].rules[1].max",
				"an Hvpa of mode ScaleUp":        "size.policies[0].rules[0].max size.policies[0].rules[1].max",
				"an Hvpa of memory alone":        "size.policies[0].rules[0].max",
			}[name]
			if got := strings.Join(missing(t, []byte(out)), " "); got != asked {
				t.Errorf("it is asked for %q, want %q", got, asked)
			}
			fixture.Golden(t, strings.ReplaceAll(name, " ", "-"), out)
		})
	}
}

// docs/sizing.md has an Hvpa and what is made of it.
func TestTheDocsExampleOfAnHvpaIsWhatComes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/sizing.md")
	fixture.MustDo(t, err)
	_, rest, _ := strings.Cut(string(page), "So this Hvpa\n\n```yaml\n")
	manifest, rest, found := strings.Cut(rest, "```\n\nbecomes, with `--capacity 0.5`:\n\n```yaml\n")
	if !found {
		t.Fatal("docs/sizing.md has no Hvpa")
	}
	want, _, _ := strings.Cut(rest, "```\n")
	out, failure := runConfig(t, manifest, "convert", "-", "--capacity", "0.5")
	if failure != "" {
		t.Fatal(failure)
	}
	if lacks := missing(t, []byte(out)); lacks != nil {
		t.Errorf("it lacks %v", lacks)
	}
	if diff := cmp.Diff(want, out[strings.Index(out, "apiVersion:"):]); diff != "" {
		t.Errorf("-docs +got:\n%s", diff)
	}
}

// missing are the paths of what a file that is to be completed lacks: each the most that a rule may come to.
func missing(t *testing.T, file []byte) (paths []string) {
	t.Helper()
	_, err := configfile.Parse(file)
	if err == nil {
		return nil
	}
	for _, mistake := range strings.Split(strings.Trim(err.Error(), "[]"), ", size.") {
		lacks, _, is := strings.Cut(mistake, ": Required value: write the most that it may come to")
		if !is {
			t.Errorf("it does not parse: %v", err)
		}
		paths = append(paths, "size."+strings.TrimPrefix(lacks, "size."))
	}
	return paths
}

// HVPA takes the first interval of its list that has the number of replicas, in whatever order they are, and 0 where there is none.
func TestIntervalsAreReadInTheOrderOfTheirList(t *testing.T) {
	type w = config.WeightInterval
	for name, test := range map[string]struct {
		intervals string
		want      []config.WeightInterval
		notes     []string
	}{
		"out of order": {"[{startReplicaCount: 5, lastReplicaCount: 10, vpaWeight: 60}, {startReplicaCount: 1, lastReplicaCount: 4}]",
			[]w{{From: "0", To: "4", Weight: 0}, {From: "4", Weight: 60}}, nil},
		"a gap in front": {"[{startReplicaCount: 3, lastReplicaCount: 10, vpaWeight: 50}]",
			[]w{{From: "0", To: "2", Weight: 0}, {From: "2", Weight: 50}},
			[]string{"nothing is said of 1 to 2 replicas: HVPA takes a weight of 0"}},
		"a gap behind": {"[{lastReplicaCount: 5, vpaWeight: 50}]",
			[]w{{From: "0", To: "5", Weight: 50}, {From: "5", Weight: 0}},
			[]string{"an interval leaves out where it starts or ends: 1 and 10, the least and the most replicas, are meant",
				"nothing is said of 6 to 10 replicas: HVPA takes a weight of 0"}},
		"one within another": {
			"[{startReplicaCount: 4, lastReplicaCount: 6, vpaWeight: 30}, {startReplicaCount: 1, lastReplicaCount: 10, vpaWeight: 80}]",
			[]w{{From: "0", To: "3", Weight: 80}, {From: "3", To: "6", Weight: 30}, {From: "6", Weight: 80}},
			[]string{"2 intervals speak of 4 to 6 replicas: HVPA takes the one that is listed first"}},
		"neighbours of one weight": {
			"[{startReplicaCount: 6, lastReplicaCount: 10, vpaWeight: 40}, {startReplicaCount: 1, lastReplicaCount: 5, vpaWeight: 40}]",
			[]w{{From: "0", Weight: 40}}, nil},
		"beyond the most": {
			"[{startReplicaCount: 1, lastReplicaCount: 99, vpaWeight: 40}, {startReplicaCount: 12, lastReplicaCount: 20, vpaWeight: 90}]",
			[]w{{From: "0", Weight: 40}}, nil},
		"a weight of 100": {
			"[{startReplicaCount: 1, lastReplicaCount: 5, vpaWeight: 100}, {startReplicaCount: 6, lastReplicaCount: 10, vpaWeight: 20}]",
			[]w{{From: "0", To: "5", Weight: 100}, {From: "5", Weight: 20}},
			[]string{"a weight of 100 keeps the number of replicas here: HVPA takes the next weight below 100 of its list in its place " +
				"where the HPA wants more, and the last one before it where the HPA wants fewer"}},
		"nothing but 100": {"[{startReplicaCount: 1, lastReplicaCount: 10, vpaWeight: 100}]", []w{{From: "0", Weight: 100}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "kind: Hvpa\nspec:\n  hpa: {deploy: true, template: {spec: {minReplicas: 1, maxReplicas: 10}}}\n" +
				"  weightBasedScalingIntervals: " + test.intervals + "\n"
			var notes []string
			c, err := convert([]byte(manifest), convertOptions{capacity: "1"})
			if err != nil {
				t.Fatal(err)
			}
			for _, note := range c.notes {
				about := func(words string) bool { return strings.Contains(note, words) }
				if slices.ContainsFunc([]string{"leaves out where", "intervals speak of", "nothing is said", "a weight of 100"}, about) {
					notes = append(notes, note)
				}
			}
			if diff := cmp.Diff(test.want, c.size.Weights); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if text, err := c.text(); err != nil {
				t.Errorf("it is none of ours: %v\n%s", err, text)
			}
		})
	}
}

func TestWhatIsNotConverted(t *testing.T) {
	for name, test := range map[string]struct {
		manifest string
		flags    []string
		want     string
	}{
		"another kind": {"kind: Deployment\n", nil, `converting "-": the kind "Deployment" is neither ScalingPolicy nor Hvpa`},
		"no YAML":      {"kind: [\n", nil, `converting "-": reading the manifest: yaml: line 1: did not find expected node content`},
		"two documents": {"kind: Hvpa\n---\nkind: Hvpa\n", nil,
			`converting "-": reading the manifest: it has several documents: convert them one by one`},
		"which container": {scalingPolicy, nil,
			`converting "-": it has the containers application-controller, metrics: name the application-controller's with --container`},
		"no such container": {scalingPolicy, []string{"--container", "other"}, `converting "-": it has no container "other" but application-controller, metrics`},
		"nothing":           {"kind: ScalingPolicy\n", nil, `converting "-": it has no rules`},
		"a finer segment after a coarser one": {strings.Replace(earlier, "[{at: 10, roundTo: 5}]", "[{at: 0, every: 64}, {at: 10, every: 1}]", 1), nil,
			`converting "-": the rule for limits.cpu: segments[1].every an input of 10 would give less than one just below it: 10 instead of 64`},
		"a window that begins as it ends": {strings.Replace(hvpa, "013000+0100", "223000-0000", 1), nil,
			`converting "-": the window from 233000+0100 to 223000-0000 is either nothing or a whole day: for a whole day write 00:00 to 23:59:59`},
		"a mode without its window": {strings.Replace(hvpa, "maintenanceTimeWindow", "x", 1), nil,
			`converting "-": vpa.scaleDown has the mode MaintenanceWindow and there is no maintenanceTimeWindow: HVPA fails there; write one`},
		"a capacity that is none": {hvpa, []string{"--capacity", "-1"}, `converting "-": --capacity "-1" is no load above 0`},
		"no quantity": {strings.Replace(hvpa, "value: 100m", "value: many", 1), nil,
			`converting "-": reading vpa.scaleUp.minChange.cpu: reading the quantity "many": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`},
	} {
		t.Run(name, func(t *testing.T) {
			out, failure := runConfig(t, test.manifest, append([]string{"convert", "-"}, test.flags...)...)
			if failure != test.want || out != "" {
				t.Errorf("%s\nfails with %q\nwant       %q", out, failure, test.want)
			}
		})
	}
}

func FuzzConvert(f *testing.F) {
	for _, manifest := range []string{scalingPolicy, earlier, hvpa, scaleUp, memoryAlone, noVPA} {
		f.Add(manifest)
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		c, err := convert([]byte(manifest), convertOptions{capacity: "1"})
		if err != nil {
			return
		}
		text, err := c.text()
		if err != nil {
			return
		}
		missing(t, text)
	})
}
