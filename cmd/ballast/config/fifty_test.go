package config

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config/configfile"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/replay/instant"
	"ballast/planner/size/inputs"
)

// day is by how much a fleet of 50 clusters, of a load of 0.1 and four cores each, makes of that in each hour.
var day = []float64{1, 1, 1, 1.02, 1, 1.3, 1.8, 2.6, 4, 6, 6, 5.9, 6, 5.95, 6, 5, 3.5, 2.4, 2.4, 2.3, 1.5, 1, 1.02, 1}

const fifty = 50

//go:embed testdata/seeds
var seeds embed.FS

// seedExamples are the examples of CPVPS's and HVPA's own repositories, each with its source in its first line.
func seedExamples(t *testing.T) (all []example) {
	t.Helper()
	files, err := fs.Glob(seeds, "testdata/seeds/*.yaml")
	fixture.MustDo(t, err)
	for _, file := range files {
		text, err := seeds.ReadFile(file)
		fixture.MustDo(t, err)
		all = append(all, example{strings.TrimSuffix(path.Base(file), ".yaml"), string(text)})
	}
	return all
}

type example struct{ name, manifest string }

// examples are after those of CPVPS's and HVPA's documents and vectors, with other numbers than a document has.
func examples() []example {
	cpvps := func(function, smoothing string) string {
		return "kind: ScalingPolicy\nmetadata: {name: controller}\nspec:\n  containers: [{name: c, resources: {requests: [" +
			"{resource: cpu, function: " + function + "}]}}]\n  smoothing: " + smoothing + "\n"
	}
	hvpa := func(most int, intervals string) string {
		return fmt.Sprintf(`kind: Hvpa
metadata: {name: controller}
spec:
  hpa:
    deploy: true
    scaleUp: {updatePolicy: {updateMode: Auto}}
    scaleDown: {updatePolicy: {updateMode: Auto}}
    template: {spec: {minReplicas: 1, maxReplicas: %d}}
  vpa:
    deploy: true
    scaleUp: {updatePolicy: {updateMode: Auto}, stabilizationDuration: 2m, minChange: {cpu: {value: 100m, percentage: 10}}}
    scaleDown: {updatePolicy: {updateMode: Auto}, stabilizationDuration: 15m, minChange: {cpu: {value: 100m, percentage: 10}}}
  weightBasedScalingIntervals: %s
`, most, intervals)
	}
	return []example{
		{"CPVPS: segments", cpvps(`{base: 200m, input: cores, slope: 10m, `+
			`segments: [{at: 4, every: 4}, {at: 32, every: 8}, {at: 256, every: 64}]}`, `{}`)},
		{"CPVPS: every core, from 16 on each fourth", cpvps(`{base: 100m, input: cores, slope: 10m, `+
			`segments: [{at: 0, every: 1}, {at: 16, every: 4}]}`, `{}`)},
		{"CPVPS: a tolerance of 20 cores", cpvps(`{input: cores, slope: 10m}`, `{delayScaleDown: {inputs: {cores: 20}}}`)},
		{"CPVPS: down after three hours", cpvps(`{base: 200m, input: cores, slope: 10m, delayScaleDown: {delaySeconds: 10800}}`, `{}`)},
		{"CPVPS: percentiles", cpvps(`{base: 200m, input: cores, slope: 10m}`,
			`{percentile: {target: 0.80, lowThreshold: 0.60, highThreshold: 0.95}}`)},
		{"HVPA: horizontal, then a share, then horizontal", hvpa(10, `[{vpaWeight: 0, startReplicaCount: 1, lastReplicaCount: 2}, `+
			`{vpaWeight: 60, startReplicaCount: 3, lastReplicaCount: 7}, {vpaWeight: 0, startReplicaCount: 8, lastReplicaCount: 10}]`)},
		{"HVPA: vertical on one replica, then a share, then horizontal", hvpa(10,
			`[{vpaWeight: 100, startReplicaCount: 1, lastReplicaCount: 1}, `+
				`{vpaWeight: 60, startReplicaCount: 2, lastReplicaCount: 4}, {vpaWeight: 0, startReplicaCount: 5, lastReplicaCount: 10}]`)},
		{"HVPA: horizontal up to three, then vertical", hvpa(4, `[{vpaWeight: 0, startReplicaCount: 1, lastReplicaCount: 3}, `+
			`{vpaWeight: 100, startReplicaCount: 4, lastReplicaCount: 4}]`)},
		{"HVPA: half and half", hvpa(7, `[{vpaWeight: 50, startReplicaCount: 1, lastReplicaCount: 7}]`)},
	}
}

// TestTheExamplesSizeAFleetOf50 goes the whole way, from the manifest by the file that `ballast config convert` makes of it to the
// sizes that the plan holds: what a day makes of them, from two replicas on.
func TestTheExamplesSizeAFleetOf50(t *testing.T) {
	var b strings.Builder
	for _, one := range examples() {
		sizeAFleet(t, &b, one)
	}
	fixture.Golden(t, "fifty", b.String())
}

// TestTheSeedsExamplesSizeAFleetOf50: the same of what the two projects ship, to the letter.
func TestTheSeedsExamplesSizeAFleetOf50(t *testing.T) {
	var b strings.Builder
	all := seedExamples(t)
	for _, one := range all {
		sizeAFleet(t, &b, one)
	}
	if len(all) != 12 {
		t.Errorf("%d examples", len(all))
	}
	fixture.Golden(t, "fifty-seeds", b.String())
}

func sizeAFleet(t *testing.T, b *strings.Builder, one example) {
	t.Helper()
	fmt.Fprintf(b, "%s\n", one.name)
	text, failure := runConfig(t, one.manifest, "convert", "-", "--capacity", "2.5")
	if failure != "" {
		t.Fatalf("%s: %s", one.name, failure)
	}
	a, last := installed(t, text), ""
	for hour, factor := range day {
		a.during(t, hour, factor)
		if strings.HasPrefix(one.name, "HVPA") || strings.HasPrefix(one.name, "hvpa") {
			a.enough(t, one, hour, factor)
		}
		if held := a.held(); held != last {
			fmt.Fprintf(b, "  %02d:00  load %5.2f  %5.0f cores  %s\n", hour, 0.1*factor*fifty, 4*factor*fifty, held)
			last = held
		}
	}
}

// site is an Argo CD that does at once what it is told, under a configuration.
type site struct{ in input.Inputs }

// installed is a fleet under a converted file, to which its operator has added where the loads come from, what a note asks for, and
// that any number of clusters may move.
func installed(t *testing.T, text string) *site {
	t.Helper()
	file := map[string]any{}
	fixture.MustDo(t, yaml.Unmarshal([]byte(text), &file))
	file["mode"], file["interval"] = "Enforce", "10m"
	file["poll"] = map[string]any{"prometheus": map[string]any{"metrics": []any{map[string]any{"id": "work", "query": "work",
		"match": map[string]any{"label": "server", "to": "server"}}}}}
	file["index"] = map[string]any{"pNorm": map[string]any{"weights": map[string]any{"work": "1"}}}
	file["normalize"] = map[string]any{"none": map[string]any{}}
	change, _ := file["change"].(map[string]any)
	if change == nil {
		change = map[string]any{}
	}
	change["moves"] = map[string]any{"rate": []any{}}
	file["change"] = change
	ended(file)
	whole, err := yaml.Marshal(file)
	fixture.MustDo(t, err)
	c, err := configfile.Parse(whole)
	fixture.MustDo(t, err)
	held, env := true, "2"
	a := &site{input.Inputs{Config: c, PlannerUser: "system:serviceaccount:argocd:ballast-planner", Enforcement: &held,
		Discovered: discover.Input{Namespace: "argocd"},
		Workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller", Container: "c",
			Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, CurrentReplicas: 2, EnvReplicas: &env,
			Resources: &plan.Resources{Requests: map[string]string{"cpu": "1"}}}}}
	for i := range fifty {
		name := fmt.Sprintf("c%02d", i)
		a.in.Discovered.Secrets = append(a.in.Discovered.Secrets, discover.Secret{UID: name, Name: name, Namespace: "argocd", Cluster: name,
			Server: "https://" + name, HasData: true, Shard: discover.ShardValue{State: discover.ShardValid, N: i % 2}})
	}
	return a
}

// ended writes the max that a note of the conversion asks for.
func ended(file map[string]any) {
	sizes, _ := file["size"].(map[string]any)
	policies, _ := sizes["policies"].([]any)
	for _, policy := range policies {
		rules, _ := policy.(map[string]any)["rules"].([]any)
		for _, one := range rules {
			rule, _ := one.(map[string]any)
			if most := map[any]string{"vpaTargetCPU": "32", "vpaTargetMemory": "64Gi"}[rule["input"]]; most != "" && rule["max"] == nil {
				rule["max"] = most
			}
		}
	}
}

// during is an hour in which the planner looks every ten minutes.
func (a *site) during(t *testing.T, hour int, factor float64) {
	t.Helper()
	begin := time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC)
	for look := range 6 {
		a.in.Now = begin.Add(time.Duration(look) * 10 * time.Minute)
		a.in.Surroundings.Nodes = &inputs.Nodes{At: a.in.Now, Count: fifty, Cores: 4 * factor * fifty}
		a.in.Surroundings.VPA = a.recommends(factor)
		a.in.Fetched = []poll.Fetched{{Metric: "work"}}
		for _, s := range a.in.Discovered.Secrets {
			a.in.Fetched[0].Samples = append(a.in.Fetched[0].Samples, poll.Sample{Key: s.Server, Value: 0.1 * factor, At: a.in.Now})
		}
		fleet, _, _ := discover.Discover(a.in.Discovered, discover.Known{}, discover.Options{MaxShrink: 1}, a.in.Now)
		owners := make([]int, len(fleet.Clusters))
		for i, c := range fleet.Clusters {
			owners[i] = c.Explicit.N
		}
		a.in.Observed = input.Observed{Known: true, Pods: instant.Pods(a.in.Workload)}
		a.in.Observed.Reported = instant.Report(a.in.Observed.Pods, fleet, owners, a.in.Now)
		a.cycle(t)
	}
}

// recommends is a VPA whose target is what the fullest replica needs now: a core, and a GiB, for a load of 2.5.
func (a *site) recommends(factor float64) *inputs.Recommendation {
	loads, most := map[int]float64{}, 0.0
	for _, s := range a.in.Discovered.Secrets {
		loads[s.Shard.N] += 0.1 * factor
		most = max(most, loads[s.Shard.N])
	}
	return &inputs.Recommendation{At: a.in.Now, Name: "controller",
		Target: map[string]float64{"cpu": most / 2.5, "memory": most / 2.5 * (1 << 30)}}
}

func (a *site) cycle(t *testing.T) {
	t.Helper()
	out := cycle.Run(a.in)
	for _, p := range out.Problems {
		if p.Keeps {
			t.Fatalf("%s: %s: %s", a.in.Now, p.Kind, p.Message)
		}
	}
	a.in.Memory = out.Memory
	if out.Changed {
		next := out.Next.Clone()
		next.Revision = 1
		if a.in.InForce != nil {
			next.Revision = a.in.InForce.Revision + 1
		}
		a.in.InForce = &next
	}
	view := plan.NewView(a.in.InForce.Clone(), out.Pins)
	seen := standing.Seen(a.in.InForce.Clusters, out.Fleet, a.in.Memory.Known, a.in.Workload)
	instant.Do(diff.Between(view, seen, diff.Options{}).Steps, &a.in.Workload, a.in.Discovered.Secrets)
}

// enough asserts that no replica is held a tenth below what its own clusters need, and where its file wants a change of 80 % at least,
// or by HVPA's default of 200m, not further below than that: the VPA says a core for a load of 2.5.
func (a *site) enough(t *testing.T, of example, hour int, factor float64) {
	t.Helper()
	least, short := 0.9, 0.0
	if !strings.Contains(of.manifest, "minChange") {
		short = 0.2
	}
	if strings.Contains(of.manifest, "percentage: 80") {
		least = 1 / 1.8
	}
	loads := map[int]float64{}
	for _, s := range a.in.Discovered.Secrets {
		loads[s.Shard.N] += 0.1 * factor
	}
	for replica, load := range loads {
		size, _ := a.in.InForce.SizeOf(replica)
		got := resource.MustParse(size.Requests["cpu"])
		if need := load / 2.5; got.AsApproximateFloat64() < min(need*least, need-short) {
			t.Errorf("%s: %02d:00: replica %d has %s, and its clusters need %.3f cores", of.name, hour, replica, got.String(), need)
		}
	}
}

// held is what the plan holds each replica at, and how many have the same.
func (a *site) held() string {
	p := a.in.InForce
	var said []string
	count, last := 0, ""
	flush := func() {
		if count > 0 {
			said = append(said, strconv.Itoa(count)+" x "+last)
		}
	}
	for replica := range p.Replicas {
		size, held := p.SizeOf(replica)
		text := size.Requests["cpu"]
		switch {
		case !held:
			text = "none"
		case text == "":
			text = "as the template"
		}
		if limit := size.Limits["cpu"]; limit != "" {
			text += " (limit " + limit + ")"
		}
		if text != last {
			flush()
			count, last = 0, text
		}
		count++
	}
	flush()
	return strings.Join(said, ", ")
}
