package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/loads"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/poll"
)

// fullWindow is for how long a fleet is measured before that says what is usual.
const fullWindow = 3*time.Hour + 10*time.Minute

// cold is a fleet of 20 clusters by the default metrics, of which events are seen as they usually are, or as a share of it.
func cold(t *testing.T) (w *world, see func(events float64)) {
	t.Helper()
	w = newWorld(slices.Repeat([]float64{1}, 20)...)
	w.in.Config.Poll.Prometheus.Metrics, w.in.Config.Index.PNorm.Weights = nil, nil
	return w, func(events float64) {
		w.in.Fetched = nil
		for _, m := range loads.MetricsOf(w.in.Config) {
			f := poll.Fetched{Metric: m.ID}
			for i, s := range w.in.Discovered.Secrets {
				v := map[string]float64{"objects": 1000, "events": events * 10 * float64(1+i%5), "reconciles": 2, "apps": 20}[m.ID]
				f.Samples = append(f.Samples, poll.Sample{Key: s.Server, Value: v, At: w.in.Now})
			}
			w.in.Fetched = append(w.in.Fetched, f)
		}
	}
}

// shares are what each metric makes of the fleet's load, by the references in force.
func shares(t *testing.T, w *world) map[string]string {
	t.Helper()
	sum, each := 0.0, map[string]float64{}
	for _, col := range w.last.Table.Columns {
		var ref float64
		if _, err := fmt.Sscan(w.in.InForce.References[col.ID], &ref); err != nil {
			t.Fatal(err)
		}
		for _, v := range col.Values {
			each[col.ID] += poll.DefaultWeights()[col.ID] * v / ref
		}
		sum += each[col.ID]
	}
	got := map[string]string{}
	for id, load := range each {
		got[id] = fmt.Sprintf("%.1f%%", 100*load/sum)
	}
	return got
}

// TestAFleetMeasuredInItsFirstMinutesIsMeasuredAnew: in the minutes after Prometheus began to see the pods events are a 64th
// of what they are. By references of then they would be 96 % of the load for ever.
func TestAFleetMeasuredInItsFirstMinutesIsMeasuredAnew(t *testing.T) {
	w, see := cold(t)
	see(1.0 / 64)
	first := w.cycle()
	if want := "the references of apps, events, objects, reconciles are taken anew at " + w.in.Now.Add(3*time.Hour+10*time.Minute).Format(time.RFC3339); !strings.Contains(first.Reason, want) {
		t.Errorf("the first plan says %q, want that %s", first.Reason, want)
	}
	begun := w.in.Now
	var told []string
	for range 24 * 6 {
		w.in.Now = w.in.Now.Add(10 * time.Minute)
		see(1)
		if out := w.cycle(); out.Changed && strings.Contains(out.Reason, "references") {
			told = append(told, fmt.Sprintf("%s: %s", w.in.Now.Sub(begun), out.Reason))
		}
		if age := w.in.Now.Sub(begun); age == 3*time.Hour { // not yet
			if got := shares(t, w)["events"]; got != "95.5%" {
				t.Fatalf("after %s events make %s of the load", age, got)
			}
		}
	}
	want := []string{"3h10m0s: took references anew, a full window is measured now: events 600 instead of 9.375"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("the reasons (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"apps": "12.5%", "events": "25.0%", "objects": "37.5%", "reconciles": "25.0%"}, shares(t, w)); diff != "" {
		t.Errorf("what each metric makes of the load a day later (-want +got):\n%s", diff)
	}
	if len(w.in.Memory.Young) > 0 {
		t.Errorf("a day later these references are young: %v", w.in.Memory.Young)
	}
}

// TestReferencesStayWhereAFullWindowShowsTheSame, or nothing that is believed, and while a rollout is under way.
func TestReferencesStayWhereAFullWindowShowsTheSame(t *testing.T) {
	w, see := cold(t)
	see(1)
	w.cycle()
	before := w.in.InForce.References
	w.in.Now = w.in.Now.Add(fullWindow)
	see(1.2)
	if w.cycle(); !cmp.Equal(before, w.in.InForce.References) || w.in.InForce.Revision != 1 {
		t.Errorf("by a fifth more events the references of revision %d are %v, want %v of 1", w.in.InForce.Revision, w.in.InForce.References, before)
	}
	w.in.Now = w.in.Now.Add(24 * time.Hour)
	see(50)
	if w.cycle(); !cmp.Equal(before, w.in.InForce.References) {
		t.Errorf("old references changed: %v, want %v", w.in.InForce.References, before)
	}

	frozen, see := cold(t)
	see(1.0 / 64)
	frozen.cycle()
	before = frozen.in.InForce.References
	frozen.in.Now = frozen.in.Now.Add(fullWindow)
	see(1)
	frozen.in.Fetched[0].Err, frozen.in.Fetched[0].Samples = "away", nil
	if out := frozen.cycle(); !out.Table.Frozen || !cmp.Equal(before, frozen.in.InForce.References) {
		t.Errorf("by metrics that are not believed (%t): %v, want %v", out.Table.Frozen, frozen.in.InForce.References, before)
	}
	for age := time.Minute; age <= fullWindow; age += time.Minute {
		frozen.in.Now = frozen.in.Now.Add(time.Minute)
		see(1)
		if frozen.cycle(); (frozen.in.InForce.References["events"] == "600") != (age >= fullWindow) {
			t.Fatalf("believed for %s again: %v", age, frozen.in.InForce.References)
		}
	}
}

// TestAPersonHasReferencesTakenAnew once a day, whatever is asked in between, and where there are none is told so.
func TestAPersonHasReferencesTakenAnew(t *testing.T) {
	w, see := cold(t)
	see(1)
	w.cycle()
	w.in.Now = w.in.Now.Add(30 * 24 * time.Hour)
	see(2) // the fleet grew, and nobody wants that in its scale
	w.in.Rebase = configmap.RebaseAnew
	out := w.cycle()
	if want := "took references anew, as a person asked: events 1200 instead of 600"; !out.Rebased || out.Reason != want || w.in.InForce.References["events"] != "1200" {
		t.Errorf("done: %t, %v because %q, want %q", out.Rebased, w.in.InForce.References, out.Reason, want)
	}
	asked := w.in.Now
	for _, test := range []struct {
		after time.Duration
		told  []string
		want  string
	}{
		{time.Minute, nil, "1200"}, // the annotation stood still
		{10 * time.Minute, []string{"normalize/RebaseRefused/" + plan.AnnotationRebase}, "1200"},
		{23*time.Hour + 59*time.Minute, []string{"normalize/RebaseRefused/" + plan.AnnotationRebase}, "1200"},
		{24 * time.Hour, nil, "1800"},
	} {
		w.in.Now = asked.Add(test.after)
		see(3)
		out := w.cycle()
		told := slices.DeleteFunc(problems(out), func(p string) bool { return !strings.Contains(p, "Rebase") })
		if diff := cmp.Diff(test.told, told); diff != "" || !out.Rebased || w.in.InForce.References["events"] != test.want {
			t.Errorf("%s later: answered %t, events %s, want %s; told (-want +got):\n%s", test.after, out.Rebased, w.in.InForce.References["events"], test.want, diff)
		}
	}
	w.in.Config.Normalize = config.Normalize{None: &config.None{}}
	w.in.Now = asked.Add(7 * 24 * time.Hour)
	if out := w.cycle(); !out.Rebased || !slices.Contains(problems(out), "normalize/RebaseRefused/"+plan.AnnotationRebase) {
		t.Errorf("without references: answered %t, %v", out.Rebased, problems(out))
	}
}

// TestARebaseIsUndone once, and where there is nothing to undo a person is told so.
func TestARebaseIsUndone(t *testing.T) {
	w, see := cold(t)
	see(1)
	w.cycle()
	w.in.Rebase, w.in.Now = configmap.RebaseBack, w.in.Now.Add(30*24*time.Hour)
	see(1)
	if out := w.cycle(); !out.Rebased || !slices.Contains(problems(out), "normalize/RebaseRefused/"+plan.AnnotationRebase) {
		t.Errorf("before any rebase: answered %t, %v", out.Rebased, problems(out))
	}
	see(2)
	w.in.Rebase = configmap.RebaseAnew
	w.cycle()
	if got := w.in.InForce.References["events"]; got != "1200" {
		t.Fatalf("events %s, want 1200", got)
	}
	w.in.Rebase, w.in.Now = configmap.RebaseBack, w.in.Now.Add(time.Hour)
	see(2)
	w.in.Fetched[0].Err = "away"
	if out := w.cycle(); out.Rebased || w.in.InForce.References["events"] != "1200" {
		t.Errorf("by metrics that are not believed: answered %t, events %s", out.Rebased, w.in.InForce.References["events"])
	}
	see(3)
	w.in.Fetched[0].Err = ""
	out := w.cycle()
	if want := "took the references of before back, as a person asked: events 600 instead of 1200"; !out.Rebased || out.Reason != want || w.in.InForce.References["events"] != "600" {
		t.Errorf("answered %t, events %s because %q, want 600 because %q", out.Rebased, w.in.InForce.References["events"], out.Reason, want)
	}
	if out := w.cycle(); !out.Rebased || w.in.InForce.References["events"] != "600" || !slices.Contains(problems(out), "normalize/RebaseRefused/"+plan.AnnotationRebase) {
		t.Errorf("again: answered %t, events %s, %v", out.Rebased, w.in.InForce.References["events"], problems(out))
	}
	w.in.Rebase = ""
	for range 5 {
		if w.cycle(); w.in.InForce.References["events"] != "600" {
			t.Fatalf("they did not stay: %v", w.in.InForce.References)
		}
	}
}
