package size_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size"
	"ballast/planner/size/peer"
	"ballast/planner/size/weights"
)

// vector is one of testdata/cpvps.json.gz: functions of justinsb/scaler, of the proportional autoscalers beside it, and
// what its documents promise. Out is what their code returns; where that breaks a promise the test wants the promise.
type vector struct {
	ID         string          `json:"id"`
	Fn         string          `json:"fn"`
	In         json.RawMessage `json:"in"`
	Out        json.RawMessage `json:"out"`
	Quirk      string          `json:"quirk"`
	Documented json.RawMessage `json:"documented"`
	Latest     json.RawMessage `json:"outLatestFixed"`
	Rate       json.RawMessage `json:"outLatestAndRateFixed"`
}

// promised is the most repaired answer.
func (v vector) promised() json.RawMessage {
	for _, one := range []json.RawMessage{v.Rate, v.Latest} {
		if len(one) > 0 {
			return one
		}
	}
	return v.Out
}

func vectors(t *testing.T, file string) []vector {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Vectors []vector }
	if err := json.NewDecoder(unpacked).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all.Vectors
}

// TestTheVectorsOfCPVPS runs every vector; one whose function nothing answers fails.
func TestTheVectorsOfCPVPS(t *testing.T) {
	runs := map[string]func(*testing.T, vector){
		"roundInput":                                                  roundInput,
		"computeValue+toResourceQuantity":                             computeValue,
		"addObservation;computeResources":                             decideOnce,
		"windowValues.addObservation/stats":                           windowStats,
		"json.Unmarshal(ResourceScalingRule)":                         decodeRule,
		"ScalingPolicyEvaluator.ComputeResources":                     computeResources,
		"scaling.Quantize @264720f":                                   quantize,
		"PercentileSmoothing.UpdateTarget*;ComputeChange @264720f":    percentile,
		"cpvpa calculate()+guessFormat @3b97ec8":                      cpvpa,
		"CPA ladder getExpectedReplicasFromParams @5a5dd5a":           ladder,
		"CPA linear getExpectedReplicasFromParams @5a5dd5a":           linear,
		"(none: not implemented; README \"Operator configurations\")": merge,
		"control.State (makeObservation + applyPolicies) on target.SimulationTarget with a fake clock, 3600 one-second steps": simulation,
		"updatePolicy at t=0; then per step addObservation and/or computeResources (result becomes current)":                  sequence,
	}
	for _, v := range vectors(t, "testdata/cpvps.json.gz") {
		t.Run(v.ID, func(t *testing.T) {
			run, known := runs[v.Fn]
			if !known {
				t.Fatalf("nothing of ours answers %q", v.Fn)
			}
			run(t, v)
		})
	}
}

// read decodes a part of a vector.
func read(t *testing.T, data json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("reading %s: %v", data, err)
	}
}

// ruleOf reads their function with the reader of their manifests.
func ruleOf(t *testing.T, function json.RawMessage) size.Rule {
	t.Helper()
	var r peer.ScalingRule
	read(t, json.RawMessage(fmt.Sprintf(`{"resource": "cpu", "function": %s}`, function)), &r)
	rule, err := r.Rule("c", size.Requests)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func wrongIn(r size.Rule, field string) bool {
	return slices.ContainsFunc(r.Wrong(), func(w size.Wrong) bool { return strings.HasPrefix(w.Field, field) })
}

func roundInput(t *testing.T, v vector) {
	var in struct {
		Input    float64
		Segments json.RawMessage
	}
	read(t, v.In, &in)
	r := ruleOf(t, json.RawMessage(fmt.Sprintf(`{"base": "1", "input": "x", "segments": %s}`, in.Segments)))
	got := size.Round(r.Segments, in.Input)
	switch v.Quirk {
	case "every-zero-NaN":
		if got != in.Input || !wrongIn(r, "segments") {
			t.Errorf("%v is not refused, and gives %v", in.Segments, got)
		}
		return
	case "non-monotonic":
		if !wrongIn(r, "segments") {
			t.Error("a finer segment after a coarser one is not refused")
		}
	}
	var out struct{ Rounded float64 }
	read(t, v.Out, &out)
	if got != out.Rounded {
		t.Errorf("%v, want %v", got, out.Rounded)
	}
}

func computeValue(t *testing.T, v vector) {
	var in struct {
		Function json.RawMessage
		Inputs   map[string]float64
		Shift    float64
	}
	var out struct {
		Milli    float64
		Quantity string
	}
	read(t, v.In, &in)
	r := ruleOf(t, in.Function)
	input, known := in.Inputs[r.Input]
	got := r.Value(input+in.Shift, known)
	if v.Quirk == "every-zero-NaN" { // their answer is no number
		plain := r
		plain.Segments = nil
		if want := plain.Value(input+in.Shift, known); got.Cmp(want) != 0 || !wrongIn(r, "segments") {
			t.Errorf("%s, want %s and a refusal", got.String(), want.String())
		}
		return
	}
	read(t, v.Out, &out)
	switch v.Quirk {
	case "negative-quantity":
		if !got.IsZero() {
			t.Errorf("%s, want 0", got.String())
		}
		return
	case "max-not-implemented":
		most := resource.MustParse("4")
		capped := r
		capped.Max = &most
		want := most
		if got.Cmp(most) < 0 {
			want = got
		}
		if limited := capped.Value(input, known); limited.Cmp(want) != 0 {
			t.Errorf("with a max of 4: %s, want %s", limited.String(), want.String())
		}
	}
	if float64(got.MilliValue()) != math.Trunc(out.Milli) || got.String() != out.Quantity {
		t.Errorf("%s, want %s", got.String(), out.Quantity)
	}
}

func quantityOf(t *testing.T, text string) *resource.Quantity {
	t.Helper()
	if text == "" {
		return nil
	}
	q, err := size.ParseQuantity(text)
	if err != nil {
		t.Fatal(err)
	}
	return &q
}

func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// change is what a decision sets, nil for nothing.
func change(d size.Decision, current *resource.Quantity) *string {
	if d.Held == size.HeldNoInput && current == nil || current != nil && d.Value.Cmp(*current) == 0 {
		return nil
	}
	text := d.Value.String()
	return &text
}

func decideOnce(t *testing.T, v vector) {
	var in struct {
		Current  string
		Function json.RawMessage
		Inputs   map[string]float64
	}
	var out struct{ Set *string }
	read(t, v.In, &in)
	read(t, v.Out, &out)
	r, current := ruleOf(t, in.Function), quantityOf(t, in.Current)
	if v.Quirk == "every-zero-NaN" {
		plain := r // as if the segment were not there, and refused
		plain.Segments = nil
		value := plain.Value(in.Inputs[r.Input], true)
		out.Set = nil
		if current == nil || current.Cmp(value) != 0 {
			text := value.String()
			out.Set = &text
		}
		if !wrongIn(r, "segments") {
			t.Error("it is not refused")
		}
	}
	d, _ := size.State{}.Observe(r, at(0), in.Inputs[r.Input]).Decide(r, at(0), current)
	if diff := cmp.Diff(out.Set, change(d, current)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func sequence(t *testing.T, v vector) {
	type step struct {
		T       float64
		Apply   bool
		Observe map[string]float64
	}
	type answer struct {
		T       float64 `json:"t"`
		Current string  `json:"current"`
		Set     *string `json:"set"`
	}
	var in struct {
		Current  string
		Function json.RawMessage
		Steps    []step
	}
	read(t, v.In, &in)
	var want, got []answer
	read(t, v.promised(), &want)
	r, current := ruleOf(t, in.Function), quantityOf(t, in.Current)
	var s size.State
	for _, one := range in.Steps {
		if one.Observe != nil {
			s = s.Observe(r, at(one.T), one.Observe[r.Input])
		}
		a := answer{T: one.T}
		if one.Apply {
			var d size.Decision
			d, s = s.Decide(r, at(one.T), current)
			if current != nil {
				a.Current = current.String()
			}
			if a.Set = change(d, current); a.Set != nil {
				value := d.Value
				current = &value
			}
		}
		got = append(got, a)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func windowStats(t *testing.T, v vector) {
	var lists map[string]json.RawMessage
	var in struct {
		Now, RetentionSeconds, WindowSeconds float64
	}
	read(t, v.In, &in)
	read(t, v.In, &lists)
	var observations [][2]float64
	read(t, lists["observations[t,v]"], &observations)
	type sample struct{ T, V float64 }
	var want struct {
		HasLatest                 bool
		Kept                      []sample
		Latest, LatestT, Max, Min float64
		N                         int
	}
	read(t, v.promised(), &want)
	r := ruleOf(t, json.RawMessage(fmt.Sprintf(`{"slope": "1", "input": "x", "delayScaleDown": {"delaySeconds": %v}}`, in.RetentionSeconds)))
	var s size.State
	for _, o := range observations {
		s = s.Observe(r, at(o[0]), o[1])
	}
	var kept []sample
	for _, w := range slices.Backward(s.Window) {
		if w.Lo != w.Hi {
			t.Errorf("samples were put together: %v", w)
		}
		kept = append(kept, sample{float64(w.At - at(0).Unix()), w.Hi})
	}
	if diff := cmp.Diff(want.Kept, kept); diff != "" {
		t.Errorf("kept -want +got:\n%s", diff)
	}
	if s.Since != 0 != want.HasLatest || want.HasLatest && (s.Input != want.Latest || float64(s.At-at(0).Unix()) != want.LatestT) {
		t.Errorf("latest %v at %d", s.Input, s.At-at(0).Unix())
	}
	lo, hi, any := s.Extremes(at(in.Now), time.Duration(in.WindowSeconds)*time.Second)
	if any != (want.N > 0) || any && (lo != want.Min || hi != want.Max) {
		t.Errorf("%v to %v, %t", lo, hi, any)
	}
}

func decodeRule(t *testing.T, v vector) {
	type answer struct {
		Base, Max, Slope string
		Per              float64
		Segments         int
		DelayScaleDown   *struct{ DelaySeconds, Max float64 }
		Error            string
	}
	var want answer
	read(t, v.Out, &want)
	switch v.Quirk {
	case "per-json-tag-is-int", "readme-delayScaling":
		if len(v.Documented) > 0 {
			read(t, v.Documented, &want)
		}
	case "segments-are-int64": // quantities are what they meant to take
		want = answer{Base: "0", Max: "0", Slope: "0", Segments: 1}
	}
	var given peer.ScalingRule
	if err := json.Unmarshal(v.In, &given); err != nil {
		t.Fatal(err)
	}
	r, err := given.Rule("c", size.Requests)
	if err != nil {
		t.Fatal(err)
	}
	got := answer{Base: r.Base.String(), Max: "0", Slope: r.Slope.String(), Per: r.Per.AsApproximateFloat64(), Segments: len(r.Segments)}
	if r.Max != nil {
		got.Max = r.Max.String()
	}
	if d := r.DelayDown; d != (size.Delay{}) {
		got.DelayScaleDown = &struct{ DelaySeconds, Max float64 }{d.For.Seconds(), d.Max.AsApproximateFloat64()}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if v.Quirk == "name-priority-not-implemented" && r.Name != "x" {
		t.Errorf("its name is %q", r.Name)
	}
}

// listed are resources as the vectors write them.
type listed struct {
	Limits   map[string]string `json:"limits"`
	Requests map[string]string `json:"requests"`
}

func (l listed) resources(t *testing.T) size.Resources {
	t.Helper()
	out := size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	for name, text := range l.Limits {
		out.Limits[name] = *quantityOf(t, text)
	}
	for name, text := range l.Requests {
		out.Requests[name] = *quantityOf(t, text)
	}
	return out
}

func texts(in map[string]resource.Quantity) map[string]string {
	var out map[string]string
	for name, q := range in {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = q.String()
	}
	return out
}

// containerRules are the rules that a policy has for one container.
type containerRules struct {
	Name             string
	Limits, Requests []peer.ScalingRule
}

func (c containerRules) rules(t *testing.T) (all []size.Rule) {
	t.Helper()
	for _, given := range []struct {
		list  size.List
		rules []peer.ScalingRule
	}{{size.Limits, c.Limits}, {size.Requests, c.Requests}} {
		for _, one := range given.rules {
			r, err := one.Rule(c.Name, given.list)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	}
	return all
}

// inWords is what a vector says of a policy where it has none as a document: "limits.cpu base 100m, requests.cpu base 300m".
var inWords = regexp.MustCompile(`(limits|requests)\.(cpu|memory)|base ([0-9.]+[a-zA-Z]*)`)

// policyOf is a vector's policy, a document or words; words are of the container of its pod.
func policyOf(t *testing.T, data json.RawMessage, pod map[string]listed) []containerRules {
	t.Helper()
	if data[0] == '{' {
		var policy struct{ Containers []containerRules }
		read(t, data, &policy)
		return policy.Containers
	}
	var text, list, name string
	read(t, data, &text)
	containers := slices.Collect(maps.Keys(pod))
	if len(containers) != 1 {
		t.Fatalf("%q is of one of %v", text, containers)
	}
	c := containerRules{Name: containers[0]}
	for _, said := range inWords.FindAllStringSubmatch(text, -1) {
		if said[1] != "" {
			list, name = said[1], said[2]
			continue
		}
		var r peer.ScalingRule
		read(t, json.RawMessage(fmt.Sprintf(`{"resource": %q, "function": {"base": %q}}`, name, said[3])), &r)
		if list == "limits" {
			c.Limits = append(c.Limits, r)
		} else {
			c.Requests = append(c.Requests, r)
		}
	}
	if said := strings.Count(text, "base"); said == 0 || len(c.Limits)+len(c.Requests) != said {
		t.Fatalf("%q is read as %+v", text, c)
	}
	return []containerRules{c}
}

func computeResources(t *testing.T, v vector) {
	var in struct {
		Inputs map[string]float64
		Pod    map[string]listed
		Policy json.RawMessage
	}
	read(t, v.In, &in)
	type patch struct {
		Name string
		listed
	}
	var out struct{ PatchContainers []patch }
	read(t, v.Out, &out)
	var p size.Policy
	container := ""
	for _, c := range policyOf(t, in.Policy, in.Pod) {
		if _, there := in.Pod[c.Name]; !there { // theirs invents it; ours sizes the controller's container alone
			out.PatchContainers = slices.DeleteFunc(out.PatchContainers, func(p patch) bool { return p.Name == c.Name })
			continue
		}
		container = c.Name
		p.Rules = append(p.Rules, c.rules(t)...)
	}
	stands := in.Pod[container].resources(t)
	switch v.Quirk {
	case "name-not-implemented": // one key, one rule: the last one, which is told of; of two names the sum
		var again []int
		sum := map[string]resource.Quantity{}
		for i, r := range p.Rules {
			if slices.ContainsFunc(p.Rules[:i], func(before size.Rule) bool { return before.Key() == r.Key() }) {
				again = append(again, i)
			}
			value, all := r.Value(in.Inputs[r.Input], true), sum[r.Resource]
			all.Add(value)
			sum[r.Resource] = all
		}
		if diff := cmp.Diff(again, p.Twice()); diff != "" {
			t.Errorf("told of -want +got:\n%s", diff)
		}
		named := size.Policy{Rules: slices.Clone(p.Rules)}
		for i := range named.Rules {
			named.Rules[i].Name = strconv.Itoa(i)
		}
		result, _ := size.Evaluate(size.Question{Rules: size.Merge([]size.Policy{named}), Replicas: []int{0}, Now: at(0)}, nil)
		if diff := cmp.Diff(texts(sum), texts(result.Sizes[0].Requests)); diff != "" {
			t.Errorf("of two names -want +got:\n%s", diff)
		}
	case "requests-may-exceed-limits": // ours never do
		for _, patch := range out.PatchContainers {
			limits := stands.Limits
			maps.Copy(limits, patch.resources(t).Limits)
			for name, request := range patch.resources(t).Requests {
				if limit, limited := limits[name]; limited && request.Cmp(limit) > 0 {
					patch.Requests[name] = limit.String()
				}
			}
		}
		stands = in.Pod[container].resources(t)
	}
	rules := size.Merge([]size.Policy{p})
	inputs := map[string]size.Reading{}
	for name, value := range in.Inputs {
		inputs[name] = size.Reading{Total: value}
	}
	result, _ := size.Evaluate(size.Question{Rules: rules, Inputs: inputs, Replicas: []int{0}, InForce: map[int]size.Resources{0: stands}, Now: at(0)}, nil)
	changed := result.Sizes[0].Changed(stands)
	var want listed
	if len(out.PatchContainers) > 0 {
		want = out.PatchContainers[0].listed
	}
	if diff := cmp.Diff(want, listed{texts(changed.Limits), texts(changed.Requests)}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func simulation(t *testing.T, v vector) {
	var in struct {
		Function                   json.RawMessage
		PollSeconds, UpdateSeconds int
	}
	read(t, v.In, &in)
	type update struct {
		CPU string
		T   int
	}
	var want struct {
		Updates     []update
		UpdateCount int
	}
	read(t, v.promised(), &want)
	got := simulated(ruleOf(t, in.Function), in.PollSeconds, in.UpdateSeconds)
	var updates []update
	for _, one := range got {
		updates = append(updates, update{one.value, one.t})
	}
	if diff := cmp.Diff(want.Updates, updates); diff != "" || len(updates) != want.UpdateCount {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type updated struct {
	t     int
	value string
}

// simulated is the vectors' hour of a cluster that comes and goes.
func simulated(r size.Rule, poll, apply int) (out []updated) {
	nodes := func(t int) int {
		switch {
		case t < 600:
			return 100
		case t < 1200:
			return 100 - t/20%2
		case t < 1800:
			return 110
		case t < 2400:
			return 110 - (t-1800)/60
		}
		return 90
	}
	var s size.State
	var current *resource.Quantity
	for now := range 3600 {
		if now%poll == 0 {
			s = s.Observe(r, at(float64(now)), float64(4*nodes(now)))
		}
		if now%apply != 0 {
			continue
		}
		var d size.Decision
		d, s = s.Decide(r, at(float64(now)), current)
		if text := change(d, current); text != nil {
			value := d.Value
			current = &value
			out = append(out, updated{now, *text})
		}
	}
	return out
}

// TestADelayAloneNeedsFiveUpdates, where CPVPS makes 12 as it forgets when it last scaled down.
func TestADelayAloneNeedsFiveUpdates(t *testing.T) {
	r := ruleOf(t, json.RawMessage(`{"base": "200m", "slope": "10m", "input": "cores", "delayScaleDown": {"delaySeconds": 300}}`))
	if got := simulated(r, 10, 10); len(got) != 5 {
		t.Errorf("%d updates: %v", len(got), got)
	}
}

func quantize(t *testing.T, v vector) {
	var in struct {
		Base, Input, MaxStep, Step string
		StepRatio                  float64
	}
	var out struct{ Quantity string }
	read(t, v.In, &in)
	read(t, v.Out, &out)
	u := size.Quantum{Ratio: in.StepRatio}
	for _, one := range []struct {
		text string
		to   *resource.Quantity
	}{{in.Base, &u.Base}, {in.Step, &u.Step}, {in.MaxStep, &u.MaxStep}} {
		if one.text != "" {
			*one.to = *quantityOf(t, one.text)
		}
	}
	got := u.Round(*quantityOf(t, in.Input))
	if got.String() != out.Quantity {
		t.Errorf("%s, want %s", got.String(), out.Quantity)
	}
}

func percentile(t *testing.T, v vector) {
	var in struct {
		Current                             string
		HighThreshold, LowThreshold, Target float64
		ObservedCores                       []float64
	}
	var out struct {
		Changed bool
		Set     *string
	}
	read(t, v.In, &in)
	read(t, v.Out, &out)
	r := ruleOf(t, json.RawMessage(`{"base": "200m", "slope": "10m", "input": "cores"}`))
	thousandths := func(f float64) int { return int(math.Round(f * 1000)) }
	r.Smoothing = &size.Smoothing{Target: thousandths(in.Target), Low: thousandths(in.LowThreshold), High: thousandths(in.HighThreshold)}
	var s size.State
	for i, cores := range in.ObservedCores {
		s = s.Observe(r, at(float64(i)), cores)
	}
	current := quantityOf(t, in.Current)
	d, _ := s.Decide(r, at(100), current)
	if diff := cmp.Diff(out.Set, change(d, current)); diff != "" || out.Changed != (out.Set != nil) {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// highest is the larger of what two rules give: the proportional autoscalers take it over cores and nodes.
func highest(rules []size.Rule, inputs map[string]float64) resource.Quantity {
	var most resource.Quantity
	for _, r := range rules {
		if v := r.Value(inputs[r.Input], true); v.Cmp(most) > 0 {
			most = v
		}
	}
	return most
}

func cpvpa(t *testing.T, v vector) {
	var in struct {
		Config struct {
			Base, Step, Max            string
			CoresPerStep, NodesPerStep int
		}
		Cores, Nodes float64
	}
	var out struct {
		Milli    int64
		Quantity string
	}
	read(t, v.In, &in)
	read(t, v.Out, &out)
	var rules []size.Rule
	for input, per := range map[string]int{"cores": in.Config.CoresPerStep, "nodes": in.Config.NodesPerStep} {
		if per == 0 {
			continue
		}
		rules = append(rules, stepped(input, strconv.Itoa(per), *quantityOf(t, in.Config.Base), *quantityOf(t, in.Config.Step)))
		rules[len(rules)-1].Max = quantityOf(t, in.Config.Max)
	}
	got := highest(rules, map[string]float64{"cores": in.Cores, "nodes": in.Nodes})
	if got.MilliValue() != out.Milli || got.Cmp(*quantityOf(t, out.Quantity)) != 0 {
		t.Errorf("%s, want %s", got.String(), out.Quantity)
	}
}

// stepped is base, and a step more for each per of the input that was begun.
func stepped(input, per string, base, step resource.Quantity) size.Rule {
	every := resource.MustParse(per)
	return size.Rule{List: size.Requests, Resource: size.CPU, Scope: size.Total, Base: base, Slope: step, Input: input, Per: every,
		Segments: []size.Segment{{Every: every}}}
}

func linear(t *testing.T, v vector) {
	var in struct {
		Params struct {
			CoresPerReplica, NodesPerReplica                     float64
			Min, Max                                             int
			IncludeUnschedulableNodes, PreventSinglePointFailure bool
		}
		SchedulableCores, SchedulableNodes, TotalCores, TotalNodes float64
	}
	var out struct {
		Replicas int64
		Error    string
	}
	read(t, v.In, &in)
	read(t, v.Out, &out)
	inputs := map[string]float64{"cores": in.SchedulableCores, "nodes": in.SchedulableNodes}
	if in.Params.IncludeUnschedulableNodes {
		inputs = map[string]float64{"cores": in.TotalCores, "nodes": in.TotalNodes}
	}
	least := int64(max(in.Params.Min, 1))
	if in.Params.PreventSinglePointFailure && inputs["nodes"] > 1 {
		least = max(least, 2)
	}
	var rules []size.Rule
	for input, per := range map[string]float64{"cores": in.Params.CoresPerReplica, "nodes": in.Params.NodesPerReplica} {
		if per <= 0 {
			continue
		}
		r := stepped(input, strconv.FormatFloat(per, 'f', -1, 64), resource.Quantity{}, resource.MustParse("1"))
		r.Min = resource.NewQuantity(least, resource.DecimalSI)
		if in.Params.Max > 0 {
			r.Max = resource.NewQuantity(int64(in.Params.Max), resource.DecimalSI)
		}
		rules = append(rules, r)
	}
	if out.Error != "" { // ours refuses a rule without a slope, and a max below the min
		refused := len(rules) == 0 && len(size.Rule{List: size.Requests, Resource: size.CPU, Scope: size.Total}.Wrong()) > 0
		for _, r := range rules {
			refused = refused || wrongIn(r, "max")
		}
		if !refused {
			t.Error("nothing is refused")
		}
		return
	}
	if got := highest(rules, inputs); got.Value() != out.Replicas {
		t.Errorf("%s replicas, want %d", got.String(), out.Replicas)
	}
}

// ladder finds the rung as an interval of the load is found.
func ladder(t *testing.T, v vector) {
	var in struct {
		Cores, Nodes float64
		Params       struct{ CoresToReplicas, NodesToReplicas [][2]int }
	}
	var out struct{ Replicas int }
	read(t, v.In, &in)
	read(t, v.Out, &out)
	got := 0
	for _, one := range []struct {
		rungs [][2]int
		at    float64
	}{{in.Params.CoresToReplicas, in.Cores}, {in.Params.NodesToReplicas, in.Nodes}} {
		rungs := slices.SortedFunc(slices.Values(one.rungs), func(a, b [2]int) int { return a[0] - b[0] })
		var intervals weights.Intervals
		for _, rung := range rungs {
			intervals = append(intervals, weights.Interval{From: float64(rung[0])})
		}
		if i := intervals.Holds(one.at); i >= 0 {
			got = max(got, rungs[i][1])
		}
	}
	if got != out.Replicas {
		t.Errorf("%d replicas, want %d", got, out.Replicas)
	}
}

func merge(t *testing.T, v vector) {
	type rule struct {
		Container, Resource, Name, Base string
		List                            size.List
	}
	var in []struct {
		Policy   string
		Priority int
		Rules    []rule
	}
	var want, got []rule
	read(t, v.In, &in)
	read(t, v.Out, &want)
	var policies []size.Policy
	for _, p := range in {
		policy := size.Policy{Name: p.Policy, Priority: p.Priority}
		for _, r := range p.Rules {
			policy.Rules = append(policy.Rules, size.Rule{Name: r.Name, Container: r.Container, List: r.List, Resource: r.Resource, Base: *quantityOf(t, r.Base)})
		}
		policies = append(policies, policy)
	}
	for _, r := range size.Merge(policies) {
		got = append(got, rule{r.Container, r.Resource, r.Name, r.Base.String(), r.List})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
