package failover

import (
	"slices"
	"time"

	"ballast/planner/failover/health"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// Last is the failover that began last. Its replica goes on to be emptied, wave by wave, while others wait. Carried is
// what each replica carried when it began; Worked says that it worked at the last look, so that one that does not waits
// for no hour. Dead are those that did not work when it began, nor since: they are emptied beside it, within the same
// quarter of what the others carried.
type Last struct {
	Replica int         `json:"replica"`
	At      time.Time   `json:"at,omitzero"`
	Carried []plan.Load `json:"carried,omitempty"`
	Worked  bool        `json:"worked,omitempty"`
	Dead    []int       `json:"dead,omitempty"`
}

// Still is without the replicas that worked since, or may have where nobody looked: before is the memory at the last
// look.
func (l Last) Still(before, m health.Memory, o health.Options, now time.Time) Last {
	blind := o.Blind(before, now)
	l.Dead = slices.DeleteFunc(slices.Clone(l.Dead), func(replica int) bool { return blind || m.Replicas[replica].Down.IsZero() })
	return l
}

// Request is everything that decides where clusters go. Of the plan count the rows and the replicas that run at both
// ends of a rollout that is under way.
type Request struct {
	View            *plan.View
	Loads           map[string]plan.Load  // present loads, by cluster; the row's for others
	Beside          []plan.Load           // what replicas carry beside the plan's rows, such as an implicit in-cluster
	Capacity        plan.Load             // the load a replica may carry; 0: not known
	MaxClusters     int                   // of one replica; 0: no cap. Like the capacity it is kept while that is possible
	Memory          plan.Bytes            // that a replica may have in use; 0: not known
	Bytes           map[string]plan.Bytes // present memory, by cluster
	BytesBeside     []plan.Bytes          // what replicas have in use beside the plan's rows
	Servers         *placement.Servers    // what stays together; nil: by the hashes of the rows
	Apart           map[string][]string   // the groups of which no two share a replica, by cluster
	ApartBesidePlan [][]string            // of those, what replicas have beside the plan's rows
	Fixed           map[string]bool       // clusters whose Secret nobody may write
	Held            map[string]bool       // clusters that stay, since a trip says so; people know of it
	Gone            map[string]bool       // clusters without a Secret: their rows follow the others of their server, and keep none
	Unwell          []int
	Recovered       map[int]bool // unwell replicas that work again: somebody has what is on them
	Dead            []int        // replicas that do not work now, unwell or not yet
	Cordoned        []int
	CannotReceive   []int           // others that receive nothing now, and keep what they have
	Killed          []int           // so do these until a person has looked: killed for their memory behind a wave
	BudgetDrain     int             // servers that may leave cordoned replicas now
	BudgetRescue    int             // servers that may leave an unwell one now, beyond what the others take on freely
	BudgetSuspect   int             // of those, suspects, and what no other has memory for
	Suspects        map[string]bool // clusters whose replicas may die of them: one did soon after a failover, or two moved them within a day
	Last            Last
}

// Evacuation is the moves, by cluster, of which FailedOver leave an unwell replica; what people should know; and the
// failover that counts as the last one once the moves are made. Where FailedOver is 0 Last is to be kept at once: it is
// the one that was given, or follows a clock that went back.
type Evacuation struct {
	Moves      map[string]int
	FailedOver int
	Notes      []Note
	Last       Last
}
