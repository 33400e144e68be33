package apply

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/diff"
)

const (
	// attempts is how often a write that met a concurrent one is read again and tried again before it fails.
	attempts = 4
	// defaultConcurrency and defaultBudget let 5,000 Secrets be stamped in about 4 minutes, two requests each, well
	// below what an API server gives one client by default (priority and fairness), and heal a thousand at once.
	defaultConcurrency = 4
	defaultBudget      = 1200
)

// Outcome says what became of a step. The set is closed.
type Outcome string

// The outcomes of steps.
const (
	Applied   Outcome = "Applied"
	Unchanged Outcome = "Unchanged" // it stood so already when it was read
	Deferred  Outcome = "Deferred"  // its backoff or the fleet's budget lets it wait until Result.Until
	Refused   Outcome = "Refused"   // what was read just now must not be written: Result.Err says why
	Failed    Outcome = "Failed"
)

// Result is what became of one step. Until is when a step that was deferred, or a nudge, is due again.
type Result struct {
	Step    diff.Step
	Outcome Outcome
	Err     error
	Until   time.Time
}

// Contested is an object that somebody else writes back again and again. Secret and Pod are empty for the workload;
// Manager is the other writer's field manager, if it is known.
type Contested struct {
	Secret   string `json:"secret,omitempty"`
	Pod      string `json:"pod,omitempty"`
	Reverted int    `json:"reverted"`
	Manager  string `json:"manager,omitempty"`
}

// Report is what became of all steps, in their order.
type Report struct {
	Results   []Result
	Contested []Contested
}

// Nudger refreshes one Application of a cluster, by its server URL or its name, and answers which; "" = the cluster has
// none.
type Nudger interface {
	Nudge(ctx context.Context, namespace, cluster, server, name string) (application string, err error)
}

// Options make an Applier. Client writes; Reader reads past any cache; without a Nudger nobody is nudged. A
// Concurrency or BudgetPerMinute of 0 is the default.
type Options struct {
	Client          client.Client
	Reader          client.Reader
	Nudger          Nudger
	Clock           clock.PassiveClock
	Concurrency     int
	BudgetPerMinute int // writes to Secrets and pods
}

// Applier carries out steps. It keeps the backoff of each object, so that a second writer is not fought at full speed.
type Applier struct {
	Options
	pace   *pace
	resize unsized
	limits unsized // since when it is known to lower no memory limit of a running pod
}

// New makes an Applier; its backoffs begin anew.
func New(o Options) *Applier {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	if o.BudgetPerMinute <= 0 {
		o.BudgetPerMinute = defaultBudget
	}
	return &Applier{Options: o, pace: newPace(o.BudgetPerMinute)}
}
