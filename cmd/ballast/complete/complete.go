// Package complete is what a shell offers at the Tab key: names of clusters, replicas, forms of output and contexts.
package complete

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/ending"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

// patience is how long somebody at a prompt waits. What takes longer is not offered.
const patience = 2 * time.Second

// Register adds completions to the commands below root that take what can be completed.
func Register(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		Register(cmd)
	}
	switch root.Name() {
	case "plan":
		_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions( // of a flag that is there
			[]string{"table", "wide", "json", "yaml", "html", "patch", "external-secrets", "helm-values"},
			cobra.ShellCompDirectiveNoFileComp))
	case "audit":
		_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
			[]string{"table", "json", "totals"}, cobra.ShellCompDirectiveNoFileComp))
	case "explain":
		root.ValidArgsFunction = first(clusters)
	case "evacuate":
		root.ValidArgsFunction = first(replicas)
	}
	for flag, offer := range map[string]cobra.CompletionFunc{
		"remove": of(clusters), "like": of(clusters), "lose": of(replicas), "context": contexts,
		"output":         cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp),
		"plan-configmap": cobra.NoFileCompletions, "config-configmap": cobra.NoFileCompletions,
		"namespace": cobra.NoFileCompletions,
	} {
		if _, there := root.GetFlagCompletionFunc(flag); root.Flags().Lookup(flag) != nil && !there {
			_ = root.RegisterFlagCompletionFunc(flag, offer) // it fails for a flag that is not there, or completed twice
		}
	}
}

// offer is what can be completed of a plan.
type offer func(*plan.Plan) []string

// first completes the first argument.
func first(o offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return fromPlan(cmd, o), cobra.ShellCompDirectiveNoFileComp
	}
}

func of(o offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return fromPlan(cmd, o), cobra.ShellCompDirectiveNoFileComp
	}
}

// plain is a name that no shell and no terminal takes for anything else: the plan may be anybody's.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)

func clusters(p *plan.Plan) []string {
	names := slices.Sorted(maps.Keys(p.Clusters))
	return slices.DeleteFunc(names, func(name string) bool { return !plain.MatchString(name) })
}

func replicas(p *plan.Plan) []string {
	var numbers []string
	for i := range p.Replicas {
		numbers = append(numbers, strconv.Itoa(i))
	}
	return numbers
}

// fromPlan offers something of the plan in force, and nothing where there is none or it takes too long.
func fromPlan(cmd *cobra.Command, o offer) []string {
	from := cmd.Context()
	if from == nil {
		from = context.Background()
	}
	ctx, cancel := context.WithTimeout(from, patience)
	defer cancel()
	answer := make(chan []string, 1)
	_ = ending.Within(ctx, 0, func() error { // a credential plugin follows no context
		if p := read(ctx, cmd); p != nil {
			answer <- o(p)
		}
		return nil
	})
	select {
	case offered := <-answer:
		return offered
	default:
		return nil
	}
}

func read(ctx context.Context, cmd *cobra.Command) *plan.Plan {
	cluster := connected(cmd)
	cfg, err := cluster.REST()
	if err != nil {
		return nil
	}
	cfg.Timeout = patience
	c, err := corev1.NewForConfig(cfg)
	if err != nil {
		return nil
	}
	name := "ballast-plan"
	if f := cmd.Flags().Lookup("plan-configmap"); f != nil {
		name = f.Value.String()
	}
	cm, err := c.ConfigMaps(cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return configmap.Parse(cm.Data, cm.Annotations).Plan
}

// connected is the command's own way to an API server, by the flags that were typed so far.
func connected(cmd *cobra.Command) *connect.Options {
	o := &connect.Options{}
	same := &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil }}
	o.Register(same)
	cmd.Flags().Visit(func(typed *pflag.Flag) {
		f := same.Flags().Lookup(typed.Name)
		if f == nil {
			return
		}
		if list, ok := typed.Value.(pflag.SliceValue); ok {
			if to, ok := f.Value.(pflag.SliceValue); ok {
				_ = to.Replace(list.GetSlice()) // of the same type
			}
			return
		}
		_ = same.Flags().Set(typed.Name, typed.Value.String()) // of the same type
	})
	return o
}

func contexts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if f := cmd.Flags().Lookup("kubeconfig"); f != nil {
		rules.ExplicitPath = f.Value.String()
	}
	config, err := rules.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}
