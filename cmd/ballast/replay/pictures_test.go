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

// TestTheFiguresOfSizesAreMadeAgain: docs/sizing has what `make sizes` makes, byte for byte, and docs/sizing.md its table.
func TestTheFiguresOfSizesAreMadeAgain(t *testing.T) {
	text, err := os.ReadFile(fixture.Checkout(t, "Makefile"))
	fixture.MustDo(t, err)
	line := regexp.MustCompile(`(?m)^SIZED   := replay (.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Makefile makes no figures of sizes; the test reads it wrongly")
	}
	t.Chdir(fixture.Checkout(t, "."))
	for name, form := range map[string]string{"day.txt": "table", "day.svg": "svg"} {
		want, err := os.ReadFile(filepath.Join("docs", "sizing", name))
		fixture.MustDo(t, err)
		got, _, failure := typed(t, "", append(strings.Fields(string(line[1])), "-o", form)...)
		if failure != "" {
			t.Fatal(failure)
		}
		if got != string(want) {
			t.Errorf("docs/sizing/%s is not what it is made of: decisions changed; run make sizes, and look at it", name)
		}
	}
	page, err := os.ReadFile(filepath.Join("docs", "sizing.md"))
	fixture.MustDo(t, err)
	day, err := os.ReadFile(filepath.Join("docs", "sizing", "day.txt"))
	fixture.MustDo(t, err)
	table := regexp.MustCompile(`(?m)^SETUP +SIZES(?s:.*?)\n\n`).Find(day)
	if !strings.Contains(string(page), "```\n"+strings.TrimSpace(string(table))+"\n```") {
		t.Errorf("docs/sizing.md does not have the table\n%s", table)
	}
}
