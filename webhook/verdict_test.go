package webhook

import (
	"strings"
	"testing"
)

func TestPrintedValuesAreOfAClosedForm(t *testing.T) {
	for value, want := range map[string]string{
		"0": "0", "3": "3", "03": "03", "-1": "-1", "999999": "999999", "-999999": "-999999", "1234567": invalid, "-1234567": invalid,
		"": invalid, "-": invalid, "--1": invalid, "+1": invalid, " 1": invalid, "1.0": invalid, "0x1": invalid, "١": invalid,
	} {
		if got := printableCount(value); got != want {
			t.Errorf("count %q prints %q, want %q", value, got, want)
		}
	}
	for value, want := range map[string]string{
		"prod-eu": "prod-eu", "a.b-c.0": "a.b-c.0", strings.Repeat("a", 253): strings.Repeat("a", 253), strings.Repeat("a", 254): invalid,
		"": invalid, "a b": invalid, "a=b": invalid, "A": invalid, "a\n": invalid, "é": invalid,
	} {
		if got := printableName(value); got != want {
			t.Errorf("name %q prints %q, want %q", value, got, want)
		}
	}
}

func TestFieldsPrintAsPairs(t *testing.T) {
	for want, list := range map[string][]Field{
		"-":       nil,
		"shard=-": {{"shard", ""}},
		"shard=3": {{"shard", "3"}},
		"a=1 b=-": {{"a", "1"}, {"b", ""}},
	} {
		if got := printFields(list); got != want {
			t.Errorf("%v prints %q, want %q", list, got, want)
		}
	}
}

func TestAWriteIsToldAtMostFiveThings(t *testing.T) {
	var v Verdict
	for range 9 {
		v.warn("ballast: again")
	}
	if want := maxWarnings; len(v.Warnings) != want {
		t.Errorf("%d warnings, want %d", len(v.Warnings), want)
	}
}
