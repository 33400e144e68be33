package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"ballast/cmd/ballast/say"
	"ballast/planner/replay"
	"ballast/planner/replay/trace"
)

// ahead is how many steps a setup may be behind another one.
const ahead = 16

// play feeds the source through all setups at once, each by itself: it is read once, and none of it is kept.
func play(ctx context.Context, source trace.Source, setups []replay.Setup, replicas int, t *teller) ([]replay.Report, error) {
	all := make([]*replay.Run, len(setups))
	for i, s := range setups {
		var err error
		if all[i], err = replay.NewRun(s, source.Header(), replicas); err != nil {
			return nil, err
		}
	}
	reports, feeds := make([]replay.Report, len(setups)), make([]chan trace.Step, len(setups))
	group, running := errgroup.WithContext(ctx)
	for i, run := range all {
		feeds[i] = make(chan trace.Step, ahead)
		group.Go(func() (err error) {
			reports[i], err = runs(running, run, setups[i].Name, feeds[i])
			return err
		})
	}
	group.Go(func() error {
		defer func() {
			for _, feed := range feeds {
				close(feed)
			}
		}()
		return t.feed(running, source, feeds)
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // all was fed, and not all of it taken
		return nil, fmt.Errorf("interrupted at the end of the trace: %w", context.Cause(ctx))
	}
	if reports[0].Cycles == 0 {
		return nil, errors.New("the trace has no step: there is nothing to replay")
	}
	return reports, nil
}

// runs takes steps until there are no more, or nobody waits for the answer: a person who interrupts does not wait for
// what is ahead. What a trace says that no fleet ever did is an error, and no crash.
func runs(ctx context.Context, run *replay.Run, name string, feed <-chan trace.Step) (report replay.Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("replaying %s: the cycle cannot be run: %v", name, p)
		}
	}()
	for step := range feed {
		if ctx.Err() != nil {
			return report, nil // whoever feeds says why
		}
		run.Step(step)
	}
	return run.Report(), nil
}

// teller says how far it is, once it takes longer than a second.
type teller struct {
	out  io.Writer
	now  func() time.Time
	next time.Time
}

// How long nothing is said at first, and then in between.
const (
	quietFirst = time.Second
	quietThen  = 5 * time.Second
)

// feed hands every step to all setups.
func (t *teller) feed(ctx context.Context, source trace.Source, feeds []chan trace.Step) error {
	t.next = t.now().Add(quietFirst)
	for {
		step, err := source.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, feed := range feeds {
			select {
			case feed <- step:
			case <-ctx.Done():
				return fmt.Errorf("interrupted at %s of the trace: %w", step.At.Format(time.RFC3339),
					context.Cause(ctx))
			}
		}
		t.tell(step.At, source.Share())
	}
}

func (t *teller) tell(at time.Time, share float64) {
	now := t.now()
	if now.Before(t.next) {
		return
	}
	t.next = now.Add(quietThen)
	far := ""
	if share > 0 {
		far = fmt.Sprintf(", %.0f %%", 100*share)
	}
	say.To(t.out, "replayed until %s%s\n", at.UTC().Format("2006-01-02 15:04"), far)
}
