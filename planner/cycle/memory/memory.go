// Package memory is what a cycle hands to the next one, and the history's parts that keep it for the next leader.
package memory

import (
	"fmt"
	"maps"
	"time"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle/track"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
	"ballast/planner/gz"
	"ballast/planner/measure"
	"ballast/planner/plan"
)

// The history's parts that are the planner's memory.
const (
	partFleet    = "fleet.json.gz"
	partLastGood = "lastgood"
	partVotes    = "votes"
	partChanges  = "changes.json.gz"
	partLimits   = "limits.json.gz"
	partMarks    = "marks.json.gz"
	partUsage    = "memory.json.gz"
	partSizes    = "sizes.json.gz"
)

// MadeAnew are the parts that a planner without them works out again: values from the next poll, votes within their
// window, what clusters take of memory within days.
func MadeAnew() []string { return []string{partLastGood, partVotes, partUsage} }

// fleetMemory is what is remembered of discovery and of rollouts.
type fleetMemory struct {
	Known discover.Known       `json:"known,omitzero"`
	Gone  map[string]time.Time `json:"gone,omitempty"`
	Young map[string]time.Time `json:"young,omitempty"`

	Before map[string]string `json:"before,omitempty"`
}

// limitsMemory is what keeps the next leader from doing more than this one may: a few kilobytes, whatever number of
// Secrets there is and however long their names, so that it is the last part to be left out of a history that is full.
type limitsMemory struct {
	Ledger   change.Ledger    `json:"ledger,omitempty"`
	Unserved change.Ledger    `json:"unserved,omitempty"`
	Cause    change.Cause     `json:"cause,omitempty"`
	Counted  time.Time        `json:"counted,omitzero"`
	Trip     *harm.Trip       `json:"trip,omitempty"`
	TripTold bool             `json:"tripTold,omitempty"`
	Failover failover.Last    `json:"failover,omitzero"`
	HoldOff  time.Time        `json:"holdOff,omitzero"`
	Stopped  time.Time        `json:"stopped,omitzero"`
	Restart  time.Time        `json:"restarted,omitzero"`
	Looked   time.Time        `json:"looked,omitzero"`
	Pin      time.Time        `json:"pinFailed,omitzero"`
	Rebased  time.Time        `json:"rebased,omitzero"`
	Refused  time.Time        `json:"refused,omitzero"`
	Failures harm.Failures    `json:"failures,omitempty"`
	Heaviest track.Heaviest   `json:"heaviest,omitzero"`
	Savings  evaluate.Savings `json:"savings,omitzero"`
	Spare    track.Spare      `json:"spare,omitzero"`
	Even     track.Even       `json:"even,omitzero"`
	Evidence track.Evidence   `json:"evidence,omitzero"`
	Unit     string           `json:"unit,omitempty"`
	Limit    plan.Bytes       `json:"memoryLimit,omitempty"`
	Counts   Counts           `json:"counts,omitzero"`
}

// split takes out of the memory what is bounded.
func (m Memory) split() (limitsMemory, Changes) {
	c := m.Changes
	l := limitsMemory{Ledger: c.Ledger, Unserved: c.Unserved, Cause: c.Cause, Counted: c.Counted, Trip: c.Trip,
		TripTold: c.TripTold, Failover: c.Failover, HoldOff: m.HoldOff,
		Heaviest: m.Heaviest, Savings: m.Savings, Spare: m.Spare, Even: m.Even, Unit: m.Unit, Limit: m.Limit,
		Evidence: m.Evidence, Rebased: m.Rebased, Refused: m.Refused,
		Stopped: c.Stopped, Restart: c.Restarted, Looked: c.Looked, Pin: c.PinFailed, Failures: c.Failures,
		Counts: m.Counts}
	c.Ledger, c.Unserved, c.Cause, c.Counted, c.Trip, c.TripTold, c.Failover = nil, nil, "", time.Time{}, nil, false,
		failover.Last{}
	c.Stopped, c.Restarted, c.Looked, c.PinFailed, c.Failures = time.Time{}, time.Time{}, time.Time{}, time.Time{}, nil
	return l, c
}

// join puts it back.
func (m *Memory) join(l limitsMemory) {
	c := &m.Changes
	c.Ledger, c.Unserved, c.Cause, c.Counted, c.Trip, c.TripTold, c.Failover = l.Ledger, l.Unserved, l.Cause, l.Counted,
		l.Trip, l.TripTold, l.Failover
	m.Savings, m.Spare, m.Even, m.Unit, m.Evidence, m.Limit = l.Savings, l.Spare, l.Even, l.Unit, l.Evidence, l.Limit
	m.HoldOff, m.Heaviest, m.Rebased, m.Refused, m.Counts = l.HoldOff, l.Heaviest, l.Rebased, l.Refused, l.Counts
	c.Stopped, c.Restarted, c.Looked, c.PinFailed, c.Failures = l.Stopped, l.Restart, l.Looked, l.Pin, l.Failures
}

// partBounds are those of the fleet and of the changes: each has an object a cluster, or a few.
func partBounds() gz.Bounds { return gz.Bounds{Bytes: 16 << 20, Nested: 1 << 20} }

// Parts are the history's parts with this memory in them. A part that only a newer version knows stays, and so does one
// that cannot be packed anew, which is reported: neither the others nor the plans may be lost with it.
func (m Memory) Parts(before map[string][]byte) (parts map[string][]byte, stale []error) {
	parts = maps.Clone(before)
	if parts == nil {
		parts = map[string][]byte{}
	}
	keep := func(name, what string, pack func() ([]byte, error)) {
		part, err := pack()
		if err != nil {
			stale = append(stale, fmt.Errorf("packing %s: %w", what, err))
			return
		}
		parts[name] = part
	}
	keep(partFleet, "what is known of the fleet", packed(fleetMemory{Known: m.Known, Gone: m.Gone, Young: m.Young,
		Before: m.Before}))
	limits, changes := m.split()
	keep(partChanges, "what is known of moves", packed(changes))
	keep(partLimits, "what limits changes", packed(limits))
	if marks := m.Changes.marks(); !marks.none() || parts[partMarks] != nil {
		keep(partMarks, "which clusters may not move on", packed(marks))
	}
	keep(partLastGood, "the last good values", m.LastGood.MarshalBinary)
	if len(m.Usage.Metrics) > 0 || parts[partUsage] != nil {
		keep(partUsage, "what clusters take of memory", packed(m.Usage))
	}
	keep(partVotes, "the votes", m.Votes.MarshalBinary)
	if !m.Sizes.none() || parts[partSizes] != nil {
		keep(partSizes, "what is known of sizes", packed(m.Sizes.bounded()))
	}
	return parts, stale
}

func packed(v any) func() ([]byte, error) {
	return func() ([]byte, error) { return partBounds().PackJSON(v) }
}

// Of reads the memory back. A part that cannot be read begins anew and is reported; the others serve.
func Of(parts map[string][]byte) (Memory, []error) {
	var m Memory
	var dropped []error
	for _, p := range m.readers() {
		part, there := parts[p.name]
		if !there {
			continue
		}
		if err := p.read(part); err != nil {
			dropped = append(dropped, fmt.Errorf("reading %s: %w", p.what, err))
		}
	}
	return m, dropped
}

// reader takes one part in; what it cannot read changes nothing.
type reader struct {
	name, what string
	read       func([]byte) error
}

func (m *Memory) readers() []reader {
	return []reader{
		{partFleet, "what was known of the fleet", unpacked(func(f fleetMemory) error {
			m.Known, m.Gone, m.Young, m.Before = f.Known, f.Gone, f.Young, f.Before
			return nil
		})},
		{partChanges, "what was known of moves", unpacked(func(c Changes) error { m.Changes = c; return nil })},
		{partLimits, "what limits changes", unpacked(func(l limitsMemory) error { m.join(l); return nil })},
		{partMarks, "which clusters may not move on", unpacked(func(k marksMemory) error {
			m.Changes.joinMarks(k)
			return nil
		})},
		{partLastGood, "the last good values", m.LastGood.UnmarshalBinary},
		{partUsage, "what clusters take of memory", unpacked(func(t track.Usage) error {
			if err := t.Bounded(); err != nil {
				return err
			}
			m.Usage = t.Refit()
			return nil
		})},
		{partVotes, "the votes", m.Votes.UnmarshalBinary},
		{partSizes, "what was known of sizes", unpacked(func(s Sizes) error { m.Sizes = s; return nil })},
	}
}

// unpacked takes in what a part has, if that can be read.
func unpacked[T any](take func(T) error) func([]byte) error {
	return func(part []byte) error {
		var v T
		if err := partBounds().UnpackJSON(part, &v); err != nil {
			return err
		}
		return take(v)
	}
}

// Memory is what a cycle hands to the next one, through the history ConfigMap, so that it survives a change of leaders.
type Memory struct {
	Known discover.Known       `json:"known,omitzero"`
	Gone  map[string]time.Time `json:"gone,omitempty"` // rows whose Secret went, and when that was seen first
	// references that were taken before a full window was measured, by metric, and when
	Young    map[string]time.Time `json:"young,omitempty"`
	Rebased  time.Time            `json:"rebased,omitzero"` // when a person had all of them taken anew last
	Before   map[string]string    `json:"before,omitempty"` // the references that were before that
	Refused  time.Time            `json:"refused,omitzero"` // when the metrics were not believed last
	LastGood measure.LastGood     `json:"lastGood,omitzero"`
	Votes    evaluate.Vote        `json:"votes,omitzero"`
	HoldOff  time.Time            `json:"holdOff,omitzero"` // when a rollout failed last
	Heaviest track.Heaviest       `json:"heaviest,omitzero"`
	Savings  evaluate.Savings     `json:"savings,omitzero"` // what moves would have saved
	Spare    track.Spare          `json:"spare,omitzero"`
	Even     track.Even           `json:"even,omitzero"`
	Evidence track.Evidence       `json:"evidence,omitzero"`
	Unit     string               `json:"unit,omitempty"`        // in which savings and the even share are loads
	Limit    plan.Bytes           `json:"memoryLimit,omitempty"` // of a pod's memory, as it was seen last
	Usage    track.Usage          `json:"taken,omitzero"`
	Changes  Changes              `json:"changes,omitzero"`
	Sizes    Sizes                `json:"sizes,omitzero"`
	Counts   Counts               `json:"counts,omitzero"`

	// The Secrets as they were seen last: their servers, and when each was made. Never in the history; the next leader
	// goes by the rows.
	Servers map[string]string    `json:"servers,omitempty"`
	Made    map[string]time.Time `json:"made,omitempty"`
}

// HeldUntil is when a rollout that failed no longer keeps others from beginning; zero where it does not.
func (m Memory) HeldUntil(now time.Time) time.Time {
	since := now.Sub(m.HoldOff)
	if m.HoldOff.IsZero() || since < 0 || since >= HoldOffFor {
		return time.Time{}
	}
	return m.HoldOff.Add(HoldOffFor)
}

// In is the memory of a fleet whose loads are in that unit: a load in another one is no measure of it, and is
// forgotten. Where growth counts from stays the same where it is known how many of the new ones one of the old ones is;
// 0: it is not.
func (m Memory) In(unit string, ratio float64) Memory {
	if m.Unit != "" && m.Unit != unit {
		m.Even, m.Savings = track.Even{}, evaluate.Savings{Back: m.Savings.Back}
		m.Counts.Start.Load *= ratio
	}
	if m.Unit == "" && m.Counts.Start.Of == "" {
		m.Counts.Start.Of = Unknown
	}
	m.Unit = unit
	return m
}
