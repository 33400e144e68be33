package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner"
	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

type statusOptions struct {
	cluster clusterOptions
	plan    string
	output  string
}

func newStatusCommand() *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the plan in force, who leads, and whether what stands agrees",
		Long: `status reads the plan ConfigMap, the cluster Secrets and the application-controller, and says which plan is in force and why,
what each replica carries under it, what is pinned, and what differs from it. It writes nothing.

It ends with exit code 1 where something differs that ballast should have put right.`,
		Example: "  ballast status\n  ballast status -o json | jq .drift",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	o.cluster.register(cmd)
	cmd.Flags().StringVar(&o.plan, "plan-configmap", "ballast-plan", "name of the plan ConfigMap")
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table or json")
	return cmd
}

// status is what is shown.
type status struct {
	Plan        *plan.Plan        `json:"plan,omitempty"`
	PlanError   string            `json:"planError,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	DecidedAt   string            `json:"decidedAt,omitempty"`
	DecidedBy   string            `json:"decidedBy,omitempty"`
	Leader      string            `json:"leader,omitempty"`
	Renewed     time.Time         `json:"renewed,omitzero"`
	Paused      bool              `json:"paused,omitempty"`
	BreakGlass  bool              `json:"enforcementOff,omitempty"`
	Workload    discover.Workload `json:"workload"`
	Replicas    []plan.Replica    `json:"replicas,omitempty"`
	Pins        plan.Pins         `json:"pins,omitempty"`
	PinProblems []plan.PinProblem `json:"pinProblems,omitempty"`
	Drift       []rollout.Step    `json:"drift,omitempty"`
	Held        []string          `json:"held,omitempty"`
	Problems    []planner.Problem `json:"problems,omitempty"`
}

func (o *statusOptions) run(ctx context.Context, out io.Writer) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output: %q is neither table nor json", o.output)
	}
	c, err := o.cluster.client()
	if err != nil {
		return err
	}
	s, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	if o.output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(s); err != nil {
			return err
		}
	} else if err := s.write(out); err != nil {
		return err
	}
	if len(s.Drift) > 0 {
		return fmt.Errorf("%s from the plan", plural(len(s.Drift), "difference"))
	}
	return nil
}

func (o *statusOptions) read(ctx context.Context, c client.Client) (status, error) {
	cfg := config.Default()
	cfg.Target.Namespace, cfg.Plan.ConfigMap = o.cluster.namespace, o.plan
	var cm corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.cluster.namespace, Name: o.plan}, &cm); err != nil {
		return status{}, fmt.Errorf("reading the plan ConfigMap %q in %q: %w", o.plan, o.cluster.namespace, err)
	}
	doc := plan.ParseDocument(cm.Data, cm.Annotations)
	s := status{Plan: doc.Plan, Reason: cm.Annotations[plan.AnnotationReason], DecidedAt: cm.Annotations[plan.AnnotationDecidedAt],
		DecidedBy: cm.Annotations[plan.AnnotationDecidedBy], Paused: doc.Paused, BreakGlass: doc.BreakGlass, PinProblems: doc.PinProblems}
	if doc.PlanErr != nil {
		s.PlanError = doc.PlanErr.Error()
	}
	if doc.Plan != nil {
		cfg.Target = doc.Plan.Target
	}
	in, w, err := planner.Look(ctx, c, cfg)
	if err != nil {
		return status{}, explainDenied(err, o.cluster.namespace)
	}
	s.Workload = w
	s.compare(planner.Compare(in, w, doc))
	var lease coordinationv1.Lease
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.cluster.namespace, Name: "ballast-" + w.Name}, &lease); err == nil && lease.Spec.HolderIdentity != nil {
		s.Leader = *lease.Spec.HolderIdentity
		if lease.Spec.RenewTime != nil {
			s.Renewed = lease.Spec.RenewTime.Time
		}
	}
	return s, nil
}

func (s *status) compare(c planner.Comparison) {
	s.Replicas, s.Pins, s.Drift, s.Problems = c.Replicas, c.Pins, c.Agenda.Steps, c.Problems
	for _, h := range c.Agenda.Held {
		s.Held = append(s.Held, h.Message())
	}
}

func (s *status) write(w io.Writer) error {
	if s.Plan == nil {
		fmt.Fprintln(w, "There is no plan in force.", s.PlanError)
		return nil
	}
	fmt.Fprintf(w, "Plan revision %d, %s, decided %s by %s\n  %s\n", s.Plan.Revision, s.Plan.Mode, s.DecidedAt, s.DecidedBy, s.Reason)
	if s.Leader != "" {
		fmt.Fprintf(w, "Leader   %s, renewed %s ago\n", s.Leader, time.Since(s.Renewed).Round(time.Second))
	}
	env := "none"
	if s.Workload.EnvReplicas != nil {
		env = *s.Workload.EnvReplicas
	}
	fmt.Fprintf(w, "Workload %s %s/%s: %d of %d replicas ready, %s=%s; the plan holds %d and %d\n", s.Workload.Kind, s.Workload.Namespace, s.Workload.Name,
		s.Workload.ReadyReplicas, s.Workload.Replicas, plan.EnvReplicas, env, s.Plan.Replicas, s.Plan.ControllerReplicas)
	if r := s.Plan.Rollout; r != nil {
		fmt.Fprintf(w, "Rollout  %s since %s: %d -> %s, %s\n", r.Stage, r.Since.Format(time.RFC3339), r.From.Replicas, plural(r.Replicas, "replica"), plural(len(r.Moves), "move"))
	}
	if s.Paused {
		fmt.Fprintln(w, "Paused   nothing new is decided; enforcement goes on")
	}
	if s.BreakGlass {
		fmt.Fprintln(w, "Off      break-glass: every write passes, ballast writes nothing but the plan")
	}
	if err := writeBars(w, s.Replicas); err != nil {
		return err
	}
	s.writeLists(w)
	return nil
}

func (s *status) writeLists(w io.Writer) {
	for _, name := range sortedKeys(s.Pins) {
		fmt.Fprintf(w, "Pin      %s: %d\n", name, s.Pins[name])
	}
	for _, p := range s.PinProblems {
		fmt.Fprintf(w, "Pin      %s\n", p.Error())
	}
	for _, d := range s.Drift {
		fmt.Fprintf(w, "Differs  %s\n", d)
	}
	for _, h := range s.Held {
		fmt.Fprintf(w, "Held     %s\n", h)
	}
	if len(s.Drift)+len(s.Held) == 0 && s.Plan.Mode.Enforced() {
		fmt.Fprintln(w, "Nothing differs from the plan.")
	}
	writeProblems(w, s.Problems)
}
