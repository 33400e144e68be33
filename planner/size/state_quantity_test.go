package size

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestAStatesQuantityIsBounded: a file of inputs with twelve letters must take nobody's minutes and gigabytes.
func TestAStatesQuantityIsBounded(t *testing.T) {
	for _, text := range []string{`{"value":"1e10000000"}`, `{"value":"1e1000"}`, `{"value":"` + strings.Repeat("9", 100) + `"}`} {
		var s State
		if err := json.Unmarshal([]byte(text), &s); err == nil || s.Value != nil {
			t.Errorf("%.40s is read as %v", text, s.Value)
		}
	}
}

// TestAStateIsReadAsItWasWritten.
func TestAStateIsReadAsItWasWritten(t *testing.T) {
	q := resource.MustParse("1500m")
	for name, s := range map[string]State{
		"empty": {}, "without a value": {Since: 3, Input: 1.5, Window: []Stretch{{5, 1, 2}}, Ring: []float64{1, 2}, RingAt: 7},
		"with one": {Since: time.Now().Unix(), LastUp: 1, LastDown: 2, At: 4, Value: &q},
	} {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got State
		if err := json.Unmarshal(data, &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
	}
}
