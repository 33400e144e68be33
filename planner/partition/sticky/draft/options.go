package draft

import (
	"fmt"

	"ballast/planner/plan"
)

// Options are shares of the capacity in plan.LoadUnit (950_000_000 is 0.95), and limits. 0 stands for the default.
type Options struct {
	High   plan.Load // a replica above it gives items up; 0.95
	Down   plan.Load // ... until it is at or below this, so that it is not above High again at once; High
	Low    plan.Load // a replica that takes some stays at or below it; 0.85
	Drain  plan.Load // the highest replica goes once the others stay at or below it; 0.80
	Useful plan.Load // a replica that gives items up gives up this much at least; 0.02

	Even     plan.Load              // an even share of before: it counts where it is larger, up to half as much more than the present one
	MaxMoves int                    // for overload and drain, of one call; 0: no limit
	DrainDue bool                   // the highest replica may be drained now
	Patient  func(replica int) bool // nothing is done for that replica's sake now; nil: for every one there is
	Budget   int                    // steps; 0: 200 an item and 2 million
}

// The defaults.
const (
	DefaultHigh   = plan.LoadUnit * 95 / 100
	DefaultLow    = plan.LoadUnit * 85 / 100
	DefaultDrain  = plan.LoadUnit * 80 / 100
	DefaultUseful = plan.LoadUnit * 2 / 100
)

// Complete fills in the defaults for so many items, and refuses what no plan can keep to.
func (o Options) Complete(items int) (Options, error) {
	for _, d := range []struct {
		share     *plan.Load
		otherwise plan.Load
	}{{&o.High, DefaultHigh}, {&o.Low, DefaultLow}, {&o.Drain, DefaultDrain}, {&o.Useful, DefaultUseful}} {
		if *d.share == 0 {
			*d.share = d.otherwise
		}
		if *d.share < 0 || *d.share > 8*plan.LoadUnit {
			return o, fmt.Errorf("partitioning from the plan in force: a share of the capacity is %s, and it is between 0 and 8", *d.share)
		}
	}
	if o.Down == 0 {
		o.Down = o.High
	}
	if o.Down > o.High || o.Down < o.Low {
		return o, fmt.Errorf("partitioning from the plan in force: down (%s) is between low (%s) and high (%s)", o.Down,
			o.Low, o.High)
	}
	if o.Low > o.High || o.Drain > o.Low {
		return o, fmt.Errorf("partitioning from the plan in force: drain (%s), low (%s) and high (%s) ascend", o.Drain,
			o.Low, o.High)
	}
	if o.MaxMoves < 0 || o.Budget < 0 {
		return o, fmt.Errorf("partitioning from the plan in force: maxMoves (%d) and budget (%d) are 0 or more",
			o.MaxMoves, o.Budget)
	}
	if o.Budget == 0 {
		o.Budget = 2_000_000 + 200*items
	}
	return o, nil
}
