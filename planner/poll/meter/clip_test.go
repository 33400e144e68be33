package meter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whatever the parts in which an answer comes, of its strings those stay that are no longer than may be, and what it weighs is the
// weight of what is kept.
func TestOnlyStringsThatAreTooLongAreLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text, want strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "strings") {
			for _, b := range []*strings.Builder{&text, &want} {
				b.WriteString(`{,`)
			}
			unit := rapid.SampledFrom([]string{"a", "é", `\"`, `\\`, `{"`[:1], `\u00e9`}).Draw(t, "unit")
			s := strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, MaxString/len(unit) - 1, MaxString / len(unit), MaxString/len(unit) + 1, 3 * MaxString}).Draw(t, "n"))
			text.WriteString(`"` + s + `"`)
			if len(s) > MaxString {
				s = TooLong
			}
			want.WriteString(`"` + s + `"`)
		}
		var c clipping
		var sum int64
		for rest := text.String(); rest != ""; {
			n := min(rapid.IntRange(1, 2*MaxString).Draw(t, "part"), len(rest))
			sum += c.add([]byte(rest[:n]))
			rest = rest[n:]
		}
		if diff := cmp.Diff(want.String(), string(c.kept)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if sum != weight(c.kept) {
			t.Fatalf("it weighs %d, want %d", sum, weight(c.kept))
		}
	})
}

// Labels of a megabyte, as many Secrets bring about, take no room of the others.
func TestLongStringsTakeNoRoom(t *testing.T) {
	var c clipping
	part, sum := []byte(strings.Repeat("x", readAtOnce)), int64(0)
	for range 100 {
		sum += c.add([]byte(`{"metric":{"server":"`))
		for range 32 {
			sum += c.add(part)
		}
		sum += c.add([]byte(`"}}`))
	}
	if len(c.kept) > 100*(len(TooLong)+30) || sum > smallAnswer || cap(c.kept) > 128<<10 {
		t.Errorf("100 MiB of labels keep %d bytes in %d, that weigh %d", len(c.kept), cap(c.kept), sum)
	}
}
