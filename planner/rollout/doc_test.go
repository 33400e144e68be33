package rollout

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// row is one of the table for readers: a stage of a path, and its columns.
type row struct{ mode, path, stage, counts, rows, late string }

// documented reads the table for readers. A cell that goes on in the next line is one.
func documented(t *testing.T) (all []row) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	heads := []string{"stage ", "replicas", "rows", "waits until", "past its deadline"}
	at := make([]int, len(heads))
	mode, path := "", ""
	for _, found := range regexp.MustCompile(`(?m)^//\t(.*)$`).FindAllStringSubmatch(string(text), -1) {
		line := found[1]
		if head := regexp.MustCompile(`^(default|live|x0y) +stage `).FindStringSubmatch(line); head != nil {
			mode, path = head[1], ""
			for i, name := range heads {
				at[i] = strings.Index(line, name)
			}
			continue
		}
		cell := func(i int) string {
			end := len(line)
			if i+1 < len(at) {
				end = min(end, at[i+1])
			}
			return strings.TrimSpace(line[min(at[i], len(line)):end])
		}
		if name := strings.TrimSpace(line[:min(at[0], len(line))]); name != "" {
			path = name
		}
		if cell(0) != "" {
			all = append(all, row{mode, path, cell(0), cell(1), cell(2), cell(4)})
		} else if last := &all[len(all)-1]; cell(4) != "" {
			last.late += " " + cell(4)
		}
	}
	return all
}

// TestTheDocHasEveryStage holds the table for readers to the one that the code goes by.
func TestTheDocHasEveryStage(t *testing.T) {
	var names, known []string
	for _, r := range documented(t) {
		names = append(names, r.mode+" "+r.stage)
	}
	for _, s := range stages() {
		known = append(known, s.mode+" "+string(s.stage))
	}
	slices.Sort(names)
	slices.Sort(known)
	if diff := cmp.Diff(known, slices.Compact(names)); diff != "" {
		t.Errorf("stages (-code +doc):\n%s", diff)
	}
}

// passage is a stage of a rollout as it went: what the plan held when it began, and what becomes of it past its deadline.
type passage struct {
	stage plan.Stage
	held  plan.Count
	rows  string
	late  Outcome
}

// pass takes a plan into force on a fleet where all goes well.
func pass(t *testing.T, f *fleet, p plan.Plan, target shards, o basis.Options) (passed []passage) {
	t.Helper()
	for range 500 {
		if p.Rollout == nil {
			return passed
		}
		view, seen := plan.NewView(p, nil), f.seen()
		stage, n := p.Rollout.Stage, len(passed)
		if n == 0 || passed[n-1].stage != stage {
			carried := shards{}
			for name, row := range p.Clusters {
				carried[name] = row.Replica
			}
			held := plan.Count{Replicas: p.Replicas, ControllerReplicas: p.ControllerReplicas}
			passed = append(passed, passage{stage, held, listed(carried), Idle})
			n++
		}
		last := &passed[n-1]
		wave := last.late == Advanced && len(p.Rollout.Moves) > 0 // the stage began without one
		if wave || last.late == Idle || last.late == Waiting {
			_, progress := Advance(view, seen, target, o, p.Rollout.Since.Add(2*o.StageTimeout))
			last.late = progress.Outcome
		}
		for _, step := range diff.Between(view, seen, diff.Options{Nudge: true, Now: f.at}).Steps {
			f.do(step)
		}
		f.tick()
		p, _ = Advance(view, f.seen(), target, o, f.at)
	}
	t.Fatalf("the rollout does not end: %+v, %s", p.Rollout, f)
	return nil
}

// lateWords are how the table says what came of a stage past its deadline. What goes on from the last stage ends.
var lateWords = map[Outcome][]string{
	TurnedBack: {"Reverting"}, GaveUp: {"ends"}, Reverted: {"ends"}, Advanced: {"goes on"}, Finished: {"ends", "goes on"}}

// compare holds a row of the table to a stage as it went. Where a column has several words, one of them is meant.
func (r row) compare(t *testing.T, is passage, counts, envs map[string]int, carries map[string]shards) {
	t.Helper()
	replicas, env, _ := strings.Cut(r.counts, ", ")
	holds := func(word string) bool { count, known := counts[word]; return known && count == is.held.Replicas }
	if !slices.ContainsFunc(strings.Split(replicas, " or "), holds) {
		t.Errorf("%s holds %d replicas; the doc says %q of %v", r.stage, is.held.Replicas, replicas, counts)
	}
	if held, told := envs[env]; told && is.held.ControllerReplicas != held {
		t.Errorf("%s holds the env at %d; the doc says %q of %v", r.stage, is.held.ControllerReplicas, env, envs)
	}
	if listed(carries[r.rows]) != is.rows {
		t.Errorf("%s begins with the rows %s; the doc says %q", r.stage, is.rows, r.rows)
	}
	if !slices.ContainsFunc(lateWords[is.late], func(word string) bool { return strings.Contains(r.late, word) }) {
		t.Errorf("%s past its deadline is %s; the doc says %q", r.stage, is.late, r.late)
	}
}

// TestTheDocSaysWhatStagesDo drives a rollout down each path of the table, and compares: the stages in their order, how many replicas
// and which env the plan holds in each, whether its rows are the old or the new ones, and what becomes of it past its deadline.
func TestTheDocSaysWhatStagesDo(t *testing.T) {
	const n, e = 2, 16
	before := shards{"a": 0, "b": 1, "c": 0}
	larger, smaller, level := shards{"a": 0, "b": 1, "c": 2}, shards{"a": 0, "b": 0, "c": 0}, shards{"a": 0, "b": 1, "c": 1}
	for name, way := range map[string]struct {
		mode  string
		paths []string // of the table, one after the other
		y     int
		after shards
		env   int
	}{
		"default growing":   {plan.ModeDefault, []string{"growing"}, 3, larger, n},
		"default shrinking": {plan.ModeDefault, []string{"shrinking"}, 1, smaller, n},
		"default level":     {plan.ModeDefault, []string{"level"}, n, level, n},
		"live adoption":     {plan.ModeLive, []string{"adoption", "waves"}, n, level, n},
		"live growing":      {plan.ModeLive, []string{"growing", "waves"}, 3, larger, e},
		"live level":        {plan.ModeLive, []string{"waves"}, n, level, e},
		"live shrinking":    {plan.ModeLive, []string{"waves", "shrinking"}, 1, smaller, e},
		"x0y":               {plan.ModeX0Y, []string{""}, 3, larger, n},
	} {
		t.Run(name, func(t *testing.T) {
			var doc []row
			for _, path := range way.paths {
				for _, r := range documented(t) {
					if r.mode == way.mode && r.path == path {
						doc = append(doc, r)
					}
				}
			}
			o := basis.Options{Mode: way.mode, StageTimeout: time.Hour, DrainTimeout: time.Hour, MaxMovesPerWave: 5, Budget: math.MaxInt,
				RolloutRestart: true}
			f := newFleet(n, way.env, before)
			wants := Proposal{Replicas: way.y, ControllerReplicas: max(way.y, n), Rows: rows(way.after)}
			p, err := Begin(newPlan(n, way.env, before), wants, o, f.at)
			if err != nil {
				t.Fatal(err)
			}
			counts, envs := map[string]int{"N": n, "Y": way.y, "0": 0}, map[string]int{"E": e, "as it is": way.env}
			carries := map[string]shards{"old": before, "new": way.after, "wave": before} // a wave's rows change after it began
			var want, got []string
			passed := pass(t, f, p, way.after, o)
			for i, r := range doc {
				want = append(want, r.stage)
				if i < len(passed) && string(passed[i].stage) == r.stage {
					r.compare(t, passed[i], counts, envs, carries)
				}
			}
			for _, is := range passed {
				got = append(got, string(is.stage))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("stages (-doc +code):\n%s", diff)
			}
		})
	}
}
