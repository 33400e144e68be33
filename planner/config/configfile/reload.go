package configfile

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"ballast/planner/config"
)

// reloadEvery is how often the mounted file is read. The kubelet takes up to a minute to bring a ConfigMap to a volume,
// so that a watch on the folder would save nothing that anybody sees.
const reloadEvery = 5 * time.Second

// ReloaderOptions are the hooks of a Reloader. OnChange and OnError are called from Run's goroutine, one at a time.
type ReloaderOptions struct {
	// OnChange is called with each configuration that takes the place of another or of a mistake.
	OnChange func(config.PlannerConfig)
	// OnError is called once for each text or failure that is refused; the configuration in force stays.
	OnError func(error)
	// Checks judge a text beside Parse.
	Checks []Check
	// Clock is the real one when nil.
	Clock clock.WithTicker
}

// Reloader holds the configuration of a file and follows its changes, as those of a mounted ConfigMap, whose folder is
// swapped by a symbolic link.
type Reloader struct {
	path    string
	options ReloaderOptions

	mu       sync.RWMutex
	current  config.PlannerConfig
	seen     [sha256.Size]byte // of the last text, good or bad
	failure  string            // the last failure to read it
	lastGood [sha256.Size]byte
}

// NewReloader reads the file; the first one has to be good.
func NewReloader(path string, options ReloaderOptions) (*Reloader, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c, err := parseIn(data, filepath.Dir(path), options.Checks)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration %q: %w", path, err)
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	sum := sha256.Sum256(data)
	return &Reloader{path: path, options: options, current: c, seen: sum, lastGood: sum}, nil
}

// Current is the last good configuration.
func (r *Reloader) Current() config.PlannerConfig {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.current
}

// Healthy reports whether the file as it was last read is the configuration in force.
func (r *Reloader) Healthy() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.failure == "" && r.seen == r.lastGood
}

// Run follows the file until the context ends.
func (r *Reloader) Run(ctx context.Context) error {
	ticker := r.options.Clock.NewTicker(reloadEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			r.Reload()
		}
	}
}

// Reload reads the file now. A file that is good again is told of even if it says what it said before: whoever heard of
// the mistake would believe it to be there still.
func (r *Reloader) Reload() {
	was := r.Healthy()
	data, err := os.ReadFile(r.path)
	if err != nil {
		if r.fail(err.Error()) {
			r.refuse(fmt.Errorf("reading the configuration: %w", err))
		}
		return
	}
	sum := sha256.Sum256(data)
	if !r.differs(sum) {
		if !was && r.Healthy() {
			r.change(r.Current())
		}
		return
	}
	c, err := parseIn(data, filepath.Dir(r.path), r.options.Checks)
	if err != nil {
		r.refuse(fmt.Errorf("reading the configuration %q: %w", r.path, err))
		return
	}
	if r.take(c, sum) || !was {
		r.change(c)
	}
}

func (r *Reloader) change(c config.PlannerConfig) {
	if r.options.OnChange != nil {
		r.options.OnChange(c)
	}
}

// fail notes a failure and reports whether it is a new one.
func (r *Reloader) fail(message string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	isNew := r.failure != message
	r.failure = message
	return isNew
}

// differs notes a text and reports whether it differs from the last one.
func (r *Reloader) differs(sum [sha256.Size]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.seen != sum
	r.seen, r.failure = sum, ""
	return changed
}

// take puts a good configuration in force and reports whether it is another text than the last good one.
func (r *Reloader) take(c config.PlannerConfig, sum [sha256.Size]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.lastGood != sum
	r.current, r.lastGood = c, sum
	return changed
}

func (r *Reloader) refuse(err error) {
	if r.options.OnError != nil {
		r.options.OnError(err)
	}
}
