package source

import (
	"sync"
	"time"
)

// silentAfter is how long the watch of the plan may say nothing. A healthy one brings a bookmark about once a minute,
// and is made anew, with a list, every 5 to 10 min; a broken one is tried again every few seconds.
const (
	silentAfter = 5 * time.Minute
	listenEvery = 10 * time.Second
)

// hearing is when the watch last said anything: a list, an event, a bookmark. A live read is none: it tells what stands
// at one moment, and the next change would still be missed.
type hearing struct {
	mu     sync.Mutex
	last   time.Time
	silent bool // it was said that nothing is heard
}

// UpdateResourceVersion makes the reflector tell of each event, bookmarks among them.
func (s *Source) UpdateResourceVersion(string) { s.hear() }

// hear notes that the API server said something.
func (s *Source) hear() {
	now := s.options.Now()
	s.options.Metrics.heard.Set(seconds(now))
	s.hearing.mu.Lock()
	defer s.hearing.mu.Unlock()
	if s.hearing.silent {
		s.hearing.silent = false
		s.options.Log.Info("the API server is heard again", "silentFor",
			now.Sub(s.hearing.last).Round(time.Second).String())
	}
	s.hearing.last = now
}

// listen says once that nothing is heard. Readiness stays: the last plan is better than none, and every replica may
// have lost the API server at the same moment.
func (s *Source) listen() {
	now := s.options.Now()
	s.hearing.mu.Lock()
	defer s.hearing.mu.Unlock()
	if s.hearing.silent || now.Sub(s.hearing.last) < silentAfter {
		return
	}
	s.hearing.silent = true
	s.options.Log.Info("nothing was heard from the API server; the last plan is enforced, and later pins and plans are not seen",
		"since", s.hearing.last.UTC().Format(time.RFC3339), "revision", s.State().Revision())
}
