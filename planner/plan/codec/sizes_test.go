package codec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/plan/fixture"
)

func TestSizesAreWrittenALineEach(t *testing.T) {
	p := fixture.Sized()
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

func TestSizesAreReadStrictly(t *testing.T) {
	good, err := Encode(fixture.Sized())
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

// drawSizes draws what Validate accepts for a StatefulSet, and nil as often.
func drawSizes(t *rapid.T, below int) *plan.Sizes {
	if rapid.Bool().Draw(t, "without sizes") {
		return nil
	}
	s := &plan.Sizes{Default: fixture.DrawSize(t), Replicas: map[int]plan.Resources{}}
	for _, ordinal := range rapid.SliceOfN(rapid.IntRange(0, below-1), 0, 6).Draw(t, "sized replicas") {
		if size := fixture.DrawSize(t); !size.Empty() {
			s.Replicas[ordinal] = size
		}
	}
	if s.Default.Empty() && len(s.Replicas) == 0 {
		return nil
	}
	return s
}

// A replica's size is its own or the default, never a mixture, and what the document says survives it.
func TestEverySizeSurvivesTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := fixture.Sized()
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
