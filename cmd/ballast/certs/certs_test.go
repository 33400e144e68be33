package certs

import (
	"io"
	"testing"
	"time"

	"ballast/certs"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/serve"
)

func TestFlags(t *testing.T) {
	fixture.ParseFlags(t, command, func(o *options) { o.log = serve.LogOptions{} }, map[string]fixture.Flags[options]{
		"as shipped": {Want: options{settings: certs.Settings{Namespace: "argocd", Service: "ballast-webhook"},
			interval: certs.DefaultInterval, settle: certs.DefaultSettle, overlap: certs.DefaultOverlap}},
		"each": {Args: []string{"--namespace=n", "--service=s", "--webhook-configuration=w", "--once", "--interval=3s", "--settle=4s", "--overlap=5s"}, Want: options{settings: certs.Settings{Namespace: "n", Service: "s"}, configuration: "w", once: true,
			interval: 3 * time.Second, settle: 4 * time.Second, overlap: 5 * time.Second}},
	})
}

func TestCertsRefusesATimeThatIsNone(t *testing.T) {
	for args, want := range map[string]string{
		"--interval=0s":   "--interval: 0s is not above 0",
		"--settle=-1s":    "--settle: -1s is not above 0",
		"--overlap=0s":    "--overlap: 0s is not above 0",
		"--verbosity=-1":  "--verbosity: -1 is not between 0 and 9",
		"--log-format=no": `--log-format: "no" is neither json nor console`,
	} {
		cmd := NewCommand()
		cmd.SetArgs([]string{args})
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetOut(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: got %v", args, err)
		}
	}
}
