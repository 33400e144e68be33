package certs

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The pace of Run.
const (
	// DefaultInterval is how often all is looked at though nothing changed: certificates come to their end by
	// themselves.
	DefaultInterval = time.Hour
	// jitter spreads the looks of many installations: an interval is up to a tenth longer.
	jitter = 0.1
	// quiet is the least time between two looks, so that somebody who fights over a Secret costs little.
	quiet = time.Second
	// A failed look, or a watch that ended, is tried again after these, doubling.
	firstRetry, longestRetry = time.Second, time.Minute
)

// Run keeps the certificates until the context ends: every interval, when more is due, and at once when somebody
// changes or deletes what it keeps. A failure is logged and tried again.
func (r *Rotator) Run(ctx context.Context, interval time.Duration) {
	changed := make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	inNamespace := client.InNamespace(r.o.Settings.Namespace)
	wg.Go(func() { r.watch(ctx, &corev1.SecretList{}, changed, named(CASecret), inNamespace) })
	wg.Go(func() { r.watch(ctx, &corev1.SecretList{}, changed, named(LeafTLS), inNamespace) })
	wg.Go(func() {
		r.watch(ctx, &admissionv1.MutatingWebhookConfigurationList{}, changed, named(r.o.Configuration))
	})
	retry := firstRetry
	for ctx.Err() == nil {
		again, err := r.Once(ctx)
		wait := interval + time.Duration(rand.Float64()*jitter*float64(interval))
		switch {
		case err != nil && ctx.Err() == nil:
			r.o.Log.Error(err, "could not rotate the certificates; trying again")
			wait, retry = min(wait, retry), min(2*retry, longestRetry)
		case err == nil:
			retry = firstRetry
		}
		if !again.IsZero() {
			wait = min(wait, again.Sub(r.o.Clock.Now()))
		}
		rest(ctx, quiet, nil)
		rest(ctx, wait-quiet, changed)
	}
}

// named selects one object. A watch of it is granted by resourceNames.
func named(name string) client.MatchingFields { return client.MatchingFields{"metadata.name": name} }

// watch tells of every change. What it misses while it begins anew, the first event of the new watch makes good: it is
// the object as it stands.
func (r *Rotator) watch(ctx context.Context, list client.ObjectList, changed chan<- struct{}, options ...client.ListOption) {
	for retry := firstRetry; ctx.Err() == nil; retry = min(2*retry, longestRetry) {
		w, err := r.o.Client.Watch(ctx, list, options...)
		if err != nil {
			r.o.Log.V(1).Info("could not watch; trying again", "error", err.Error())
			rest(ctx, retry, nil)
			continue
		}
		for open := true; open; {
			select {
			case _, open = <-w.ResultChan():
				tell(changed)
				retry = firstRetry
			case <-ctx.Done():
				open = false
			}
		}
		w.Stop()
		rest(ctx, retry, nil) // an API server that ends each watch at once is asked no faster
	}
}

func tell(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // told already
	}
}

// rest returns after that time, at a change, or when the context ends.
func rest(ctx context.Context, d time.Duration, changed <-chan struct{}) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
	}
}
