package main

import (
	"bytes"
	"strings"
	"testing"

	"ballast/e2e/demo/screen"
)

// The whole demo, as `make demo` runs it: what it says is checked by itself, so here it only has to get to its end.
func TestTheStory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), &screen.Screen{W: &out}, 1, false); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"1/9  A fleet", "2/9  Before", "3/9  People", "4/9  A person pins", "5/9  Clusters", "6/9  The planner's leader", "7/9  The API server's audit log", "8/9  A replica more", "9/9  A replica grows",
		"Warning: ballast: shard", "checks passed in",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "canary-bearer-token") {
		t.Error("the story shows a credential")
	}
}
