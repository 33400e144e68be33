package say

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// One wants one argument, "a cluster", and shows with an example how it is given.
func One(what string) cobra.PositionalArgs { return arguments(what, 1) }

// AtMostOne wants one argument or none.
func AtMostOne(what string) cobra.PositionalArgs { return arguments(what, 0) }

func arguments(what string, least int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return fmt.Errorf("%s takes %s, and there are %d: %q%s", cmd.CommandPath(), what, len(args), args,
				asIn(cmd))
		case len(args) < least:
			return fmt.Errorf("%s needs %s%s", cmd.CommandPath(), what, asIn(cmd))
		}
		return nil
	}
}

// asIn is a command's first example.
func asIn(cmd *cobra.Command) string {
	first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	first, _, _ = strings.Cut(first, " #")
	if first == "" {
		return ""
	}
	return ", as in: " + strings.TrimSpace(first)
}
