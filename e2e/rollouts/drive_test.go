package rollouts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// change is one step of a mode: what was there before and after, and what the processes' logs tell of it.
type change struct {
	timeline      timeline.Timeline
	before, after map[string]int // replica of each cluster
	asked         time.Time
	marks         []timeline.Mark
}

// moved are the clusters that got another replica.
func (c change) moved() map[string]int {
	moved := map[string]int{}
	for name, to := range c.after {
		if c.before[name] != to {
			moved[name] = to
		}
	}
	return moved
}

// goal is what a step waits for: that many replicas, no rollout, every cluster with the owner that the plan names and, but
// for one that is not to be levelled yet, nothing that would still move. reached, which may be nil, is what else there must be.
type goal struct {
	replicas int
	unlevel  bool
	reached  func(context.Context, site.Plan) error
}

// drive does something and waits until ballast is done with it.
func (w *world) drive(t *testing.T, g goal, do func(context.Context) error) change {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	before, err := w.owners(ctx, time.Now())
	must(t, err)
	c := change{before: before, asked: time.Now()}
	w.marks = nil
	defer func() {
		if t.Failed() {
			t.Log(w.LastWords(context.WithoutCancel(ctx), 20))
		}
	}()
	must(t, do(ctx))
	must(t, site.Poll(ctx, func(ctx context.Context) error {
		plan, err := w.observed(ctx)
		if err == nil {
			err = cmp.Or(resting(plan, g.replicas), w.Ready(ctx, g.replicas))
		}
		if err == nil && g.reached != nil {
			err = g.reached(ctx, *plan)
		}
		if err == nil && !g.unlevel {
			err = w.Settled(ctx, c.asked)
		}
		if err != nil {
			return err
		}
		c.after = w.rows(plan)
		return w.ownedAs(ctx, c.after)
	}))
	c.timeline, err = w.timeline(c.asked, time.Now())
	must(t, err)
	c.marks = w.marks
	return c
}

// observed is the plan, whose stages become marks.
func (w *world) observed(ctx context.Context) (*site.Plan, error) {
	p, err := w.Plan(ctx)
	if err != nil || p == nil {
		return p, cmp.Or(err, errors.New("there is no plan yet"))
	}
	text, err := stage(p)
	if n := len(w.marks); err == nil && text != "" && (n == 0 || w.marks[n-1].Text != text) {
		var at time.Time
		at, err = time.Parse(time.RFC3339, p.Annotation("decided-at"))
		w.marks = append(w.marks, timeline.Mark{At: at, Text: text})
	}
	return p, err
}

// stage is the one under way in a picture's words, empty where there is nothing to see.
func stage(p *site.Plan) (string, error) {
	var waves struct {
		Rollout struct{ Wave int }
	}
	if err := yaml.Unmarshal([]byte(p.Text), &waves); err != nil {
		return "", fmt.Errorf("reading the wave of revision %d: %w", p.Revision, err)
	}
	switch r := p.Rollout; {
	case r == nil:
		return "", nil
	case len(r.Moves) > 0 && waves.Rollout.Wave > 0:
		return fmt.Sprintf("wave %d", waves.Rollout.Wave), nil
	case r.Stage == "Moving":
		return "", nil // its first wave is about to begin
	default:
		return r.Stage, nil
	}
}

func resting(p *site.Plan, replicas int) error {
	why := p.Annotation("reason")
	switch {
	case p.Rollout != nil:
		return fmt.Errorf("stage %s is under way: %s", p.Rollout.Stage, why)
	case p.Replicas != replicas:
		return fmt.Errorf("the plan is for %d replicas, want %d: %s", p.Replicas, replicas, why)
	}
	return nil
}

// rows are the plan's for the clusters that have a Secret.
func (w *world) rows(p *site.Plan) map[string]int {
	rows := p.Replica()
	maps.DeleteFunc(rows, func(name string, _ int) bool {
		return !slices.ContainsFunc(w.Clusters, func(c timeline.Cluster) bool { return c.Name == name })
	})
	return rows
}

// timeline is the site's, with the processes that were stopped.
func (w *world) timeline(from, to time.Time) (timeline.Timeline, error) {
	t, err := w.Timeline(from, to)
	t.Events = append(t.Events, w.hung...)
	slices.SortStableFunc(t.Events, func(a, b timeline.Event) int { return a.At.Compare(b.At) })
	return t, err
}

// owners are the replicas that own the clusters by the logs. It is an error while one has none, two, or is not synced yet.
func (w *world) owners(ctx context.Context, at time.Time) (map[string]int, error) {
	t, err := w.timeline(at, at)
	if err != nil {
		return nil, err
	}
	replica, err := w.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	of := map[string]int{}
	for _, c := range w.Clusters {
		pod, err := t.Owner(c)
		if err != nil {
			return nil, err
		}
		of[c.Name] = replica(pod)
	}
	return of, nil
}

// maxReplicas is the default of partition.maxReplicas, and what mode live holds the env at.
const maxReplicas = 16

func (w *world) ownedAs(ctx context.Context, rows map[string]int) error {
	owners, err := w.owners(ctx, time.Now())
	if err != nil {
		return err
	}
	for _, c := range w.Clusters {
		if owners[c.Name] != rows[c.Name] {
			return fmt.Errorf("cluster %q is owned by replica %d, want %d", c.Name, owners[c.Name], rows[c.Name])
		}
	}
	return nil
}
