package codec

import (
	"strings"
	"testing"

	"ballast/planner/plan/fixture"
)

func TestManyDirectives(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "%": false, "a: 1": false, fixture.ManyDirectives(): true, "%a\n%b\n%c\n%d\n": false, "%a\n%b\n%c\n%d\n%e": true,
		"%a\r%b\r%c\r%d\r%e": true, "%a\u0085%b\u2028%c\u2029%d\u0085%e": true, strings.Repeat("a: 50%\n", 100): false, strings.Repeat(" %a\n", 100): false,
		"\ufeff%a\n%b\n%c\n%d\n%e": true,
	} {
		if got := ManyDirectives(text); got != want {
			t.Errorf("%.40q: %t, want %t", text, got, want)
		}
	}
}
