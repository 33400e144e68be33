// Package source keeps the plan that is in force current, by a watch of the plan ConfigMap and by live reads of it. It
// is all of the webhook that talks to an API server.
package source

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"ballast/webhook/inforce"
)

// Options say where the plan is, and who is told of it.
type Options struct {
	Client    kubernetes.Interface // may get, list and watch the one ConfigMap
	Namespace string
	ConfigMap string
	// Planner is the user of the planner as ballast ships it; see inforce.Identity.
	Planner string
	Metrics *Metrics
	Log     logr.Logger
	Now     func() time.Time // the clock; nil for the system's
}

// Source keeps the plan current by a watch of the one ConfigMap, parsed once a change; decisions take it by an atomic
// load. It holds the last good plan, never the object.
type Source struct {
	options Options
	state   atomic.Pointer[inforce.State]
	synced  atomic.Bool

	mu      sync.Mutex // orders changes: the watch and the live reads race
	version uint64     // the newest that was seen
	listing uint64     // version when the reflector's last list began

	reads   liveReads
	hearing hearing
}

var (
	_ cache.ReflectorStore         = (*Source)(nil)
	_ cache.ResourceVersionUpdater = (*Source)(nil)
)

// New makes a source that knows no plan until Run has listed it.
func New(o Options) *Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Source{options: o}
	s.hearing.last = o.Now()
	s.state.Store(&inforce.State{Identity: inforce.Identity{Namespace: o.Namespace, ConfigMap: o.ConfigMap,
		Planner: o.Planner}})
	s.reads.limit, s.reads.timeout = rate.NewLimiter(readsPerSecond, 1), readTimeout
	return s
}

// State is the plan as of now.
func (s *Source) State() *inforce.State { return s.state.Load() }

// Synced reports whether the plan, or its absence, is known.
func (s *Source) Synced() bool { return s.synced.Load() }

// Run watches until the context ends.
func (s *Source) Run(ctx context.Context) {
	// The default backoff grows to 30 s; a replica that enforces an old plan for so long after the API server is back
	// turns people's pins away. One object costs little to ask for.
	backoff := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 3 * time.Second}
	r := cache.NewReflectorWithOptions(planWatch{&cache.ListWatch{ListWithContextFunc: s.list,
		WatchFuncWithContext: s.watch}}, &corev1.ConfigMap{}, s,
		cache.ReflectorOptions{Name: "ballast-plan", Backoff: backoff})
	go wait.UntilWithContext(ctx, func(context.Context) { s.listen(); s.lapse() }, listenEvery)
	r.RunWithContext(ctx)
}

// Add, Update, Delete, Replace and Resync make the source the reflector's store.
func (s *Source) Add(obj any) error    { return s.take(obj) }
func (s *Source) Update(obj any) error { return s.take(obj) }
func (s *Source) Resync() error        { return nil }

// Delete takes the deletion of the ConfigMap.
func (s *Source) Delete(obj any) error {
	if cm, ok := obj.(*corev1.ConfigMap); ok && cm.Name == s.options.ConfigMap {
		s.gone(cm.ResourceVersion)
	}
	return nil
}

// Replace takes a whole list, which holds the ConfigMap or nothing.
func (s *Source) Replace(list []any, version string) error {
	defer s.synced.Store(true)
	s.mu.Lock()
	began := s.listing
	s.mu.Unlock()
	for _, obj := range list {
		if cm, ok := obj.(*corev1.ConfigMap); ok && cm.Name == s.options.ConfigMap {
			s.answer(cm, cm.ResourceVersion, began)
			return nil
		}
	}
	s.answer(nil, version, began)
	return nil
}

func (s *Source) take(obj any) error {
	cm, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("taking the plan: %T is no ConfigMap", obj)
	}
	if cm.Name == s.options.ConfigMap {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.newer(cm.ResourceVersion) {
			s.become(s.state.Load().Next(cm.Data, cm.Annotations))
		}
	}
	return nil
}

// gone takes the deletion at a version.
func (s *Source) gone(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newer(version) {
		s.become(s.state.Load().Deleted(s.options.Now()))
	}
}

// lapse gives a plan up whose ConfigMap did not come back.
func (s *Source) lapse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.state.Load(); !before.Missing.IsZero() {
		if next := before.Deleted(s.options.Now()); next.View == nil {
			s.become(next)
		}
	}
}

// answer takes what a read answered that asked for the latest, and gives what holds then: the ConfigMap, nil for none,
// at a version, empty where the API server tells none. Only began, the newest version seen when the read began, tells
// what an older answer is. Where something came meanwhile, it is that which is newer. Where nothing did, the API server
// itself went back, as it does when etcd is restored from a backup, and counts on from there: what it says now is true.
func (s *Source) answer(cm *corev1.ConfigMap, version string, began uint64) *inforce.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.Load()
	v, err := strconv.ParseUint(version, 10, 64)
	switch {
	case s.version != began && (err != nil || v <= s.version):
		return before
	case err == nil && v == s.version && (cm == nil) == before.Away():
		return before // which is the common case: it costs no parsing
	case err == nil:
		if v < s.version {
			s.options.Log.Info("the API server went back to an older state, and so does the plan", "version", v, "seen",
				s.version)
		}
		s.version = v
	}
	next := before.Deleted(s.options.Now())
	if cm != nil {
		next = before.Next(cm.Data, cm.Annotations)
	}
	s.become(next)
	return next
}

// seen is the newest version that was seen.
func (s *Source) seen() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// newer reports whether the version of an event is newer than the last one, and remembers it. Resource versions of one
// resource are comparable numbers; one that is none is believed.
func (s *Source) newer(version string) bool {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return true
	}
	if v <= s.version {
		return false
	}
	s.version = v
	return true
}

// become makes a state the present one.
func (s *Source) become(next *inforce.State) {
	before := s.state.Load()
	next.NoteStop(before, s.options.Now())
	s.state.Store(next)
	changed := before.Revision() != next.Revision()
	s.options.Metrics.observe(next, changed, time.Now())
	log := s.options.Log
	switch {
	case !next.Missing.IsZero() && before.Missing.IsZero():
		log.Info("the plan ConfigMap is gone; the last plan is enforced until it is back, or for "+inforce.MissingHeld.String(), "revision", next.Revision())
	case next.Stale && !before.Stale:
		log.Info("the plan does not match its digest; the last good one is enforced", "revision", next.Revision())
	case changed && next.View == nil:
		log.Info("the plan is gone; nothing is enforced until the planner has rebuilt it")
	case changed:
		log.Info("plan in force", "revision", next.Revision(), "mode", next.View.Plan.Mode, "clusters",
			len(next.View.Plan.Clusters))
	}
	if before.BreakGlass != next.BreakGlass {
		log.Info("break-glass changed", "open", next.BreakGlass)
	}
}

// get reads the ConfigMap live and makes it the state.
func (s *Source) get(ctx context.Context) (*inforce.State, error) {
	began := s.seen()
	cm, err := s.options.Client.CoreV1().ConfigMaps(s.options.Namespace).Get(ctx, s.options.ConfigMap,
		metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return s.answer(nil, "", began), nil
	case err != nil:
		return nil, fmt.Errorf("reading the plan %q: %w", s.options.ConfigMap, err)
	}
	return s.answer(cm, cm.ResourceVersion, began), nil
}

// planWatch is the list and the watch of the one ConfigMap.
type planWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported makes the reflector list: of a stream nobody knows when it was asked for.
func (planWatch) IsWatchListSemanticsUnSupported() bool { return true }

// list asks for the latest, which an API server that was restored answers as well as any other; the reflector would ask
// for what is not older than the last it saw.
func (s *Source) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	began := s.seen()
	o.ResourceVersion, o.ResourceVersionMatch, o.FieldSelector = "", "", s.selector()
	list, err := s.options.Client.CoreV1().ConfigMaps(s.options.Namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	s.hear()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = began
	return list, nil
}

// watch goes on from a version. An API server that was away and came back at an older one would say nothing until it
// has counted up to there, so that it is asked first; the reflector lists anew then.
func (s *Source) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	began := s.seen()
	latest, err := s.options.Client.CoreV1().ConfigMaps(s.options.Namespace).List(ctx,
		metav1.ListOptions{FieldSelector: s.selector()})
	if err != nil {
		return nil, err
	}
	s.hear()
	if order, err := resourceversion.CompareResourceVersion(latest.ResourceVersion, o.ResourceVersion); err == nil && order < 0 {
		return nil, apierrors.NewResourceExpired("the API server went back to version " + latest.ResourceVersion)
	}
	for i := range latest.Items {
		s.answer(&latest.Items[i], latest.Items[i].ResourceVersion, began)
	}
	o.FieldSelector = s.selector()
	return s.options.Client.CoreV1().ConfigMaps(s.options.Namespace).Watch(ctx, o)
}

func (s *Source) selector() string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, s.options.ConfigMap).String()
}

// Ready says why the source cannot serve yet.
func (s *Source) Ready() error {
	if !s.Synced() {
		return errors.New("the plan ConfigMap was not listed yet")
	}
	return nil
}
