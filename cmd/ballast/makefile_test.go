package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// `make test` draws the same in each run; a soak draws what none before it has, says by which seed, and draws it again for whoever names it.
func TestASoakDrawsASeedOfItsOwn(t *testing.T) {
	if _, err := os.ReadFile("../../Makefile"); err != nil { // so that go test runs this again where it changed
		t.Fatal(err)
	}
	ours := func(name string) bool {
		name, _, _ = strings.Cut(name, "=")
		return strings.HasPrefix(name, "MAKE") || slices.Contains([]string{"MFLAGS", "SEED", "SOAK_SEED", "RAPID_SEED", "BALLAST_SEED"}, name)
	}
	env := slices.DeleteFunc(os.Environ(), ours) // of the make that runs this test
	makes := func(target string, args ...string) (says, drawn string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"-n", "-C", "../..", "--eval", target + ": shown", "--eval",
			"shown: ; +@echo drawn by $$RAPID_SEED,$$BALLAST_SEED.", target}, args...)...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		first := func(form string) string {
			if m := regexp.MustCompile(form).FindStringSubmatch(string(out)); m != nil {
				return m[1]
			}
			return ""
		}
		return first(`make soak: seed (\d+);`), first(`(?m)^drawn by (.*)\.$`)
	}
	one, drawn := makes("soak")
	if one == "" || drawn != one+","+one {
		t.Errorf("a soak says %q and draws by %q", one, drawn)
	}
	if other, _ := makes("soak"); other == one {
		t.Errorf("two soaks draw by %s", one)
	}
	if same, drawn := makes("soak", "SEED=7"); same != "7" || drawn != "7,7" {
		t.Errorf("a soak of seed 7 says %q and draws by %q", same, drawn)
	}
	if _, drawn := makes("test"); drawn != "1," {
		t.Errorf("make test draws by %q", drawn)
	}
}
