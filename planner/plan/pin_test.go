package plan

import "testing"

func TestAPinIsWrittenInOneWay(t *testing.T) {
	type answer struct {
		n  int
		ok bool
	}
	for text, want := range map[string]answer{
		"0": {0, true}, "3": {3, true}, "-1": {-1, true}, "1000000": {1000000, true},
		"": {}, "03": {}, "00": {}, "+3": {}, " 3": {}, "3\n": {}, "-0": {}, "3.0": {}, "0x3": {}, "three": {}, "99999999999999999999": {},
	} {
		if n, ok := ParsePin(text); (answer{n, ok}) != want {
			t.Errorf("%q is read as %d, %t, want %+v", text, n, ok, want)
		}
	}
}
