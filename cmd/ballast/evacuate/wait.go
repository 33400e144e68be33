package evacuate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/cycle/preview"
	"ballast/planner/failover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/people"
	"ballast/planner/sharding"
)

// Emptying is how far an evacuation is.
type Emptying struct {
	Left     []string // that are still to go
	moving   int      // whose wave is not over: from there, or to there
	pinned   []string // that stay by their pin, or by the one of another Secret of their server
	Fixed    []string // that stay because ballast does not move them
	implicit []string // that stay because they have no Secret
	unknown  []string // that may be there
	unseen   string   // what could not be read, so that others may be there
	wave     string
	waits    string
}

// over reports whether nothing more is going to leave.
func (e Emptying) over() bool { return len(e.Left)+e.moving == 0 }

// HowEmpty is what a replica has left to give away, by the plan and the Secrets.
func HowEmpty(s steer.State, replica int, secrets steer.Standing, now time.Time) (Emptying, error) {
	p, err := s.NeedPlan()
	if err != nil {
		return Emptying{}, err
	}
	pins := secrets.Pins
	if pins == nil {
		pins = s.Pins
	}
	view := plan.NewView(*p, pins)
	e := rowsLeft(s.Document, view, replica, secrets, now)
	e.waits, e.unseen = s.Waits(), secrets.Unseen
	b := secrets.Beside(*p, view, replica)
	e.Left, e.Fixed = join(e.Left, b.Drifted), join(e.Fixed, b.Fixed)
	e.implicit, e.unknown = b.Implicit, b.Unknown
	if p.Rollout != nil {
		e.wave, e.moving = say.Rollout(p.Rollout), onTheWay(*p.Rollout, view, replica)
	}
	return e, nil
}

// rowsLeft are the clusters that the plan has on the replica.
func rowsLeft(doc configmap.Document, view *plan.View, replica int, secrets steer.Standing, now time.Time) Emptying {
	in := secrets.Inputs(doc, now)
	in.Cordon = people.FormatCordons([]people.Cordon{{Replica: replica, Until: now.Add(time.Hour)}})
	answer := preview.PreviewEvacuation(in, secrets.Unwell(now)...)
	stays := map[string]failover.NoteKind{}
	for _, n := range answer.Notes {
		stays[n.Cluster] = n.Kind
	}
	var e Emptying
	for _, name := range slices.Sorted(maps.Keys(doc.Plan.Clusters)) {
		switch at, _, _ := view.Effective(name); {
		case at != replica:
		case steer.Has(answer.Moves, name):
			e.Left = append(e.Left, name)
		case stays[name] == failover.PinnedStays:
			e.pinned = append(e.pinned, name)
		case stays[name] == failover.FixedStays:
			e.Fixed = append(e.Fixed, name)
		default: // nothing keeps it but that there is no room for it now
			e.Left = append(e.Left, name)
		}
	}
	return e
}

// join sorts two lists into one.
func join(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	return slices.Sorted(slices.Values(slices.Concat(a, b)))
}

// onTheWay counts the clusters of the present wave that come from the replica, whose new owners are awaited, or that go
// to it by a decision from before the cordon. Only a live rollout says where they came from: another is awaited whole.
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

// line is what is told, each time that it differs.
func (e Emptying) line() string {
	s := fmt.Sprintf("%s to go, %d on the way", say.Plural(len(e.Left), "cluster"), e.moving)
	if e.wave != "" {
		s += "; " + e.wave
	}
	if e.waits != "" {
		s += "; it waits: " + e.waits
	}
	return s
}

// patience is how long one look may take while a command waits: 5,000 Secrets over a slow line.
const patience = 30 * time.Second

// watched is what a command that waits knows of the Secrets, and since when.
type watched struct {
	secrets steer.Standing
	version string // of the plan ConfigMap
	at      time.Time
}

// secretsEvery is how often the Secrets are read beside an unchanged plan: 5,000 of them are some MiB.
const secretsEvery = 30 * time.Second

// look says how far an evacuation is. That nothing is left is never said by Secrets that were read before.
func (o *options) look(ctx context.Context, m *steer.PlanMap, replica int, w *watched) (steer.State, Emptying, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state, err := m.Read(ctx)
	if err != nil {
		return state, Emptying{}, err
	}
	e, err := HowEmpty(state, replica, w.secrets, o.Now())
	stale := w.version != state.Version || time.Since(w.at) > secretsEvery
	if err != nil || !stale && !e.over() {
		return state, e, err
	}
	secrets, err := m.StandsWhere(ctx, state.Document, io.Discard) // it is noted once, at the start
	if err != nil {
		return state, Emptying{}, err
	}
	*w = watched{secrets, state.Version, time.Now()}
	e, err = HowEmpty(state, replica, w.secrets, o.Now())
	return state, e, err
}

// follow tells of each wave until the replica is empty. An API server that does not answer, or a plan that is being
// mended, is told and waited out: neither ends the evacuation.
func (o *options) follow(ctx context.Context, m *steer.PlanMap, replica int, notes io.Writer) error {
	limit, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	told := ""
	var seen watched
	var e Emptying // as it was when it could be told last
	for {
		state, now, err := o.look(ctx, m, replica, &seen)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return err
		}
		var line string
		if err != nil {
			line = say.OneLine(err.Error())
		} else {
			e, line = now, now.line()
			if err := o.stillCordoned(state, replica, e); err != nil {
				return err
			}
		}
		if line != told && limit.Err() == nil {
			say.To(notes, "%s  %s\n", o.Now().Format(time.TimeOnly), line)
			told = line
		}
		if err == nil && e.over() {
			return e.ended(replica, m.Key.Name, notes)
		}
		select {
		case <-limit.Done():
			return o.gaveUp(ctx, replica, e)
		case <-time.After(o.poll):
		}
	}
}

// ended says that the replica is empty, or what stays on it.
func (e Emptying) ended(replica int, planMap string, notes io.Writer) error {
	if err := e.staying(replica, planMap); err != nil {
		return err
	}
	say.To(notes, "Replica %d is empty.\n", replica)
	return nil
}

// gaveUp is why the waiting ended.
func (o *options) gaveUp(ctx context.Context, replica int, e Emptying) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; the evacuation goes on, and ballast evacuate %d --off ends it", replica)
	}
	return fmt.Errorf("replica %d is not empty after %s: %s to go (%s), %d on the way; the evacuation goes on",
		replica, o.timeout, say.Plural(len(e.Left), "cluster"), say.Listed(e.Left), e.moving)
}

// exitStays is the exit code where an evacuation is over and clusters stay: a node must not be drained by a script
// then.
const exitStays = 3

// staying is the error that names the clusters that no evacuation moves, with the mend, and what cannot be told; nil
// where the replica is known to be empty.
func (e Emptying) staying(replica int, planMap string) error {
	var parts []string
	add := func(names []string, format string, more ...any) {
		if n := len(names); n > 0 {
			parts = append(parts, fmt.Sprintf("%s there "+format, append([]any{stay(n), named(names)}, more...)...))
		}
	}
	add(e.pinned, "by a pin (%s): take the pin out of data.pins of ConfigMap %q, "+
		"or the annotation %s off the Secret, or pin to another replica", planMap, plan.AnnotationPin)
	add(e.Fixed, "because the Secret is immutable, unmanaged or not of discover.selector (%s): create it anew, "+
		"or take the annotation %s off, or let the selector have it", plan.AnnotationUnmanaged)
	add(e.implicit, "because it has no Secret (%s): create a cluster Secret with the server %s", plan.InClusterServer)
	if e.unknown == nil && e.unseen == "" {
		if len(parts) == 0 {
			return nil
		}
		return say.ExitWith(exitStays, fmt.Errorf("replica %d is not empty: %s; then evacuate it again", replica,
			strings.Join(parts, "; ")))
	}
	if len(e.unknown) > 0 {
		parts = append(parts, fmt.Sprintf("%s may be there (%s), for Argo CD's %s decides: give the Secret a data.shard",
			say.Plural(len(e.unknown), "cluster"), named(e.unknown), sharding.ConsistentHashing))
	}
	if e.unseen != "" {
		parts = append(parts, "not seen are "+e.unseen)
	}
	return fmt.Errorf("no cluster of the plan is to leave replica %d any more, and whether it is empty cannot be told: %s; then evacuate it again",
		replica, strings.Join(parts, "; "))
}

func stay(clusters int) string {
	if clusters == 1 {
		return "1 cluster stays"
	}
	return say.Plural(clusters, "cluster") + " stay"
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
func (o *options) stillCordoned(s steer.State, replica int, e Emptying) error {
	if e.over() {
		return nil
	}
	cordons, err := s.Cordons(o.Now())
	if err != nil {
		return err
	}
	if !slices.Contains(people.Cordoned(cordons, o.Now()), replica) {
		return fmt.Errorf("the cordon of replica %d was taken away or is over, with %s to go (%s)",
			replica, say.Plural(len(e.Left), "cluster"), say.Listed(e.Left))
	}
	return nil
}
