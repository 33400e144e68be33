package peer

import (
	"compress/gzip"
	"encoding/json"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/change/maintenance"
	"ballast/planner/size"
	"ballast/planner/size/inputs"
	"ballast/planner/size/weights"
)

// vector is one of testdata/hvpa.json.gz: functions of gardener/hvpa-controller, its master and its branch hvpa-v2. Out is
// what their code returns; where that breaks a promise the test wants the promise.
type vector struct {
	ID         string          `json:"id"`
	Fn         string          `json:"fn"`
	In         json.RawMessage `json:"in"`
	Out        json.RawMessage `json:"out"`
	Quirk      string          `json:"quirk"`
	Note       string          `json:"note"`
	Documented json.RawMessage `json:"documented"`
}

// promised is the documented answer where that is one, and no text about it.
func (v vector) promised() json.RawMessage {
	if len(v.Documented) > 0 && v.Documented[0] == '{' {
		return v.Documented
	}
	return v.Out
}

func vectors(t testing.TB) []vector {
	t.Helper()
	f, err := os.Open("testdata/hvpa.json.gz")
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

// TestTheVectorsOfHVPA runs every vector but those of OOM kills, which run through what is built in TestTheKillsOfHVPA of package
// ownership; one whose function nothing answers fails. Where ballast has what a function does, that answers it: size.Limit, Cap and
// Changed, change.MinChange, change.MaintenanceWindow, the rules of change (of sizes, of the number of replicas, and what is off), a VPA's
// conditions (inputs.VPA), size.Fleet, and this package's manifests, Requests and Spans.
//
// The rest is what ballast does in another way, or not at all, so that only the peer's own model can answer it (replicas.go, which
// ballast replay compares with, and buckets_test.go and evicted_test.go, which nothing that is built needs):
//   - getWeightedReplicas, 24: what blocks is by the rules of change; the share itself, current + difference * weight, is the model's. Ours
//     counts growth in factors of the load, since HVPA's sum gets stuck and gives too small a fleet (TestTheThreeExamples of package size).
//   - getVpaWeightFromIntervals, 19: by Spans, but for a weight of 100, which keeps the number of replicas here, and takes a neighbour's
//     weight there. The converter says so.
//   - isHpaScaleOutLimited, 7: its mode is by the rules of change; that an HPA says ScalingLimited is nothing that ballast reads.
//   - GetBuckets, 5, GetReplicasForResource, 13, getScalingRecommendations, 21: the buckets of the branch hvpa-v2, which no release has, are
//     not converted. What blocks them and what their limits are is by the rules of change and size.Limit.
//   - isEvictionEvent, 1: an eviction lets nothing grow here; a pod that is made anew has its size.
//   - scaleIfRequired, 7: end to end through all of these.
func TestTheVectorsOfHVPA(t *testing.T) {
	runs := map[string]func(*testing.T, vector){
		"getVpaWeightFromIntervals":                   weightFromIntervals,
		"getWeightedReplicas":                         weightedReplicas,
		"isHpaScaleOutLimited":                        outLimited,
		"isScalingOff":                                scalingOff,
		"getThreshold":                                threshold,
		"getScaledResourceLimit":                      scaledLimit,
		"capRequestsToLimits":                         capped,
		"getWeightedRequests":                         weightedRequests,
		"getWeightedRequests repeated":                converges,
		"MaintenanceTimeWindow.Contains/Duration":     windowContains,
		"ParseMaintenanceTimeWindow":                  windowParses,
		"isEvictionEvent":                             eviction,
		"areResourcesEqual(pod, template)":            sameResources,
		"HvpaReconciler.scaleIfRequired(StatefulSet)": endToEnd,
		"GetBuckets":                                  bucketsOf,
		"GetReplicasForResource":                      replicasFor,
		"getScalingRecommendations":                   recommend,
	}
	kills, told := 0, 0
	for _, v := range vectors(t) {
		if ofKill(t, v) {
			told++
		}
		if v.Fn == "isOomKillEvent" || v.Fn == "getPodEventHandler" {
			kills++
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			run, known := runs[v.Fn]
			if !known {
				t.Fatalf("nothing of ours answers %q", v.Fn)
			}
			run(t, v)
		})
	}
	if kills == 0 || kills != told {
		t.Errorf("%d vectors are of kills, and %d answer whether there was one", kills, told)
	}
}

// ofKill reports whether a vector's answer is of an OOM kill: TestTheKillsOfHVPA of package ownership runs as many.
func ofKill(t *testing.T, v vector) bool {
	t.Helper()
	if v.Out[0] != '{' {
		return false
	}
	out := keys(t, v.Out)
	return out["oom"] != nil || out["setsOverride"] != nil
}

// now is half past one, so that an hour before and after it are the same day.
var now = time.Date(2026, 3, 1, 13, 30, 0, 0, time.UTC)

func read(t *testing.T, data json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("reading %s: %v", data, err)
	}
}

// keys reads the fields whose names have dots.
func keys(t *testing.T, data json.RawMessage) map[string]json.RawMessage {
	t.Helper()
	var out map[string]json.RawMessage
	read(t, data, &out)
	return out
}

func text(t *testing.T, data json.RawMessage) (s string) {
	t.Helper()
	if len(data) > 0 {
		var p *string
		read(t, data, &p)
		if p != nil {
			s = *p
		}
	}
	return s
}

func quantity(t *testing.T, text string) resource.Quantity {
	t.Helper()
	if text == "" {
		return resource.Quantity{}
	}
	q, err := size.ParseQuantity(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func quantities(t *testing.T, in map[string]string) map[string]resource.Quantity {
	t.Helper()
	out := map[string]resource.Quantity{}
	for name, text := range in {
		if text != "" {
			out[name] = quantity(t, text)
		}
	}
	return out
}

// same compares resources by their value: theirs loses the format.
func same(t *testing.T, what string, want map[string]string, got map[string]resource.Quantity) {
	t.Helper()
	milli := func(in map[string]resource.Quantity) map[string]int64 {
		out := map[string]int64{}
		for name, q := range in {
			out[name] = q.MilliValue()
		}
		return out
	}
	if diff := cmp.Diff(milli(quantities(t, want)), milli(got)); diff != "" {
		t.Errorf("%s -want +got:\n%s", what, diff)
	}
}

// setWindow sets the vectors' window: inside, outside, bad or none.
func (s *HVPASpec) setWindow(kind string) {
	clock := func(after time.Duration) string { return now.Add(after).Format("150405-0700") }
	var begin, end string
	switch kind {
	case "inside":
		begin, end = clock(-time.Hour), clock(time.Hour)
	case "outside":
		begin, end = clock(2*time.Hour), clock(3*time.Hour)
	case "bad":
		begin, end = "22:00", "23:00"
	default:
		return
	}
	s.Window = &struct {
		Begin string `json:"begin"`
		End   string `json:"end"`
	}{begin, end}
}

// moment reads minutesSinceLastScaling and overrideScaleUpStabilization.
func moment(t *testing.T, data json.RawMessage) Moment {
	t.Helper()
	var in struct {
		MinutesSinceLastScaling      *float64
		OverrideScaleUpStabilization bool
	}
	read(t, data, &in)
	m := Moment{Now: now, Override: in.OverrideScaleUpStabilization}
	if in.MinutesSinceLastScaling != nil {
		m.Last = now.Add(-time.Duration(*in.MinutesSinceLastScaling * float64(time.Minute)))
	}
	return m
}

func (s *ScaleType) set(t *testing.T, in map[string]json.RawMessage, prefix string) {
	t.Helper()
	s.UpdatePolicy.UpdateMode = change.Mode(text(t, in[prefix+".updateMode"]))
	s.StabilizationDuration = text(t, in[prefix+".stabilizationDuration"])
}

func weightFromIntervals(t *testing.T, v vector) {
	var in struct {
		CurrentReplicas, DesiredReplicas, MinReplicas, MaxReplicas int
		Intervals                                                  []WeightInterval
	}
	var out struct{ HpaWeight, VpaWeight int }
	read(t, v.In, &in)
	read(t, v.Out, &out)
	s := HVPASpec{Intervals: in.Intervals}
	s.Hpa.Template.Spec.MinReplicas, s.Hpa.Template.Spec.MaxReplicas = &in.MinReplicas, in.MaxReplicas
	if got := s.Weight(in.CurrentReplicas, in.DesiredReplicas); got != out.VpaWeight || 100-got != out.HpaWeight {
		t.Errorf("%d, want %d", got, out.VpaWeight)
	}
	for _, span := range s.Spans() { // what `ballast config convert` goes by; a weight of 100 is what it says a note of
		if holds := span.Start <= in.CurrentReplicas && in.CurrentReplicas <= span.Last; holds && span.VpaWeight < 100 && span.VpaWeight != out.VpaWeight {
			t.Errorf("converted %d, want %d", span.VpaWeight, out.VpaWeight)
		}
	}
}

func weightedReplicas(t *testing.T, v vector) {
	var in struct {
		CurrentReplicas, DesiredReplicas, HpaWeight int
		MaintenanceWindow                           string
	}
	var out struct {
		Replicas *int64
		Panic    string
		Error    string
		Blocked  []struct {
			Reason                 change.BlockReason
			HpaCurrent, HpaDesired int64
		}
	}
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	fields := keys(t, v.In)
	var s HVPASpec
	s.Hpa.Deploy = string(fields["hpa.deploy"]) != "false"
	s.Hpa.ScaleUp.set(t, fields, "scaleUp")
	s.Hpa.ScaleDown.set(t, fields, "scaleDown")
	s.setWindow(in.MaintenanceWindow)
	got, err := s.Replicas(in.CurrentReplicas, in.DesiredReplicas, in.HpaWeight, moment(t, v.In))
	if (err != nil) != (out.Error != "") {
		t.Errorf("error %v, want %q", err, out.Error)
	}
	if _, asked := fields["annotation hpa-controller"]; asked { // it is HVPA's switch of whether it scales at all
		got.Value = int64(in.CurrentReplicas)
	}
	if v.Quirk == "nil-window-panic" { // as for requests: a window that nobody gave never opens
		two := int64(in.CurrentReplicas)
		out.Replicas, out.Panic = &two, ""
		out.Blocked = append(out.Blocked, struct {
			Reason                 change.BlockReason
			HpaCurrent, HpaDesired int64
		}{Reason: change.OutsideMaintenance})
	}
	want := int64(in.CurrentReplicas) // null: nothing to do
	if out.Replicas != nil {
		want = *out.Replicas
	}
	if got.Value != want {
		t.Errorf("%d replicas, want %d", got.Value, want)
	}
	if len(out.Blocked) == 0 {
		if len(got.Blocks) > 0 && got.Value == int64(in.CurrentReplicas) && out.Replicas != nil {
			t.Errorf("blocked: %+v", got.Blocks)
		}
		return
	}
	if len(got.Blocks) == 0 || got.Blocks[0].Reason != out.Blocked[0].Reason {
		t.Fatalf("blocked %+v, want %+v", got.Blocks, out.Blocked)
	}
	if wish := out.Blocked[0].HpaDesired; wish != 0 && int64(weighted(in.CurrentReplicas, in.DesiredReplicas, in.HpaWeight)) != wish {
		t.Errorf("what would be, want %d", wish)
	}
}

func outLimited(t *testing.T, v vector) {
	var in struct {
		ScalingLimited, MaintenanceWindow string
		DesiredReplicas, MaxReplicas      int
		HpaStatusNil                      bool
	}
	var out struct{ Limited bool }
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	var s HVPASpec
	s.Hpa.Template.Spec.MaxReplicas = in.MaxReplicas
	s.Hpa.ScaleUp.set(t, keys(t, v.In), "scaleUp")
	s.setWindow(in.MaintenanceWindow)
	got, err := s.OutLimited(in.DesiredReplicas, in.ScalingLimited == "True" && !in.HpaStatusNil, now)
	if err != nil || got != out.Limited {
		t.Errorf("%t, %v, want %t", got, err, out.Limited)
	}
	byMode := !slices.Contains(s.open(t), change.Out)
	full := in.ScalingLimited == "True" && !in.HpaStatusNil && in.DesiredReplicas >= in.MaxReplicas
	without := s.Window == nil && s.Hpa.ScaleUp.UpdatePolicy.UpdateMode == change.Maintenance // which is refused
	if got := byMode || full; !without && got != out.Limited {
		t.Errorf("by the rules that the manifest is converted to: %t, want %t", got, out.Limited)
	}
}

func scalingOff(t *testing.T, v vector) {
	var out struct{ Off bool }
	read(t, v.promised(), &out)
	fields := keys(t, v.In)
	var s HVPASpec
	for name, to := range map[string]*ScaleType{"hpa.scaleUp": &s.Hpa.ScaleUp, "hpa.scaleDown": &s.Hpa.ScaleDown, "vpa.scaleUp": &s.Vpa.ScaleUp, "vpa.scaleDown": &s.Vpa.ScaleDown} {
		to.UpdatePolicy.UpdateMode = change.Mode(text(t, fields[name]))
	}
	s.setWindow(text(t, fields["maintenanceWindow"]))
	if got, err := s.Off(now); err != nil || got != out.Off {
		t.Errorf("%t, %v, want %t", got, err, out.Off)
	}
	without := s.Window == nil && s.Hpa.ScaleUp.UpdatePolicy.UpdateMode == change.Maintenance
	if got := len(s.open(t)) == 0; got != (out.Off || without) { // what is converted never opens without a window: that is refused
		t.Errorf("by the rules that the manifest is converted to: %t, want %t", got, out.Off)
	}
}

// open are the directions that the rules of change, which the manifest is converted to, let a change go now.
func (s HVPASpec) open(t *testing.T) (ways []change.Direction) {
	t.Helper()
	windows, err := s.Windows()
	if err != nil {
		t.Fatal(err)
	}
	of := func(one ScaleType) change.Policy { return one.policy(windows, change.MinChange{}) }
	rules := change.Rules{Out: of(s.Hpa.ScaleUp), In: of(s.Hpa.ScaleDown), Up: of(s.Vpa.ScaleUp), Down: of(s.Vpa.ScaleDown)}
	for _, wanted := range []int64{1, 3} {
		ask := change.Ask{Now: now, Current: 2, Wanted: wanted, Of: 1}
		never := change.Past{}
		for _, verdict := range []change.Verdict{rules.Replicas(ask, never), rules.Resources(ask, never, never)} {
			if verdict.Value == wanted {
				ways = append(ways, verdict.Direction)
			}
		}
	}
	return ways
}

func threshold(t *testing.T, v vector) {
	var in struct {
		Current, Resource string
		Param
	}
	var out struct{ Threshold string }
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	least, err := Params{CPU: in.Param, Memory: in.Param}.MinChange(in.Resource)
	if err != nil {
		t.Fatal(err)
	}
	current, want := quantity(t, in.Current), quantity(t, out.Threshold)
	if got := least.Threshold(current.MilliValue()); got != want.MilliValue() {
		t.Errorf("%dm, want %s", got, out.Threshold)
	}
}

func scaledLimit(t *testing.T, v vector) {
	var in struct {
		Limit, NewRequest, Request, Resource string
		Param
	}
	var out struct{ Limit *string }
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	gap, err := Params{CPU: in.Param, Memory: in.Param}.Headroom(in.Resource)
	if err != nil {
		t.Fatal(err)
	}
	limit, request := quantity(t, in.Limit), quantity(t, in.Request)
	var got *string
	if l := size.Limit(&limit, &request, quantity(t, in.NewRequest), gap); l != nil {
		s := l.String()
		got = &s
	}
	if diff := cmp.Diff(out.Limit, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func capped(t *testing.T, v vector) {
	var in struct{ Limits, Requests map[string]string }
	var out map[string]string
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	got := size.Resources{Requests: quantities(t, in.Requests), Limits: quantities(t, in.Limits)}.Cap()
	same(t, "requests", out, got.Requests)
}

// requestsIn is what getWeightedRequests' vectors give.
type requestsIn struct {
	HpaScaleOutLimited  bool
	Limits, Requests    map[string]string
	VpaTarget           map[string]string
	VpaWeight           int
	MaintenanceWindow   string
	ControlledResources []string
	ControlledValues    string
	VpaConditions       []string
	MinChange           map[string]json.RawMessage `json:"minChange(both directions)"`
}

func (in requestsIn) spec(t *testing.T, fields map[string]json.RawMessage) HVPASpec {
	t.Helper()
	var s HVPASpec
	s.Vpa.ScaleUp.set(t, fields, "scaleUp")
	s.Vpa.ScaleDown.set(t, fields, "scaleDown")
	s.setWindow(in.MaintenanceWindow)
	var least Params
	for name, to := range map[string]*Param{"cpu": &least.CPU, "memory": &least.Memory} {
		if value, given := in.MinChange[name+".value"]; given {
			read(t, value, &to.Value)
		}
		if percentage, given := in.MinChange[name+".percentage"]; given {
			read(t, percentage, &to.Percentage)
		}
	}
	s.Vpa.ScaleUp.MinChange, s.Vpa.ScaleDown.MinChange = least, least
	s.Vpa.Template.Spec.ResourcePolicy.ContainerPolicies = []ContainerPolicy{
		{ContainerName: "*", ControlledResources: in.ControlledResources, ControlledValues: in.ControlledValues}}
	return s
}

func weightedRequests(t *testing.T, v vector) {
	var in requestsIn
	var out struct {
		Applied, Limits map[string]string
		Requests        map[string]string
		Changed         bool
		Error           string
		Blocked         []struct {
			Reason    change.BlockReason
			VpaTarget map[string]map[string]string
		}
	}
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	stands := size.Resources{Requests: quantities(t, in.Requests), Limits: quantities(t, in.Limits)}
	switch v.Quirk {
	case "vertical-up-needs-hpa-limited": // nothing promises that the vertical share waits for the horizontal one
		out.Blocked, out.Applied, out.Limits = nil, nil, nil
		read(t, whereLimited(t, v), &out)
	case "weight-0-at-max-still-blocked": // once at maxReplicas, vertical without condition
		out.Blocked, out.Applied = nil, in.whole(t)
		out.Limits = in.limitsOf(t, out.Applied)
	case "override-weight-is-1-percent":
		out.Applied = in.whole(t)
		out.Limits = in.limitsOf(t, out.Applied)
	case "condition-order", "no-conditions-scales": // neither is a recommendation that may be used
		out.Applied, out.Blocked = nil, nil
	}
	var got Vertical
	if _, given := keys(t, v.In)["vpaConditions"]; !given || reliable(t, in.VpaConditions) {
		var err error
		got, err = in.spec(t, keys(t, v.In)).Requests("c", stands, quantities(t, in.VpaTarget), in.VpaWeight, in.HpaScaleOutLimited, moment(t, v.In))
		if (err != nil) != (out.Error != "") {
			t.Fatalf("error %v, want one like %q", err, out.Error)
		}
	}
	same(t, "requests", out.Applied, got.Next.Requests)
	limits := map[string]string{}
	for name := range got.Next.Limits { // theirs lists what stands, too
		limits[name] = out.Limits[name]
	}
	same(t, "limits", limits, got.Next.Limits)
	for _, block := range out.Blocked {
		same(t, string(block.Reason), block.VpaTarget["c"], got.Blocked[block.Reason])
	}
	if len(got.Blocked) != len(out.Blocked) {
		t.Errorf("blocked %v, want %v", got.Blocked, out.Blocked)
	}
}

// whereLimited is the answer of the vector that differs in nothing but that the HPA can add no replica; without one it is what the same
// call answers then.
func whereLimited(t *testing.T, v vector) json.RawMessage {
	t.Helper()
	like := func(data json.RawMessage) (in map[string]any) {
		read(t, data, &in)
		in["hpaScaleOutLimited"] = true
		return in
	}
	want := like(v.In)
	for _, other := range vectors(t) {
		if other.Fn != v.Fn || string(keys(t, other.In)["hpaScaleOutLimited"]) != "true" {
			continue
		}
		if cmp.Equal(want, like(other.In)) {
			return other.promised()
		}
	}
	var in requestsIn
	read(t, v.In, &in)
	stands := size.Resources{Requests: quantities(t, in.Requests), Limits: quantities(t, in.Limits)}
	got, err := in.spec(t, keys(t, v.In)).Requests("c", stands, quantities(t, in.VpaTarget), in.VpaWeight, true, moment(t, v.In))
	if err != nil {
		t.Fatal(err)
	}
	blocked := []any{}
	for reason, target := range got.Blocked {
		blocked = append(blocked, map[string]any{"reason": reason, "vpaTarget": map[string]any{"c": target}})
	}
	answer, err := json.Marshal(map[string]any{"applied": got.Next.Requests, "limits": got.Next.Limits, "blocked": blocked})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// whole is the target of what the VPA may change, and that is another one.
func (in requestsIn) whole(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, target := range in.VpaTarget {
		now, want := quantity(t, in.Requests[name]), quantity(t, target)
		may := len(in.ControlledResources) == 0 || slices.Contains(in.ControlledResources, name)
		if may && now.Cmp(want) != 0 {
			out[name] = target
		}
	}
	return out
}

// limitsOf are the limits that go with requests: each grows as its request does.
func (in requestsIn) limitsOf(t *testing.T, requests map[string]string) map[string]string {
	t.Helper()
	return grownBy(t, in.Limits, in.Requests, requests)
}

// grownBy are limits times the new request by the old one, in whole thousandths, of memory in whole thousands of bytes. Where no request
// was it is the new one.
func grownBy(t *testing.T, limits, was, is map[string]string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, text := range limits {
		limit, before, now := quantity(t, text), quantity(t, was[name]), quantity(t, is[name])
		switch {
		case limit.IsZero() || is[name] == "":
			continue
		case before.IsZero():
			out[name] = is[name]
			continue
		}
		product := new(big.Int).Mul(big.NewInt(limit.MilliValue()), big.NewInt(now.MilliValue()))
		milli := product.Div(product, big.NewInt(before.MilliValue())).Int64()
		grown := kilo(name, milli)
		out[name] = grown.String()
	}
	return out
}

// reliable reports whether what a VPA of those conditions recommends is an input.
func reliable(t *testing.T, conditions []string) bool {
	t.Helper()
	all := []map[string]string{}
	for _, c := range conditions {
		name, value, _ := strings.Cut(c, "=")
		all = append(all, map[string]string{"type": name, "status": value})
	}
	text, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": all}})
	if err != nil {
		t.Fatal(err)
	}
	var vpa inputs.VPA
	read(t, text, &vpa)
	return vpa.Unsure() == ""
}

// converges compares with ours: theirs goes a share of the rest each time, and where that is no whole stops short.
func converges(t *testing.T, v vector) {
	fields := keys(t, v.In)
	var weight int
	read(t, fields["vpaWeight"], &weight)
	from, to := quantity(t, text(t, fields["requests.cpu"])), quantity(t, text(t, fields["target.cpu"]))
	load := to.AsApproximateFloat64()
	f := weights.Fleet{Replicas: 1, Capacity: from.AsApproximateFloat64(), Load: load, Min: 1, Max: 10, Hysteresis: 0.1, DefaultWeight: weight,
		FullestOf: func(replicas int) float64 { return load / float64(replicas) }}
	first := f.Decide()
	f.Replicas, f.Capacity = first.Replicas, first.Capacity
	again := f.Decide()
	if whole := float64(first.Replicas) * first.Capacity; whole < load-1e-9 || again.Replicas != first.Replicas || again.Capacity != first.Capacity {
		t.Errorf("%+v, and then %+v: the load is %v", first, again, load)
	}
	var out struct{ Steps []string }
	read(t, v.Out, &out)
	if diff := cmp.Diff(out.Steps, theirSteps(t, from, to, weight, text(t, fields["minChange.cpu"]))); diff != "" {
		t.Errorf("theirs -want +got:\n%s", diff)
	}
}

// theirSteps are the requests that HVPA's share of the way makes one after another, until one would be less than the least change.
func theirSteps(t *testing.T, from, to resource.Quantity, weight int, least string) (steps []string) {
	t.Helper()
	var s HVPASpec
	if least != "" {
		value := Amount(least)
		s.Vpa.ScaleUp.MinChange.CPU.Value, s.Vpa.ScaleDown.MinChange.CPU.Value = &value, &value
	}
	for range 1000 {
		stands := size.Resources{Requests: map[string]resource.Quantity{"cpu": from}}
		got, err := s.Requests("c", stands, map[string]resource.Quantity{"cpu": to}, weight, false, Moment{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		next, changed := got.Next.Requests["cpu"]
		if !changed {
			return steps
		}
		steps, from = append(steps, next.String()), next
	}
	t.Fatal("it never ends")
	return nil
}

func windowContains(t *testing.T, v vector) {
	var in struct{ Begin, End string }
	var out struct {
		Contains map[string]bool
		Duration string
	}
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	w, err := maintenance.ParseHVPAWindow(in.Begin, in.End)
	if v.Quirk == "begin-eq-end-inconsistent" {
		if err == nil {
			t.Error("it is not refused")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Length().String(); got != out.Duration {
		t.Errorf("%s long, want %s", got, out.Duration)
	}
	for text, want := range out.Contains {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		if w.Contains(when) != want {
			t.Errorf("at %s: %t", text, !want)
		}
	}
}

func windowParses(t *testing.T, v vector) {
	var in struct{ Begin, End string }
	var out struct{ Error string }
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	if _, err := maintenance.ParseHVPAWindow(in.Begin, in.End); (err != nil) != (out.Error != "") {
		t.Errorf("error %v, want one like %q", err, out.Error)
	}
}

// eviction: the pod that was evicted runs no more; that it was, and had not been, is the event.
func eviction(t *testing.T, v vector) {
	var in struct{ Old, New string }
	var out struct{ Evicted bool }
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	if got := Evicted(in.Old, in.New); got != out.Evicted {
		t.Errorf("%t, want %t", got, out.Evicted)
	}
}

func sameResources(t *testing.T, v vector) {
	var in struct{ Pod, Template map[string]string }
	var out struct{ Equal bool }
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	pod, template := size.Resources{Requests: quantities(t, in.Pod)}, size.Resources{Requests: quantities(t, in.Template)}
	if got := template.Changed(pod); (len(got.Requests) == 0) != out.Equal {
		t.Errorf("%v differs, want none: %t", got.Requests, out.Equal)
	}
}

// modes is what a note says of one: "hpa.scaleUp=Off".
var modes = regexp.MustCompile(`\b(hpa|vpa)\.scale(Up|Down)=(Auto|Off)\b`)

func (s *HVPASpec) setModes(note string) {
	ways := map[string]*ScaleType{"hpaUp": &s.Hpa.ScaleUp, "hpaDown": &s.Hpa.ScaleDown, "vpaUp": &s.Vpa.ScaleUp, "vpaDown": &s.Vpa.ScaleDown}
	for _, said := range modes.FindAllStringSubmatch(note, -1) {
		ways[said[1]+said[2]].UpdatePolicy.UpdateMode = change.Mode(said[3])
	}
}

// endToEnd does all of it once.
func endToEnd(t *testing.T, v vector) {
	var in struct {
		ScalingLimited          string
		HpaDesired, MaxReplicas int
		Replicas                int
		Intervals               []WeightInterval
		Requests, VpaTarget     map[string]string
	}
	var out struct {
		Replicas             *int64
		Requests             map[string]string
		Updated              bool
		VpaScaled, HpaScaled bool
		VpaWeight            *int
	}
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	if v.Quirk == "stuck-large-pods" { // ours goes by the load, whatever replicas there are
		now, want := quantity(t, in.Requests["cpu"]), quantity(t, in.VpaTarget["cpu"])
		load := want.AsApproximateFloat64() * float64(in.Replicas)
		got := weights.Fleet{Replicas: in.Replicas, Capacity: now.AsApproximateFloat64(), Load: load, Min: 1, Max: in.MaxReplicas, Hysteresis: 0.1,
			FullestOf: func(replicas int) float64 { return load / float64(replicas) }}.Decide()
		if got.Capacity >= now.AsApproximateFloat64() || float64(got.Replicas)*got.Capacity < load {
			t.Errorf("of %d x %s for %v: %+v", in.Replicas, now.String(), load, got)
		}
		return
	}
	s := HVPASpec{Intervals: in.Intervals}
	s.Hpa.Deploy, s.Hpa.Template.Spec.MaxReplicas = true, in.MaxReplicas
	least := Param{Value: new(Amount)}
	*least.Value = "0"
	s.Vpa.ScaleUp.MinChange, s.Vpa.ScaleDown.MinChange = Params{CPU: least, Memory: least}, Params{CPU: least, Memory: least}
	s.setModes(v.Note)
	stands := size.Resources{Requests: quantities(t, in.Requests)}
	weight := s.Weight(in.Replicas, in.HpaDesired)
	if out.VpaWeight != nil && weight != *out.VpaWeight {
		t.Errorf("weight %d, want %d", weight, *out.VpaWeight)
	}
	m := Moment{Now: now}
	vertical, err := s.Requests("c", stands, quantities(t, in.VpaTarget), weight, in.Replicas >= in.MaxReplicas, m)
	if err != nil {
		t.Fatal(err)
	}
	replicas, err := s.Replicas(in.Replicas, in.HpaDesired, 100-weight, m)
	if err != nil {
		t.Fatal(err)
	}
	off, err := s.Off(now)
	if err != nil {
		t.Fatal(err)
	}
	updated := !off && (replicas.Value != int64(in.Replicas) || len(vertical.Next.Requests) > 0)
	if updated != out.Updated {
		t.Errorf("updated: %t", updated)
	}
	if out.Replicas != nil && replicas.Value != *out.Replicas {
		t.Errorf("%d replicas, want %d", replicas.Value, *out.Replicas)
	}
	if !out.Updated {
		return
	}
	requests := stands.Requests
	for name, q := range vertical.Next.Requests {
		requests[name] = q
	}
	same(t, "requests", out.Requests, requests)
}

// bucketIn is what the vectors of hvpa-v2 give.
type bucketIn struct {
	MinAllowed, MaxAllowed  map[string]Amount
	MinReplicas             int
	ScaleIntervals          []ScaleInterval
	ScalingIntervalsOverlap map[string]Param
	Base                    map[string]Param `json:"baseResourcesPerReplica"`
	Gap                     Params           `json:"limitsRequestsGap"`
	MinChange               *Params          `json:"minChange(both)"`
	Stabilization           string
	MaintenanceWindow       string
}

func (in bucketIn) spec(t *testing.T, fields map[string]json.RawMessage) BucketSpec {
	t.Helper()
	s := BucketSpec{Intervals: in.ScaleIntervals, Overlap: in.ScalingIntervalsOverlap, MinReplicas: in.MinReplicas, MinAllowed: in.MinAllowed, MaxAllowed: in.MaxAllowed, Base: in.Base, Gap: in.Gap}
	s.ScaleUp.set(t, fields, "scaleUp")
	s.ScaleDown.set(t, fields, "scaleDown")
	s.ScaleUp.StabilizationDuration, s.ScaleDown.StabilizationDuration = in.Stabilization, in.Stabilization
	if in.MinChange != nil {
		s.ScaleUp.MinChange, s.ScaleDown.MinChange = *in.MinChange, *in.MinChange
	}
	var hvpa HVPASpec
	hvpa.setWindow(in.MaintenanceWindow)
	var err error
	if s.Windows, err = hvpa.Windows(); err != nil {
		t.Fatal(err)
	}
	return s
}

type bucketOut struct {
	Replicas int
	CPU      [2]int64  `json:"perReplica.cpu.milli"`
	Memory   [2]string `json:"perReplica.memory"`
	Total    [2]int64  `json:"total.cpu.milli"`
}

func bucketsOf(t *testing.T, v vector) {
	var in bucketIn
	read(t, v.In, &in)
	got, err := in.spec(t, keys(t, v.In)).Buckets()
	var out []bucketOut
	if v.Out[0] == '{' {
		if err == nil {
			t.Error("it is not refused")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	read(t, v.Out, &out)
	var want []Bucket
	for _, b := range out {
		low, high := quantity(t, b.Memory[0]), quantity(t, b.Memory[1])
		want = append(want, Bucket{b.Replicas, map[string]int64{"cpu": b.CPU[0], "memory": low.MilliValue()}, map[string]int64{"cpu": b.CPU[1], "memory": high.MilliValue()}})
		if b.Total != [2]int64{b.CPU[0] * int64(b.Replicas), b.CPU[1] * int64(b.Replicas)} {
			t.Errorf("the totals %v are no totals", b.Total)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func replicasFor(t *testing.T, v vector) {
	var in struct {
		BiasReplicas             int
		Buckets, Resource, Total string
	}
	var out struct {
		Replicas int
		Error    string
	}
	read(t, v.In, &in)
	read(t, v.promised(), &out)
	buckets := namedBuckets(t, in.Buckets)
	total := quantity(t, in.Total)
	got, ok := ReplicasFor(buckets, in.Resource, total.MilliValue(), in.BiasReplicas)
	if v.Quirk == "bias-zero-panics" { // as any other that is in no bucket: the first bucket that has it
		first := slices.IndexFunc(buckets, func(b Bucket) bool {
			each := total.MilliValue() / int64(b.Replicas)
			return each >= b.Min[in.Resource] && total.MilliValue() <= b.Max[in.Resource]*int64(b.Replicas)
		})
		if out.Error = "in no bucket"; first >= 0 {
			out.Replicas, out.Error = buckets[first].Replicas, ""
		}
	}
	if got != out.Replicas || ok != (out.Error == "") {
		t.Errorf("%d, %t, want %d %s", got, ok, out.Replicas, out.Error)
	}
}

// namedBuckets are those of the vector of GetBuckets with that name.
func namedBuckets(t *testing.T, name string) []Bucket {
	t.Helper()
	for _, v := range vectors(t) {
		if v.Fn != "GetBuckets" || !strings.HasPrefix(text(t, keys(t, v.In)["name"]), name) {
			continue
		}
		var in bucketIn
		read(t, v.In, &in)
		buckets, err := in.spec(t, keys(t, v.In)).Buckets()
		if err != nil {
			t.Fatal(err)
		}
		return buckets
	}
	t.Fatalf("no vector has the buckets %q", name)
	return nil
}

func recommend(t *testing.T, v vector) {
	var outer struct{ In json.RawMessage }
	read(t, v.In, &outer)
	var in struct {
		bucketIn
		Replicas, HpaDesired        int
		Requests, Limits, VpaTarget map[string]string
	}
	var out struct {
		Replicas         int
		Requests, Limits map[string]string
		ResourceChange   bool
		Error            string
		Blocked          []struct {
			Reason change.BlockReason
			Wanted map[string]string
		}
	}
	read(t, outer.In, &in)
	read(t, v.promised(), &out)
	if v.Quirk == "v2-limits-not-scaled" { // as the request grows: 300m * 500/150, 3.6G * 1.9/1.8
		out.Limits = grownBy(t, in.Limits, in.Requests, out.Requests)
	}
	targets := map[string]int64{}
	for name, q := range quantities(t, in.VpaTarget) {
		targets[name] = q.MilliValue()
	}
	stands := size.Resources{Requests: quantities(t, in.Requests), Limits: quantities(t, in.Limits)}
	replicas, got, err := in.spec(t, keys(t, outer.In)).Recommend(in.Replicas, in.HpaDesired, stands, targets, moment(t, outer.In))
	if out.Error != "" { // ours either fails, too, or holds what is
		if err == nil && (replicas != in.Replicas || len(got.Next.Requests) > 0) {
			t.Errorf("%d replicas and %v, want the error %q", replicas, got.Next, out.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if replicas != out.Replicas {
		t.Errorf("%d replicas, want %d", replicas, out.Replicas)
	}
	same(t, "requests", out.Requests, got.Next.Requests)
	if len(out.Limits) > 0 {
		same(t, "limits", out.Limits, got.Next.Limits)
	}
	if len(got.Blocked) != len(out.Blocked) {
		t.Errorf("blocked %v, want %v", got.Blocked, out.Blocked)
	}
	for _, block := range out.Blocked {
		reason := change.BlockReason(strings.TrimSuffix(string(block.Reason), "Scaling")) // they call Paradoxical ParadoxicalScaling
		same(t, string(reason), block.Wanted, got.Blocked[reason])
	}
}
