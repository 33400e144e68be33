package people

import "testing"

func TestWhatIsAskedForHasBounds(t *testing.T) {
	type answer struct {
		n  int64
		ok bool
	}
	for name, test := range map[string]struct {
		text string
		most int64
		want answer
	}{
		"a fleet":            {"12", MaxAccepted, answer{12, true}},
		"none":               {"0", MaxAccepted, answer{0, true}},
		"with a sign":        {"+12", MaxAccepted, answer{12, true}},
		"six digits":         {"999999", MaxAccepted, answer{999999, true}},
		"seven":              {"1000000", MaxAccepted, answer{}},
		"below 0":            {"-1", MaxAccepted, answer{}},
		"a word":             {"twelve", MaxAccepted, answer{}},
		"nothing":            {"", MaxAccepted, answer{}},
		"ten digits":         {"9999999999", MaxRollback, answer{9999999999, true}},
		"eleven":             {"10000000000", MaxRollback, answer{}},
		"more than an int64": {"99999999999999999999", MaxRollback, answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			if n, ok := ParseAsked(test.text, test.most); (answer{n, ok}) != test.want {
				t.Errorf("%q is read as %d, %t, want %+v", test.text, n, ok, test.want)
			}
		})
	}
}
