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

// TestFlags: what --exit-code and --all make of a cycle in which something moves.
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
	plain, err := run()
	fixture.MustDo(t, err)
	if with, err := run("--exit-code"); say.ExitCode(err) != 2 || with != plain {
		t.Errorf("--exit-code ends with %v after\n%s", err, with)
	}
	all, err := run("--all")
	fixture.MustDo(t, err)
	wide, err := run("-o", "wide")
	fixture.MustDo(t, err)
	if all != wide || strings.Count(all, "\n") < strings.Count(plain, "\n") {
		t.Errorf("--all shows\n%s\nand -o wide\n%s", all, wide)
	}
}
