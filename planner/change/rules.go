package change

import (
	"fmt"
	"slices"
	"time"

	"ballast/planner/change/maintenance"
)

// Direction is what a change does.
type Direction string

// The directions.
const (
	Out   Direction = "out"   // more replicas
	In    Direction = "in"    // fewer
	Up    Direction = "up"    // larger ones
	Down  Direction = "down"  // smaller
	Moves Direction = "moves" // clusters from one to another, and no number changes
)

// BlockReason is why a change does not happen now. The set is closed.
type BlockReason string

// The reasons.
const (
	StabilizationWindow BlockReason = "StabilizationWindow" // too soon after the last change, or other wishes still count
	OutsideMaintenance  BlockReason = "MaintenanceWindow"
	UpdatePolicy        BlockReason = "UpdatePolicy" // Off
	TooSmall            BlockReason = "MinChange"
	Weight              BlockReason = "Weight"      // the load's interval gives the other way the whole growth
	Paradoxical         BlockReason = "Paradoxical" // fewer replicas, each larger than asked
	RateLimit           BlockReason = "RateLimit"
	StaleInput          BlockReason = "StaleInput"
	RolloutInProgress   BlockReason = "RolloutInProgress"
)

// BlockReasons lists the closed set.
func BlockReasons() []BlockReason {
	return []BlockReason{StabilizationWindow, OutsideMaintenance, UpdatePolicy, TooSmall, Weight, Paradoxical,
		RateLimit, StaleInput, RolloutInProgress}
}

// Rules are those of all directions. The budget of moves is a matter of its own: see Look.
type Rules struct {
	Out, In, Up, Down, Moves Policy
}

// Of is a direction's.
func (r Rules) Of(d Direction) Policy {
	switch d {
	case Out:
		return r.Out
	case In:
		return r.In
	case Up:
		return r.Up
	case Down:
		return r.Down
	}
	return r.Moves
}

// Ask is a change that is wanted: from Current to Wanted replicas, or thousandths of a resource.
type Ask struct {
	Now             time.Time
	Current, Wanted int64
	OverCapacity    bool          // a replica carries more than it can: no least change holds that back
	OOMKilled       bool          // since the last change: up and out neither wait nor must be large; see OOM
	Known           []BlockReason // what the caller knows to be in the way: StaleInput, RolloutInProgress, Weight, Paradoxical
	Of              int           // replicas that a percentage of Rate is of; resources only
}

// Block is one thing in the way. Until is zero where nobody knows.
type Block struct {
	Reason BlockReason `json:"reason"`
	Until  time.Time   `json:"until,omitzero"`
	Why    string      `json:"why,omitempty"`
}

// Verdict is how far a change may go now: Value lies between Current and Wanted. What keeps it from Wanted stands in
// Blocks. Until is when more of it may be made if nothing else happens; zero where nobody knows.
type Verdict struct {
	Direction Direction // empty: nothing is to change
	Value     int64
	Blocks    []Block
	Until     time.Time
}

// because adds what is in the way, and until when all of it is.
func (v Verdict) because(p Policy, blocks ...Block) Verdict {
	for i, b := range blocks {
		if b.Until.IsZero() {
			v.Until = time.Time{}
			break
		}
		if v.Until = later(v.Until, b.Until); i == len(blocks)-1 && p.Mode == Maintenance {
			v.Until = maintenance.NextOf(p.Windows, v.Until) // it may have closed again by then
		}
	}
	v.Blocks = blocks
	return v
}

// Replicas judges another number of replicas. Of the reasons the window is named before the wait, as HVPA does.
func (r Rules) Replicas(a Ask, h Past) Verdict {
	j := judge{Ask: a, Past: h.until(a.Now), grow: r.Out, shrink: r.In, up: Out, down: In}
	return j.run([]func(Policy) *Block{j.off, j.window, j.cooldown, j.unstable, j.small}, j.pace)
}

// Resources judges another size of one resource of one replica. fleet is the history of all resizes, of which Rate
// allows so many.
func (r Rules) Resources(a Ask, h, fleet Past) Verdict {
	j := judge{Ask: a, Past: h.until(a.Now), fleet: fleet.until(a.Now), grow: r.Up, shrink: r.Down, up: Up, down: Down}
	return j.run([]func(Policy) *Block{j.off, j.cooldown, j.unstable, j.window, j.small}, j.room)
}

// Asked are the rules for what a person asks for: modes, windows and rates hold, and nothing is waited for or too
// small.
func (r Rules) Asked() Rules {
	for _, p := range []*Policy{&r.Up, &r.Down} {
		p.Cooldown, p.Stabilization, p.MinChange = 0, 0, MinChange{}
	}
	return r
}

// MayMove is what keeps clusters from moving now, beside their budget: nothing, or one block.
func (r Rules) MayMove(now time.Time, h Past) []Block {
	j := judge{Ask: Ask{Now: now}, Past: h.until(now)}
	var blocks []Block
	for _, in := range []func(Policy) *Block{j.off, j.window, j.cooldown} {
		if b := in(r.Moves); b != nil {
			blocks = append(blocks, *b)
		}
	}
	return blocks
}

// judge is one question.
type judge struct {
	Ask
	Past
	fleet        Past
	grow, shrink Policy
	up, down     Direction
}

func (j judge) grows() bool { return j.Wanted > j.Current }

// urgent is a growth after an OOM kill.
func (j judge) urgent() bool { return j.OOMKilled && j.grows() }

// run asks what can be in the way of the whole change, and then how much of it may be made.
func (j judge) run(whole []func(Policy) *Block, part func(Policy, int64) (int64, *Block)) Verdict {
	if j.Wanted == j.Current {
		return Verdict{Value: j.Current}
	}
	v := Verdict{Direction: j.down, Value: j.Current}
	p := j.shrink
	if j.grows() {
		v.Direction, p = j.up, j.grow
	}
	var blocks []Block
	for _, reason := range BlockReasons() {
		if slices.Contains(j.Known, reason) {
			blocks = append(blocks, Block{Reason: reason})
		}
	}
	for _, in := range whole {
		if b := in(p); b != nil {
			blocks = append(blocks, *b)
		}
	}
	if len(blocks) > 0 {
		return v.because(p, blocks...)
	}
	stable := j.stable(p)
	value, block := part(p, stable)
	v.Value = value
	if block != nil {
		return v.because(p, *block)
	}
	if stable != j.Wanted {
		return v.because(p, Block{StabilizationWindow, j.stableFor(p),
			fmt.Sprintf("less was asked for within %s", period(p.Stabilization))})
	}
	return v
}

func (j judge) off(p Policy) *Block {
	if p.Mode != Off {
		return nil
	}
	return &Block{Reason: UpdatePolicy, Why: "the mode is Off"}
}

func (j judge) window(p Policy) *Block {
	if p.Mode != Maintenance {
		return nil
	}
	next := maintenance.NextOf(p.Windows, j.Now)
	switch {
	case next.Equal(j.Now):
		return nil
	case next.IsZero():
		return &Block{Reason: OutsideMaintenance, Why: "no maintenance window is configured"}
	}
	return &Block{OutsideMaintenance, next, "the next maintenance window begins then"}
}

func (j judge) cooldown(p Policy) *Block {
	end := time.Unix(j.Last, 0).UTC().Add(p.Cooldown)
	if j.Last == 0 || j.urgent() || !end.After(j.Now) {
		return nil
	}
	return &Block{StabilizationWindow, end, fmt.Sprintf("the last change was less than %s ago", period(p.Cooldown))}
}

// stable is how far the windows let the value go.
func (j judge) stable(p Policy) int64 {
	if j.urgent() {
		return j.Wanted
	}
	if j.grows() {
		return max(Stabilize(j.Current, j.Wanted, j.Wishes, p.Stabilization, 0, j.Now), j.Current)
	}
	return min(Stabilize(j.Current, j.Wanted, j.Wishes, 0, p.Stabilization, j.Now), j.Current)
}

func (j judge) unstable(p Policy) *Block {
	if j.stable(p) != j.Current {
		return nil
	}
	return &Block{StabilizationWindow, stableAt(j.Current, j.Wanted, j.Wishes, p.Stabilization, j.Now),
		fmt.Sprintf("something else was asked for within %s", period(p.Stabilization))}
}

// stableFor is from when on the whole change is stable.
func (j judge) stableFor(p Policy) time.Time {
	return stableAt(j.Wanted+sign(j.Current-j.Wanted), j.Wanted, j.Wishes, p.Stabilization, j.Now)
}

func sign(i int64) int64 {
	switch {
	case i > 0:
		return 1
	case i < 0:
		return -1
	}
	return 0
}

// small compares what is stable: what a rate lets through of it may be as little as it likes.
func (j judge) small(p Policy) *Block {
	by, least := j.stable(p)-j.Current, p.MinChange.Threshold(j.Current)
	if by == 0 { // something else is in the way
		return nil
	}
	if max(by, -by) >= least || j.urgent() || j.OverCapacity {
		return nil
	}
	return &Block{Reason: TooSmall, Why: fmt.Sprintf("a change of %d is less than %d", max(by, -by), least)}
}

// pace lets through what HPA's policies do.
func (j judge) pace(p Policy, stable int64) (int64, *Block) {
	now := int(j.Current)
	value := max(stable, min(int64(LeastIn(now, p.Rate, p.Select, j.Events, j.Now)), j.Current))
	if j.grows() {
		value = min(stable, max(int64(MostOut(now, p.Rate, p.Select, j.Events, j.Now)), j.Current))
	}
	if value == stable {
		return value, nil
	}
	return value, &Block{RateLimit, j.later(p, value), "the rate allows no more now"}
}

// later is the first time at which the rate lets more through once that much was made; zero where it never will.
func (j judge) later(p Policy, made int64) time.Time {
	all := slices.Clone(j.Events)
	if made != j.Current {
		all = append(all, Event{j.Now.Unix(), int(made - j.Current)})
	}
	more := func(at time.Time) bool {
		if j.grows() {
			return int64(MostOut(int(made), p.Rate, p.Select, all, at)) > made
		}
		return int64(LeastIn(int(made), p.Rate, p.Select, all, at)) < made
	}
	var ends []time.Time
	for _, e := range all {
		for _, pace := range p.Rate {
			ends = append(ends, time.Unix(e.At, 0).UTC().Add(pace.Period))
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	for _, end := range ends {
		if end.After(j.Now) && more(end) {
			return end
		}
	}
	return time.Time{}
}

// room lets one more resize through, or none.
func (j judge) room(p Policy, stable int64) (int64, *Block) {
	if p.Select == SelectDisabled {
		return j.Current, &Block{Reason: RateLimit, Why: "the rate is disabled"}
	}
	left, next := Room(p.Rate, j.fleet.Events, j.Of, j.grows(), j.Now)
	if left > 0 {
		return stable, nil
	}
	return j.Current, &Block{RateLimit, next, "the rate allows no more now"}
}
