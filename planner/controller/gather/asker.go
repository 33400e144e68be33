package gather

import (
	"time"

	"ballast/planner/config"
	"ballast/planner/conflicts"
	"ballast/planner/controller/wiring"
	"ballast/planner/plan"
	"ballast/planner/plan/probing"
	"ballast/planner/poll"
	"ballast/planner/size/inputs"
)

// Asker asks the world for a cycle, and believes an answer for a while.
type Asker struct {
	*wiring.Options
	probed      probed
	last        answer // of Prometheus
	found       []conflicts.Finding
	conflictsAt time.Time
	resizable   *bool
	resizableAt time.Time
	around      around
	putBack     map[string]said // by webhook
}

// probed is the last answer of a probe.
type probed struct {
	at    time.Time
	holds bool
}

// said is what a webhook's pod said of whose writes it put back, and when.
type said struct {
	probing.PutBack
	at time.Time
}

// answer is Prometheus's last answer.
type answer struct {
	at      time.Time
	poll    config.Poll
	of      plan.Target // whose pods the queries select
	fetched []poll.Fetched
	owners  poll.Fetched
}

// The nodes of a large cluster are megabytes of answers, and change slowly.
const (
	manyNodes  = 500
	nodesEvery = 5 * time.Minute
)

// around is what was seen last beside the workload.
type around struct {
	at   time.Time
	of   plan.Target
	want inputs.Wants
	seen inputs.Surroundings
}

// lasts is how long it is planned with.
func (a around) lasts(interval time.Duration) time.Duration {
	if n := a.seen.Nodes; n != nil && n.Count > manyNodes {
		return max(interval, nodesEvery)
	}
	return interval
}
