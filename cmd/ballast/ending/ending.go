// Package ending ends what does not end by itself.
package ending

import (
	"context"
	"errors"
	"time"
)

// ErrLeftBehind says that not everything has ended.
var ErrLeftBehind = errors.New("something does not end")

// Within runs a function until it returns, and for no longer than grace after its context has ended. What it leaves
// behind ends with the process. Two libraries do not follow the context: controller-runtime's manager goes on waiting
// for caches to sync, with a whole core (runnableGroup.Start of v0.24.1; kubernetes-sigs/controller-runtime#3440, which
// mends it, was closed unmerged), and client-go's discovery takes none.
func Within(ctx context.Context, grace time.Duration, run func() error) error {
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
		return ErrLeftBehind
	}
}
