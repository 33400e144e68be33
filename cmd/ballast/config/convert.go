package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/say"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/plan"
	"ballast/planner/size/peer"
)

// convertOptions are what a manifest does not say.
type convertOptions struct {
	container string
	capacity  string
}

func newConfigConvertCommand() *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Turn a CPVPS ScalingPolicy or an Hvpa into a configuration, and say what changes in meaning; - reads standard input",
		Example: `  kubectl -n argocd get hvpa controller -o yaml | ballast config convert - --capacity 0.5
  ballast config convert scalingpolicy.yaml`,
		Args: say.One("a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readConfig(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			c, err := convert(data, o)
			if err != nil {
				return fmt.Errorf("converting %q: %w", args[0], err)
			}
			text, err := c.text()
			if err != nil {
				return fmt.Errorf("converting %q: %w", args[0], err)
			}
			say.To(cmd.OutOrStdout(), "# What changes in meaning:\n")
			for _, note := range c.notes {
				say.To(cmd.OutOrStdout(), "# - %s\n", note)
			}
			_, err = say.Clean(cmd.OutOrStdout()).Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&o.container, "container", "",
		"the container of a manifest with several that is the application-controller's")
	cmd.Flags().StringVar(&o.capacity, "capacity", "",
		"the load that a replica carries today: turns replica counts of an Hvpa's intervals into loads")
	return cmd
}

// converted is a configuration in parts, and what changes in meaning.
type converted struct {
	size      *config.Size
	up, down  *config.Resizing
	out, in   *config.Scaling
	partition map[string]any
	notes     []string
}

func (c *converted) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// waits notes the default that a manifest does not know.
func (c *converted) waits() {
	c.note("a smaller size also waits for change.down.stabilizationWindow, which is %s by default; 0s turns it off",
		config.Default().Change.Down.StabilizationWindow)
}

func convert(data []byte, o convertOptions) (converted, error) {
	kind, err := peer.Kind(data)
	if err != nil {
		return converted{}, err
	}
	switch kind {
	case "ScalingPolicy":
		return convertCPVPS(data, o)
	case "Hvpa":
		return convertHVPA(data, o)
	}
	return converted{}, fmt.Errorf("the kind %.40q is neither ScalingPolicy nor Hvpa", kind)
}

// text is the configuration. It is read back: what is none is not printed.
func (c converted) text() ([]byte, error) {
	body := map[string]any{"apiVersion": plan.APIVersion, "kind": config.Kind}
	if c.size != nil {
		body["size"] = c.size
	}
	change := map[string]any{}
	if c.out != nil {
		change["out"] = c.out
	}
	if c.in != nil {
		change["in"] = c.in
	}
	if c.up != nil {
		change["up"] = c.up
	}
	if c.down != nil {
		change["down"] = c.down
	}
	if len(change) > 0 {
		body["change"] = change
	}
	if len(c.partition) > 0 {
		body["partition"] = c.partition
	}
	data, err := yaml.Marshal(body)
	if err != nil {
		return nil, err
	}
	return data, c.readBack(body)
}

// readBack reads the configuration as if it had the end of a rule of clusters that a note asks the operator for.
func (c converted) readBack(body map[string]any) error {
	if c.size != nil {
		ended := *c.size
		ended.NodeCap = config.SizeCap{CPU: "1k", Memory: "1Ti"}
		body["size"] = ended
	}
	data, err := yaml.Marshal(body)
	if err != nil {
		return err
	}
	if _, err := configfile.Parse(data); err != nil {
		return fmt.Errorf("what it says is no configuration of ours: %w", err)
	}
	return nil
}

// written is a quantity as the configuration has it; nothing for 0.
func written(q resource.Quantity) config.Quantity {
	if q.IsZero() {
		return ""
	}
	if q.Format == resource.DecimalExponent {
		q = resource.MustParse(resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI).String())
	}
	return config.Quantity(q.String())
}

func writtenPointer(q *resource.Quantity) config.Quantity {
	if q == nil {
		return ""
	}
	return written(*q)
}

// only names the one container whose rules are converted.
func only(containers []string, asked string) (string, error) {
	slices.Sort(containers)
	containers = slices.Compact(containers)
	switch {
	case asked != "" && !slices.Contains(containers, asked):
		return "", fmt.Errorf("it has no container %q but %s", asked, strings.Join(containers, ", "))
	case asked != "":
		return asked, nil
	case len(containers) > 1:
		return "", fmt.Errorf("it has the containers %s: name the application-controller's with --container",
			strings.Join(containers, ", "))
	case len(containers) == 0:
		return "", nil
	}
	return containers[0], nil
}
