package plan

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/source"
)

// TestFlags: what --exit-code and --all make of a cycle in which something moves. Each form of output ends with the same code.
func TestFlags(t *testing.T) {
	in := fixture.SeenCycle(t, "elected-move")
	file := filepath.Join(t.TempDir(), "inputs.json")
	_, err := source.Save(file, in)
	fixture.MustDo(t, err)
	run := func(args ...string) (string, error) {
		cmd := NewCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&bytes.Buffer{})
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(append(args, "--inputs", file))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	plain, err := run("--exit-code=false")
	fixture.MustDo(t, err)
	if with, err := run(); say.ExitCode(err) != 2 || with != plain {
		t.Errorf("it ends with %v after\n%s", err, with)
	}
	for _, form := range []string{"wide", "json", "yaml", "html", "patch", "helm-values", "external-secrets"} {
		with, err := run("-o", form)
		without, plainErr := run("-o", form, "--exit-code=false")
		if say.ExitCode(err) != 2 || plainErr != nil || with != without {
			t.Errorf("-o %s ends with %v, and with --exit-code=false with %v", form, err, plainErr)
		}
		var said bytes.Buffer
		if say.Error(&said, err); said.Len() > 0 {
			t.Errorf("-o %s prints of its exit code %q", form, said.String())
		}
	}
	all, err := run("--all", "--exit-code=false")
	fixture.MustDo(t, err)
	wide, err := run("-o", "wide", "--exit-code=false")
	fixture.MustDo(t, err)
	if all != wide || strings.Count(all, "\n") < strings.Count(plain, "\n") {
		t.Errorf("--all shows\n%s\nand -o wide\n%s", all, wide)
	}
}
