package certs

import (
	"io"
	"testing"
)

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
