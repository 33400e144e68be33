// Command ballast keeps an Argo CD fleet level: a planner, an admission webhook, and what people need to see and steer
// them.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, as it would without us
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		sayError(&cleanWriter{w: os.Stderr}, err)
		os.Exit(exitCode(err))
	}
}

// exitError is an error with an exit code of its own; every other one ends with 1.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var own exitError
	if errors.As(err, &own) {
		return own.code
	}
	return 1
}
