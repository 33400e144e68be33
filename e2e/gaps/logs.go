package gaps

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ballast/e2e/fleet"
	"ballast/e2e/gaps/timeline"
	"ballast/e2e/site"
)

// logs follows the application-controllers' logs.
type logs struct {
	path func(pod string) string

	mu     sync.Mutex
	read   map[string]int64 // bytes, by file
	events []timeline.Event
}

// Timeline is what the logs tell of a window so far.
func (s *Site) Timeline(from, to time.Time) (timeline.Timeline, error) {
	events, err := s.logs.all()
	return timeline.Timeline{From: from, To: to, Clusters: s.Clusters, Events: events}, err
}

// add takes an event that no process tells of.
func (l *logs) add(e timeline.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// all reads what is new. Events of different pods are merged by their time, which is of one clock.
func (l *logs) all() ([]timeline.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	files, err := filepath.Glob(l.path(fleet.Workload + "-*"))
	if err != nil {
		return nil, fmt.Errorf("listing the logs: %w", err)
	}
	for _, file := range files {
		if err := l.follow(file); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(l.events, func(a, b timeline.Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Pod, b.Pod)) })
	return slices.Clone(l.events), nil
}

func (l *logs) follow(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(l.read[file], io.SeekStart); err != nil {
		return fmt.Errorf("reading a log on: %w", err)
	}
	pod := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	n, err := timeline.ReadEvents(pod, f, func(e timeline.Event) { l.events = append(l.events, e) })
	if l.read == nil {
		l.read = map[string]int64{}
	}
	l.read[file] += n
	return err
}

// WaitSynced returns when each cluster has exactly one owner, which has synced it.
func (s *Site) WaitSynced(ctx context.Context) error {
	return s.wait(ctx, func(t timeline.Timeline) error {
		for _, c := range s.Clusters {
			if _, err := t.Owner(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// WaitOwned returns when each of these clusters has only the replica of that ordinal for its owner, which has synced
// it.
func (s *Site) WaitOwned(ctx context.Context, by map[string]int) error {
	return s.wait(ctx, func(t timeline.Timeline) error {
		for _, c := range s.Clusters {
			ordinal, asked := by[c.Name]
			if !asked {
				continue
			}
			owner, err := t.Owner(c)
			if err == nil && owner != Pod(ordinal) {
				err = fmt.Errorf("cluster %q is owned by %q, want %q", c.Name, owner, Pod(ordinal))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// WaitEvent returns when the logs have such an event since that time.
func (s *Site) WaitEvent(ctx context.Context, since time.Time, like timeline.Event) error {
	return s.wait(ctx, func(t timeline.Timeline) error {
		for _, e := range t.Events {
			if at := e.At; !at.Before(since) {
				if e.At = like.At; e == like {
					return nil
				}
			}
		}
		return fmt.Errorf("no event like %+v since %s", like, since.Format(time.TimeOnly))
	})
}

// wait asks the logs as they are until there is no error.
func (s *Site) wait(ctx context.Context, check func(timeline.Timeline) error) error {
	return site.Poll(ctx, func(context.Context) error {
		now := time.Now()
		t, err := s.Timeline(now, now)
		if err != nil {
			return err
		}
		return check(t)
	})
}
