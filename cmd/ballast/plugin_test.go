package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is what a command line answers, by the name of its file.
func said(t *testing.T, line ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs(asCalled(root, line))
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestThePluginSpeaksAsKubectlDoes(t *testing.T) {
	for _, line := range [][]string{{"/bin/kubectl-ballast", "explain", "--help"}, {"kubectl-ballast.exe", "explain", "--help"}} {
		got := said(t, line...)
		for _, want := range []string{"\n  kubectl ballast explain CLUSTER [flags]\n", "\n  kubectl ballast explain prod-eu --prometheus"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", line[0], want, got)
			}
		}
	}
	if got := said(t, "ballast", "explain", "--help"); strings.Contains(got, "kubectl ballast") {
		t.Errorf("ballast itself says\n%s", got)
	}
}

func TestKubectlsCompletionIsCobras(t *testing.T) {
	want := said(t, "ballast", "__complete", "evac")
	got := said(t, "/bin/kubectl_complete-ballast", "evac")
	if diff := cmp.Diff(want, got); diff != "" || !strings.HasPrefix(got, "evacuate\t") {
		t.Errorf("%q, %s", got, diff)
	}
}

// Every command has an example, which is one of its own.
func TestEveryCommandHasAnExample(t *testing.T) {
	for _, cmd := range newRootCommand().Commands() {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		if cmd.HasSubCommands() {
			continue
		}
		if !strings.Contains(cmd.Example, "  ballast "+cmd.Name()) {
			t.Errorf("%s has no example", cmd.Name())
		}
	}
}
