package decision

import (
	"testing"
)

func TestFieldsPrintAsPairs(t *testing.T) {
	for want, list := range map[string][]Field{
		"-":       nil,
		"shard=-": {{"shard", ""}},
		"shard=3": {{"shard", "3"}},
		"a=1 b=-": {{"a", "1"}, {"b", ""}},
	} {
		if got := PrintFields(list); got != want {
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
