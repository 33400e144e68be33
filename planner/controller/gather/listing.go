package gather

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
)

const (
	// listsFor is how long one listing of Applications may go on beside cycles: some 300,000 of them take a minute.
	listsFor = 5 * time.Minute
	// standsFor is how long the last numbers stand while a listing goes on, or none ends.
	standsFor = 30 * time.Minute
)

// count asks how many Applications there are, for as long as wait lasts. One listing goes on beside the cycles that
// wait for it no longer, and the last numbers stand meanwhile.
func (o *Observer) count(
	ctx, wait context.Context, a *asked, ask Count, namespace string, fleet discover.Fleet, age time.Duration,
) (counted, error) {
	if a.running == nil {
		running := make(chan counted, 1)
		a.running = running
		go func() {
			found := ask.listed(ctx, namespace, fleet, age)
			found.ended = o.Clock.Now()
			running <- found
		}()
	}
	select {
	case now := <-a.running:
		a.running = nil
		if o.Clock.Now().Sub(now.ended) >= standsFor { // nobody asked since
			return o.count(ctx, wait, a, ask, namespace, fleet, age)
		}
		if now.err == nil && now.of != nil {
			a.last = now
		}
		if now.namespace == namespace && !errors.Is(now.err, context.DeadlineExceeded) {
			return now.within(fleet), now.err
		}
	case <-wait.Done():
	}
	now := o.Clock.Now()
	if a.last.at.After(now) { // by a clock that was ahead
		a.last.at = now
	}
	old, here := now.Sub(a.last.at), a.last.namespace == namespace && a.last.of != nil
	if here && old < standsFor {
		return a.last.within(fleet), nil
	}
	return counted{}, fmt.Errorf("listing Applications lasts longer than %s, and goes on beside: "+
		"nobody can tell yet which cluster has none", besideFor)
}

// listed reads objects that anybody wrote, in a goroutine of its own: a panic is a listing that failed.
func (ask Count) listed(ctx context.Context, namespace string, fleet discover.Fleet, age time.Duration) (found counted) {
	defer func() {
		if p := recover(); p != nil {
			found = counted{namespace: namespace, err: fmt.Errorf("listing Applications ended in a panic of type %T",
				p)}
		}
	}()
	within, end := context.WithTimeout(ctx, listsFor)
	defer end()
	of, at, err := ask(within, namespace, fleet, age)
	return counted{namespace: namespace, of: of, at: at, err: err}
}

// within is those numbers for a fleet: of a server that was not asked for then, none is known.
func (c counted) within(fleet discover.Fleet) counted {
	if c.of == nil {
		return c
	}
	c.of = maps.Clone(c.of)
	for _, unit := range fleet.Units {
		server := plan.NormalizeServer(unit.Server)
		if _, asked := c.of[server]; !asked {
			c.of[server] = ownership.Unknown
		}
	}
	return c
}
