// Package replay is `ballast replay`.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/replay"
	"ballast/planner/replay/trace"
)

type options struct {
	cluster    connect.Options
	prometheus string
	installed  string // the ConfigMap with the planner's configuration
	trace      string // file; empty: none
	generate   string
	generates  bool // it was said, and may be empty
	last       string
	step       string
	record     string
	configs    []string
	replicas   int
	output     string
	now        func() time.Time
}

// The forms in which a replay answers, beside say's.
const (
	asHTML = "html"
	asSVG  = "svg"
)

const long = `replay feeds a recorded load through the planner's own decision, cycle by cycle and at full speed, and says what would have come of
it: how often the fleet would have been levelled, how many clusters would have moved, how many replicas there would have been, and how
level the fleet would have stood. Several configurations stand side by side, and Argo CD's own algorithms beside them. It changes
nothing, and asks no cluster but with --last.

The load comes from one of three:
  TRACE         a file that was recorded, or that you made (- is standard input)
  --last 7d     that long of what a Prometheus has, by the configuration's own queries; keep it with --record
  --generate    a synthetic load, the same for the same numbers

--config names what is compared, and may be repeated: a configuration file (or NAME=FILE), "installed" with --last, "shipped" (every setting
at its default), "lpt" (partitions made anew and voted on), or one of Argo CD's own algorithms: "legacy", "round-robin",
"consistent-hashing". Without it: shipped (installed, with --last), lpt and legacy. What needs no file measures as the first file does.
Every configuration runs as if its mode were Enforce. What it decides comes about at once, within the interval: pods are ready,
owners take over, webhooks hold; pins, pods that fall and people are in no trace.

A trace is CSV, a line for each time and cluster:
  time,cluster,load                     any other column than time, cluster, server, uid and replica is a metric;
  2026-11-20T09:00:00Z,prod-eu,12.5     one whose only metric is called "load" has the loads themselves
or JSON, an object a line: a header, then the steps, with the clusters where they change and null where there is no value:
  {"apiVersion":"ballast.argoproj.io/v1alpha1","kind":"LoadTrace","step":"1m","metrics":["load"],"replicas":3}
  {"at":"2026-11-20T09:00:00Z","clusters":[{"name":"prod-eu"},{"name":"dev"}],"values":[[12.5,null]]}

Settings of --generate, with their defaults:
`

const examples = `  ballast replay --generate clusters=200,days=7,spikes=1           # shipped beside lpt and Argo CD's default
  ballast replay --last 7d --prometheus http://localhost:9090 --record week.jsonl   # asks for a week, and keeps it; run again, it goes on
  ballast replay week.jsonl --config now.yaml --config tighter=next.yaml -o html > week.html
  ballast replay loads.csv --replicas 5 --config shipped --config consistent-hashing -o json`

// NewCommand is `ballast replay`.
func NewCommand() *cobra.Command {
	o := &options{now: time.Now}
	cmd := &cobra.Command{
		Use:     "replay [TRACE]",
		Short:   "Show what a configuration would have made of a recorded load",
		Long:    long + trace.Describe(),
		Example: examples,
		Args:    say.AtMostOne("a trace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.trace = args[0]
			}
			o.generates = cmd.Flags().Changed("generate")
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"jsonl", "csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	o.cluster.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.generate, "generate", "",
		"replay a synthetic load with these `settings`, as in clusters=200,days=7; an empty text is the usual week")
	f.StringVar(&o.last, "last", "", "replay that `long` of what the Prometheus has until now, as 7d")
	f.StringVar(&o.step, "step", "5m", "how far apart --last asks; a value stands until the next one")
	f.StringVar(&o.prometheus, "prometheus", "", "URL of the Prometheus that --last asks (default: the configuration's)")
	f.StringVar(&o.installed, "config-configmap", "ballast-config",
		"name of the ConfigMap with the installed planner's configuration")
	f.StringVar(&o.record, "record", "",
		"also write the trace to this `file`, as JSON; --last goes on where one of the same metrics and step ends")
	f.StringArrayVar(&o.configs, "config", nil, "what to compare: a configuration `file`, NAME=FILE, or a name; may be repeated")
	f.IntVar(&o.replicas, "replicas", 0, "replicas at the beginning (default: the trace's, else 3)")
	f.StringVarP(&o.output, "output", "o", "table", "table, json, html (a page that stands alone), or svg")
	complete(cmd)
	return cmd
}

// complete has the shell know the values that are from closed sets.
func complete(cmd *cobra.Command) {
	for flag, values := range map[string][]string{
		"output": {say.AsTable, say.AsJSON, asHTML, asSVG}, "config": append(replay.Names(), installedName),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault)); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// check judges the flags alone: a mistake is told before anything is asked or read.
func (o *options) check() error {
	sources := 0
	for _, given := range []bool{o.trace != "", o.generates, o.last != ""} {
		if given {
			sources++
		}
	}
	switch {
	case !slices.Contains([]string{say.AsTable, say.AsJSON, asHTML, asSVG}, o.output):
		return fmt.Errorf("--output: %q is none of table, json, html and svg", o.output)
	case sources == 0:
		return errors.New("there is no load to replay: " +
			"name a TRACE, or say --generate \"\" for a synthetic week, or --last 7d for what a Prometheus has")
	case sources > 1:
		return errors.New("TRACE, --generate and --last are three loads: choose one")
	case o.replicas < 0 || o.replicas > mostReplicas:
		return fmt.Errorf("--replicas: %d is none from 1 to %d", o.replicas, mostReplicas)
	case o.last == "" && o.prometheus != "":
		return errors.New("--prometheus: nothing is asked of it without --last; say how much, as --last 7d")
	}
	return nil
}

const mostReplicas = 1000

func (o *options) run(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	files, err := o.files()
	if err != nil {
		return err
	}
	defer quicker()()
	source, closes, err := o.open(ctx, in, progress, files)
	if err != nil {
		return err
	}
	defer closes()
	setups, err := files.setups()
	if err != nil {
		return err
	}
	counted := &trace.Counted{Source: source}
	reports, err := play(ctx, counted, setups, o.replicas, &teller{out: progress, now: o.now})
	if err != nil {
		return err
	}
	return o.print(out, source.Header(), counted.Evidence(), reports)
}

// quicker lets the collector wait for more garbage than usual: a cycle makes much of it and keeps little. The function
// that it returns has it as before.
func quicker() func() {
	percent, limit := debug.SetGCPercent(1000), debug.SetMemoryLimit(1<<30)
	return func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }
}

// span reads a length of time.
func span(flag, text string, least, most time.Duration) (time.Duration, error) {
	var d config.Duration
	if err := d.UnmarshalText([]byte(text)); err != nil {
		return 0, fmt.Errorf("--%s: %q %w", flag, text, err)
	}
	if v := time.Duration(d); v < least || v > most {
		return 0, fmt.Errorf("--%s: %s is none from %s to %s", flag, text, config.Duration(least),
			config.Duration(most))
	}
	return time.Duration(d), nil
}
