package ownership

import (
	"maps"
	"slices"
	"time"
)

const (
	// around is by how much the time at which a setting was first seen and the time from which a container has it may
	// differ: a cycle, and the minute for which a kubelet may keep a ConfigMap.
	around = 2 * time.Minute
	// doubtedFor is how long a container counts as one of another setting that started while nobody looked which one
	// there was.
	doubtedFor = 2 * time.Hour
	// mostSettings is how many are remembered.
	mostSettings = 32
)

// Unsettled tells since when a pod may go by another setting than the Applications were listed by; zero: none does. A
// container has its setting from its start, whatever the ConfigMap says since.
func (m Memory) Unsettled(s Observation, now time.Time) (since time.Time) {
	settings := m.settings(s, now)
	if len(settings) == 0 {
		return time.Time{}
	}
	last := settings[len(settings)-1]
	for _, p := range s.Pods {
		if !p.Started.IsZero() && !startedBy(settings, p.Started, now) {
			return last.Since
		}
	}
	return time.Time{}
}

// startedBy reports whether a container of that start has the last setting: it can have no other one, or may have it,
// and has run long enough since that one was seen.
func startedBy(settings []Setting, started, now time.Time) bool {
	last := len(settings) - 1
	may, other := false, false
	for i, one := range settings {
		switch {
		case !mayHave(settings, i, started):
		case one.Of == settings[last].Of:
			may = true
		default:
			other = true
		}
	}
	return may && (!other || now.Sub(settings[last].Since) >= doubtedFor)
}

// mayHave reports whether a container of that start may have that one of the settings.
func mayHave(settings []Setting, i int, started time.Time) bool {
	since := settings[i].Since
	if i > 0 && settings[i-1].Seen.Before(since) && !settings[i-1].Seen.IsZero() { // nobody looked in between
		since = settings[i-1].Seen
	}
	began := !started.Before(since.Add(-around))
	ended := i+1 < len(settings) && !started.Before(settings[i+1].Since.Add(around))
	return began && !ended
}

// Doubted is the observation as it may be believed: while a pod may go by another setting, a cluster of which no
// Application was listed may have some.
func (s Observation) Doubted(m Memory, now time.Time) Observation {
	if m.Unsettled(s, now).IsZero() {
		return s
	}
	s.Clusters = maps.Clone(s.Clusters)
	for name, c := range s.Clusters {
		if c.Apps == 0 {
			c.Apps = Unknown
			s.Clusters[name] = c
		}
	}
	return s
}

// settings is those that are remembered, with the one of the observation: the first is taken to hold for as long as any
// pod runs. Those that no pod that runs can have are forgotten.
func (m Memory) settings(s Observation, now time.Time) []Setting {
	all, now := slices.Clone(m.Settings), now.UTC().Truncate(time.Second)
	if s.Setting == "" || len(s.Pods) == 0 {
		return all
	}
	seen := s.Counted.UTC().Truncate(time.Second) // zero: nobody could list, and the setting is an earlier listing's
	if seen.After(now) {
		seen = now
	}
	switch {
	case len(all) == 0:
		return []Setting{{Of: s.Setting, Seen: seen}}
	case all[len(all)-1].Of != s.Setting:
		all = append(all, Setting{Of: s.Setting, Since: now})
	}
	if last := &all[len(all)-1]; last.Seen.Before(seen) {
		last.Seen = seen
	}
	var kept []Setting
	for i, one := range all {
		has := func(p PodObservation) bool { return !p.Started.IsZero() && mayHave(all, i, p.Started) }
		stays := i+1 == len(all) || slices.ContainsFunc(s.Pods, has)
		if again := len(kept) > 0 && kept[len(kept)-1].Of == one.Of; stays && !again {
			kept = append(kept, one)
		}
	}
	return kept[max(0, len(kept)-mostSettings):]
}
