package memory

import (
	"maps"
	"math"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/track"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Sizes is what is remembered of how large replicas are.
type Sizes struct {
	Rules size.States `json:"rules,omitempty"`
	// by replica, and by resource; wishes for limits stand apart: see LimitOf
	Changes map[int]map[string]change.Past `json:"changes,omitempty"`
	Resizes change.Past                    `json:"resizes,omitzero"`  // of all of them
	Peaks   map[int]track.Peak             `json:"peaks,omitempty"`   // of memory, by replica
	Found   *plan.Resources                `json:"found,omitempty"`   // what the template had before ballast held it
	Written *plan.Resources                `json:"written,omitempty"` // what the template has since ballast held it
	Held    *plan.Sizes                    `json:"held,omitempty"`    // the sizes in force that Changes and Killed know of
	Blocked map[string]time.Time           `json:"blocked,omitempty"` // changes that do not happen, and since when
	// the OOM kill that a replica grew for last, by its node's clock
	Killed map[int]int64 `json:"killed,omitempty"`
	// replicas whose nodes had no room for their size, and when last
	NoRoom map[int]time.Time `json:"noRoom,omitempty"`
	Back   *SizesBack        `json:"back,omitempty"` // what a person went back to
	// replicas whose nodes never have room for their size
	Unfit map[int]Unfit `json:"unfit,omitempty"`
	// replicas whose size is refused to new pods, by ordinal
	GivenUp map[int]GivenUp `json:"givenUp,omitempty"`
	// replicas that clusters are to leave since their nodes have no room
	Cramped map[int]Cramped `json:"cramped,omitempty"`
	// what nodes give one replica, as they were seen last
	Nodes map[string]string `json:"nodes,omitempty"`
	// when sizes were decided last, where they are not in each cycle
	Decided time.Time `json:"decided,omitzero"`
	// changes that were decided then, and wait for a rate, a window or a gate
	Due map[string]bool `json:"due,omitempty"`
}

// Cramped is since when a replica's node has had no room for what its rules want it to request, of which its pod has
// that many percent, and when clusters left it for that last; zero: the node has room, or none left it within the day.
// Tries are the rollouts for it that ended before anything left.
type Cramped struct {
	Since time.Time `json:"since,omitzero"`
	Has   int       `json:"has,omitempty"`
	Left  time.Time `json:"left,omitzero"`
	Tries int       `json:"tries,omitempty"`
}

// mostBetweenTries is how long it takes at most until clusters are to leave a replica once more.
const mostBetweenTries = 24 * time.Hour

// mostDoublings is more than there are of ten minutes in a day.
const mostDoublings = 16

// Due reports whether the node has had no room for so long; after each try by which nothing left for twice as long, and
// for a day at most.
func (c Cramped) Due(after time.Duration, now time.Time) bool {
	for range min(c.Tries, mostDoublings) {
		after = min(2*after, mostBetweenTries)
	}
	return !c.Since.IsZero() && now.Sub(c.Since) >= after
}

// Unfit is since when a replica's node is known to never have room for its size, and since when and at what the replica
// stays for that; zero: it does not yet.
type Unfit struct {
	Since time.Time      `json:"since"`
	Stays time.Time      `json:"stays,omitzero"`
	Has   plan.Resources `json:"has,omitzero"`
}

// GivenUp is since when a replica's size is refused to its pod, since when no pod is made for it (Podless), and since
// when it is given up for that; zero: it is not. Held is the size that is given up, and Stays what holds meanwhile:
// nothing but the pod template where it is Bare, since no pod was made.
type GivenUp struct {
	Since   time.Time      `json:"since,omitzero"`
	Podless time.Time      `json:"podless,omitzero"`
	At      time.Time      `json:"at,omitzero"`
	Bare    bool           `json:"bare,omitempty"`
	Held    plan.Resources `json:"held,omitzero"`
	Stays   plan.Resources `json:"stays,omitzero"`
}

// SizesBack is the sizes of an earlier plan that a person went back to, by replica, and when; Clusters is how many each
// had then.
type SizesBack struct {
	At       time.Time              `json:"at"`
	Of       map[int]plan.Resources `json:"of,omitempty"`
	Clusters map[int]int            `json:"clusters,omitempty"`
}

// LimitOf is the key under which the wishes for a resource's limit are remembered.
func LimitOf(resource string) string { return resource + ".limit" }

// none reports whether there is nothing to remember.
func (s Sizes) none() bool {
	entries := len(s.Rules) + len(s.Changes) + len(s.Peaks) + len(s.Blocked) + len(s.Killed) + len(s.Nodes)
	entries += len(s.NoRoom) + len(s.Unfit) + len(s.GivenUp) + len(s.Cramped)
	stands := s.Found != nil || s.Held != nil || s.Back != nil
	return entries == 0 && !stands
}

// mostSamples bounds what all rules remember together: some 30 bytes each.
const mostSamples = 20_000

// bounded is the memory with no more samples than that: neighbours become one, so that what is held back waits longer
// and never shorter.
func (s Sizes) bounded() Sizes {
	samples := 0
	for _, states := range s.Rules {
		for _, state := range states {
			samples += len(state.Window) + len(state.Ring)
		}
	}
	if samples <= mostSamples {
		return s
	}
	rules := size.States{}
	for key, states := range s.Rules {
		rules[key] = maps.Clone(states)
		for replica, state := range states {
			state.Window, state.Ring = halved(state.Window), nil
			rules[key][replica] = state
		}
	}
	s.Rules = rules
	return s.bounded()
}

func halved(w []size.Stretch) []size.Stretch {
	if len(w) < 2 {
		return nil
	}
	out := make([]size.Stretch, 0, (len(w)+1)/2)
	for i := 0; i < len(w); i += 2 {
		last := w[min(i+1, len(w)-1)]
		out = append(out, size.Stretch{At: last.At, Lo: math.Min(w[i].Lo, last.Lo), Hi: math.Max(w[i].Hi, last.Hi)})
	}
	return out
}

// until takes what lies ahead as now; what the rules and the histories have of times they take themselves.
func (s Sizes) until(now time.Time) Sizes {
	peaks := maps.Clone(s.Peaks)
	for replica, peak := range peaks {
		peak.Later = slices.Clone(peak.Later)
		track.NotAhead(now, &peak.At)
		for i := range peak.Later {
			track.NotAhead(now, &peak.Later[i].At)
		}
		peaks[replica] = peak
	}
	if back := s.Back; back != nil && back.At.After(now) {
		s.Back = &SizesBack{At: now, Of: back.Of, Clusters: back.Clusters}
	}
	unfit := maps.Clone(s.Unfit)
	for replica, u := range unfit {
		track.NotAhead(now, &u.Since, &u.Stays)
		unfit[replica] = u
	}
	cramped := maps.Clone(s.Cramped)
	for replica, c := range cramped {
		track.NotAhead(now, &c.Since, &c.Left)
		cramped[replica] = c
	}
	givenUp := maps.Clone(s.GivenUp)
	for ordinal, g := range givenUp {
		track.NotAhead(now, &g.Since, &g.Podless, &g.At)
		givenUp[ordinal] = g
	}
	track.NotAhead(now, &s.Decided)
	s.Unfit, s.Cramped, s.GivenUp = unfit, cramped, givenUp
	s.Peaks, s.Blocked, s.NoRoom = peaks, track.MapUntil(s.Blocked, now), track.MapUntil(s.NoRoom, now)
	return s
}
