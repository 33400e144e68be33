package gz

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type document struct {
	Names []string `json:"names"`
	Load  float64  `json:"load"`
}

var small = Bounds{Bytes: 64, Nested: 2}

func TestJSONComesBack(t *testing.T) {
	want := document{Names: []string{"eu", "us"}, Load: 1.5}
	packed, err := small.PackJSON(want)
	if err != nil {
		t.Fatal(err)
	}
	var got document
	if err := small.UnpackJSON(packed, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBothDirectionsHaveTheSameBounds(t *testing.T) {
	wide := Bounds{Bytes: 1 << 20, Nested: 1 << 10}
	for name, test := range map[string]struct {
		v    any
		want string
	}{
		"64 bytes":     {strings.Repeat("x", 62), ""},
		"65 bytes":     {strings.Repeat("x", 63), "it is larger than 0 MiB"},
		"two arrays":   {[][]int{{}}, ""},
		"three arrays": {[][]int{{}, {}}, "it has 3 arrays and objects, and at most 2 are taken"},
		"an object":    {[]any{document{}, document{}}, "it has 3 arrays and objects, and at most 2 are taken"},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := wide.PackJSON(test.v)
			if err != nil {
				t.Fatal(err)
			}
			_, narrow := small.PackJSON(test.v)
			var got any
			for direction, err := range map[string]error{"packing: ": narrow, "unpacking: ": small.UnpackJSON(packed, &got)} {
				switch {
				case test.want == "" && err != nil:
					t.Errorf("%s%v", direction, err)
				case test.want != "" && (err == nil || err.Error() != direction+test.want):
					t.Errorf("got %v, want %q", err, direction+test.want)
				}
			}
		})
	}
}

func TestWhatIsNoJSONIsRefused(t *testing.T) {
	if _, err := small.PackJSON(math.NaN()); err == nil || err.Error() != "packing: json: unsupported value: NaN" {
		t.Errorf("packing NaN: %v", err)
	}
	packed, err := Pack([]byte("[1"))
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	if err := small.UnpackJSON(packed, &got); err == nil || err.Error() != "unpacking: unexpected end of JSON input" {
		t.Errorf("unpacking half an array: %v", err)
	}
}
