package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func sized() Plan {
	p := example()
	p.Resources = nil
	p.Sizes = &Sizes{
		Default: Resources{Requests: map[string]string{"cpu": "1", "memory": "2Gi"}, Limits: map[string]string{"memory": "4Gi"}},
		Replicas: map[int]Resources{
			10: {Limits: map[string]string{"cpu": "2500m"}},
			3:  {Requests: map[string]string{"cpu": "2", "memory": "6Gi"}, Limits: map[string]string{"memory": "6Gi"}},
		},
	}
	return p
}

func TestSizesAreWrittenALineEach(t *testing.T) {
	p := sized()
	got, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	p.Sizes = nil
	without, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(without, "clusters:\n", `sizes:
  default: {requests: {cpu: "1", memory: "2Gi"}, limits: {memory: "4Gi"}}
  "3": {requests: {cpu: "2", memory: "6Gi"}, limits: {memory: "6Gi"}}
  "10": {requests: {}, limits: {cpu: "2500m"}}
clusters:
`, 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOtherSizesAreAnotherPlan(t *testing.T) {
	for name, change := range map[string]func(*Sizes){
		"another default":       func(s *Sizes) { s.Default.Requests["cpu"] = "2" },
		"another limit":         func(s *Sizes) { s.Replicas[3].Limits["memory"] = "7Gi" },
		"a resource less":       func(s *Sizes) { delete(s.Replicas[3].Requests, "cpu") },
		"a replica less":        func(s *Sizes) { delete(s.Replicas, 10) },
		"a replica of its own":  func(s *Sizes) { s.Replicas[4] = s.Default },
		"a default of no words": func(s *Sizes) { s.Default = Resources{} },
	} {
		p := sized()
		other := p.Clone()
		change(other.Sizes)
		if p.SameEnforced(other) {
			t.Errorf("%s makes no difference", name)
		}
		if !p.SameEnforced(sized()) {
			t.Errorf("%s of a clone changed what was cloned", name)
		}
	}
	p := sized()
	p.Sizes = nil
	if p.SameEnforced(sized()) || sized().SameEnforced(p) {
		t.Error("no sizes are the same as some")
	}
}

func TestSizeOf(t *testing.T) {
	own, all := sized().Sizes.Replicas[3], sized().Sizes.Default
	type want struct {
		size Resources
		held bool
	}
	for name, test := range map[string]struct {
		change  func(*Plan)
		replica int
		want    want
	}{
		"one of its own":               {nil, 3, want{own, true}},
		"the default":                  {nil, 0, want{all, true}},
		"one beyond the plan":          {nil, 99, want{all, true}},
		"no sizes":                     {func(p *Plan) { p.Sizes = nil }, 3, want{}},
		"no default":                   {func(p *Plan) { p.Sizes.Default = Resources{} }, 0, want{}},
		"its own without a default":    {func(p *Plan) { p.Sizes.Default = Resources{} }, 3, want{own, true}},
		"a Deployment has one for all": {func(p *Plan) { p.Target.Kind = Deployment }, 3, want{all, true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := sized()
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
	request := func(name, value string) Resources { return Resources{Requests: map[string]string{name: value}} }
	for name, test := range map[string]struct {
		change func(*Plan)
		want   string
	}{
		"a template's resources, too": {func(p *Plan) { p.Resources = &Resources{} }, "sizes: the plan has resources, too: a container is held in its pods or in the template"},
		"nothing":                     {func(p *Plan) { p.Sizes = &Sizes{} }, "sizes: they hold nothing"},
		"a Deployment's replicas":     {func(p *Plan) { p.Target.Kind = Deployment }, `sizes: the pods of a Deployment have no ordinal: only "default" holds`},
		"a replica beyond":            {func(p *Plan) { p.Sizes.Replicas[16] = p.Sizes.Default }, "sizes[16]: the replica is not between 0 and 15"},
		"a replica below":             {func(p *Plan) { p.Sizes.Replicas[-1] = p.Sizes.Default }, "sizes[-1]: the replica is not between 0 and 15"},
		"a replica without a size":    {func(p *Plan) { p.Sizes.Replicas[1] = Resources{} }, "sizes[1]: it holds nothing"},
		"a request above its limit":   {func(p *Plan) { p.Sizes.Default.Requests["memory"] = "5Gi" }, "sizes[default]: the request of memory is 5Gi, above the limit 4Gi"},
		"another resource": {func(p *Plan) { p.Sizes.Replicas[3] = request("ephemeral-storage", "1Gi") },
			"sizes[3].requests: ephemeral-storage does not change in place: only cpu and memory do"},
		"several": {func(p *Plan) { p.Sizes.Default.Limits = map[string]string{"a": "1", "b": "1", "c": "1"} },
			"sizes[default]: it names 5 resources, and only cpu and memory change in place"},
		"0":                      {func(p *Plan) { p.Sizes.Default = request("cpu", "0") }, "sizes[default].requests: cpu: 0 is not above 0, and at most 1000000"},
		"below 0":                {func(p *Plan) { p.Sizes.Default = request("cpu", "-1") }, `sizes[default].requests: cpu: "-1" is no quantity that is written like 1500m or 2Gi`},
		"a word":                 {func(p *Plan) { p.Sizes.Default = request("cpu", "many") }, `sizes[default].requests: cpu: "many" is no quantity that is written like 1500m or 2Gi`},
		"only a suffix":          {func(p *Plan) { p.Sizes.Default = request("memory", "Gi") }, `sizes[default].requests: memory: "Gi" is no quantity that is written like 1500m or 2Gi`},
		"an exponent":            {func(p *Plan) { p.Sizes.Default = request("cpu", "1e999999") }, `sizes[default].requests: cpu: "1e999999" is no quantity that is written like 1500m or 2Gi`},
		"a fraction":             {func(p *Plan) { p.Sizes.Default = request("cpu", "1.5") }, `sizes[default].requests: cpu: "1.5" is no quantity that is written like 1500m or 2Gi`},
		"too many digits":        {func(p *Plan) { p.Sizes.Default = request("cpu", "100000000000000000000") }, `sizes[default].requests: cpu: "100000000000000000000" is no quantity that is written like 1500m or 2Gi`},
		"another form":           {func(p *Plan) { p.Sizes.Default = request("cpu", "1000m") }, "sizes[default].requests: cpu: 1000m is written 1"},
		"another form of memory": {func(p *Plan) { p.Sizes.Default = request("memory", "2048Mi") }, "sizes[default].requests: memory: 2048Mi is written 2Gi"},
		"too many cores":         {func(p *Plan) { p.Sizes.Default = request("cpu", "1000001") }, "sizes[default].requests: cpu: 1000001 is not above 0, and at most 1000000"},
		"too much memory":        {func(p *Plan) { p.Sizes.Default = request("memory", "2Pi") }, "sizes[default].requests: memory: 2Pi is not above 0, and at most 1125899906842624"},
		"a part of a byte":       {func(p *Plan) { p.Sizes.Default = request("memory", "1500m") }, "sizes[default].requests: memory: 1500m is no whole number of bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := sized()
			delete(p.Sizes.Replicas, 10)
			test.change(&p)
			if got := fmt.Sprint(p.Validate()); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if _, err := Encode(p); err == nil {
				t.Error("it is written nevertheless")
			}
		})
	}
}

func TestMoreSizesThanAreReadAreRefused(t *testing.T) {
	p := sized()
	p.MaxReplicas = 2000
	for n := range 1001 {
		p.Sizes.Replicas[n] = p.Sizes.Default
	}
	if got := fmt.Sprint(p.Validate()); got != "sizes: there are 1001, and at most 1000 are read" {
		t.Error(got)
	}
}

func TestSizesAreReadStrictly(t *testing.T) {
	good, err := Encode(sized())
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]struct{ from, to, want string }{
		"an ordinal in another form": {`"3": {`, `"03": {`, `sizes[03]: it is neither a replica nor "default"`},
		"a pod's name":               {`"3": {`, `controller-3: {`, `sizes[controller-3]: it is neither a replica nor "default"`},
		"a field of no size":         {`"3": {`, `"3": {claims: {}, `, `unknown field "claims"`},
		"an ordinal twice":           {`"10": {`, `"3": {`, `"3" already set in map`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeStrict(strings.Replace(good, edit.from, edit.to, 1)); err == nil || !strings.Contains(err.Error(), edit.want) {
				t.Errorf("error %v, want one with %q", err, edit.want)
			}
		})
	}
}

// drawSize draws what Validate accepts of a container.
func drawSize(t *rapid.T) Resources {
	units := map[string][]string{"cpu": {"m", ""}, "memory": {"Mi", "Gi", "M", ""}}
	r := Resources{Requests: map[string]string{}, Limits: map[string]string{}}
	for _, name := range []string{"cpu", "memory"} {
		unit := rapid.SampledFrom(units[name]).Draw(t, "unit of "+name)
		n := rapid.IntRange(1, 999).Draw(t, name)
		text := func(n int) string { return fmt.Sprintf("%d%s", 2*n+1, unit) } // odd: no larger unit holds it
		if rapid.Bool().Draw(t, "requested "+name) {
			r.Requests[name] = text(min(n, 400))
		}
		if rapid.Bool().Draw(t, "limited "+name) {
			r.Limits[name] = text(min(n, 400) + rapid.IntRange(0, 90).Draw(t, "more of "+name))
		}
	}
	return r
}

// drawSizes draws what Validate accepts for a StatefulSet, and nil as often.
func drawSizes(t *rapid.T, below int) *Sizes {
	if rapid.Bool().Draw(t, "without sizes") {
		return nil
	}
	s := &Sizes{Default: drawSize(t), Replicas: map[int]Resources{}}
	for _, ordinal := range rapid.SliceOfN(rapid.IntRange(0, below-1), 0, 6).Draw(t, "sized replicas") {
		if size := drawSize(t); !size.empty() {
			s.Replicas[ordinal] = size
		}
	}
	if s.Default.empty() && len(s.Replicas) == 0 {
		return nil
	}
	return s
}

// A replica's size is its own or the default, never a mixture, and what the document says survives it.
func TestEverySizeSurvivesTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := sized()
		p.Sizes = drawSizes(t, p.MaxReplicas)
		text, err := Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeStrict(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Encode(got)
		if err != nil || again != text {
			t.Fatalf("%v: written again it is\n%s\nand was\n%s", err, again, text)
		}
		for n := range p.MaxReplicas {
			want, held := p.SizeOf(n)
			size, read := got.SizeOf(n)
			if held != read || !want.Same(size) {
				t.Fatalf("replica %d is held at %+v, %t, and was at %+v, %t", n, size, read, want, held)
			}
		}
	})
}

// FuzzParseSize: what is read is above 0, within its bound, and has one text.
func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"1", "1500m", "2Gi", "0", "00", "1e3", "1e-9", "99999999999999999999", "1.5", "9223372036854775807Pi", "1Ei", "", "m", "-1", "+1", " 1", "2048Mi", "1n"} {
		f.Add("cpu", s)
		f.Add("memory", s)
	}
	f.Add("pods", "1")
	f.Fuzz(func(t *testing.T, name, text string) {
		q, err := ParseSize(name, text)
		if err != nil {
			return
		}
		if q.Sign() <= 0 || q.CmpInt64(mostSize[name]) > 0 || q.String() != text {
			t.Errorf("%s of %q is %s", name, text, q.String())
		}
	})
}
