// Package gate is the table of what blocks which action, and its verdicts.
package gate

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/problem"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// Action is a change that a cycle may begin, or what a rollout does for it; a gate names those that it blocks.
type Action uint16

const (
	SetEnv      Action = 1 << iota // the one restart that mode live needs
	FollowUp                       // replicas that people added, where they are people's
	FollowOut                      // replicas that people took away
	PinOut                         // a pin beyond the replicas
	RollBack                       // an earlier plan, as a person asked
	FailOver                       // off a replica that is unwell
	Drain                          // off a replica that a person cordoned
	Balance                        // what was elected
	SizeUp                         // a replica's size, in place
	SizeDown                       // a replica's size, in place
	SizeRestart                    // the template's size, for which every pod restarts

	// What a rollout does is known once its target is: Refuses answers for these, and Judge for those above.
	StopAll    // every replica at once, as rollout.x0y does
	RestartAll // every replica, for what could wait
	Workload   // writes its replicas or its env, or restarts it
	Scale      // stops or adds replicas, be it for a while

	Everything = StopAll - 1
	sizes      = SizeUp | SizeDown                                          // change running pods, and neither Secrets nor the workload
	frozen     = SetEnv | PinOut | FailOver | Balance | sizes | SizeRestart // what waits while a person stops ballast
	moves      = FailOver | Drain                                           // other Secrets, and neither replicas nor env
	follows    = FollowUp | FollowOut
	onTheWay   = Everything &^ SizeUp // what waits while a rollout is under way
)

// String names actions as the table in ARCHITECTURE.md does.
func (a Action) String() string {
	if a == Everything {
		return "everything"
	}
	all := []string{"setEnv", "followUp", "followOut", "pinOut", "rollBack", "failOver", "drain", "balance", "sizeUp",
		"sizeDown", "sizeRestart",
		"stopAll", "restartAll", "workload", "scale"}
	var names []string
	for k, name := range all {
		if a&(SetEnv<<k) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// PausedBy and StoppedItself are why nothing begins during a freeze and after a trip, and why what is under way ends.
const (
	PausedBy      = "a person paused it"
	StoppedItself = "ballast stopped itself and nobody has cleared it"
)

// GoneAtOnce is why nothing but a rescue begins while a discovery is refused.
const GoneAtOnce = "too many cluster Secrets are gone at once"

// RestartWaits is the brief of the gate that is shut while the one restart of mode live is left to people.
const RestartWaits = "the one restart of rollout.live waits for a change of the pod template"

// underWay and unmanaged are why sizes wait, too, which ForSizes adds.
const (
	underWay  = "a rollout is under way"
	unmanaged = "the workload is annotated as unmanaged"
)

// writesNone is what gates say that keep the workload as it is.
const writesNone = ", and nothing begins that changes its replicas or its env or restarts it"

// gate blocks actions while it is shut.
type gate struct {
	Name   string
	Blocks Action
	Kind   string                   // of the Problem that tells people why; empty where they are told otherwise
	brief  string                   // why, for verdicts and refusals; empty: as shut says it
	shut   func(Situation) string   // why, as a sentence; empty while the gate is open
	about  func(s Situation) string // the Problem's subject; nil for none
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

// Table is the table of what blocks which action, in the order in which the first that is shut is named. Secrets that
// wait for their owner, and what mode live lacks, block what changes replicas or env: an algorithm answers otherwise
// then, for a cluster without a shard; once the env is live's for good, for one that people have to mend, it does not.
// A replica that is unwell or cordoned is emptied meanwhile: one Secret that nobody can write must not keep the others'
// clusters without an owner. A size in place changes no owner, no replica and no env, so that it waits for little: a
// replica grows while a rollout is under way, while a discovery is refused, and after a trip, whose harm may be that it
// is too small; it shrinks at rest alone. What change.moves says comes after all that would hold moves without it: it
// is said to block those that it holds alone. The last rows are ofRollouts.
func Table() []gate {
	return append([]gate{
		{Name: "breakGlass", Blocks: Everything, brief: "enforcement is off",
			shut: func(s Situation) string { return when(s.BreakGlass) }},
		{Name: "paused", Blocks: frozen, brief: PausedBy,
			shut: func(s Situation) string { return when(s.Paused) }},
		{Name: "tripped", Blocks: frozen &^ (FailOver | SizeUp), brief: StoppedItself,
			shut: func(s Situation) string { return when(s.Tripped) }},
		{Name: "starved", Blocks: FailOver, brief: StoppedItself,
			shut: func(s Situation) string { return when(s.Starved) }},
		{Name: "followFails", Blocks: FollowUp, brief: StoppedItself,
			shut: func(s Situation) string { return when(s.Failing == change.Pin) }},
		{Name: "rollbackFails", Blocks: RollBack, brief: StoppedItself,
			shut: func(s Situation) string { return when(s.Failing == change.Rollback) }},
		{Name: "drainFails", Blocks: Drain, brief: StoppedItself,
			shut: func(s Situation) string { return when(s.Failing == change.Drain) }},
		{Name: "firstPlan", Blocks: Everything, brief: "there is no plan yet",
			shut: func(s Situation) string { return when(s.First) }},
		{Name: "shrunk", Blocks: Everything &^ (moves | FollowOut | SizeUp), brief: GoneAtOnce,
			shut: func(s Situation) string { return when(s.Partial) }},
		{Name: "heldOff", Blocks: SetEnv | FollowUp | PinOut | Balance | SizeRestart, Kind: "HeldOff",
			brief: "a rollout failed or went back to an earlier plan a short while ago",
			shut:  Situation.heldOff},
		{Name: "keyless", Blocks: Everything &^ (sizes | SizeRestart),
			brief: "the plan's key is missing, and a leader after this one could not bring back what rollout.x0y stops",
			shut:  func(s Situation) string { return when(s.Keyless) }},
		{Name: "unstamped", Blocks: Everything &^ (moves | follows | sizes), Kind: "Unstamped",
			brief: "present owners are written",
			shut:  Situation.unstampedSecrets, about: func(s Situation) string { return s.Unstamped[0] }},
		{Name: "liveLacks", Blocks: Everything &^ (moves | follows | sizes | SizeRestart), Kind: "LiveNotReady",
			brief: "rollout.live waits",
			shut:  Situation.liveLacks},
		{Name: "liveEnv", Blocks: SetEnv, Kind: "LiveNotReady", brief: "rollout.live waits",
			shut: Situation.liveEnv},
		{Name: "liveBlind", Blocks: Everything &^ (follows | FailOver | sizes | SizeRestart), Kind: "LiveNotReady",
			brief: "rollout.live waits",
			shut:  Situation.liveBlind},
		{Name: "renumbered", Blocks: Everything &^ (follows | sizes), brief: "the pods are no replicas from 0",
			shut: func(s Situation) string { return when(s.Renumbered) }},
		{Name: "shardAhead", Blocks: Everything &^ (follows | FailOver | sizes),
			brief: "each pod that starts from now on would take itself for the same replica",
			shut:  func(s Situation) string { return when(s.ShardAhead) }},
		{Name: "onlyReplica0", Blocks: PinOut | RollBack | Balance,
			brief: "each pod of another replica would take itself for replica 0",
			shut:  func(s Situation) string { return when(s.OnlyReplica0) }},
		{Name: "scaledDeployment", Blocks: Everything &^ (FailOver | FollowOut | sizes), Kind: "ScaledDeployment",
			brief: "an autoscaler's Deployment",
			shut:  func(s Situation) string { return s.Scaled }},
		{Name: "fault", Blocks: Balance,
			shut: func(s Situation) string { return s.Fault }},
		{Name: "restartWaits", Blocks: Everything &^ (moves | follows | sizes | SizeRestart), Kind: "RestartWaits",
			brief: RestartWaits,
			shut:  func(s Situation) string { return s.Restart }},
		{Name: "changeMoves", Blocks: Balance,
			shut: func(s Situation) string { return s.MoveBlock }},
		{Name: "mode", Blocks: Everything,
			shut: func(s Situation) string {
				if s.Mode != plan.Enforce {
					return "the mode is " + string(s.Mode)
				}
				return open
			}},
		{Name: "underWay", Blocks: onTheWay, brief: underWay,
			shut: func(s Situation) string { return when(s.UnderWay) }},
	}, ofRollouts()...)
}

// ofRollouts block what a rollout does, and are asked once its target is known: moves alone may begin on a workload
// that is not ballast's.
func ofRollouts() []gate {
	return []gate{
		{Name: "stopAgain", Blocks: StopAll, Kind: "HeldOff", shut: func(s Situation) string { return s.StopAgain }},
		{Name: "restartAgain", Blocks: RestartAll, Kind: "RestartWaits", shut: func(s Situation) string { return s.RestartAgain }},
		{Name: "unmanaged", Blocks: Workload, Kind: "WorkloadUnmanaged",
			brief: unmanaged + writesNone + "; take the annotation " +
				plan.AnnotationUnmanaged + " off for what waits",
			shut: func(s Situation) string { return when(s.Unmanaged) }},
		{Name: "containerGone", Blocks: Workload, Kind: "ContainerGone",
			brief: "the pod template has no container that is the application-controller's" + writesNone +
				" until it has one again",
			shut: func(s Situation) string { return when(s.ContainerGone) }},
		{Name: "unenforced", Blocks: Scale, brief: "the webhook does not hold the plan",
			shut: func(s Situation) string { return when(s.Unenforced) }},
	}
}

// Situation is what the gates look at.
type Situation struct {
	BreakGlass, Paused, Tripped bool
	Starved                     bool         // tripped, and which failovers could hand on what did it is not known
	Failing                     change.Cause // tripped, since rollouts for that cause failed again and again
	First                       bool         // no plan is in force
	Partial                     bool         // the discovery is refused; people are told of it as Shrunk
	Mode                        plan.Mode    // of the plan
	UnderWay                    bool
	Keyless                     bool      // in mode x0y: a leader after this one could not bring back what is stopped
	HeldUntil                   time.Time // nothing begins before, after a rollout that failed; zero: none did
	Unstamped                   []string  // Secrets whose cluster is still owned by an algorithm
	Missing                     []string  // what mode live lacks
	EnvLacks                    []string  // what it lacks for another env alone
	OwnersUnknown               string    // why nobody could tell whether a live rollout does well
	MoveBlock                   string    // why change.moves lets nothing that levels begin now
	Renumbered                  bool      // the pods' numbers are not those of the plan's replicas; people are told of it
	ShardAhead                  bool      // so are those of pods that start from now on, and no running one's; people are told of it
	OnlyReplica0                bool      // the one replica has its number by an env, as others would; people are told of it
	Scaled                      string    // pods of a Deployment that people or an autoscaler scale
	Fault                       string    // in mode live: a cluster that no replica has, or several
	Restart                     string    // in mode live: what its one restart waits for
	StopAgain, RestartAgain     string    // until when another stop, or restart, of every replica waits, and why
	Unmanaged                   bool      // the workload opted out
	ContainerGone               bool      // the pod template has no container of the application-controller
	Unenforced                  bool      // the webhook does not hold the plan; people are told of it
}

// AtRest reports whether there is a plan in mode Enforce and nothing is under way: gates tell people of something only
// then, and what stands below Mode and UnderWay in a Situation is worked out only then.
func (s Situation) AtRest() bool {
	enforced := !s.BreakGlass && s.Mode == plan.Enforce
	return enforced && !s.First && !s.UnderWay
}

func (s Situation) heldOff() string {
	if s.HeldUntil.IsZero() {
		return open
	}
	return fmt.Sprintf("a rollout failed or went back to an earlier plan; nothing that levels, grows or pins begins before %s", s.HeldUntil.Format(time.RFC3339))
}

func (s Situation) unstampedSecrets() string {
	if len(s.Unstamped) == 0 {
		return open
	}
	return fmt.Sprintf("%s without the replica that owns its cluster now, the first is %q: present owners are written before anything else begins but a failover, a drain and what follows the workload's replicas",
		plural.Of(len(s.Unstamped), "Secret"), s.Unstamped[0])
}

func (s Situation) liveLacks() string {
	if len(s.Missing) == 0 || len(s.Unstamped) > 0 {
		return open
	}
	return "rollout.live begins nothing yet but a failover, a drain and what follows the workload's replicas: " +
		strings.Join(s.Missing, "; ")
}

func (s Situation) liveEnv() string {
	if len(s.EnvLacks) == 0 {
		return open
	}
	return "rollout.live changes no " + plan.EnvReplicas + ": " + strings.Join(s.EnvLacks, "; ")
}

func (s Situation) liveBlind() string {
	if s.OwnersUnknown == "" {
		return open
	}
	return "rollout.live begins nothing but a failover to replicas that say what they own: " + s.OwnersUnknown
}

// Verdicts is why each action may not begin; an action that may is absent.
type Verdicts map[Action]string

// Judge asks every gate of a table, and tells people of those that they can mend.
func Judge(table []gate, s Situation, tell func(problem.Problem)) Verdicts {
	shut, told := Verdicts{}, map[string]bool{}
	for _, g := range table {
		why := g.shut(s)
		if why == open || g.Blocks&Everything == 0 {
			continue
		}
		if g.Kind != "" && s.AtRest() && !told[g.Kind] {
			told[g.Kind] = true
			p := problem.Problem{Phase: problem.PhaseRollout, Kind: g.Kind, Message: why}
			if g.about != nil {
				p.Subject = g.about(s)
			}
			tell(p)
		}
		shut.Add(g.Blocks, cmp.Or(g.brief, why))
	}
	return shut
}

// ForSizes are the verdicts on sizes, which are decided last: with a rollout that the cycle began meanwhile, and with an
// unmanaged workload, whose gate asks what a rollout does: a size in place is no rollout's.
func (v Verdicts) ForSizes(begun, unmanagedWorkload bool) Verdicts {
	shut := Verdicts{}
	maps.Copy(shut, v)
	if begun {
		shut.Add(onTheWay, underWay)
	}
	if unmanagedWorkload {
		shut.Add(sizes|SizeRestart, unmanaged)
	}
	return shut
}

// Refuses is why a rollout that does that may not begin, by the first gate that is shut, and the kind of the Problem
// that tells people with what waits for it; empty: they are told otherwise.
func Refuses(table []gate, s Situation, does Action) (kind, why string) {
	for _, g := range table {
		if why := g.shut(s); why != open && g.Blocks&does != 0 {
			return g.Kind, cmp.Or(g.brief, why)
		}
	}
	return "", open
}

// Add shuts actions; the first reason stays.
func (v Verdicts) Add(blocked Action, why string) {
	for act := SetEnv; act != 0; act <<= 1 {
		if blocked&act != 0 && v[act] == "" {
			v[act] = why
		}
	}
}
