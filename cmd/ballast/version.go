package main

import (
	"io"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/version"
)

// about is the build, for people.
type about struct{ version.About }

// WriteTable writes the version first, as scripts read it.
func (a about) WriteTable(w io.Writer) error {
	say.To(w, "ballast %s\ncommit %s\n%s %s\nproven with Kubernetes %s and Argo CD %s\n", a.Version, a.Commit, a.Go,
		a.Platform, a.Kubernetes, a.ArgoCD)
	return nil
}

func newVersionCommand() *cobra.Command {
	output := say.AsTable
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and what it is proven with",
		Example: "  ballast version\n  ballast version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := say.CheckForm(output); err != nil {
				return err
			}
			return say.Print(output, cmd.OutOrStdout(), about{version.This()})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", say.AsTable, "table, json or yaml")
	return cmd
}
