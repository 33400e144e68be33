package cycle

import (
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/conflicts"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
	"ballast/planner/installation"
	"ballast/planner/measure"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/printable"
	"ballast/planner/rollout"
)

// Inputs is all that a cycle depends on. It marshals to JSON, so that a cycle seen in production runs again in a test;
// of the Secrets it has names, servers and shards, and no credentials.
type Inputs struct {
	Now         time.Time            `json:"now"`
	Config      config.PlannerConfig `json:"config"`
	PlannerUser string               `json:"plannerUser"`
	InForce     *plan.Plan           `json:"inForce,omitempty"`     // nil: there is none, or it cannot be read
	Last        *plan.Plan           `json:"last,omitempty"`        // the newest plan of the history, to mend a lost one from
	PlanFault   string               `json:"planFault,omitempty"`   // why the plan that stands is not in force: a Problem's kind
	Pins        plan.Pins            `json:"pins,omitempty"`        // data.pins
	PinProblems []plan.PinProblem    `json:"pinProblems,omitempty"` // of data.pins
	Paused      bool                 `json:"paused,omitempty"`
	Keyless     string               `json:"keyless,omitempty"` // why the plan's key cannot be read: a leader after this one would believe no plan
	BreakGlass  bool                 `json:"breakGlass,omitempty"`
	Discovered  discover.Input       `json:"discovered"`
	Workload    discover.Workload    `json:"workload"`
	Fetched     []poll.Fetched       `json:"fetched"`
	Owners      poll.Fetched         `json:"owners"`                // who reconciles which server now, by metrics: keys pod|server
	Enforcement *bool                `json:"enforcement,omitempty"` // whether the webhooks hold the plan; nil: unknown
	Unheld      []string             `json:"unheld,omitempty"`      // which webhook does not, and how that shows
	Observed    Observed             `json:"observed,omitzero"`
	Cordon      string               `json:"cordon,omitempty"`   // replicas that people want empty, as the annotation has it
	Rollback    *Rollback            `json:"rollback,omitempty"` // a person asks for an earlier plan
	Tripped     string               `json:"tripped,omitempty"`  // why ballast stopped itself; a person takes it away
	Neighbours  []conflicts.Finding  `json:"neighbours,omitempty"`

	Installation []installation.Finding `json:"installation,omitempty"` // where the cluster is not what ballast was made for
	Healed       []string               `json:"healed,omitempty"`       // clusters that repairs brought back from another owner since the last cycle
	Barred       map[string]string      `json:"barred,omitempty"`       // Secrets that the API server lets nobody of ballast write, by its words
	Memory       Memory                 `json:"memory"`
}

// Observed is what the application-controllers' pods are and say. Known is false where they could not be listed.
type Observed struct {
	Known    bool                  `json:"known,omitempty"`
	Dynamic  bool                  `json:"dynamic,omitempty"` // replicas are claimed slots, not ordinals
	Pods     []observed.Pod        `json:"pods,omitempty"`
	Slots    []ownership.Slot      `json:"slots,omitempty"` // of a Deployment's dynamic distribution
	Reported ownership.Observation `json:"reported,omitzero"`
	Work     map[int]ServerWork    `json:"work,omitempty"` // reconciliations so far, by replica
	Trouble  []string              `json:"trouble,omitempty"`
}

// ServerWork is what a replica did for each cluster, by server URL.
type ServerWork map[string]change.Work

// Rollback is a person's wish for an earlier plan. Plan is nil where the history has none of that revision; Problem
// says so.
type Rollback struct {
	Revision int64      `json:"revision"`
	Plan     *plan.Plan `json:"plan,omitempty"`
	Problem  string     `json:"problem,omitempty"`
}

// Memory is what a cycle hands to the next one, through the history ConfigMap, so that it survives a change of leaders.
type Memory struct {
	Known    discover.Known       `json:"known,omitzero"`
	Gone     map[string]time.Time `json:"gone,omitempty"` // rows whose Secret went, and when that was seen first
	LastGood measure.LastGood     `json:"lastGood,omitzero"`
	Votes    evaluate.History     `json:"votes,omitzero"`
	HoldOff  time.Time            `json:"holdOff,omitzero"` // when a rollout failed last
	Heaviest Heaviest             `json:"heaviest,omitzero"`
	Changes  Changes              `json:"changes,omitzero"`

	// The Secrets as they were seen last: their servers, and when each was made. Never in the history; the next leader
	// goes by the rows.
	Servers map[string]string    `json:"servers,omitempty"`
	Made    map[string]time.Time `json:"made,omitempty"`
}

// Changes is what is remembered of moves and of those who carry them.
type Changes struct {
	Target    map[string]int       `json:"target,omitempty"`   // where the live rollout under way goes, by cluster; its plan has the present wave only
	Cause     change.Cause         `json:"cause,omitempty"`    // of the rollout under way
	Ledger    change.Ledger        `json:"ledger,omitempty"`   // moves that were made
	Pinned    map[string]time.Time `json:"pinned,omitempty"`   // clusters whose pins or repairs were counted, and when
	Failed    map[string]time.Time `json:"failed,omitempty"`   // clusters that a failover moved, and when
	Stopped   time.Time            `json:"stopped,omitzero"`   // when x0y stopped the fleet for a Secret's pin last
	Counted   time.Time            `json:"counted,omitzero"`   // the stage whose moves were counted last, by its since
	Began     change.Signs         `json:"began,omitzero"`     // what was seen when the present wave began
	Watch     change.Watch         `json:"watch,omitzero"`     // waves that still answer for what follows
	Trip      *change.Trip         `json:"trip,omitempty"`     // why ballast stopped itself
	TripTold  bool                 `json:"tripTold,omitempty"` // the plan ConfigMap has the annotation, so that its absence is a person's word
	Replicas  failover.Memory      `json:"replicas,omitzero"`
	Failover  failover.Last        `json:"failover,omitzero"`
	Ownership ownership.Memory     `json:"ownership,omitzero"`
}

// Outcome is what a cycle decided and what it decided on.
type Outcome struct {
	Next      plan.Plan
	Changed   bool   // Next enforces something else than the plan in force and is to be written
	Decided   bool   // a rollout began, or a plan was made: the history is written at once
	Reason    string // one sentence a person understands
	Memory    Memory
	Fleet     discover.Fleet
	Table     measure.Table
	Loads     []plan.Load // of Fleet.Clusters; nil while the metrics say nothing
	Now       []plan.Replica
	Candidate *Candidate
	Progress  rollout.Progress
	Verdict   ownership.Verdict // who has each cluster
	Replicas  failover.Verdict  // who is unwell
	Cordoned  []int             // whom a person wants empty
	Budget    change.Budget
	Counted   map[change.Cause]int // moves that entered the ledger in this cycle
	Done      bool                 // the rollback that a person asked for holds, or was refused
	Problems  []Problem
	Pins      plan.Pins // data.pins and the Secrets' annotations together
}

// Candidate is what the partition would do, whether or not it is decided for.
type Candidate struct {
	Replicas []plan.Replica `json:"replicas"`
	Moves    []Move         `json:"moves,omitempty"`
	Lost     []string       `json:"lost,omitempty"`
	Verdict  string         `json:"verdict"` // what the evaluation says of it
}

// Move is one cluster's change of replica.
type Move struct {
	Cluster string `json:"cluster"`
	From    int    `json:"from"`
	To      int    `json:"to"`
}

// Phase names a phase in problems, metrics and logs.
type Phase string

// The phases, in their order.
const (
	PhaseDiscover  Phase = "discover"
	PhasePoll      Phase = "poll"
	PhaseNormalize Phase = "normalize"
	PhaseIndex     Phase = "index"
	PhasePartition Phase = "partition"
	PhaseRollout   Phase = "rollout"
	PhaseOwnership Phase = "ownership" // what the pods say
	PhaseStore     Phase = "store"     // reading and writing the plan
)

// Problem is what a phase could not do or will not believe. Keeps says that it keeps the plan from changing.
type Problem struct {
	Phase   Phase  `json:"phase"`
	Subject string `json:"subject,omitempty"` // the Secret, metric or pin that it is about
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Keeps   bool   `json:"keeps,omitempty"`
}

// maxMessage is the longest message of a problem, in characters.
const maxMessage = 1000

// Printable is the gate of every problem: its texts come from Secrets, annotations, pods and Prometheus. Of an error of
// several lines it makes one.
func (p Problem) Printable() Problem {
	p.Subject = printable.Text(p.Subject, maxMessage)
	p.Message = printable.Text(strings.ReplaceAll(p.Message, "\n", "; "), maxMessage)
	return p
}

func Printable(problems []Problem) []Problem {
	for i, p := range problems {
		problems[i] = p.Printable()
	}
	return problems
}

// Printable is the gate of what else an outcome says in words.
func (o Outcome) printable() Outcome {
	o.Problems = Printable(o.Problems)
	o.Reason = printable.Text(o.Reason, maxMessage)
	o.Progress.Why = printable.Text(o.Progress.Why, maxMessage)
	return o
}
