package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/fixture"
)

func TestOtherSizesAreAnotherPlan(t *testing.T) {
	for name, change := range map[string]func(*plan.Sizes){
		"another default":       func(s *plan.Sizes) { s.Default.Requests["cpu"] = "2" },
		"another limit":         func(s *plan.Sizes) { s.Replicas[3].Limits["memory"] = "7Gi" },
		"a resource less":       func(s *plan.Sizes) { delete(s.Replicas[3].Requests, "cpu") },
		"a replica less":        func(s *plan.Sizes) { delete(s.Replicas, 10) },
		"a replica of its own":  func(s *plan.Sizes) { s.Replicas[4] = s.Default },
		"a default of no words": func(s *plan.Sizes) { s.Default = plan.Resources{} },
	} {
		p := fixture.Sized()
		other := p.Clone()
		change(other.Sizes)
		if p.SameEnforced(other) {
			t.Errorf("%s makes no difference", name)
		}
		if !p.SameEnforced(fixture.Sized()) {
			t.Errorf("%s of a clone changed what was cloned", name)
		}
	}
	p := fixture.Sized()
	p.Sizes = nil
	if p.SameEnforced(fixture.Sized()) || fixture.Sized().SameEnforced(p) {
		t.Error("no sizes are the same as some")
	}
}

func TestSizeOf(t *testing.T) {
	own, all := fixture.Sized().Sizes.Replicas[3], fixture.Sized().Sizes.Default
	type want struct {
		size plan.Resources
		held bool
	}
	for name, test := range map[string]struct {
		change  func(*plan.Plan)
		replica int
		want    want
	}{
		"one of its own":               {nil, 3, want{own, true}},
		"the default":                  {nil, 0, want{all, true}},
		"one beyond the plan":          {nil, 99, want{all, true}},
		"no sizes":                     {func(p *plan.Plan) { p.Sizes = nil }, 3, want{}},
		"no default":                   {func(p *plan.Plan) { p.Sizes.Default = plan.Resources{} }, 0, want{}},
		"its own without a default":    {func(p *plan.Plan) { p.Sizes.Default = plan.Resources{} }, 3, want{own, true}},
		"a Deployment has one for all": {func(p *plan.Plan) { p.Target.Kind = plan.Deployment }, 3, want{all, true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := fixture.Sized()
			if test.change != nil {
				test.change(&p)
			}
			size, held := p.SizeOf(test.replica)
			if diff := cmp.Diff(test.want, want{size, held}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSizesThatCannotBeHeldAreRefused(t *testing.T) {
	request := func(name, value string) plan.Resources {
		return plan.Resources{Requests: map[string]string{name: value}}
	}
	for name, test := range map[string]struct {
		change func(*plan.Plan)
		want   string
	}{
		"a template's resources, too": {func(p *plan.Plan) { p.Resources = &plan.Resources{} }, "sizes: the plan has resources, too: a container is held in its pods or in the template"},
		"nothing":                     {func(p *plan.Plan) { p.Sizes = &plan.Sizes{} }, "sizes: they hold nothing"},
		"a Deployment's replicas":     {func(p *plan.Plan) { p.Target.Kind = plan.Deployment }, `sizes: the pods of a Deployment have no ordinal: only "default" holds`},
		"a replica beyond":            {func(p *plan.Plan) { p.Sizes.Replicas[16] = p.Sizes.Default }, "sizes[16]: the replica is not between 0 and 15"},
		"a replica below":             {func(p *plan.Plan) { p.Sizes.Replicas[-1] = p.Sizes.Default }, "sizes[-1]: the replica is not between 0 and 15"},
		"a replica without a size":    {func(p *plan.Plan) { p.Sizes.Replicas[1] = plan.Resources{} }, "sizes[1]: it holds nothing"},
		"a request above its limit":   {func(p *plan.Plan) { p.Sizes.Default.Requests["memory"] = "5Gi" }, "sizes[default]: the request of memory is 5Gi, above the limit 4Gi"},
		"another resource": {func(p *plan.Plan) { p.Sizes.Replicas[3] = request("ephemeral-storage", "1Gi") },
			"sizes[3].requests: ephemeral-storage does not change in place: only cpu and memory do"},
		"several": {func(p *plan.Plan) { p.Sizes.Default.Limits = map[string]string{"a": "1", "b": "1", "c": "1"} },
			"sizes[default]: it names 5 resources, and only cpu and memory change in place"},
		"0":                      {func(p *plan.Plan) { p.Sizes.Default = request("cpu", "0") }, "sizes[default].requests: cpu: 0 is not above 0, and at most 1000000"},
		"below 0":                {func(p *plan.Plan) { p.Sizes.Default = request("cpu", "-1") }, `sizes[default].requests: cpu: "-1" is no quantity that is written like 1500m or 2Gi`},
		"a word":                 {func(p *plan.Plan) { p.Sizes.Default = request("cpu", "many") }, `sizes[default].requests: cpu: "many" is no quantity that is written like 1500m or 2Gi`},
		"only a suffix":          {func(p *plan.Plan) { p.Sizes.Default = request("memory", "Gi") }, `sizes[default].requests: memory: "Gi" is no quantity that is written like 1500m or 2Gi`},
		"an exponent":            {func(p *plan.Plan) { p.Sizes.Default = request("cpu", "1e999999") }, `sizes[default].requests: cpu: "1e999999" is no quantity that is written like 1500m or 2Gi`},
		"a fraction":             {func(p *plan.Plan) { p.Sizes.Default = request("cpu", "1.5") }, `sizes[default].requests: cpu: "1.5" is no quantity that is written like 1500m or 2Gi`},
		"too many digits":        {func(p *plan.Plan) { p.Sizes.Default = request("cpu", "100000000000000000000") }, `sizes[default].requests: cpu: "100000000000000000000" is no quantity that is written like 1500m or 2Gi`},
		"another form":           {func(p *plan.Plan) { p.Sizes.Default = request("cpu", "1000m") }, "sizes[default].requests: cpu: 1000m is written 1"},
		"another form of memory": {func(p *plan.Plan) { p.Sizes.Default = request("memory", "2048Mi") }, "sizes[default].requests: memory: 2048Mi is written 2Gi"},
		"too many cores":         {func(p *plan.Plan) { p.Sizes.Default = request("cpu", "1000001") }, "sizes[default].requests: cpu: 1000001 is not above 0, and at most 1000000"},
		"too much memory":        {func(p *plan.Plan) { p.Sizes.Default = request("memory", "2Pi") }, "sizes[default].requests: memory: 2Pi is not above 0, and at most 1125899906842624"},
		"a part of a byte":       {func(p *plan.Plan) { p.Sizes.Default = request("memory", "1500m") }, "sizes[default].requests: memory: 1500m is no whole number of bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := fixture.Sized()
			delete(p.Sizes.Replicas, 10)
			test.change(&p)
			if got := fmt.Sprint(p.Validate()); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if _, err := codec.Encode(p); err == nil {
				t.Error("it is written nevertheless")
			}
		})
	}
}

func TestMoreSizesThanAreReadAreRefused(t *testing.T) {
	p := fixture.Sized()
	p.MaxReplicas = 2000
	for n := range 1001 {
		p.Sizes.Replicas[n] = p.Sizes.Default
	}
	if got := fmt.Sprint(p.Validate()); got != "sizes: there are 1001, and at most 1000 are read" {
		t.Error(got)
	}
}
