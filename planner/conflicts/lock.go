package conflicts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"ballast/planner/patchable"
)

// LockOptions describe a Lock. Self names this instance: its plan, its user and its identity in the election. Tell is
// called when another installation turns out to own the target, with a sentence, and with an empty one when none does
// any more; never twice in a row with either.
type LockOptions struct {
	Client coordinationclient.LeasesGetter
	Lease  types.NamespacedName
	Self   Owner
	Grace  time.Duration // 0: DefaultGrace
	Now    func() time.Time
	Tell   func(refusal string)
}

// Lock is the Lease that a leader is elected by, with whose it is. The claim is part of the write that takes the Lease,
// so that nobody ever holds it unnamed; and to an instance of another installation the Lease looks held for as long as
// the target is not its own, so that it stands by without a word to the API server but its reads.
type Lock struct {
	o LockOptions

	// Only the election's goroutine touches these.
	lease   *coordinationv1.Lease // as read or written last
	version string                // the resourceVersion that was read last
	seen    time.Time             // when it was read first

	mu      sync.Mutex
	known   bool   // the Lease was read, or found missing
	refusal string // who owns the target instead of us
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock makes a Lock.
func NewLock(o LockOptions) *Lock {
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	return &Lock{o: o}
}

var (
	errNotRead = errors.New("the Lease was not read yet")

	// ErrForeign is why the Lease of another installation's target is not taken.
	ErrForeign = errors.New("the target is another installation's")
)

// Ready is the readiness check of an instance: nil for a leader and its standbys, else who owns the target.
func (l *Lock) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.known:
		return fmt.Errorf("reading Lease %q: %w", l.o.Lease, errNotRead)
	case l.refusal != "":
		return errors.New(l.refusal)
	}
	return nil
}

// Get implements resourcelock.Interface.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lease, err := l.o.Client.Leases(l.o.Lease.Namespace).Get(ctx, l.o.Lease.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		l.note("")
		return nil, nil, err // as it is: the election creates the Lease
	case err != nil:
		return nil, nil, fmt.Errorf("reading Lease %q: %w", l.o.Lease, err)
	}
	now := l.o.Now()
	if l.seen.IsZero() || lease.ResourceVersion != l.version {
		l.version, l.seen = lease.ResourceVersion, now
	}
	lease = Bounded(lease, l.seen)
	l.lease = lease
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	record.LeaderTransitions = transitions(record.LeaderTransitions)
	record.Strategy, record.PreferredHolder = "", "" // of no use to this election
	refusal := ""
	if owner, foreign := Judge(lease, l.o.Self, l.o.Grace, now); foreign {
		refusal = owner.Refusal(l.o.Self, l.o.Lease, now)
		// The election goes by when it saw a record change, and so never takes one for expired that is renewed at each
		// look.
		record.HolderIdentity = cmp.Or(owner.Identity, "reserved for "+owner.Plan)
		record.LeaseDurationSeconds = int(defaultLease / time.Second)
		record.RenewTime = metav1.NewTime(now)
	}
	l.note(refusal)
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the record of Lease %q: %w", l.o.Lease, err)
	}
	return record, raw, nil
}

// note keeps what was found, and tells what is new.
func (l *Lock) note(refusal string) {
	l.mu.Lock()
	changed := (refusal == "") != (l.refusal == "")
	l.known, l.refusal = true, refusal
	l.mu.Unlock()
	if changed {
		l.o.Tell(refusal)
	}
}

// Create implements resourcelock.Interface.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.o.Lease.Namespace, Name: l.o.Lease.Name},
		Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&record)}
	l.claim(lease)
	created, err := l.o.Client.Leases(l.o.Lease.Namespace).Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating Lease %q: %w", l.o.Lease, err)
	}
	l.lease = created
	return nil
}

// Update implements resourcelock.Interface. It holds for the Lease as it was read, and for no other.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.lease == nil {
		return fmt.Errorf("taking Lease %q: %w", l.o.Lease, errNotRead)
	}
	if _, foreign := Judge(l.lease, l.o.Self, l.o.Grace, l.o.Now()); foreign {
		return fmt.Errorf("taking Lease %q: %w", l.o.Lease, ErrForeign)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.lease.Namespace, Name: l.lease.Name,
		UID: l.lease.UID, ResourceVersion: l.lease.ResourceVersion}}
	if noted := l.lease; noted.Size() < mostLease {
		lease.Labels, lease.Annotations, lease.OwnerReferences = maps.Clone(noted.Labels),
			maps.Clone(noted.Annotations), noted.OwnerReferences
	}
	if patchable.FewManagers(l.lease.ManagedFields) != nil {
		lease.ManagedFields = []metav1.ManagedFieldsEntry{{}} // by which the API server forgets them all
	}
	record.LeaderTransitions = transitions(record.LeaderTransitions)
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	l.claim(lease)
	updated, err := l.o.Client.Leases(l.o.Lease.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("writing Lease %q: %w", l.o.Lease, err)
	}
	l.lease = updated
	return nil
}

// What others write into the Lease must not make a next write of it invalid: nobody would lead any more.
const (
	mostLease       = 64 << 10 // bytes; of a larger one nothing of others' is kept
	mostTransitions = 1 << 30  // of 1<<31-1; a count beyond begins anew
)

func transitions(n int) int {
	if n < 0 || n > mostTransitions {
		return 0
	}
	return n
}

// claim writes whose the Lease is; a Lease that is given up keeps it, since its owner may be coming back.
func (l *Lock) claim(lease *coordinationv1.Lease) {
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, AnnotationPlan, l.o.Self.Plan)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, AnnotationPlannerUser, l.o.Self.PlannerUser)
}

// RecordEvent implements resourcelock.Interface. The planner says itself who leads, where people look: on the plan.
func (*Lock) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (l *Lock) Identity() string { return l.o.Self.Identity }

// Describe implements resourcelock.Interface.
func (l *Lock) Describe() string { return l.o.Lease.String() }
