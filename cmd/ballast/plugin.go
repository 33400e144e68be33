package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The names by which kubectl calls a plugin, and asks it what could come next.
const (
	pluginName     = "kubectl-ballast"
	completionName = "kubectl_complete-ballast"
)

// asCalled makes the command what the name of its file says: kubectl's plugin speaks of `kubectl ballast`, and its
// completion is the same file under the name that kubectl looks for. It answers the arguments.
func asCalled(root *cobra.Command, args []string) []string {
	called := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	switch called {
	case completionName:
		return append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	case pluginName:
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl ballast"}
		exampleAs(root)
	}
	return args[1:]
}

// exampleAs has every example as people type it.
func exampleAs(cmd *cobra.Command) {
	lines := strings.Split(cmd.Example, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "  ballast "); ok {
			lines[i] = "  kubectl ballast " + rest
		}
	}
	cmd.Example = strings.Join(lines, "\n")
	for _, sub := range cmd.Commands() {
		exampleAs(sub)
	}
}
