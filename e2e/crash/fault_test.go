package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crashHarm is what happens at a write.
type crashHarm string

const (
	crashKilled   crashHarm = "leader killed"
	crashLate     crashHarm = "leader killed, its write arrives late"
	crashGone     crashHarm = "API server gone"
	crashConflict crashHarm = "conflict"
	crashRefused  crashHarm = "refused"
	crashLost     crashHarm = "history lost" // no write of the history passes any more until the leader is killed
)

func crashHarms() []crashHarm {
	return []crashHarm{crashKilled, crashLate, crashGone, crashConflict, crashRefused, crashLost}
}

// crashFault is what happens at the step-th write of a run, before or after it took effect.
type crashFault struct {
	step     int
	harm     crashHarm
	after    bool
	lasts    time.Duration // of an API server that is gone, and of a refusal
	outlives bool          // the leader keeps its Lease while the API server is gone
	code     int           // of a refusal: 403 or 422
	takeover time.Duration // until the next leader is elected
	steps    int           // until the leader is killed whose history is lost
}

func (f crashFault) String() string {
	when := "before"
	if f.after {
		when = "after"
	}
	s := fmt.Sprintf("%s %s write %d", f.harm, when, f.step)
	switch f.harm {
	case crashGone:
		s += fmt.Sprintf(" for %s (same leader afterwards: %t)", f.lasts, f.outlives)
	case crashRefused:
		s += fmt.Sprintf(" with %d for %s", f.code, f.lasts)
	case crashLost:
		s += fmt.Sprintf(" for %d writes", f.steps)
	}
	return s
}

// newCrashFault chooses what happens at a step.
func newCrashFault(r *rand.Rand, step int) crashFault {
	harms := crashHarms()
	f := crashFault{step: step, harm: harms[r.IntN(len(harms))], after: r.IntN(2) == 0, outlives: r.IntN(2) == 0, code: 403 + 19*r.IntN(2),
		lasts: time.Duration(1+r.IntN(20)) * time.Second, takeover: time.Duration(1+r.IntN(40)) * time.Second, steps: 1 + r.IntN(8)}
	switch r.IntN(6) {
	case 0, 1:
		f.lasts *= 12 // up to four minutes
	case 2:
		f.lasts *= 40 // beyond any stage's deadline
	}
	return f
}

// crashFaults is what happens to the writes of a run.
type crashFaults struct {
	run     *crashRun
	due     []crashFault
	steps   int         // writes so far
	kinds   []crashKind // of each
	back    time.Time   // when the API server is there again
	leaves  *crashLeader
	leaving time.Time // when the leader loses its Lease
	refuses map[string]time.Time
	refusal error
	forgets bool
	dies    int // the step at which a leader is killed that forgot its history
	late    func()
	arrives time.Time
	met     []crashMet
	kills   func(k crashKind, after bool) bool // whether the leader dies at a write, before or after it took effect
}

// crashMet is a fault that came, and the write that it came to.
type crashMet struct {
	crashFault
	kind crashKind
	name string
}

func (m crashMet) String() string { return fmt.Sprintf("%s (%s %s)", m.crashFault, m.kind, m.name) }

// away reports whether the API server is gone.
func (f *crashFaults) away(now time.Time) bool { return now.Before(f.back) }

// busy reports whether something still happens, or was not over long enough ago.
func (f *crashFaults) busy(now time.Time) bool {
	over := f.back
	for _, until := range f.refuses {
		if until.After(over) {
			over = until
		}
	}
	return f.late != nil || f.forgets || now.Before(over.Add(crashPeace))
}

// lasted is for how long faults so far kept writes from passing.
func (f *crashFaults) lasted() (total time.Duration) {
	for _, m := range f.met {
		if m.harm == crashGone || m.harm == crashRefused {
			total += m.lasts
		}
		total += m.takeover
	}
	return total
}

// pass lets time pass: what was sent arrives, a Lease is lost.
func (f *crashFaults) pass(now time.Time) {
	if f.late != nil && !now.Before(f.arrives) && !f.away(now) {
		do := f.late
		f.late = nil
		f.run.note("the write of the leader before arrives")
		do()
	}
	if f.leaves != nil && !now.Before(f.leaving) {
		f.leaves.kill(max(f.back.Sub(now), 0) + 5*time.Second)
		f.leaves = nil
	}
}

// meet lets a write take effect, or meet its fault.
func (f *crashFaults) meet(l *crashLeader, k crashKind, name string, do func(context.Context) error, ctx context.Context) error {
	f.steps++
	f.kinds = append(f.kinds, k)
	if f.forgets && f.steps >= f.dies {
		f.forgets = false
		l.kill(10 * time.Second)
		return context.Canceled
	}
	if err := f.refused(k, name); err != nil {
		f.run.note("write %d of %s %s: %v", f.steps, k, name, err)
		return err
	}
	if k != crashSaid {
		l.writes++
	}
	if f.kills != nil {
		return f.mayKill(l, k, do, ctx)
	}
	if len(f.due) == 0 || f.due[0].step != f.steps {
		return do(ctx)
	}
	fault := f.due[0]
	f.due = f.due[1:]
	f.met = append(f.met, crashMet{fault, k, name})
	f.run.note("FAULT %s", f.met[len(f.met)-1])
	return f.harm(l, fault, k, name, do, ctx)
}

// mayKill is a write at which the leader may die.
func (f *crashFaults) mayKill(l *crashLeader, k crashKind, do func(context.Context) error, ctx context.Context) error {
	if f.kills(k, false) {
		l.kill(5 * time.Second)
		return context.Canceled
	}
	err := do(ctx)
	if err == nil && f.kills(k, true) {
		l.kill(5 * time.Second)
		return context.Canceled
	}
	return err
}

func (f *crashFaults) harm(l *crashLeader, fault crashFault, k crashKind, name string, do func(context.Context) error, ctx context.Context) error {
	now := f.run.clock.Now()
	took := func(lost error) error {
		if fault.after {
			_ = do(ctx) // nobody hears what became of it
		}
		return lost
	}
	switch fault.harm {
	case crashKilled:
		err := took(context.Canceled)
		l.kill(fault.takeover)
		return err
	case crashLate:
		f.late, f.arrives = func() { _ = do(context.WithoutCancel(ctx)) }, now.Add(fault.takeover+fault.lasts%(40*time.Second))
		l.kill(fault.takeover)
		return context.Canceled
	case crashGone:
		err := took(errAway)
		f.back = now.Add(fault.lasts)
		if !fault.outlives && fault.lasts > 10*time.Second {
			f.leaves, f.leaving = l, now.Add(10*time.Second)
		}
		return err
	case crashConflict:
		if err := f.touch(k, name); err != nil {
			return err
		}
		return do(ctx)
	case crashRefused:
		f.refusal = refusal(fault.code, k, name)
		f.refuses[string(k)+" "+name] = now.Add(fault.lasts)
		return f.refusal
	}
	f.forgets, f.dies = true, f.steps+fault.steps
	if err := f.refused(k, name); err != nil {
		return err
	}
	return do(ctx)
}

var errHistory = errors.New("writing the history: the request timed out")

func (f *crashFaults) refused(k crashKind, name string) error {
	if f.forgets && k == crashHistory {
		return errHistory
	}
	if until, refused := f.refuses[string(k)+" "+name]; refused && f.run.clock.Now().Before(until) {
		return f.refusal
	}
	return nil
}

func refusal(code int, k crashKind, name string) error {
	if code == 403 {
		return apierrors.NewForbidden(schema.GroupResource{Resource: string(k)}, name, errors.New("a policy says so"))
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: string(k)}, name, nil)
}

// touch is another writer, just before: of a ConfigMap that is to be created, it creates it. An Application's conflict is
// made up, since there are none.
func (f *crashFaults) touch(k crashKind, name string) error {
	r := f.run
	meta := metav1.ObjectMeta{Namespace: r.namespace, Name: name}
	var o client.Object
	patch := `{"metadata":{"annotations":{"example.org/touched":"` + fmt.Sprint(f.steps) + `"}}}`
	switch k {
	case crashNudge:
		return apierrors.NewConflict(schema.GroupResource{Group: "argoproj.io", Resource: "applications"}, "app-of-"+name, errors.New("it was written meanwhile"))
	case crashSecret:
		o = &corev1.Secret{ObjectMeta: meta}
	case crashSet, crashReplicas: // an annotation would leave its generation as it is
		o, patch = &appsv1.StatefulSet{ObjectMeta: meta}, fmt.Sprintf(`{"spec":{"revisionHistoryLimit":%d}}`, 20+f.steps)
	default:
		o = &corev1.ConfigMap{ObjectMeta: meta}
	}
	err := r.client.Patch(r.ctx, o, client.RawPatch("application/merge-patch+json", []byte(patch)))
	if apierrors.IsNotFound(err) {
		err = r.client.Create(r.ctx, &corev1.ConfigMap{ObjectMeta: meta})
	}
	r.must(err)
	switch k {
	case crashSet, crashReplicas:
		r.readWorkload()
	case crashSecret:
		r.readSecret(name)
	}
	r.news.plan = true
	return nil
}
