package size

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// shown is a size in words.
type shown struct{ Requests, Limits map[string]string }

func show(r Resources) shown {
	texts := func(list map[string]resource.Quantity) map[string]string {
		out := map[string]string{}
		for name, q := range list {
			out[name] = q.String()
		}
		return out
	}
	return shown{texts(r.Requests), texts(r.Limits)}
}

func memoryRule(name string, base, slope string, scope Scope) Rule {
	return Rule{Name: name, Container: "c", List: Requests, Resource: Memory, Base: q(base), Slope: q(slope), Input: "objects", Scope: scope}
}

var objects = map[string]Reading{"objects": {Total: 60, Cluster: 40, Replica: map[int]float64{0: 20, 1: 40}}}

func quantities(list ...string) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for i := 0; i < len(list); i += 2 {
		out[list[i]] = q(list[i+1])
	}
	return out
}

func TestSizes(t *testing.T) {
	replicaRule := memoryRule("", "1Gi", "10Mi", Replica)
	for name, test := range map[string]struct {
		question Question
		want     map[int]shown
		capped   map[int][]string
	}{
		"each replica its own": {Question{Rules: []Rule{replicaRule}},
			map[int]shown{0: {map[string]string{"memory": "1224Mi"}, map[string]string{}}, 1: {map[string]string{"memory": "1424Mi"}, map[string]string{}}}, nil},
		"one for all": {Question{Rules: []Rule{replicaRule}, Uniform: true},
			map[int]shown{0: {map[string]string{"memory": "1424Mi"}, map[string]string{}}, 1: {map[string]string{"memory": "1424Mi"}, map[string]string{}}}, nil},
		"of the fleet and of the heaviest cluster, which add up": {Question{Rules: []Rule{memoryRule("fleet", "0", "1Mi", Total), memoryRule("heaviest", "1Gi", "2Mi", Cluster)}},
			map[int]shown{0: {map[string]string{"memory": "1164Mi"}, map[string]string{}}, 1: {map[string]string{"memory": "1164Mi"}, map[string]string{}}}, nil},
		"no larger than a node": {Question{Rules: []Rule{replicaRule}, NodeCap: quantities("memory", "1300Mi")},
			map[int]shown{0: {map[string]string{"memory": "1224Mi"}, map[string]string{}}, 1: {map[string]string{"memory": "1300Mi"}, map[string]string{}}}, map[int][]string{1: {"memory"}}},
		"the limit in proportion, and not below the peak": {Question{Rules: []Rule{replicaRule}, Found: Resources{quantities("memory", "1Gi"), quantities("memory", "2Gi", "cpu", "1")}, Peak: map[int]float64{0: 3 << 30}},
			map[int]shown{0: {map[string]string{"memory": "1224Mi"}, map[string]string{"memory": "3712Mi"}}, 1: {map[string]string{"memory": "1424Mi"}, map[string]string{"memory": "2848Mi"}}}, nil},
		"a peak raises what is guaranteed no further than a node": {Question{Rules: []Rule{replicaRule}, Found: Resources{quantities("memory", "1Gi"), quantities("memory", "1Gi")},
			Peak: map[int]float64{0: 3 << 30, 1: 4 << 30}, NodeCap: quantities("memory", "3500Mi")},
			map[int]shown{0: {map[string]string{"memory": "3500Mi"}, map[string]string{"memory": "3500Mi"}}, 1: {map[string]string{"memory": "3500Mi"}, map[string]string{"memory": "4Gi"}}},
			map[int][]string{0: {"memory"}, 1: {"memory"}}},
		"a request cut to its limit": {Question{Rules: []Rule{replicaRule, {Container: "c", List: Limits, Resource: Memory, Base: q("1300Mi"), Scope: Total}}},
			map[int]shown{0: {map[string]string{"memory": "1224Mi"}, map[string]string{"memory": "1300Mi"}}, 1: {map[string]string{"memory": "1300Mi"}, map[string]string{"memory": "1300Mi"}}}, nil},
		"nothing of what has seen no input": {Question{Rules: []Rule{replicaRule, {Container: "c", List: Requests, Resource: CPU, Base: q("1"), Slope: q("1m"), Input: "other", Scope: Total}}},
			map[int]shown{0: {map[string]string{"memory": "1224Mi"}, map[string]string{}}, 1: {map[string]string{"memory": "1424Mi"}, map[string]string{}}}, nil},
		"whole bytes": {Question{Rules: []Rule{{Container: "c", List: Requests, Resource: Memory, Base: q("1Gi"), Slope: q("1"), Input: "objects", Per: q("7"), Scope: Cluster}}},
			map[int]shown{0: {map[string]string{"memory": "1073741830"}, map[string]string{}}, 1: {map[string]string{"memory": "1073741830"}, map[string]string{}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.question.Inputs, test.question.Replicas, test.question.Now = objects, []int{0, 1}, at(0)
			got, _ := Evaluate(test.question, nil)
			sizes := map[int]shown{}
			for replica, size := range got.Sizes {
				sizes[replica] = show(size)
			}
			if diff := cmp.Diff(test.want, sizes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if test.capped == nil {
				test.capped = map[int][]string{}
			}
			if diff := cmp.Diff(test.capped, got.Capped); diff != "" {
				t.Errorf("capped -want +got:\n%s", diff)
			}
		})
	}
}

// TestAMissingInputHoldsItsOwnRulesAlone: policies on other inputs go on.
func TestAMissingInputHoldsItsOwnRulesAlone(t *testing.T) {
	cpu := Rule{Container: "c", List: Requests, Resource: CPU, Base: q("1"), Slope: q("100m"), Input: "nodes", Scope: Total}
	question := Question{Rules: []Rule{memoryRule("", "1Gi", "10Mi", Total), cpu}, Replicas: []int{0}, Now: at(0),
		Inputs: map[string]Reading{"objects": {Total: 10}, "nodes": {Total: 3}}}
	_, memory := Evaluate(question, nil)
	question.Now, question.Inputs = at(60), map[string]Reading{"objects": {Total: 0, Missing: true}, "nodes": {Total: 5}}
	got, memory := Evaluate(question, memory)
	want := shown{map[string]string{"memory": "1124Mi", "cpu": "1500m"}, map[string]string{}}
	if diff := cmp.Diff(want, show(got.Sizes[0])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	question.Now, question.Inputs["objects"] = at(120), Reading{Total: 20}
	got, _ = Evaluate(question, memory)
	if v := got.Sizes[0].Requests["memory"]; v.String() != "1224Mi" {
		t.Errorf("once it is back: %s", v.String())
	}
}

// TestARuleWithoutAMemoryBeginsWithWhatIsInForce: a leader that knows nothing scales nothing down before its delay is over.
func TestARuleWithoutAMemoryBeginsWithWhatIsInForce(t *testing.T) {
	a, b := memoryRule("a", "1Gi", "10Mi", Total), memoryRule("b", "1Gi", "0", Total)
	a.DelayDown.For, b.Input = 10*time.Minute, ""
	question := Question{Rules: []Rule{a}, Replicas: []int{0}, Now: at(0), Inputs: map[string]Reading{"objects": {Total: 0}},
		InForce: map[int]Resources{0: {Requests: quantities("memory", "4Gi")}}}
	got, states := Evaluate(question, nil)
	if diff := cmp.Diff(shown{map[string]string{"memory": "4Gi"}, map[string]string{}}, show(got.Sizes[0])); diff != "" {
		t.Errorf("at once -want +got:\n%s", diff)
	}
	if held := got.Rows[0].Held; held != HeldDelayDown {
		t.Errorf("held by %q", held)
	}
	question.Now = at(601)
	got, _ = Evaluate(question, states)
	if diff := cmp.Diff(shown{map[string]string{"memory": "1Gi"}, map[string]string{}}, show(got.Sizes[0])); diff != "" {
		t.Errorf("after ten minutes -want +got:\n%s", diff)
	}
	question.Rules, question.Now = []Rule{a, b}, at(0) // of 4Gi half is each one's; b has no delay
	got, _ = Evaluate(question, nil)
	if diff := cmp.Diff(shown{map[string]string{"memory": "3Gi"}, map[string]string{}}, show(got.Sizes[0])); diff != "" {
		t.Errorf("two rules -want +got:\n%s", diff)
	}
}

func TestDelaysUpMirrorThoseDown(t *testing.T) {
	r := readme()
	r.Segments = nil
	value := func(text string) *resource.Quantity { v := q(text); return &v }
	for name, test := range map[string]struct {
		delay   Delay
		samples []float64 // one a minute
		current string
		want    string
		held    string
	}{
		"none":                             {Delay{}, []float64{8}, "200m", "280m", ""},
		"within the tolerance":             {Delay{Max: q("2")}, []float64{8}, "260m", "260m", HeldDelayUp},
		"below it, to the whole":           {Delay{Max: q("2")}, []float64{8}, "259m", "280m", ""},
		"too soon":                         {Delay{For: 2 * time.Minute}, []float64{8, 8, 8}, "200m", "200m", HeldDelayUp},
		"to the least of the time":         {Delay{For: 2 * time.Minute}, []float64{1, 8, 5, 9}, "200m", "250m", ""},
		"a spike that is shorter":          {Delay{For: 2 * time.Minute}, []float64{0, 0, 0, 9}, "200m", "200m", HeldDelayUp},
		"either is enough: far off":        {Delay{Max: q("2"), For: time.Hour}, []float64{9}, "200m", "290m", ""},
		"what is in force is not there":    {Delay{For: time.Hour}, []float64{9}, "", "290m", ""},
		"down goes on as it would":         {Delay{For: time.Hour}, []float64{1}, "290m", "210m", ""},
		"nothing to do is held by nothing": {Delay{For: time.Hour}, []float64{8}, "280m", "280m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r.DelayUp = test.delay
			var s State
			for i, input := range test.samples {
				s = s.Observe(r, at(60*i), input)
			}
			var current *resource.Quantity
			if test.current != "" {
				current = value(test.current)
			}
			d, _ := s.Decide(r, at(60*(len(test.samples)-1)), current)
			if d.Value.String() != test.want || d.Held != test.held {
				t.Errorf("%s held by %q, want %s by %q", d.Value.String(), d.Held, test.want, test.held)
			}
		})
	}
}

// TestSizesKeepTheirBounds whatever the rules and the readings are.
func TestSizesKeepTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var question Question
		for _, list := range []List{Requests, Limits} {
			for _, name := range []string{CPU, Memory} {
				if !rapid.Bool().Draw(t, string(list)+name) {
					continue
				}
				r := anyRule().Draw(t, "rule")
				r.List, r.Resource, r.Scope = list, name, rapid.SampledFrom([]Scope{Total, Replica, Cluster}).Draw(t, "scope")
				r.DelayDown.For = time.Duration(rapid.IntRange(0, 3600).Draw(t, "delay")) * time.Second
				question.Rules = append(question.Rules, r)
			}
		}
		question.Replicas = []int{0, 1, 2}
		question.Found = Resources{quantities("cpu", "1", "memory", "1Gi"), quantities("memory", "2Gi")}
		question.NodeCap = quantities("cpu", "50")
		var states States
		for i := range rapid.IntRange(1, 5).Draw(t, "cycles") {
			reading := Reading{Missing: rapid.Bool().Draw(t, "missing"), Replica: map[int]float64{}}
			for _, replica := range question.Replicas {
				reading.Replica[replica] = rapid.Float64Range(0, 1e12).Draw(t, "input")
				reading.Total += reading.Replica[replica]
				reading.Cluster = math.Max(reading.Cluster, reading.Replica[replica])
			}
			question.Inputs, question.Now = map[string]Reading{"x": reading}, at(i*rapid.IntRange(1, 5000).Draw(t, "seconds"))
			question.Peak = map[int]float64{1: rapid.Float64Range(0, 1e13).Draw(t, "peak")}
			var result Result
			result, states = Evaluate(question, states)
			checkBounds(t, question, result)
			data, err := json.Marshal(states)
			if err != nil {
				t.Fatal(err)
			}
			states = nil
			if err := json.Unmarshal(data, &states); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func checkBounds(t *rapid.T, question Question, result Result) {
	if got := slices.Sorted(maps.Keys(result.Sizes)); !slices.Equal(got, question.Replicas) {
		t.Fatalf("sizes of %v", got)
	}
	for replica, size := range result.Sizes {
		for name, request := range size.Requests {
			if limit, limited := size.Limits[name]; limited && !limit.IsZero() && request.Cmp(limit) > 0 {
				t.Fatalf("replica %d: %s of %s is above its limit %s", replica, name, request.String(), limit.String())
			}
			if most, capped := question.NodeCap[name]; capped && request.Cmp(most) > 0 {
				t.Fatalf("replica %d: %s of %s is more than a node has", replica, name, request.String())
			}
			if request.Sign() < 0 || name == Memory && request.MilliValue()%1000 != 0 && request.MilliValue() < math.MaxInt64/2 {
				t.Fatalf("replica %d: %s of %s", replica, name, request.String())
			}
		}
		if limit, limited := size.Limits[Memory]; limited && limit.AsApproximateFloat64() < question.Peak[replica] {
			t.Fatalf("replica %d: the limit %s is below the peak %v", replica, limit.String(), question.Peak[replica])
		}
	}
}

// TestAWindowKeepsItsExtremes compares what is kept with every sample.
func TestAWindowKeepsItsExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := readme()
		seconds := rapid.IntRange(60, int(MaxDelay/time.Second)).Draw(t, "window")
		r.DelayDown.For = time.Duration(seconds) * time.Second
		var s State
		var all []Stretch
		now := 0
		for range rapid.IntRange(1, 200).Draw(t, "samples") {
			now += rapid.IntRange(1, seconds/10).Draw(t, "seconds")
			v := float64(rapid.IntRange(0, 50).Draw(t, "input"))
			s, all = s.Observe(r, at(now), v), append(all, Stretch{at(now).Unix(), v, v})
		}
		if len(s.Window) > buckets+2 {
			t.Fatalf("%d stretches", len(s.Window))
		}
		lo, hi, any := s.Extremes(at(now), r.DelayDown.For)
		for _, one := range all {
			if at(now).Unix()-one.At <= int64(seconds) && (one.Lo < lo || one.Hi > hi || !any) {
				t.Fatalf("%v is not between %v and %v", one, lo, hi)
			}
		}
		loose := State{Window: all}
		looseLo, looseHi, _ := loose.Extremes(at(now), r.DelayDown.For+time.Duration(seconds/buckets+1)*time.Second)
		if lo < looseLo || hi > looseHi {
			t.Fatalf("%v to %v count longer than by a 60th", lo, hi)
		}
	})
}

// TestWhatNoSumHoldsIsNotKnown: nor does it get to where it could not be written.
func TestWhatNoSumHoldsIsNotKnown(t *testing.T) {
	for name, r := range map[string]Reading{
		"beyond all numbers":   {Total: math.Inf(1), Cluster: math.Inf(1), Replica: map[int]float64{0: math.Inf(1)}},
		"no number":            {Total: math.NaN(), Cluster: math.NaN(), Replica: map[int]float64{0: math.NaN()}},
		"of no replica at all": {Missing: false, Total: math.Inf(-1), Cluster: math.Inf(-1)},
	} {
		for _, scope := range []Scope{Total, Cluster, Replica} {
			for _, replica := range []int{0, All} {
				if value, known := r.at(scope, replica); value != 0 || known {
					t.Errorf("%s, of %s %d: %v, known %t", name, scope, replica, value, known)
				}
			}
		}
	}
}
