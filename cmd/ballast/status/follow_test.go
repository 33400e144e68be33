package status

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/status/overview"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
	"ballast/planner/store/history"
)

// followed is what a follower writes of these looks, one each, and how long it waited after each of them. It is interrupted after the last.
func followed(t *testing.T, form string, looks ...func(*fixture.World) error) (out, notes string, waited []time.Duration, err error) {
	t.Helper()
	at := clocktesting.NewFakeClock(fixture.Noon)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var o, n bytes.Buffer
	next := 0
	f := follower{clock: at, interval: 5 * time.Second, form: form, out: &o, notes: &n}
	f.look = func(context.Context) (overview.Overview, error) {
		w := fixture.QuietWorld()
		if err := looks[next](w); err != nil {
			next++
			return overview.Overview{}, err
		}
		next++
		opts := &options{plan: "ballast-plan", config: "ballast-config", now: at.Now}
		opts.cluster.Namespace = "argocd"
		seen, err := opts.read(t.Context(), w.Client(t))
		fixture.MustDo(t, err)
		return seen.overview(), nil
	}
	ended := make(chan error, 1)
	go func() { ended <- f.follow(ctx) }()
	for {
		select {
		case err = <-ended:
			return o.String(), n.String(), waited, err
		default:
		}
		if !at.HasWaiters() {
			runtime.Gosched() // until it waits for the clock, or has ended
			continue
		}
		if len(waited)+1 == len(looks) {
			interrupt()
			return o.String(), n.String(), waited, <-ended
		}
		waited = append(waited, f.pause()) // it waits, so that nothing of it changes
		at.Step(f.pause())
	}
}

func quiet(*fixture.World) error { return nil }

func fails(why string) func(*fixture.World) error {
	return func(*fixture.World) error { return errors.New(why) }
}

// TestAFollowerWritesWhatChanges: a look that says the same writes nothing, and neither does one that only is later.
func TestAFollowerWritesWhatChanges(t *testing.T) {
	tripped := func(w *fixture.World) error { trippedAndCordoned(w); return nil }
	out, notes, _, err := followed(t, say.AsTable, quiet, quiet, tripped, tripped, quiet)
	fixture.MustDo(t, err)
	var heads []string
	for _, l := range strings.Split(out, "\n") {
		if strings.HasPrefix(l, "2026-") || strings.HasPrefix(l, "Tripped") || l == "" {
			heads = append(heads, l)
		}
	}
	want := []string{"2026-11-20T12:00:00Z", "", "2026-11-20T12:00:10Z", `Tripped  ballast stopped itself: cluster "dev" has no owner since the wave of 11:50`,
		"", "2026-11-20T12:00:20Z", ""}
	if diff := cmp.Diff(want, heads); diff != "" || notes != "" {
		t.Errorf("(-want +got):\n%s\nand notes %q", diff, notes)
	}
	fixture.Golden(t, "watch", out)
}

// TestAFollowerGoesOnThroughErrors: it says each of them once, and asks less and less often until it sees again.
func TestAFollowerGoesOnThroughErrors(t *testing.T) {
	out, notes, waited, err := followed(t, say.AsTable, quiet, fails("no route to host"), fails("no route to host"), fails("TLS handshake\x1b[2J"),
		fails("x"), fails("x"), quiet, quiet, fails("x"), quiet)
	fixture.MustDo(t, err)
	second := time.Second
	if diff := cmp.Diff([]time.Duration{5 * second, 10 * second, 20 * second, 40 * second, time.Minute, time.Minute, 5 * second, 5 * second, 10 * second}, waited); diff != "" {
		t.Errorf("it waits (-want +got):\n%s", diff)
	}
	want := "12:00:05  not seen: no route to host; it is asked again, at most 1m apart\n" +
		"12:00:35  not seen: TLS handshake\\u001b[2J; it is asked again, at most 1m apart\n" +
		"12:01:15  not seen: x; it is asked again, at most 1m apart\n" +
		"12:03:15  seen again\n" +
		"12:03:25  not seen: x; it is asked again, at most 1m apart\n" +
		"12:03:35  seen again\n"
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if n := strings.Count(out, "Plan revision"); n != 1 {
		t.Errorf("it writes %d tables, want the first alone:\n%s", n, out)
	}
}

func TestTheFirstLookHasToSucceed(t *testing.T) {
	_, _, _, err := followed(t, say.AsTable, fails("forbidden"))
	if err == nil || err.Error() != "forbidden" || say.ExitCode(err) != 1 {
		t.Errorf("it ends with %v", err)
	}
}

func TestAnInterruptEndsALookToo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	f := follower{clock: clocktesting.NewFakeClock(fixture.Noon), interval: time.Second, form: say.AsTable, out: io.Discard, notes: io.Discard,
		look: func(context.Context) (overview.Overview, error) {
			interrupt()
			return overview.Overview{}, context.Canceled
		}}
	if err := f.follow(ctx); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// TestDocumentsFollowEachOther, each of them whole.
func TestDocumentsFollowEachOther(t *testing.T) {
	paused := func(w *fixture.World) error { w.People[plan.AnnotationPaused] = "true"; return nil }
	out, _, _, err := followed(t, say.AsYAML, quiet, paused)
	fixture.MustDo(t, err)
	documents := strings.Split(out, "\n---\n")
	if len(documents) != 2 || strings.Contains(documents[0], "paused: true") || !strings.Contains(documents[1], "\npaused: true\n") {
		t.Errorf("the documents are %q", documents)
	}
}

// TestWhatOnlyAgesIsTheSame: each field that is another with every look.
func TestWhatOnlyAgesIsTheSame(t *testing.T) {
	w := fixture.QuietWorld()
	deploymentSilent(w)
	before := look(t, w)
	w.Lease.Spec.RenewTime.Time = fixture.Noon
	w.Said.LookedAt = fixture.Noon
	w.Said.Conditions[3].Message += ", for longer"
	w.Said.Unwell[0].Message += ", for longer"
	after := look(t, w)
	after.Now = after.Now.Add(time.Minute)
	after.Slots.Slots[1].HeartbeatAge = "2m10s"
	if !before.Same(after) {
		t.Error("a look that is only later is another")
	}
	w.Said.Conditions[3].Reason = "Orphaned"
	if before.Same(look(t, w)) {
		t.Error("another reason is the same")
	}
}

// TestDecisionsSayWhatTheyChanged, in a fleet whose history has plans.
func TestDecisionsSayWhatTheyChanged(t *testing.T) {
	w := fixture.QuietWorld()
	s := look(t, kept(t, w))
	var table bytes.Buffer
	fixture.MustDo(t, s.WriteTable(&table))
	_, said, _ := strings.Cut(table.String(), "Decided  ")
	want := `as far as the history keeps it, newest first
  17  2026-11-20T11:40:00Z (20m ago)  2 clusters moved (dev 0 -> 2, lab 1 -> 2)
      moves 2 of 7 clusters
  16  2026-11-20T09:00:00Z (3h ago)  mode Hold → Enforce, 4 → 3 replicas, 4 clusters moved (dev 3 -> 0, lab 3 -> 1, prod-ap 3 -> 2, 1 more)
      shrinks\u001b[2J
  15  when nobody knows  the plan before is not kept
      -
`
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// kept adds two earlier plans to the history of a world.
func kept(t *testing.T, w *fixture.World) *fixture.World {
	t.Helper()
	record := func(revision int64, meta configmap.Meta, change func(*plan.Plan)) history.Record {
		p := w.Plan.Clone()
		p.Revision = revision
		change(&p)
		text, err := codec.Encode(p)
		fixture.MustDo(t, err)
		return history.Record{Revision: revision, Text: text, Meta: meta}
	}
	at := func(p *plan.Plan, places map[string]int) {
		for name, replica := range places {
			row := p.Clusters[name]
			row.Replica = replica
			p.Clusters[name] = row
		}
	}
	w.Kept = []history.Record{
		record(16, configmap.Meta{DecidedAt: fixture.Noon.Add(-3 * time.Hour), DecidedBy: "planner-0", Reason: "shrinks\x1b[2J"},
			func(p *plan.Plan) { at(p, map[string]int{"dev": 0, "lab": 1}) }),
		record(15, configmap.Meta{}, func(p *plan.Plan) {
			p.Mode, p.Replicas, p.ControllerReplicas = plan.Hold, 4, 16
			at(p, map[string]int{"dev": 3, "lab": 3, "prod-ap": 3, "stage-eu": 3})
		}),
	}
	return w
}
