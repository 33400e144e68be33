package main

import (
	"github.com/spf13/cobra"

	"ballast/cmd/ballast/audit"
	"ballast/cmd/ballast/calibrate"
	"ballast/cmd/ballast/certs"
	"ballast/cmd/ballast/complete"
	"ballast/cmd/ballast/config"
	"ballast/cmd/ballast/doctor"
	"ballast/cmd/ballast/evacuate"
	"ballast/cmd/ballast/explain"
	"ballast/cmd/ballast/freeze"
	"ballast/cmd/ballast/plan"
	"ballast/cmd/ballast/planner"
	"ballast/cmd/ballast/rebase"
	"ballast/cmd/ballast/replay"
	"ballast/cmd/ballast/rollback"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/status"
	"ballast/cmd/ballast/uninstall"
	"ballast/cmd/ballast/watch"
	"ballast/cmd/ballast/webhook"
	"ballast/cmd/ballast/whatif"
)

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "ballast",
		Short: "Keep an Argo CD fleet level",
		Long: `ballast measures what each destination cluster costs Argo CD's application-controller, decides which replica
owns which cluster, and keeps it so: a leader-elected planner writes one plan into one ConfigMap, an admission webhook
makes every write agree with it.

Start with "ballast plan": it only reads, needs no installation, and says what ballast would change and why.`,
		SilenceUsage:     true,
		SilenceErrors:    true,
		PersistentPreRun: say.Gate,
	}
	root.AddCommand(plan.NewCommand(), explain.NewCommand(), doctor.NewCommand(), whatif.NewCommand(),
		calibrate.NewCommand(), replay.NewCommand(),
		status.NewCommand(), watch.NewCommand(),
		planner.NewCommand(), webhook.NewCommand(), config.NewCommand(),
		freeze.NewCommand(), freeze.NewResumeCommand(), evacuate.NewCommand(), rollback.NewCommand(),
		rebase.NewCommand(),
		uninstall.NewCommand(), audit.NewCommand(), certs.NewCommand(), newVersionCommand())
	complete.Register(root)
	return root
}
