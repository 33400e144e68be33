package rollback

import (
	"testing"

	"ballast/cmd/ballast/fixture"
)

// run runs the command as a person does, and returns what it wrote and its error's text.
func run(t *testing.T, kubeconfig, stdin string, args ...string) (out, notes, failure string) {
	t.Helper()
	return fixture.AsPerson(t, fixture.RootOf(NewCommand()), kubeconfig, stdin, args...)
}

// works runs the command, which must not fail.
func works(t *testing.T, kubeconfig, stdin string, args ...string) (out, notes string) {
	t.Helper()
	out, notes, failure := run(t, kubeconfig, stdin, args...)
	if failure != "" {
		t.Fatalf("ballast %q: %s", args, failure)
	}
	return out, notes
}
