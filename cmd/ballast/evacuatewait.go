package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ballast/planner/failover"
	"ballast/planner/plan"
)

// emptying is how far an evacuation is.
type emptying struct {
	left   []string // that are still to go
	moving int      // whose wave is not over: from there, or to there
	pinned []string // that stay by their pin, or by the one of another Secret of their server
	fixed  []string // that stay because nobody may write their Secret
	wave   string
	waits  string
}

func howEmpty(s planState, replica int, fixed map[string]bool, now time.Time) (emptying, error) {
	p, err := s.needPlan()
	if err != nil {
		return emptying{}, err
	}
	view := plan.NewView(*p, s.Pins)
	answer := failover.Evacuate(failover.Request{View: view, Fixed: fixed, Cordoned: []int{replica}, Budget: math.MaxInt}, now)
	stays := map[string]failover.NoteKind{}
	for _, n := range answer.Notes {
		stays[n.Cluster] = n.Kind
	}
	e := emptying{waits: s.waits()}
	for _, name := range sortedKeys(p.Clusters) {
		switch at, _, _ := view.Effective(name); {
		case at != replica:
		case contains(answer.Moves, name):
			e.left = append(e.left, name)
		case stays[name] == failover.PinnedStays:
			e.pinned = append(e.pinned, name)
		case stays[name] == failover.FixedStays:
			e.fixed = append(e.fixed, name)
		default: // nothing keeps it but that there is no room for it now
			e.left = append(e.left, name)
		}
	}
	if p.Rollout != nil {
		e.wave, e.moving = describeRollout(p.Rollout), onTheWay(*p.Rollout, view, replica)
	}
	return e, nil
}

// onTheWay counts the clusters of the present wave that come from the replica, whose new owners are awaited, or that go to it
// by a decision from before the cordon. Only a live rollout says where they came from: another is awaited whole.
func onTheWay(r plan.Rollout, view *plan.View, replica int) int {
	if r.Mode != plan.ModeLive {
		return len(r.Moves)
	}
	n := 0
	for name, from := range r.Was {
		if at, _, _ := view.Effective(name); from == replica && at != replica {
			n++
		}
	}
	for name, to := range r.Moves {
		if at, _, _ := view.Effective(name); to == replica && at != replica {
			n++
		}
	}
	return n
}

func contains[V any](m map[string]V, name string) bool { _, ok := m[name]; return ok }

// line is what is told, each time that it differs.
func (e emptying) line() string {
	s := fmt.Sprintf("%s to go, %d on the way", plural(len(e.left), "cluster"), e.moving)
	if e.wave != "" {
		s += "; " + e.wave
	}
	if e.waits != "" {
		s += "; it waits: " + e.waits
	}
	return s
}

// patience is how long one read may take while a command waits.
const patience = 10 * time.Second

func (m *planMap) readSoon(ctx context.Context) (planState, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return m.read(ctx)
}

// follow tells of each wave until the replica is empty. An API server that does not answer, or a plan that is being mended,
// is told and waited out: neither ends the evacuation.
func (o *evacuateOptions) follow(ctx context.Context, m *planMap, replica int, fixed map[string]bool, notes io.Writer) error {
	limit, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	told := ""
	var e emptying
	for {
		state, err := m.readSoon(ctx)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return err
		}
		if err == nil {
			if e, err = howEmpty(state, replica, fixed, o.now()); err == nil && len(e.left)+e.moving > 0 {
				if err := o.stillCordoned(state, replica, e); err != nil {
					return err
				}
			}
		}
		line := e.line()
		if err != nil {
			line = oneLine(err.Error())
		}
		if line != told && limit.Err() == nil {
			say(notes, "%s  %s\n", o.now().Format(time.TimeOnly), line)
			told = line
		}
		if err == nil && len(e.left)+e.moving == 0 {
			return e.ended(replica, m.key.Name, notes)
		}
		select {
		case <-limit.Done():
			return o.gaveUp(ctx, replica, e)
		case <-time.After(o.poll):
		}
	}
}

// ended says that the replica is empty, or what stays on it.
func (e emptying) ended(replica int, planMap string, notes io.Writer) error {
	if err := e.staying(replica, planMap); err != nil {
		return err
	}
	say(notes, "Replica %d is empty.\n", replica)
	return nil
}

// gaveUp is why the waiting ended.
func (o *evacuateOptions) gaveUp(ctx context.Context, replica int, e emptying) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; the evacuation goes on, and ballast evacuate %d --off ends it", replica)
	}
	return fmt.Errorf("replica %d is not empty after %s: %s to go (%s), %d on the way; the evacuation goes on", replica, o.timeout, plural(len(e.left), "cluster"), listed(e.left), e.moving)
}

// exitStays is the exit code where an evacuation is over and clusters stay: a node must not be drained by a script then.
const exitStays = 3

// staying is the error that names the clusters that no evacuation moves, with the mend; nil where there are none.
func (e emptying) staying(replica int, planMap string) error {
	var parts []string
	if n := len(e.pinned); n > 0 {
		parts = append(parts, fmt.Sprintf("%s there by a pin (%s): take the pin out of data.pins of ConfigMap %q, "+
			"or the annotation %s off the Secret, or pin to another replica", stay(n), named(e.pinned), planMap, plan.AnnotationPin))
	}
	if n := len(e.fixed); n > 0 {
		parts = append(parts, fmt.Sprintf("%s there because the Secret is immutable or unmanaged (%s): create it anew, "+
			"or take the annotation %s off", stay(n), named(e.fixed), plan.AnnotationUnmanaged))
	}
	if len(parts) == 0 {
		return nil
	}
	return exitError{fmt.Errorf("replica %d is not empty: %s; then evacuate it again", replica, strings.Join(parts, "; ")), exitStays}
}

func stay(clusters int) string {
	if clusters == 1 {
		return "1 cluster stays"
	}
	return plural(clusters, "cluster") + " stay"
}

// named lists more names than a table does: each has to be mended.
func named(names []string) string {
	const most = 50
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// stillCordoned ends the waiting where the cordon was taken away or is over.
func (o *evacuateOptions) stillCordoned(s planState, replica int, e emptying) error {
	cordons, err := s.cordons(o.now())
	if err != nil {
		return err
	}
	if !slices.Contains(plan.Cordoned(cordons, o.now()), replica) {
		return fmt.Errorf("the cordon of replica %d was taken away or is over, with %s to go (%s)", replica, plural(len(e.left), "cluster"), listed(e.left))
	}
	return nil
}
