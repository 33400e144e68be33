package cycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// action is a change that a cycle may begin; a gate names those that it blocks.
type action uint16

const (
	setEnv      action = 1 << iota // the one restart that mode live needs
	followUp                       // replicas that people added, where they are people's
	followOut                      // replicas that people took away
	pinOut                         // a pin beyond the replicas
	rollBack                       // an earlier plan, as a person asked
	failOver                       // off a replica that is unwell
	drain                          // off a replica that a person cordoned
	balance                        // what was elected
	sizeUp                         // a replica's size, in place
	sizeDown                       // a replica's size, in place
	sizeRestart                    // the template's size, for which every pod restarts

	everything = action(1<<11 - 1)
	sizes      = sizeUp | sizeDown                                          // change running pods, and neither Secrets nor the workload
	frozen     = setEnv | pinOut | failOver | balance | sizes | sizeRestart // what waits while a person stops ballast
	moves      = failOver | drain                                           // other Secrets, and neither replicas nor env
	follows    = followUp | followOut
)

// stoppedItself is why nothing begins after a trip.
const stoppedItself = "ballast stopped itself and nobody has cleared it"

// gate blocks actions while it is shut.
type gate struct {
	name   string
	blocks action
	kind   string                   // of the Problem that tells people why; empty where they are told otherwise
	brief  string                   // why, for the candidate's verdict; empty: as shut says it
	shut   func(situation) string   // why, as a sentence; empty while the gate is open
	about  func(s situation) string // the Problem's subject; nil for none
}

// open is what a gate answers that is open, and shutNow one whose brief says it all.
const (
	open    = ""
	shutNow = "shut"
)

func when(shut bool) string {
	if shut {
		return shutNow
	}
	return open
}

// gates is the table of what blocks which action, in the order in which the first that is shut is named. Secrets that
// wait for their owner, and what mode live lacks, block what changes replicas or env: an algorithm answers otherwise
// then, for a cluster without a shard; once the env is live's for good, for one that people have to mend, it does not.
// A replica that is unwell or cordoned is emptied meanwhile: one Secret that nobody can write must not keep the others'
// clusters without an owner. A size in place changes no owner, no replica and no env, so that it waits for little: a replica
// grows while a rollout is under way, and after a trip, whose harm may be that it is too small; it shrinks at rest alone.
func gates() []gate {
	return []gate{
		{name: "breakGlass", blocks: everything, brief: "enforcement is off",
			shut: func(s situation) string { return when(s.breakGlass) }},
		{name: "paused", blocks: frozen, brief: "a person paused it",
			shut: func(s situation) string { return when(s.paused) }},
		{name: "tripped", blocks: frozen &^ (failOver | sizeUp), brief: stoppedItself,
			shut: func(s situation) string { return when(s.tripped) }},
		{name: "starved", blocks: failOver, brief: stoppedItself,
			shut: func(s situation) string { return when(s.starved) }},
		{name: "followFails", blocks: followUp, brief: stoppedItself,
			shut: func(s situation) string { return when(s.failing == change.Pin) }},
		{name: "rollbackFails", blocks: rollBack, brief: stoppedItself,
			shut: func(s situation) string { return when(s.failing == change.Rollback) }},
		{name: "drainFails", blocks: drain, brief: stoppedItself,
			shut: func(s situation) string { return when(s.failing == change.Drain) }},
		{name: "firstPlan", blocks: everything, brief: "there is no plan yet",
			shut: func(s situation) string { return when(s.first) }},
		{name: "shrunk", blocks: everything &^ (moves | followOut), brief: goneAtOnce,
			shut: func(s situation) string { return when(s.partial) }},
		{name: "heldOff", blocks: setEnv | followUp | pinOut | balance | sizeRestart, kind: "HeldOff", brief: "a rollout failed or went back to an earlier plan a short while ago",
			shut: situation.heldOff},
		{name: "keyless", blocks: everything &^ (sizes | sizeRestart), brief: "the plan's key is missing, and a leader after this one could not bring back what rollout.x0y stops",
			shut: func(s situation) string { return when(s.keyless) }},
		{name: "unstamped", blocks: everything &^ (moves | follows | sizes), kind: "Unstamped", brief: "present owners are written",
			shut: situation.unstampedSecrets, about: func(s situation) string { return s.unstamped[0] }},
		{name: "liveLacks", blocks: everything &^ (moves | follows | sizes | sizeRestart), kind: "LiveNotReady", brief: "rollout.live waits",
			shut: situation.liveLacks},
		{name: "liveEnv", blocks: setEnv, kind: "LiveNotReady", brief: "rollout.live waits",
			shut: situation.liveEnv},
		{name: "liveBlind", blocks: everything &^ (follows | failOver | sizes | sizeRestart), kind: "LiveNotReady", brief: "rollout.live waits",
			shut: situation.liveBlind},
		{name: "scaledDeployment", blocks: everything &^ (failOver | followOut | sizes), kind: "ScaledDeployment", brief: "an autoscaler's Deployment",
			shut: func(s situation) string { return s.scaled }},
		{name: "fault", blocks: balance,
			shut: func(s situation) string { return s.fault }},
		{name: "changeMoves", blocks: balance,
			shut: func(s situation) string { return s.moveBlock }},
		{name: "mode", blocks: everything,
			shut: func(s situation) string {
				if s.mode != plan.Enforce {
					return "the mode is " + string(s.mode)
				}
				return open
			}},
		{name: "underWay", blocks: everything &^ sizeUp, brief: "a rollout is under way",
			shut: func(s situation) string { return when(s.underWay) }},
	}
}

// situation is what the gates look at.
type situation struct {
	breakGlass, paused, tripped bool
	starved                     bool         // tripped, and for memory as far as is known
	failing                     change.Cause // tripped, since rollouts for that cause failed again and again
	first                       bool         // no plan is in force
	partial                     bool         // the discovery is refused; people are told of it as Shrunk
	mode                        plan.Mode    // of the plan
	underWay                    bool
	keyless                     bool      // in mode x0y: a leader after this one could not bring back what is stopped
	heldUntil                   time.Time // nothing begins before, after a rollout that failed; zero: none did
	unstamped                   []string  // Secrets whose cluster is still owned by an algorithm
	missing                     []string  // what mode live lacks
	envLacks                    []string  // what it lacks for another env alone
	unsaid                      string    // why nobody could tell whether a live rollout does well
	moveBlock                   string    // why change.moves lets nothing that levels begin now
	scaled                      string    // pods of a Deployment that people or an autoscaler scale
	fault                       string    // in mode live: a cluster that no replica has, or several
}

// atRest reports whether a plan is enforced and nothing is under way: gates tell people of something only then.
func (s situation) atRest() bool {
	enforced := !s.breakGlass && s.mode == plan.Enforce
	return enforced && !s.first && !s.underWay
}

func (s situation) heldOff() string {
	if s.heldUntil.IsZero() {
		return open
	}
	return fmt.Sprintf("a rollout failed or went back to an earlier plan; nothing that levels, grows or pins begins before %s", s.heldUntil.Format(time.RFC3339))
}

func (s situation) unstampedSecrets() string {
	if len(s.unstamped) == 0 {
		return open
	}
	return fmt.Sprintf("%s without the replica that owns its cluster now, the first is %q: present owners are written before anything else begins but a failover, a drain and what follows the workload's replicas",
		problem.Plural(len(s.unstamped), "Secret"), s.unstamped[0])
}

func (s situation) liveLacks() string {
	if len(s.missing) == 0 || len(s.unstamped) > 0 {
		return open
	}
	return "rollout.live begins nothing yet but a failover, a drain and what follows the workload's replicas: " + strings.Join(s.missing, "; ")
}

func (s situation) liveEnv() string {
	if len(s.envLacks) == 0 {
		return open
	}
	return "rollout.live changes no " + plan.EnvReplicas + ": " + strings.Join(s.envLacks, "; ")
}

func (s situation) liveBlind() string {
	if s.unsaid == "" {
		return open
	}
	return "rollout.live begins nothing but a failover to replicas that say what they own: " + s.unsaid
}

// verdicts is why each action may not begin; an action that may is absent.
type verdicts map[action]string

// judge asks every gate of a table, and tells people of those that they can mend.
func judge(table []gate, s situation, tell func(problem.Problem)) verdicts {
	shut, told := verdicts{}, map[string]bool{}
	for _, g := range table {
		why := g.shut(s)
		if why == open {
			continue
		}
		if g.kind != "" && s.atRest() && !told[g.kind] {
			told[g.kind] = true
			p := problem.Problem{Phase: problem.PhaseRollout, Kind: g.kind, Message: why}
			if g.about != nil {
				p.Subject = g.about(s)
			}
			tell(p)
		}
		if g.brief != "" {
			why = g.brief
		}
		shut.add(g.blocks, why)
	}
	return shut
}

func (v verdicts) add(blocked action, why string) {
	for act := setEnv; act != 0; act <<= 1 {
		if blocked&act != 0 && v[act] == "" {
			v[act] = why
		}
	}
}

// unstamped are the Secrets whose cluster is still owned by an algorithm. An algorithm answers otherwise as soon as the
// number of replicas changes, in some pods before others: two owners. So every present owner is written first.
func unstamped(a *adoption) []string {
	var names []string
	for _, cl := range a.fleet.Clusters {
		_, planned := a.next.Clusters[cl.Shard.ID] // what the plan has no room for is nobody's to write
		writable := planned && !cl.Immutable && !cl.Skip
		if writable && cl.Explicit.State != discover.ShardValid {
			names = append(names, cl.Shard.ID)
		}
	}
	return names
}

// moveBlock is why change.moves lets nothing that levels begin now, beside its rates.
func (s *snapshot) moveBlock() string {
	var h change.History
	if n := len(s.changes.Ledger); n > 0 {
		h.Last = s.changes.Ledger[n-1].At.Unix()
	}
	blocks := s.in.Config.Change.MoveRules().MayMove(s.in.Now, h)
	if len(blocks) == 0 {
		return ""
	}
	why := fmt.Sprintf("change.moves: %s (%s)", blocks[0].Why, blocks[0].Reason)
	if until := blocks[0].Until; !until.IsZero() {
		why += ", until " + until.UTC().Format(time.RFC3339)
	}
	return why
}

// scaledDeployment is why next to nothing begins on a Deployment whose replicas are people's: its pods read their number once,
// at their start, so those of before and after a change own by different numbers, and nothing restarts them.
func scaledDeployment(p plan.Plan) string {
	if p.Target.Kind != plan.Deployment || !p.FreeReplicas {
		return open
	}
	return "pods of a Deployment read their number of replicas once, at their start, so that with partition.replicas: workload a cluster may have two owners after each change: " +
		"only a failover begins, and what follows replicas that were taken away; set partition.replicas to a number, or leave it out, or run the controller as a StatefulSet"
}

// situation works out what the gates look at.
func (s *snapshot) situation() situation {
	now := situation{breakGlass: s.in.BreakGlass, paused: s.in.Paused, tripped: tripped(s.in, s.changes), first: s.in.InForce == nil,
		partial: s.partial, mode: s.next.Mode, underWay: s.next.Rollout != nil}
	now.starved = now.tripped && stopsFor(change.Failover, s.in, s.changes)
	if trip := s.changes.Trip; trip != nil {
		now.failing = trip.Cause
	}
	if !now.atRest() {
		return now
	}
	now.heldUntil, now.unstamped = s.in.Memory.HeldUntil(s.in.Now), unstamped(s.adoption)
	now.moveBlock = s.moveBlock()
	now.keyless = s.in.Keyless != "" && modeOf(s.in.Config.Rollout) == plan.ModeX0Y
	now.scaled = scaledDeployment(s.next)
	if s.in.Config.Rollout.Live == nil {
		return now
	}
	seen := s.seen()
	seen.Secrets = slices.DeleteFunc(seen.Secrets, func(stamp observed.Secret) bool { // what the plan has no room for stays where it is
		_, planned := s.next.Clusters[stamp.Name]
		return !planned && !stamp.Immutable && !stamp.Unmanaged
	})
	now.missing, now.unsaid = rollout.Missing(s.next, seen), rollout.Unsaid(seen)
	now.envLacks = rollout.EnvLacks(s.next, seen)
	now.fault = seen.Fault(s.next)
	return now
}
