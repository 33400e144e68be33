package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestNoTwoFlagsOfACommandAreOne: one that sets what another sets has no effect of its own; and each says what it is for.
func TestNoTwoFlagsOfACommandAreOne(t *testing.T) {
	flags := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		sets := map[uintptr]string{}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags++
			at := reflect.ValueOf(f.Value).Pointer()
			if other := sets[at]; other != "" {
				t.Errorf("%s: --%s and --%s set the same", cmd.CommandPath(), f.Name, other)
			}
			if sets[at] = f.Name; strings.TrimSpace(f.Usage) == "" {
				t.Errorf("%s: --%s does not say what it is for", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRootCommand())
	if flags < 100 {
		t.Errorf("only %d flags were found", flags)
	}
}
