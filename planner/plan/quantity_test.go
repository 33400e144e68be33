package plan

import (
	"strings"
	"testing"
	"time"
)

// What anybody may have written is read, or refused, at once: an exponent makes no number of any length.
func TestAQuantityOfAnyLengthIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"2Gi": "2Gi", "1500m": "1500m", "1e3": "1e3", "1E": "1E", "1Ei": "1Ei", "1e+03": "", "0.5": "500m", "1e99": "", // read, whatever it is
		"1e100": "-", "1e2000000000": "-", "1111111111111111111e2000000000": "-", "1E-999999999": "-", strings.Repeat("1", 41): "-", "": "-", "x": "-",
	} {
		began := time.Now()
		q, err := ReadQuantity(text)
		switch {
		case want == "-" && err == nil:
			t.Errorf("%q is read as %s", text, q.String())
		case want != "-" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "-" && want != "" && q.String() != want:
			t.Errorf("%q is read as %s, want %s", text, q.String(), want)
		}
		q.Cmp(q) // as everybody does who has read one
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%q takes %s", text, took)
		}
	}
}

// FuzzReadQuantity: what is read is a number that can be compared and added.
func FuzzReadQuantity(f *testing.F) {
	for _, seed := range []string{"1", "2Gi", "1e99", "1e2000000000", "-0.000001E5", "1Ei"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ReadQuantity(text)
		if err != nil {
			return
		}
		sum := q.DeepCopy()
		sum.Add(q)
		if sum.Sign() != q.Sign() {
			t.Errorf("twice %q is %s", text, sum.String())
		}
		if again, err := ReadQuantity(q.String()); err == nil && again.Cmp(q) != 0 {
			t.Errorf("%q is written %s, and that is read as another number", text, q.String())
		}
	})
}
