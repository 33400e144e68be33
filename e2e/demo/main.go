// The demo command tells ballast's story on a real control plane: a fleet of clusters of very unequal load, what Argo
// CD makes of it, what ballast makes of it, and what happens when people and failures get in the way. It installs
// ballast from its shipped manifests, does everything as a person with kubectl does, and checks each step on the API
// server.
//
//	go run ./e2e/demo [--keep]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"ballast/e2e/demo/live"
	"ballast/e2e/demo/screen"
	"ballast/e2e/demo/stage"
)

// Exit codes: 1 a step did not do what it says, 130 interrupted, as shells have it.
const (
	exitFailed      = 1
	exitInterrupted = 130
)

func main() {
	keep := flag.Bool("keep", false, "leave everything up at the end, until Ctrl-C")
	seed := flag.Uint64("seed", 1, "the fleet's seed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, screen.New(os.Stdout), *seed, *keep)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "Interrupted. Every process is stopped.")
		os.Exit(exitInterrupted)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
}

var errInterrupted = errors.New("interrupted")

// run tells the story and ends what it started, however it ends. The files of a story that failed are kept.
func run(ctx context.Context, out *screen.Screen, seed uint64, keep bool) error {
	dir, err := os.MkdirTemp("", "ballast-demo-")
	if err != nil {
		return fmt.Errorf("making the demo's folder: %w", err)
	}
	on := &stage.Stage{Out: out, Dir: dir, Seed: seed}
	s := &story{Stage: on, second: live.Live{Stage: on}}
	err = s.tell(ctx)
	if err == nil && keep {
		s.stay(ctx)
	}
	interrupted := err != nil && ctx.Err() != nil
	if s.Site != nil {
		stop := out.Ticking(func() string { return "stopping every process" })
		s.second.Stop()
		s.Site.Stop()
		stop(true)
		if err != nil && !interrupted {
			return fmt.Errorf("%w\nEvery process is stopped; their logs are in %s", err, dir)
		}
	}
	if interrupted {
		err = errInterrupted
	}
	return errors.Join(err, os.RemoveAll(dir))
}
