package printable

import (
	"strings"
	"testing"
)

func TestPrintedValuesAreOfAClosedForm(t *testing.T) {
	for value, want := range map[string]string{
		"0": "0", "3": "3", "03": "03", "-1": "-1", "999999": "999999", "-999999": "-999999", "1234567": Invalid, "-1234567": Invalid,
		"": Invalid, "-": Invalid, "--1": Invalid, "+1": Invalid, " 1": Invalid, "1.0": Invalid, "0x1": Invalid, "١": Invalid,
	} {
		if got := Count(value); got != want {
			t.Errorf("count %q prints %q, want %q", value, got, want)
		}
	}
	for value, want := range map[string]string{
		"prod-eu": "prod-eu", "a.b-c.0": "a.b-c.0", strings.Repeat("a", 253): strings.Repeat("a", 253), strings.Repeat("a", 254): Invalid,
		"": Invalid, "a b": Invalid, "a=b": Invalid, "A": Invalid, "a\n": Invalid, "é": Invalid,
	} {
		if got := Name(value); got != want {
			t.Errorf("name %q prints %q, want %q", value, got, want)
		}
	}
	for value, want := range map[string]string{
		"Paused": "Paused", "rollback-to": "rollback-to", "a_b.0": "a_b.0", strings.Repeat("a", 30): strings.Repeat("a", 30),
		strings.Repeat("a", 31): strings.Repeat("a", 27) + "...", strings.Repeat("a", 1<<20): strings.Repeat("a", 27) + "...",
		"": Invalid, "a b": Invalid, "a/b": Invalid, "a\x1b": Invalid, "é": Invalid, `a"`: Invalid,
	} {
		if got := Note(value); got != want {
			t.Errorf("the annotation %.40q prints %q, want %q", value, got, want)
		}
	}
}
