package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"ballast/planner/plan"
)

// version is set at the link: -ldflags "-X main.version=v1.2.3".
var version = ""

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "ballast",
		Short: "Keep an Argo CD fleet level",
		Long: `ballast measures what each destination cluster costs Argo CD's application-controller, decides which replica
owns which cluster, and keeps it so: a leader-elected planner writes one plan into one ConfigMap, an admission webhook
makes every write agree with it.

Start with "ballast plan": it only reads, needs no installation, and says what ballast would change and why.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			cmd.Root().SetOut(&cleanWriter{w: cmd.Root().OutOrStdout()})
			cmd.Root().SetErr(&cleanWriter{w: cmd.Root().ErrOrStderr()})
		},
	}
	root.AddCommand(newPlanCommand(), newStatusCommand(), newPlannerCommand(), newWebhookCommand(), newConfigCommand(),
		newFreezeCommand(), newResumeCommand(), newEvacuateCommand(), newRollbackCommand(),
		newUninstallCommand(), newAuditCommand(), newCertsCommand(), newVersionCommand())
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			say(cmd.OutOrStdout(), "ballast %s\n", buildVersion())
			return nil
		},
	}
}

// buildVersion falls back to what the Go toolchain recorded, so that `go install` and test binaries name themselves
// too.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// logOptions are the logging flags of the long-running commands.
type logOptions struct {
	level  int
	format string
}

func (o *logOptions) register(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&o.level, "verbosity", "v", 0, "log detail: 0 = changes and errors, 1 = every cycle and call")
	cmd.Flags().StringVar(&o.format, "log-format", "json", "json for machines, console for people")
}

// logger writes to standard error; standard output belongs to results.
func (o *logOptions) logger() (logr.Logger, error) { return o.loggerTo(os.Stderr) }

// loggerTo logs what clusters, Secrets, annotations and Leases hold as a terminal may see it: every line goes through a
// cleanWriter, and a message is one line.
func (o *logOptions) loggerTo(w io.Writer) (logr.Logger, error) {
	if o.level < 0 || o.level > 9 {
		return logr.Logger{}, fmt.Errorf("--verbosity: %d is not between 0 and 9", o.level)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	var encoder zapcore.Encoder
	switch o.format {
	case "json":
		encoder = zapcore.NewJSONEncoder(encoding)
	case "console":
		encoder = zapcore.NewConsoleEncoder(encoding)
	default:
		return logr.Logger{}, fmt.Errorf("--log-format: %q is neither json nor console", o.format)
	}
	sink := zapcore.Lock(zapcore.AddSync(&cleanWriter{w: w}))
	core := zapcore.NewCore(oneLineEncoder{encoder}, sink, zap.NewAtomicLevelAt(zapcore.Level(-o.level)))
	return zapr.NewLogger(zap.New(core)), nil
}

// oneLineEncoder keeps a message of a library that has an object's text in it from making lines of its own; values are
// quoted by every encoder.
type oneLineEncoder struct{ zapcore.Encoder }

// Clone implements zapcore.Encoder.
func (e oneLineEncoder) Clone() zapcore.Encoder { return oneLineEncoder{e.Encoder.Clone()} }

// EncodeEntry implements zapcore.Encoder.
func (e oneLineEncoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	entry.Message = plan.Printable(entry.Message, maxWord)
	return e.Encoder.EncodeEntry(entry, fields)
}
