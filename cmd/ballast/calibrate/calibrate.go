// Package calibrate is `ballast calibrate`.
package calibrate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/source"
	"ballast/planner/calibrate"
	"ballast/planner/config"
)

type options struct {
	source      source.Source
	span, step  string
	fill        string
	memoryQuery string
	cpuQuery    string
	podLabel    string
	memoryLimit string
	cpuLimit    string
	resource    string
	samples     string
	save        string
	output      string
}

// NewCommand is `ballast calibrate`.
func NewCommand() *cobra.Command { return command(&options{}) }

// command is the command that puts its flags there.
func command(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Say whether the load predicts the pods' memory and CPU, and which weights and capacity would",
		Long: `calibrate fits each application-controller pod's memory and CPU to the metrics of the clusters that it had, over a range of time,
by non-negative least squares. It says how much of what differs between pods and times that explains (R2, 1 is all of it), for the load
as it is configured now and for the best weights there are, and prints the configuration to paste: weights, and the capacity at which
a replica is as full as --fill allows. It only reads.

Below an R2 of 0.6 the metrics do not predict what the pods use: do not size by them. R2 "of pods left out" is of each pod by a fit to
the others, of three pods or more; it tells what the weights are worth on a replica that was not seen yet.`,
		Example: `  ballast calibrate --prometheus http://localhost:9090 --range 2d
  ballast calibrate --range 7d --step 1h --save-samples samples.json
  ballast calibrate --samples samples.json --fill 0.7 --resource memory
  ballast calibrate --memory-query 'max by (pod) (process_resident_memory_bytes{namespace="argocd"})'   # without cAdvisor's metrics`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd) },
	}
	o.source.RegisterLive(cmd)
	f := cmd.Flags()
	f.StringVar(&o.span, "range", "1d", "how far to look back, like 6h or 7d")
	f.StringVar(&o.step, "step", "30m", "how far apart the samples are")
	f.StringVar(&o.fill, "fill", "0.85", "the `share` of its limit that a full replica may use")
	f.StringVar(&o.resource, "resource", "",
		"the `resource` that the configuration is for, memory or cpu (default: the one that the pods run out of first)")
	f.StringVar(&o.memoryQuery, "memory-query", "",
		"PromQL `query` of each pod's memory in bytes (default: its peak of container_memory_working_set_bytes)")
	f.StringVar(&o.cpuQuery, "cpu-query", "",
		"PromQL `query` of each pod's CPU in cores (default: its rate of container_cpu_usage_seconds_total)")
	f.StringVar(&o.podLabel, "pod-label", "pod", "the `label` with the pod's name in what these answer")
	f.StringVar(&o.memoryLimit, "memory-limit", "", "a pod's memory limit, like 4Gi (default: the workload's)")
	f.StringVar(&o.cpuLimit, "cpu-limit", "", "a pod's CPU limit, like 2 or 1500m (default: the workload's)")
	f.StringVar(&o.samples, "samples", "", "fit the samples in this `file`, which --save-samples wrote, and ask nobody")
	f.StringVar(&o.save, "save-samples", "", "also write the samples to this `file`, as JSON")
	f.StringVarP(&o.output, "output", "o", say.AsTable, "table, json or yaml")
	live := []string{"save-samples", "prometheus", "config", "config-configmap", "range", "step", "memory-query",
		"cpu-query", "pod-label"}
	for _, other := range live {
		cmd.MarkFlagsMutuallyExclusive("samples", other)
	}
	return cmd
}

// asked is what the flags ask for.
type asked struct {
	Questions
	fill   float64
	limits map[calibrate.Resource]float64
}

func (o *options) check() (a asked, err error) {
	if err := say.CheckForm(o.output); err != nil {
		return a, err
	}
	if r := calibrate.Resource(o.resource); r != "" && r != calibrate.Memory && r != calibrate.CPU {
		return a, fmt.Errorf("--resource: %q is neither %s nor %s", o.resource, calibrate.Memory, calibrate.CPU)
	}
	var fill config.Decimal
	if err := fill.UnmarshalText([]byte(o.fill)); err != nil {
		return a, fmt.Errorf("--fill: %q %w", o.fill, err)
	}
	if a.fill = fill.Float(); a.fill <= 0 || a.fill > 1 {
		return a, fmt.Errorf("--fill: %q is not between 0 and 1: 0.85 leaves 15 %% of the limit free", o.fill)
	}
	for _, d := range []struct {
		flag, text string
		into       *time.Duration
	}{{"--range", o.span, &a.Range}, {"--step", o.step, &a.Step}} {
		parsed, err := model.ParseDuration(d.text)
		if err != nil || parsed <= 0 {
			return a, fmt.Errorf("%s: %q is no length of time: write it like 90m, 6h or 7d", d.flag, d.text)
		}
		*d.into = time.Duration(parsed)
	}
	if n := a.Range / a.Step; n > mostSteps {
		return a, fmt.Errorf("--step: %s makes %d samples of %s, and at most %d are asked for: take a larger step",
			o.step, n, o.span, mostSteps)
	}
	if !podLabels.MatchString(o.podLabel) {
		return a, fmt.Errorf("--pod-label: %q is no label's name", o.podLabel)
	}
	a.MemoryQuery, a.CPUQuery, a.PodLabel = o.memoryQuery, o.cpuQuery, o.podLabel
	a.limits, err = o.limitsAsked()
	return a, err
}

// limitsAsked are those of the flags.
func (o *options) limitsAsked() (map[calibrate.Resource]float64, error) {
	limits := map[calibrate.Resource]float64{}
	for _, l := range []struct {
		flag, text string
		of         calibrate.Resource
	}{{"--memory-limit", o.memoryLimit, calibrate.Memory}, {"--cpu-limit", o.cpuLimit, calibrate.CPU}} {
		if l.text == "" {
			continue
		}
		q, err := resource.ParseQuantity(l.text)
		if err != nil || q.Sign() <= 0 {
			return nil, fmt.Errorf("%s: %q is no quantity above 0: write it like 4Gi, or 1500m", l.flag, l.text)
		}
		limits[l.of] = q.AsApproximateFloat64()
	}
	return limits, nil
}

func (o *options) run(ctx context.Context, cmd *cobra.Command) error {
	a, err := o.check()
	if err != nil {
		return err
	}
	var s calibrate.Samples
	if o.samples != "" {
		s, err = readSamples(o.samples)
	} else {
		s, err = o.gather(ctx, cmd, a, cmd.ErrOrStderr())
	}
	if err != nil {
		return err
	}
	if o.save != "" {
		if err := saveSamples(o.save, s); err != nil {
			return err
		}
	}
	for of, limit := range a.limits {
		if s.Limits == nil {
			s.Limits = map[calibrate.Resource]float64{}
		}
		s.Limits[of] = limit
	}
	found, err := find(s, calibrate.Resource(o.resource), a.fill)
	if err != nil {
		return err
	}
	return say.Print(o.output, cmd.OutOrStdout(), found)
}

func readSamples(file string) (calibrate.Samples, error) {
	f, err := os.Open(file)
	if err != nil {
		return calibrate.Samples{}, fmt.Errorf("--samples: %w", err)
	}
	defer f.Close()
	s, err := calibrate.Read(f)
	if err != nil {
		return s, fmt.Errorf("--samples: %s: %w", file, err)
	}
	return s, nil
}

func saveSamples(file string, s calibrate.Samples) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("saving the samples: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("saving the samples: %w", err)
	}
	return nil
}

// limitsOf are those of the application-controller's container; a limit that is not there is none.
func limitsOf(c corev1.Container) map[calibrate.Resource]float64 {
	limits := map[calibrate.Resource]float64{}
	names := map[corev1.ResourceName]calibrate.Resource{corev1.ResourceMemory: calibrate.Memory,
		corev1.ResourceCPU: calibrate.CPU}
	for name, of := range names {
		if q, ok := c.Resources.Limits[name]; ok && q.Sign() > 0 {
			limits[of] = q.AsApproximateFloat64()
		}
	}
	return limits
}
