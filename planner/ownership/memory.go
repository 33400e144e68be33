package ownership

import (
	"maps"
	"time"
)

// Memory is what must be remembered from one verdict to the next, by the next leader too. The zero value is a memory of
// nothing.
type Memory struct {
	Last     map[string]int       `json:"last,omitempty"`     // the replica that had the cluster when one last had
	Lost     map[string]time.Time `json:"lost,omitempty"`     // since when nobody has it
	Doubled  map[string]time.Time `json:"doubled,omitempty"`  // since when several have it
	Astray   map[string]time.Time `json:"astray,omitempty"`   // since when others have it than plan and Secret say
	Followed time.Time            `json:"followed,omitzero"`  // when the plan followed an owner that was astray
	Newest   time.Time            `json:"newest,omitzero"`    // the newest sample that was looked at: no fault began before it
	Begun    time.Time            `json:"begun,omitzero"`     // the first sample that was looked at
	Settings []Setting            `json:"settings,omitempty"` // that the pods may have, in the order of their times
}

// Setting is the namespaces whose Applications Argo CD was told to work on, since when that was seen, and when
// Applications were listed by it last.
type Setting struct {
	Of    string    `json:"of"`
	Since time.Time `json:"since"`
	Seen  time.Time `json:"seen,omitzero"`
}

// Idle reports whether a cluster is known to have no Application, as Observation.Idle, and nobody is remembered to have
// had it since.
func (m Memory) Idle(s Observation, name string) bool {
	_, had := m.Last[name]
	return !had && s.Idle(name)
}

func (m Memory) clone() Memory {
	c := Memory{Last: maps.Clone(m.Last), Lost: maps.Clone(m.Lost), Doubled: maps.Clone(m.Doubled),
		Astray: maps.Clone(m.Astray), Followed: m.Followed, Newest: m.Newest, Begun: m.Begun, Settings: m.Settings}
	if c.Last == nil {
		c.Last = map[string]int{}
	}
	if c.Lost == nil {
		c.Lost = map[string]time.Time{}
	}
	if c.Doubled == nil {
		c.Doubled = map[string]time.Time{}
	}
	return c
}

// forget drops the clusters that are not there any more.
func (m Memory) forget(clusters map[string]ClusterObservation) {
	gone := func(name string) bool { _, found := clusters[name]; return !found }
	maps.DeleteFunc(m.Last, func(name string, _ int) bool { return gone(name) })
	maps.DeleteFunc(m.Lost, func(name string, _ time.Time) bool { return gone(name) })
	maps.DeleteFunc(m.Doubled, func(name string, _ time.Time) bool { return gone(name) })
}
