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

// counted is how many Applications there are, and when that was so.
type counted struct {
	namespace string
	of        ownership.Applications
	at        time.Time
	err       error
}

// count asks how many Applications there are, for as long as wait lasts. One listing goes on beside the cycles that wait for it no longer,
// and the last numbers stand meanwhile.
func (o *Observer) count(ctx, wait context.Context, namespace string, fleet discover.Fleet, age time.Duration) (counted, error) {
	if o.running == nil {
		running := make(chan counted, 1)
		o.running = running
		go func() {
			running <- o.list(ctx, namespace, fleet, age)
		}()
	}
	select {
	case now := <-o.running:
		o.running = nil
		if now.err == nil && now.of != nil {
			o.last = now
		}
		if now.namespace == namespace && !errors.Is(now.err, context.DeadlineExceeded) {
			return now.within(fleet), now.err
		}
	case <-wait.Done():
	}
	old, here := o.Clock.Now().Sub(o.last.at), o.last.namespace == namespace && o.last.of != nil
	if here && old >= 0 && old < standsFor {
		return o.last.within(fleet), nil
	}
	return counted{}, fmt.Errorf("listing Applications lasts longer than %s, and goes on beside: "+
		"nobody can tell yet which cluster has none", besideFor)
}

// list reads objects that anybody wrote, in a goroutine of its own: a panic is a listing that failed.
func (o *Observer) list(ctx context.Context, namespace string, fleet discover.Fleet, age time.Duration) (found counted) {
	defer func() {
		if p := recover(); p != nil {
			found = counted{namespace: namespace, err: fmt.Errorf("listing Applications ended in a panic of type %T", p)}
		}
	}()
	within, end := context.WithTimeout(ctx, listsFor)
	defer end()
	of, at, err := o.Count(within, namespace, fleet, age)
	return counted{namespace, of, at, err}
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
