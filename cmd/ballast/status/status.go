// Package status is `ballast status`.
package status

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/conflicts"
	"ballast/planner/cycle"
	"ballast/planner/cycle/problem"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/status"
)

type options struct {
	cluster connect.Options
	plan    string
	config  string
	output  string
	now     func() time.Time
}

func NewCommand() *cobra.Command {
	o := &options{now: time.Now}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the plan in force, what is under way, who leads, and whether what stands agrees",
		Long: `status says which plan is in force and why, what each replica carries under it and how its pod is, how far a rollout is and
what it waits for, what people asked for (pins, cordons, a freeze, a rollback), how much may move yet, what the leader knows of
replicas that are unwell and of clusters that nobody or several replicas have, who else has a say over the workload, and what
differs from the plan. It writes nothing.

How things are beside that is the leader's own word, which it writes into ConfigMap ballast-plan-status as soon as it changes, and
once a minute; the line "Leader" says how old it is.

It needs get and list on the Secrets, ConfigMaps, StatefulSets and Deployments of Argo CD's namespace. With list on its pods,
HorizontalPodAutoscalers and PodDisruptionBudgets, and get on its Leases, it shows more; what it may not see it names.

It ends with exit code 1 where something differs that ballast should have put right.`,
		Example: "  ballast status\n  ballast status -o json | jq .drift",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	o.cluster.Register(cmd)
	cmd.Flags().StringVar(&o.plan, "plan-configmap", "ballast-plan", "name of the plan ConfigMap")
	cmd.Flags().StringVar(&o.config, "config-configmap", "ballast-config",
		"name of the ConfigMap with the planner's configuration, which says which Secrets are clusters")
	cmd.Flags().StringVarP(&o.output, "output", "o", say.AsTable, "table, json or yaml")
	return cmd
}

// Overview is what is shown.
type Overview struct {
	Plan        *plan.Plan         `json:"plan,omitempty"`
	PlanError   string             `json:"planError,omitempty"`
	Reason      string             `json:"reason,omitempty"`
	DecidedAt   string             `json:"decidedAt,omitempty"`
	DecidedBy   string             `json:"decidedBy,omitempty"`
	Leader      string             `json:"leader,omitempty"`
	Renewed     time.Time          `json:"renewed,omitzero"`
	LookedAt    time.Time          `json:"lookedAt,omitzero"` // when the leader said what follows
	Conditions  []status.Condition `json:"conditions,omitempty"`
	Owner       *conflicts.Owner   `json:"owner,omitempty"` // another installation, whose the target is
	Paused      bool               `json:"paused,omitempty"`
	PausedBy    string             `json:"pausedBy,omitempty"`
	PausedWhy   string             `json:"pausedReason,omitempty"`
	BreakGlass  bool               `json:"enforcementOff,omitempty"`
	Tripped     string             `json:"tripped,omitempty"` // why ballast stopped itself
	HeldUntil   time.Time          `json:"heldUntil,omitzero"`
	RollbackTo  string             `json:"rollbackTo,omitempty"`
	Cordons     []steer.Cordoned   `json:"cordons,omitempty"`
	Rollout     *underWay          `json:"rollout,omitempty"`
	Workload    discover.Workload  `json:"workload"`
	Replicas    []plan.Replica     `json:"replicas,omitempty"`
	Pods        []podStatus        `json:"pods,omitempty"`
	Slots       *slotsStatus       `json:"slots,omitempty"`
	Unwell      []status.Unwell    `json:"unwell,omitempty"`
	FailoverOff string             `json:"failoverHeld,omitempty"` // why nothing is done about them
	Orphaned    []status.Fault     `json:"orphaned,omitempty"`
	Doubled     []status.Fault     `json:"doubled,omitempty"`
	Budget      *status.Budget     `json:"budget,omitempty"`
	Candidate   *status.Candidate  `json:"candidate,omitempty"`
	Blocked     []cycle.Blocked    `json:"blocked,omitempty"`
	Omitted     int                `json:"omitted,omitempty"` // entries of what the leader said that had no room
	Pins        plan.Pins          `json:"pins,omitempty"`
	PinProblems []plan.PinProblem  `json:"pinProblems,omitempty"`
	Drift       []diff.Step        `json:"drift,omitempty"`
	Held        []string           `json:"held,omitempty"`

	Neighbours []conflicts.Finding `json:"neighbours,omitempty"`
	Unseen     []string            `json:"unseen,omitempty"` // what this person may not read
	Unread     []string            `json:"unread,omitempty"` // what could not be read for another reason
	Problems   []problem.Problem   `json:"problems,omitempty"`

	now      time.Time
	seesPods bool
}

// underWay is the rollout. Moves are those of its present wave, in the other modes than live all of them; Waits is what
// it waits for; empty where its stage has just begun, or the leader has not looked at it yet.
type underWay struct {
	Mode     string       `json:"mode"`
	Stage    plan.Stage   `json:"stage"`
	Since    time.Time    `json:"since"`
	Deadline time.Time    `json:"deadline,omitzero"`
	Late     bool         `json:"late,omitempty"`
	From     plan.Count   `json:"from"`
	To       plan.Count   `json:"to"`
	Wave     int          `json:"wave,omitempty"`
	Waves    int          `json:"waves,omitempty"`
	Moves    []cycle.Move `json:"moves,omitempty"`
	After    int          `json:"after,omitempty"` // clusters that move after this wave
	Waits    string       `json:"waits,omitempty"`
}

// podStatus is an application-controller's pod, with what its replica carries under the plan. Its replica is -1 where
// it holds no slot of a Deployment.
type podStatus struct {
	Replica     int       `json:"replica"`
	Name        string    `json:"name"`
	Ready       bool      `json:"ready"`
	Terminating bool      `json:"terminating,omitempty"`
	Claimed     bool      `json:"claimed"`
	Restarts    int       `json:"restarts"`
	RestartedAt time.Time `json:"restartedAt,omitzero"`
	OOMKilled   bool      `json:"oomKilled,omitempty"`   // its last end
	MemoryLimit int64     `json:"memoryLimit,omitempty"` // bytes
	Clusters    int       `json:"clusters"`
	Load        string    `json:"load"`
}

// slotsStatus is a Deployment's dynamic distribution. Unhealthy says that fewer slots are held than there are replicas.
type slotsStatus struct {
	Healthy   int          `json:"healthy"`
	Of        int          `json:"of"`
	Unhealthy bool         `json:"unhealthy"`
	Slots     []slotStatus `json:"slots"`
}

type slotStatus struct {
	Shard        int    `json:"shard"`
	State        string `json:"state"`
	Controller   string `json:"controller,omitempty"`
	HeartbeatAge string `json:"heartbeatAge,omitempty"`
	Unhealthy    bool   `json:"unhealthy,omitempty"` // its controller is silent, or gone
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	if err := say.CheckForm(o.output); err != nil {
		return err
	}
	c, err := o.cluster.Client()
	if err != nil {
		return err
	}
	seen, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	s := seen.overview()
	if err = say.Print(o.output, out, &s); err == nil && len(s.Drift) > 0 {
		err = fmt.Errorf("%s from the plan", say.Plural(len(s.Drift), "difference"))
	}
	return err
}
