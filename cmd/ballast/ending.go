package main

import (
	"context"
	"errors"
	"time"
)

// stopGrace is how long a planner that is told to end waits for its parts: they need a second or two, and the kubelet
// kills what runs for 30 s.
const stopGrace = 10 * time.Second

// errLeftBehind says that not everything has ended.
var errLeftBehind = errors.New("something does not end")

// endWithin runs a function until it returns, and for no longer than grace after its context has ended. What it leaves
// behind ends with the process. Two libraries do not follow the context: controller-runtime's manager goes on waiting
// for caches to sync, with a whole core (runnableGroup.Start of v0.24.1; kubernetes-sigs/controller-runtime#3440, which
// mends it, was closed unmerged), and client-go's discovery takes none.
func endWithin(ctx context.Context, grace time.Duration, run func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-patience.C:
		return errLeftBehind
	}
}
