package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// write is a step made ready: try reads and writes once, and answers who wrote what it found.
type write struct {
	secret string // empty for the workload, and for a pod
	pod    string // empty for the workload, and for a Secret
	value  string // what is written: the same again is a revert
	stay   int    // how much of the fleet's budget it leaves to others
	try    func(context.Context) (manager string, err error)
}

// object is what the pace of a write goes by. No Secret's name has a slash in it.
func (w write) object() string {
	if w.pod != "" {
		return "pods/" + w.pod
	}
	return w.secret
}

// tried is one try. It reads objects that anybody wrote, in a goroutine of its own: a panic is a write that failed.
func (w write) tried(ctx context.Context) (manager string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a panic of type %T", p)
		}
	}()
	return w.try(ctx)
}

// Errors by which one try tells paced what to make of it.
var (
	errUnchanged = errors.New("it stands so already")
	errRefused   = errors.New("it must not be written")
)

// paced carries a write out when its backoff and the budget let it, and again where it met a concurrent one.
func (a *Applier) paced(ctx context.Context, w write) (Result, *Contested) {
	now := a.Clock.Now()
	if wait := a.resize.wait(now); w.pod != "" && wait > 0 {
		return Result{Outcome: Deferred, Until: now.Add(wait)}, nil
	}
	if wait := a.pace.wait(w.object(), w.value, now); wait > 0 {
		return Result{Outcome: Deferred, Until: now.Add(wait)}, nil
	}
	if w.object() != "" {
		if wait := a.pace.spend(now, w.stay); wait > 0 {
			return Result{Outcome: Deferred, Until: now.Add(wait)}, nil
		}
	}
	var manager string
	err := ctx.Err()
	for attempt := 0; attempt < attempts && ctx.Err() == nil; attempt++ {
		if manager, err = w.tried(ctx); !concurrent(err) {
			break
		}
	}
	switch {
	case errors.Is(err, errUnchanged):
		return Result{Outcome: Unchanged}, nil
	case errors.Is(err, errRefused):
		return Result{Outcome: Refused, Err: err}, nil
	}
	var contested *Contested
	if reverted := a.pace.wrote(w.object(), w.value, err == nil, a.Clock.Now()); reverted >= contestedFrom {
		contested = &Contested{Secret: w.secret, Pod: w.pod, Reverted: reverted, Manager: manager}
	}
	if err != nil {
		return Result{Outcome: Failed, Err: err}, contested
	}
	return Result{Outcome: Applied}, contested
}

// concurrent reports whether a write met another one between its read and itself: a resourceVersion that is old, or a
// test of a JSON patch that fails, which the API server answers with 422.
func concurrent(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }
