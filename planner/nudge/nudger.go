package nudge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options make a Nudger. Client writes; Reader reads past any cache. Report, which may be nil, is told once of each
// Problem, and again of one that was gone and came back. Own, which may be nil, is the application-controller's own
// setting of the namespaces, by its command line or env; without one Argo CD's ConfigMap has it.
type Options struct {
	Client client.Client
	Reader client.Reader
	Clock  clock.PassiveClock
	Report func(ListingProblem)
	Own    func(context.Context) (setting string, set bool, err error)

	// MostKept is how many bytes the Applications of a listing may take; 0 stands for mostKept.
	MostKept int
}

// Nudger finds Applications by the cluster they deploy to, and has Argo CD refresh them. It is for concurrent use.
type Nudger struct {
	Options
	last     atomic.Pointer[listing]
	reported []ListingProblem // of the last listing
	waits    time.Duration    // for a listing, where an older one names where to look; 0 stands for waitsFor

	mu      sync.Mutex
	running *run // the one listing that goes on
}

// New makes a Nudger that has listed nothing yet.
func New(o Options) *Nudger {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Nudger{Options: o}
}
