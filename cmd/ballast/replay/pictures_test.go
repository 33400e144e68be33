package replay

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ballast/cmd/ballast/fixture"
)

// TestThePicturesAreMadeAgain: docs/planning has what `make pictures` makes, byte for byte. Those of a week take half a minute, and
// are looked at where BALLAST_WEEKS is set.
func TestThePicturesAreMadeAgain(t *testing.T) {
	text, err := os.ReadFile(fixture.Checkout(t, "Makefile"))
	fixture.MustDo(t, err)
	picture := regexp.MustCompile(`(?m)^PICTURE := replay (.*)$`).FindSubmatch(text)
	made := regexp.MustCompile(`(?m)^\tgo run \./cmd/ballast \$\(PICTURE\) --generate (\S+) > docs/planning/(\S+)$`).FindAllSubmatch(text, -1)
	if picture == nil || len(made) != 2 {
		t.Fatalf("the Makefile makes %d pictures; the test reads it wrongly", len(made))
	}
	looked := 0
	for _, m := range made {
		settings, name := string(m[1]), string(m[2])
		want, err := os.ReadFile(filepath.Join(fixture.Checkout(t, "docs", "planning"), name))
		fixture.MustDo(t, err)
		if !strings.Contains(settings, "days=1,") && os.Getenv("BALLAST_WEEKS") == "" {
			continue
		}
		looked++
		got, _, failure := typed(t, "", append(strings.Fields(string(picture[1])), "--generate", settings)...)
		if failure != "" {
			t.Fatal(failure)
		}
		if got != string(want) {
			t.Errorf("docs/planning/%s is not what it is made of: decisions changed; run make pictures, and look at it", name)
		}
	}
	if looked == 0 {
		t.Error("no picture was looked at")
	}
}
