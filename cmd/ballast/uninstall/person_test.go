package uninstall

import (
	"testing"

	"ballast/cmd/ballast/certs"
	"ballast/cmd/ballast/fixture"
)

// run runs the command as a person does, and returns what it wrote and its error's text.
func run(t *testing.T, kubeconfig, stdin string, args ...string) (out, notes, failure string) {
	t.Helper()
	return fixture.AsPerson(t, fixture.RootOf(NewCommand(), certs.NewCommand()), kubeconfig, stdin, args...)
}
