package scrape

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// longAnswers is how much longer an answer may be with lines that cost nothing but their way here: no memory, and a
// look at their beginning. The timeout ends most that are so long.
const longAnswers = 16

var errTooLarge = errors.New("the answer is too large")

// bounded ends in an error where more comes than was allowed.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// What pods name takes memory, and any pod that carries the application-controller's labels is asked. A pod that owns
// 20,000 clusters, four times the fleet that ballast is made for, names as many servers of some 80 bytes. Where every
// pod owns every cluster, as with ARGOCD_CONTROLLER_REPLICAS=1, sixteen of them name 5,000 each, which takes 30 MiB.
const (
	maxPod     = 8 << 20  // bytes of memory for what one pod names; eight are asked at once
	maxPods    = 40 << 20 // and for what is kept of all of them
	serverCost = 310      // bytes that a server takes beside its URL, in two maps
)

var (
	errPodFull  = fmt.Errorf("it names more servers than %d MiB hold, some 20,000, which no fleet has", maxPod>>20)
	errPodsFull = fmt.Errorf("the pods together name more servers than %d MiB hold, some 100,000, which no fleet has",
		maxPods>>20)
)

// room is what one report may take, and what those that are kept take together: a report that grows too large must not
// keep those beside it from being kept.
type room struct {
	kept *atomic.Int64
	used int64
}

// take is for a server that is named.
func (r *room) take(server string) error {
	if r.used += serverCost + int64(len(server)); r.used > maxPod {
		return errPodFull
	}
	return nil
}

// keep is for a report that is complete.
func (r *room) keep() error {
	if r.kept.Add(r.used) > maxPods {
		r.kept.Add(-r.used)
		return errPodsFull
	}
	return nil
}
