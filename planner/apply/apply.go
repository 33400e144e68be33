// Package apply carries out what planner/diff says differs: it writes the shards of cluster Secrets, the workload's
// replicas, env and resources and the size of running pods, each for what was read just before, and nudges the new
// owners of clusters. It never fights: whoever
// writes something back is waited for longer each time, and named.
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/answer"
	"ballast/planner/diff"
	"ballast/planner/patchable"
	"ballast/planner/plan"
)

const (
	// attempts is how often a write that met a concurrent one is read again and tried again before it fails.
	attempts = 4
	// defaultConcurrency and defaultBudget let 5,000 Secrets be stamped in about 4 minutes, two requests each, well
	// below what an API server gives one client by default (priority and fairness), and heal a thousand at once.
	defaultConcurrency = 4
	defaultBudget      = 1200
)

// Outcome says what became of a step. The set is closed.
type Outcome string

// The outcomes of steps.
const (
	Applied   Outcome = "Applied"
	Unchanged Outcome = "Unchanged" // it stood so already when it was read
	Deferred  Outcome = "Deferred"  // its backoff or the fleet's budget lets it wait until Result.Until
	Refused   Outcome = "Refused"   // what was read just now must not be written: Result.Err says why
	Failed    Outcome = "Failed"
)

// Result is what became of one step. Until is when a step that was deferred, or a nudge, is due again.
type Result struct {
	Step    diff.Step
	Outcome Outcome
	Err     error
	Until   time.Time
}

// Contested is an object that somebody else writes back again and again. Secret and Pod are empty for the workload;
// Manager is the other writer's field manager, if it is known.
type Contested struct {
	Secret   string `json:"secret,omitempty"`
	Pod      string `json:"pod,omitempty"`
	Reverted int    `json:"reverted"`
	Manager  string `json:"manager,omitempty"`
}

// Report is what became of all steps, in their order.
type Report struct {
	Results   []Result
	Contested []Contested
}

// Options make an Applier. Client writes; Reader reads past any cache; without a Nudger nobody is nudged. A
// Concurrency or BudgetPerMinute of 0 is the default.
type Options struct {
	Client          client.Client
	Reader          client.Reader
	Nudger          Nudger
	Clock           clock.PassiveClock
	Concurrency     int
	BudgetPerMinute int // writes to Secrets and pods
}

// Applier carries out steps. It keeps the backoff of each object, so that a second writer is not fought at full speed.
type Applier struct {
	Options
	pace   *pace
	resize unsized
	limits unsized // since when it is known to lower no memory limit of a running pod
}

// New makes an Applier; its backoffs begin anew.
func New(o Options) *Applier {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	if o.BudgetPerMinute <= 0 {
		o.BudgetPerMinute = defaultBudget
	}
	return &Applier{Options: o, pace: newPace(o.BudgetPerMinute)}
}

// Apply writes steps against the target's namespace: the pods' sizes side by side, then the workload's in their order
// and the Secrets' side by side. Each
// reads what stands just before it writes, and no failure keeps the others from being tried. A cluster is nudged as
// soon as its own Secret is written.
func (a *Applier) Apply(ctx context.Context, target plan.Target, steps []diff.Step) Report {
	report := Report{Results: make([]Result, len(steps))}
	a.pace.forget(a.Clock.Now())
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(a.Concurrency)
	run := func(i int, w write) Result {
		result, contested := a.paced(ctx, w)
		result.Step = steps[i]
		mu.Lock()
		defer mu.Unlock()
		report.Results[i] = result
		if contested != nil {
			report.Contested = append(report.Contested, *contested)
		}
		return result
	}
	after := nudgesOf(steps)
	for i, s := range steps { // a replica is larger before it gets more
		if s, ok := s.(diff.PatchPod); ok {
			group.Go(func() error {
				run(i, a.podWrite(target, s))
				return nil
			})
		}
	}
	_ = group.Wait()
	for i, s := range steps {
		switch s := s.(type) {
		case diff.PatchWorkload:
			run(i, a.workloadWrite(target, s))
		case diff.PatchShard:
			group.Go(func() error {
				written := run(i, a.shardWrite(target.Namespace, s))
				if n, moves := after[s.Secret]; moves {
					report.Results[n] = a.nudge(ctx, target.Namespace, steps[n].(diff.Nudge), written)
				}
				return nil
			})
		case diff.Nudge:
			if _, waits := after[s.Cluster]; !waits {
				group.Go(func() error {
					report.Results[i] = a.nudge(ctx, target.Namespace, s, Result{})
					return nil
				})
			}
		}
	}
	_ = group.Wait() // a step's error is in its result
	slices.SortFunc(report.Contested, func(x, y Contested) int {
		return cmp.Or(cmp.Compare(x.Secret, y.Secret), cmp.Compare(x.Pod, y.Pod))
	})
	return report
}

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

func (a *Applier) shardWrite(namespace string, s diff.PatchShard) write {
	attempt, stay := 0, 0
	if s.Follows { // one server may have thousands
		stay = a.BudgetPerMinute / 2
	}
	return write{stay: stay, secret: s.Secret, value: strconv.Itoa(s.Shard), try: func(ctx context.Context) (string, error) {
		attempt++
		return a.writeShard(ctx, types.NamespacedName{Namespace: namespace, Name: s.Secret}, s.Shard,
			attempt < attempts)
	}}
}

// writeShard reads the Secret whole, since its shard is data, and keeps nothing of it; what the API server answers to
// the patch is metadata only. It is for what was read; where others write faster than that, for the Secret of that UID,
// whatever else is in it meanwhile: the API server applies it to each newer version by itself.
func (a *Applier) writeShard(ctx context.Context, key types.NamespacedName, shard int, asRead bool) (string, error) {
	var live corev1.Secret
	if err := a.Reader.Get(ctx, key, &live); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("writing the shard of Secret %q: it is gone: %w", key, errRefused)
	} else if err != nil {
		return "", fmt.Errorf("reading Secret %q: %w", key, err)
	}
	if why := mayWrite(live.ObjectMeta, live.Immutable != nil && *live.Immutable); why != "" {
		return "", fmt.Errorf("writing the shard of Secret %q: %s: %w", key, why, errRefused)
	}
	if string(live.Data[plan.ShardKey]) == strconv.Itoa(shard) {
		return "", errUnchanged
	}
	precondition := map[string]any{"uid": string(live.UID)}
	if asRead {
		precondition = map[string]any{"resourceVersion": live.ResourceVersion}
	}
	if few := patchable.FewManagers(live.ManagedFields); few != nil {
		precondition["managedFields"] = few
	}
	patch, err := shardPatch(precondition, shard)
	if err != nil {
		return "", fmt.Errorf("writing the shard of Secret %q: %w", key, err)
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	manager := shardManager(live.ManagedFields)
	err = a.Client.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, patch),
		client.FieldOwner(plan.FieldManager))
	if err != nil {
		return manager, fmt.Errorf("writing the shard of Secret %q: %w", key, answer.Unquoted(err))
	}
	return manager, nil
}
