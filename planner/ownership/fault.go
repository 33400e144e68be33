package ownership

import (
	"fmt"
	"strings"
	"time"

	"ballast/planner/plan"
)

// OrphanReason says why nobody has a cluster. The set is closed.
type OrphanReason string

// The reasons for orphans.
const (
	NotTaken   OrphanReason = "NotTaken"   // the pod of its replica answers and does not have it
	NoPod      OrphanReason = "NoPod"      // there is no pod of its replica
	NotPlanned OrphanReason = "NotPlanned" // the plan gives it to nobody
)

// Orphan is a cluster that no replica has although it has Applications. Last is the replica that had it, NoReplica if
// that is not known; Apps is how many Applications wait, or Unknown: then it is an orphan because somebody had it
// before.
type Orphan struct {
	Cluster  string       `json:"cluster"`
	Since    time.Time    `json:"since"`
	Why      OrphanReason `json:"why"`
	Intended int          `json:"intended"`
	Last     int          `json:"last"`
	Apps     int          `json:"apps"`
}

// Message is the sentence for people.
func (o Orphan) Message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nobody reconciles cluster %q since %s", o.Cluster, o.Since.UTC().Format(time.RFC3339))
	switch o.Why {
	case NotTaken:
		fmt.Fprintf(&b, ": replica %d does not have it", o.Intended)
	case NoPod:
		fmt.Fprintf(&b, ": replica %d has no pod", o.Intended)
	case NotPlanned:
		b.WriteString(": the plan does not know it")
	}
	if o.Last != plan.NoReplica && o.Last != o.Intended {
		fmt.Fprintf(&b, ", replica %d had it before", o.Last)
	}
	switch {
	case o.Apps == 1:
		b.WriteString("; 1 Application waits")
	case o.Apps > 1:
		fmt.Fprintf(&b, "; %d Applications wait", o.Apps)
	}
	return b.String()
}

// Doubled is a cluster that several pods have. Owners are their replicas: one alone if the pods take themselves for the
// same.
type Doubled struct {
	Cluster string    `json:"cluster"`
	Since   time.Time `json:"since"`
	Owners  []int     `json:"owners"`
	Pods    []string  `json:"pods"`
}

// Message is the sentence for people.
func (d Doubled) Message() string {
	return fmt.Sprintf("cluster %q is reconciled by %d pods at once since %s: %s", d.Cluster, len(d.Pods),
		d.Since.UTC().Format(time.RFC3339), strings.Join(d.Pods, ", "))
}
