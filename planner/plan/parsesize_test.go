package plan

import "testing"

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
