package webhook

import (
	"strings"
	"testing"
)

func TestPrintableForgesNoLineAndFillsNone(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		most int
		want string
	}{
		"plain":                  {"prod-eu", 20, "prod-eu"},
		"another script":         {"küche 台所", 20, "küche 台所"},
		"a forged line":          {"ada\nlevel=error", 20, "ada?level=error"},
		"a terminal's escape":    {"\x1b[31mred\x07", 20, "?[31mred?"},
		"text turned round":      {"a\u202eb\u200b", 20, "a?b?"},
		"a line separator":       {"a\u2028b", 20, "a?b"},
		"no UTF-8":               {"a\xffb", 20, "a?b"},
		"as long as may be":      {"12345678", 8, "12345678"},
		"longer":                 {"123456789", 8, "12345..."},
		"cut within a character": {"1234ü789", 8, "1234..."},
		"long and forged":        {strings.Repeat("\n", 1<<10), 10, "???????..."},
		"nothing":                {"", 8, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Printable(tc.in, tc.most); got != tc.want || len(got) > tc.most {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
