package status

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/status/overview"
)

// slowest is how long a follower waits in the end for an API server that does not answer.
const slowest = time.Minute

// follower shows how things are, again and again.
type follower struct {
	look     func(context.Context) (overview.Overview, error)
	clock    clock.Clock
	interval time.Duration
	form     string
	out      io.Writer
	notes    io.Writer   // what it could not see
	screen   *say.Screen // nil: out is no terminal, and each change is written after the one before

	shown  *overview.Overview // what was written last
	failed int                // looks in a row
	told   string             // what of them was said
}

// follow looks until it is told to end. The first look has to succeed: rights or names that are wrong do not mend
// themselves.
func (f *follower) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		s, err := f.look(ctx)
		if err = f.takes(ctx, s, err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-f.clock.After(f.pause()):
		}
	}
	return nil
}

// takes shows what a look saw, or says that it failed; a look that ends with the person's patience is neither.
func (f *follower) takes(ctx context.Context, s overview.Overview, failed error) error {
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // a person ended it, and that failed for it
	case failed != nil && f.shown == nil:
		return failed
	case failed != nil:
		f.failed++
		return f.fails(failed)
	}
	return f.shows(s)
}

// pause is how long it is until the next look: twice as long after each that failed.
func (f *follower) pause() time.Duration {
	wait := f.interval
	for range f.failed {
		if wait *= 2; wait >= slowest {
			return max(slowest, f.interval)
		}
	}
	return wait
}

// fails says what could not be seen: what was seen last stays in view.
func (f *follower) fails(err error) error {
	said := fmt.Sprintf("not seen: %s", say.OneLine(err.Error()))
	if f.screen != nil {
		return f.draw(fmt.Sprintf("%s; this is as it was %s ago, and the next look is in %s",
			said, say.Span(f.clock.Since(f.shown.Now)), say.Span(f.pause())))
	}
	if said != f.told {
		say.To(f.notes, "%s  %s; it is asked again, at most %s apart\n",
			f.clock.Now().UTC().Format(time.TimeOnly), said, say.Span(max(slowest, f.interval)))
		f.told = said
	}
	return nil
}

// shows writes a look, on a terminal always and elsewhere where it says something else than the one before.
func (f *follower) shows(s overview.Overview) error {
	before, missed := f.shown, f.failed > 0
	f.failed, f.told = 0, ""
	if f.screen != nil {
		f.shown = &s
		return f.draw("")
	}
	same := before != nil && before.Same(s)
	if missed {
		say.To(f.notes, "%s  seen again\n", s.Now.Format(time.TimeOnly))
	}
	if same {
		return nil
	}
	f.shown = &s
	switch {
	case f.form == say.AsTable:
		f.heads(before != nil)
	case f.form == say.AsYAML && before != nil:
		say.To(f.out, "---\n")
	}
	return say.Print(f.form, f.out, &s)
}

// heads begins a table with the time, and sets it off from the one before.
func (f *follower) heads(another bool) {
	if another {
		say.To(f.out, "\n")
	}
	say.To(f.out, "%s\n", f.shown.Now.Format(time.RFC3339))
}

// draw shows what was seen last, as of now, under a line about it.
func (f *follower) draw(note string) error {
	var view bytes.Buffer
	say.To(&view, "%s  every %s; Ctrl-C ends it\n", f.clock.Now().UTC().Format(time.RFC3339), say.Span(f.interval))
	if note != "" {
		say.To(&view, "%s\n", note)
	}
	say.To(&view, "\n")
	if err := say.Print(f.form, &view, f.shown); err != nil {
		return err
	}
	return f.screen.Show(view.Bytes())
}
