package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/settings"
	"ballast/planner/config/configfile"
)

// TestTheGuidesCommandsExist: what docs/quick-start.md, docs/runbooks.md and docs/recipes.md have people type.
func TestTheGuidesCommandsExist(t *testing.T) {
	for _, file := range []string{"quick-start", "runbooks", "recipes", "hot-cluster"} {
		text, err := os.ReadFile("../../docs/" + file + ".md")
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile("(?m)^ *(ballast [^\n]+)$|`(ballast [^`]+)`").FindAllStringSubmatch(string(text), -1)
		for _, m := range found {
			words := strings.Fields(m[1] + m[2])
			cmd, rest, err := newRootCommand().Find(words[1:])
			if err == nil && cmd.Name() != "completion" && cmd.Parent().Name() != "completion" {
				err = cmd.ParseFlags(rest)
			}
			if err != nil || cmd.Name() == "ballast" {
				t.Errorf("%s: %q is no command of ballast: %v", file, strings.Join(words, " "), err)
			}
		}
		if len(found) == 0 && file != "recipes" {
			t.Errorf("%s: no command was read", file)
		}
	}
}

// TestTheRecipesYAMLIsRead, and what of it is ballast's configuration, by the planner's own parser; each says whether it was run.
func TestTheRecipesYAMLIsRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	configured := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(block[1]), &object); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
		if object["poll"] == nil {
			continue
		}
		configured++
		whole := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n" + block[1]
		if _, err := configfile.Parse([]byte(whole), settings.CheckMetrics); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
	}
	if configured != 2 {
		t.Errorf("%d configurations were read", configured)
	}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n\n")
		if !regexp.MustCompile(`^(\*Run\*: |\*Not run\.\* |\*Out of scope\.\* |\[hot-cluster)`).MatchString(body) {
			t.Errorf("%s does not say whether it was run: %q", name, body[:min(len(body), 40)])
		}
	}
}
