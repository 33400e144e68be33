package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/settings"
	"ballast/planner/config/configfile"
	"ballast/planner/plan/people"
)

// fences are the README's blocks of one language, without the indentation of the list they stand in.
func fences(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^( *)```"+language+"\n(.*?)^ *```$").FindAllStringSubmatch(string(text), -1) {
		var b strings.Builder
		for _, line := range strings.SplitAfter(m[2], "\n") {
			b.WriteString(strings.TrimPrefix(line, m[1]))
		}
		blocks = append(blocks, b.String())
	}
	if len(blocks) == 0 {
		t.Fatalf("the README has no block of %s", language)
	}
	return blocks
}

func TestTheReadmesCommandsExist(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.Join(fences(t, "sh"), "\n"), "\n")
	for _, m := range regexp.MustCompile("`(ballast [^`]+)`").FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, m[1])
	}
	seen := 0
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "ballast" {
			continue
		}
		seen++
		cmd, rest, err := newRootCommand().Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || cmd.Name() == "ballast" {
			t.Errorf("%q is no command of ballast: %v", line, err)
		}
	}
	if seen < 6 {
		t.Errorf("only %d commands were found; the test reads the README wrongly", seen)
	}
}

func TestTheReadmesYAMLWorks(t *testing.T) {
	overlay := map[string]string{}
	for _, block := range fences(t, "yaml") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(block), &object); err != nil {
			t.Errorf("not YAML: %v\n%s", err, block)
			continue
		}
		if name, ok := strings.CutPrefix(strings.SplitN(block, "\n", 2)[0], "# "); ok {
			overlay[name] = block
		}
		data, _ := object["data"].(map[string]any)
		if text, ok := data["config.yaml"].(string); ok {
			if _, err := configfile.Parse([]byte(text), settings.CheckMetrics); err != nil {
				t.Errorf("the README's configuration is refused: %v", err)
			}
		}
		if text, ok := data["pins"].(string); ok {
			if pins, problems := people.ParsePins(text, 16); len(problems) > 0 || pins["prod-eu"] != 3 {
				t.Errorf("the README's pins are read as %v, %v", pins, problems)
			}
		}
	}
	buildOverlay(t, overlay)
}

// buildOverlay builds the quick start's two files as a reader would have them, beside the checkout's manifests.
func buildOverlay(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS("../../manifests")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kustomization.yaml", "config.yaml"} {
		if files[name] == "" {
			t.Fatalf("the README does not show %s", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("the README's overlay does not build: %v", err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"image: your-registry/ballast:v0.1.0", "url: \"http://prometheus-operated.monitoring:9090\""} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the README's overlay lacks %q", want)
		}
	}
}
