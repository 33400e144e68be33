package webhook

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"ballast/planner/plan/codec"
	"ballast/webhook/inforce"
	"ballast/webhook/rawjson"
)

// TestAPlansReviewWeighsWhatIsDecoded, before anything is.
func TestAPlansReviewWeighsWhatIsDecoded(t *testing.T) {
	kept := &inforce.Stored{Text: strings.Repeat("p: \"1\"\n", 100)}
	object := func(data map[string]string) rawjson.Node {
		return encoded(t, map[string]any{"metadata": map[string]any{}, "data": data})
	}
	hundred, huge := strings.Repeat("x", 98), strings.Repeat("x", 900<<10) // with the quotes of JSON
	lines := strings.Repeat("x", 48) + "\n" + strings.Repeat("x", 48)      // of which JSON makes 100 bytes, too
	for name, tc := range map[string]struct {
		kept *inforce.Stored
		rv   review
		want int64
	}{
		"nothing where nothing is known":   {nil, review{object: object(nil)}, 0},
		"nothing, which the plan answers":  {kept, review{object: object(nil)}, 700 * answerCost},
		"the plan that was read before":    {kept, review{object: object(map[string]string{"plan": kept.Text}), old: object(map[string]string{"plan": kept.Text})}, 700 * answerCost},
		"another plan":                     {nil, review{object: object(map[string]string{"plan": hundred})}, 100 * parseCost},
		"another plan, of two lines":       {nil, review{object: object(map[string]string{"plan": lines})}, 100 * parseCost},
		"another stored one, of two lines": {nil, review{old: object(map[string]string{"plan": lines})}, 100 * parseCost},
		"another plan than the known one":  {kept, review{old: object(map[string]string{"plan": lines})}, 100*parseCost + 700*answerCost},
		"an empty plan where none is":      {nil, review{object: object(map[string]string{"plan": ""})}, 0},
		"pins, before and after":           {nil, review{object: object(map[string]string{"pins": hundred}), old: object(map[string]string{"pins": hundred})}, 200 * parseCost},
		"filler, which nobody decodes":     {nil, review{object: object(map[string]string{"notes": huge})}, 0},
		"no more than has its place":       {nil, review{object: object(map[string]string{"pins": huge})}, parseMost},
		"data that is there twice":         {nil, review{object: rawjson.Node(`{"data":{"pins":"abc"},"data":{"pins":"abc"}}`)}, 10 * parseCost},
		"what is no object has no data":    {nil, review{object: rawjson.Node(`["data"]`), old: rawjson.Node(`null`)}, 0},
		"a key that is written in escapes": {nil, review{object: rawjson.Node(`{"d\u0061ta":{"p\u0069ns":"abc"}}`)}, 5 * parseCost},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.rv.weight(tc.kept); got != tc.want {
				t.Errorf("it weighs %d, want %d", got, tc.want)
			}
		})
	}
	if codec.MaxBytes*parseCost < parseMost || codec.MaxBytes*answerCost+16<<10*2*parseCost > parseLight {
		t.Error("nothing weighs most, or 16 KiB of pins beside the largest plan are not light")
	}
}

// TestNoHeavyReviewsKeepAPinWaiting, however many of them there are and whatever they weigh.
func TestNoHeavyReviewsKeepAPinWaiting(t *testing.T) {
	attacker, honest := netip.MustParseAddr("192.0.2.66"), netip.MustParseAddr("192.0.2.1")
	for _, weight := range []int64{parseLight + 1, parseMost / 2, parseMost/2 + 1, parseMost} {
		p := newParses()
		for p.of(weight).TryAcquire(attacker, weight) {
		}
		ended, end := context.WithCancel(t.Context())
		end()
		_ = p.of(weight).Acquire(ended, attacker, weight) // one more, which has waited and gone
		if !p.of(parseLight).TryAcquire(honest, parseLight) {
			t.Errorf("beside reviews that weigh %d a pin waits", weight)
		}
	}
}

func encoded(t *testing.T, object any) []byte {
	t.Helper()
	doc, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
