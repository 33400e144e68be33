package webhook

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// SourceOptions say where the plan is.
type SourceOptions struct {
	Client    kubernetes.Interface // may get, list and watch the one ConfigMap
	Namespace string
	ConfigMap string
	// Planner is the user of the planner as ballast ships it; see Identity.
	Planner string
	Metrics *Metrics
	Log     logr.Logger
}

// Source keeps the plan current by a watch of the one ConfigMap, parsed once a change; decisions take it by an atomic
// load. It holds the last good plan, never the object.
type Source struct {
	options SourceOptions
	state   atomic.Pointer[State]
	synced  atomic.Bool

	mu      sync.Mutex // orders changes: the watch and the live reads race
	uid     types.UID
	version uint64

	reads liveReads
}

var _ cache.ReflectorStore = (*Source)(nil)

// NewSource makes a source that knows no plan until Run has listed it.
func NewSource(o SourceOptions) *Source {
	s := &Source{options: o}
	s.state.Store(&State{Identity: Identity{ConfigMap: o.ConfigMap, Planner: o.Planner}})
	s.reads.limit = rate.NewLimiter(readsPerSecond, 1)
	return s
}

// State is the plan as of now.
func (s *Source) State() *State { return s.state.Load() }

// Synced reports whether the plan, or its absence, is known.
func (s *Source) Synced() bool { return s.synced.Load() }

// Run watches until the context ends.
func (s *Source) Run(ctx context.Context) {
	name := fields.OneTermEqualSelector(metav1.ObjectNameField, s.options.ConfigMap)
	lw := cache.NewListWatchFromClient(s.options.Client.CoreV1().RESTClient(), "configmaps", s.options.Namespace, name)
	// The default backoff grows to 30 s; a replica that enforces an old plan for so long after the API server is back
	// turns people's pins away. One object costs little to ask for.
	backoff := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 3 * time.Second}
	r := cache.NewReflectorWithOptions(lw, &corev1.ConfigMap{}, s, cache.ReflectorOptions{Name: "ballast-plan", Backoff: backoff})
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
	for _, obj := range list {
		if cm, ok := obj.(*corev1.ConfigMap); ok && cm.Name == s.options.ConfigMap {
			return s.take(cm)
		}
	}
	s.gone(version)
	return nil
}

func (s *Source) take(obj any) error {
	cm, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("taking the plan: %T is no ConfigMap", obj)
	}
	if cm.Name == s.options.ConfigMap {
		s.observe(cm)
	}
	return nil
}

// observe makes the ConfigMap the state, unless a newer one was seen, and answers what holds then.
func (s *Source) observe(cm *corev1.ConfigMap) *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.Load()
	if !s.newer(cm.ResourceVersion) && s.uid == cm.UID {
		return before
	}
	s.uid = cm.UID
	next := before.Next(cm.Data, cm.Annotations)
	s.publish(before, next)
	return next
}

// gone makes no plan the state.
func (s *Source) gone(version string) *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.Load()
	if version != "" && !s.newer(version) {
		return before
	}
	next := before.Gone()
	s.uid = ""
	s.publish(before, next)
	return next
}

// newer reports whether a resource version is newer than the last one, and remembers it. Resource versions of one
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

func (s *Source) publish(before, next *State) {
	s.state.Store(next)
	changed := before.revision() != next.revision()
	s.options.Metrics.observe(next, changed, time.Now())
	log := s.options.Log
	switch {
	case next.Stale && !before.Stale:
		log.Info("the plan does not match its digest; the last good one is enforced", "revision", next.revision())
	case changed && next.View == nil:
		log.Info("the plan is gone; nothing is enforced until the planner has rebuilt it")
	case changed:
		log.Info("plan in force", "revision", next.revision(), "mode", next.View.Plan.Mode, "clusters", len(next.View.Plan.Clusters))
	}
	if before.BreakGlass != next.BreakGlass {
		log.Info("break-glass changed", "open", next.BreakGlass)
	}
}

// get reads the ConfigMap live and makes it the state.
func (s *Source) get(ctx context.Context) (*State, error) {
	cm, err := s.options.Client.CoreV1().ConfigMaps(s.options.Namespace).Get(ctx, s.options.ConfigMap, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return s.gone(""), nil
	case err != nil:
		return nil, fmt.Errorf("reading the plan %q: %w", s.options.ConfigMap, err)
	}
	return s.observe(cm), nil
}

// Ready says why the source cannot serve yet.
func (s *Source) Ready() error {
	if !s.Synced() {
		return errors.New("the plan ConfigMap was not listed yet")
	}
	return nil
}
