package say

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestArgumentsAreAskedForByAnExample, and not by their number.
func TestArgumentsAreAskedForByAnExample(t *testing.T) {
	root := &cobra.Command{Use: "ballast"}
	explain := &cobra.Command{Use: "explain CLUSTER", Example: "  ballast explain prod-eu   # why\n  ballast explain x -o yaml"}
	bare := &cobra.Command{Use: "bare"}
	root.AddCommand(explain, bare)
	for name, test := range map[string]struct {
		want cobra.PositionalArgs
		cmd  *cobra.Command
		args []string
		said string
	}{
		"one":                    {One("a cluster"), explain, []string{"a"}, ""},
		"none":                   {One("a cluster"), explain, nil, `ballast explain needs a cluster, as in: ballast explain prod-eu`},
		"two":                    {One("a cluster"), explain, []string{"a", "b"}, `ballast explain takes a cluster, and there are 2: ["a" "b"], as in: ballast explain prod-eu`},
		"without an example":     {One("a file"), bare, nil, "ballast bare needs a file"},
		"none where it may be":   {AtMostOne("a revision"), explain, nil, ""},
		"two where one may be":   {AtMostOne("a revision"), bare, []string{"a", "b"}, `ballast bare takes a revision, and there are 2: ["a" "b"]`},
		"an escape is no escape": {One("a file"), bare, []string{"a", "\x1b[2J"}, `ballast bare takes a file, and there are 2: ["a" "\x1b[2J"]`},
	} {
		said := ""
		if err := test.want(test.cmd, test.args); err != nil {
			said = err.Error()
		}
		if said != test.said {
			t.Errorf("%s: it says %q, want %q", name, said, test.said)
		}
	}
}
