package rollouts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ballast/e2e/gaps/timeline"
)

// figure is a line of the table: what a step cost.
type figure struct {
	mode      mode
	step      string
	moved     int             // clusters with another replica than before
	gaps      []time.Duration // without an owner, of each cluster that was
	doubled   []time.Duration // with two owners, of each cluster that was
	restarts  map[string]int  // of pods that ran when the step began
	disturbed []string        // clusters that stayed and yet lost their owner, or were taken up anew
	twice     []string        // clusters that moved more than once
	starts    []time.Duration // from a process's first line to each cluster that it took, of those that began in the step
	took      time.Duration
}

// figureOf reads a step's cost from the logs.
func figureOf(m mode, step string, c change) figure {
	moved := c.moved()
	f := figure{mode: m, step: step, moved: len(moved), restarts: restarts(c.timeline), starts: starts(c.timeline), took: c.timeline.To.Sub(c.asked)}
	if m == deployment {
		f.restarts = ended(c.timeline)
	}
	for _, a := range c.timeline.Accounts() {
		if gap := total(a.Unowned); gap > 0 {
			f.gaps = append(f.gaps, gap)
		}
		if doubled := total(a.Doubled); doubled > 0 {
			f.doubled = append(f.doubled, doubled)
		}
		if _, moves := moved[a.Cluster]; !moves && a.Touched {
			f.disturbed = append(f.disturbed, a.Cluster)
		} else if len(a.Moves) > 1 {
			f.twice = append(f.twice, a.Cluster)
		}
	}
	return f
}

func total(spans []timeline.Span) (d time.Duration) {
	for _, s := range spans {
		d += s.Length()
	}
	return d
}

// restarts count how often pods began that ran when the window opened. One that comes anew, as another pod of that name did
// before, is none of them.
func restarts(t timeline.Timeline) map[string]int {
	restarts := map[string]int{}
	for _, pod := range pods(t) {
		running := false
		for _, run := range t.Runs(pod) {
			switch {
			case run.From.Before(t.From):
				running = !run.To.Before(t.From)
			case running:
				restarts[pod]++
			}
		}
	}
	return restarts
}

// ended counts the processes that ran when the window opened, and ended in it: a Deployment's pods are not restarted, but
// other ones come for them.
func ended(t timeline.Timeline) map[string]int {
	ended := map[string]int{}
	for _, pod := range pods(t) {
		for _, run := range t.Runs(pod) {
			if run.From.Before(t.From) && run.To.After(t.From) && run.To.Before(t.To) {
				ended[pod]++
			}
		}
	}
	return ended
}

// pods are all that ever ran.
func pods(t timeline.Timeline) []string {
	seen := map[string]bool{}
	for _, e := range t.Events {
		seen[e.Pod] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// starts are how long processes that began in the window took until they had each of their clusters.
func starts(t timeline.Timeline) []time.Duration {
	var starts []time.Duration
	began, taken := map[string]time.Time{}, map[string]bool{}
	for _, e := range t.Events {
		at, running := began[e.Pod]
		switch key := e.Pod + " " + e.Server; {
		case e.At.Before(t.From) || e.At.After(t.To):
		case e.Kind == timeline.Began:
			began[e.Pod] = e.At
			maps.DeleteFunc(taken, func(key string, _ bool) bool { return strings.HasPrefix(key, e.Pod+" ") })
		case e.Kind == timeline.Syncing && running && !taken[key]:
			taken[key] = true
			starts = append(starts, e.At.Sub(at))
		}
	}
	return starts
}

// stopped is how long no process ran: that much of the time without owners is ballast's own doing.
func stopped(t timeline.Timeline) (longest time.Duration) {
	running, since := map[string]bool{}, time.Time{}
	for _, e := range t.Events {
		switch e.Kind {
		case timeline.Began:
			if len(running) == 0 && since.After(t.From) {
				longest = max(longest, e.At.Sub(since))
			}
			running[e.Pod] = true
		case timeline.Ended:
			if delete(running, e.Pod); len(running) == 0 {
				since = e.At
			}
		}
	}
	return longest
}

// table prints figures as they stand in docs/rollouts.md.
func table(figures []figure) string {
	var b strings.Builder
	line := "%-10s %-13s %5s %7s %8s %8s %10s %9s %8s %8s\n"
	fmt.Fprintf(&b, "\n"+line, "mode", "step", "moved", "unowned", "median", "longest", "two owners", "disturbed", "restarts", "took")
	for _, f := range figures {
		restarts := 0
		for n := range maps.Values(f.restarts) {
			restarts += n
		}
		fmt.Fprintf(&b, line, f.mode, f.step, fmt.Sprint(f.moved), fmt.Sprint(len(f.gaps)), seconds(timeline.Median(f.gaps)), seconds(timeline.Longest(f.gaps)),
			seconds(timeline.Longest(f.doubled)), fmt.Sprint(len(f.disturbed)), fmt.Sprint(restarts), seconds(f.took))
	}
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// spread is the shortest, the median and the longest of durations.
func spread(ds []time.Duration) string {
	if len(ds) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s, median %s, longest %s", seconds(slices.Min(ds)), seconds(timeline.Median(ds)), seconds(timeline.Longest(ds)))
}
