package ground

import (
	"fmt"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
)

// Constant is what ARGOCD_CONTROLLER_REPLICAS is held at for good in mode live: with it above every replica there
// will ever be, and every Secret explicit, replicas come and go and no pod has to read it again. One that was found
// larger stays.
func (e Env) Constant() int { return max(e.Next.MaxReplicas, e.Next.ControllerReplicas) }

// Prepares reports whether the one restart that the mode live needs is still to come, or in the others one that ends
// that clusters have several owners.
func (e Env) Prepares() bool {
	ours := e.Next.Target.Kind == plan.StatefulSet && !e.Next.Unmanaged
	if e.In.Config.Rollout.Live == nil {
		return ours && e.TooLow()
	}
	return ours && e.Next.ControllerReplicas != e.Constant()
}

// TooLow reports whether Argo CD counts fewer replicas than there are: those beyond are replica 0 once more, and where
// it counts one, each of them has every cluster. An env that is not seen is what its reference and the pods say.
func (e Env) TooLow() bool {
	return e.Next.Target.Kind == plan.StatefulSet && e.counted() < e.Next.Replicas
}

// counted is how many replicas Argo CD counts: by the env that the plan holds, or by what is found where it holds none.
func (e Env) counted() int {
	if e.Next.ControllerReplicas == 0 && e.In.Workload.EnvUnknown {
		return standing.ControllerReplicas(e.In.Workload)
	}
	return max(e.Next.ControllerReplicas, 1)
}

// Awaits reports whether the env of mode live is to come with a change of the pod template that anybody makes. One
// below the replicas gives clusters several owners and waits for nobody.
func (e Env) Awaits() bool {
	live := e.In.Config.Rollout.Live
	chosen := live != nil && live.Adopt == config.AdoptWithNext
	return chosen && e.Prepares() && !e.TooLow()
}

const untilThen = "until then the number of replicas stays, and nothing begins but a failover, a drain and what follows the workload's replicas"

// RestartWaits says what the one restart waits for; empty: it does not.
func (e Env) RestartWaits() string {
	switch n := e.Constant(); {
	case !e.Awaits():
		return ""
	case e.Awaited():
		return fmt.Sprintf("%s is %d in the pod template, and its pods are still being replaced by whoever changed that: "+untilThen, plan.EnvReplicas, n)
	default:
		return fmt.Sprintf("rollout.live.adopt is WithNextRollout: %s becomes %d with the next change of the pod template that anybody makes "+
			"(an upgrade, kubectl rollout restart); "+untilThen, plan.EnvReplicas, n)
	}
}

// Awaited reports whether the pod template has the env that the plan waited for, and the plan does not hold it yet.
func (e Env) Awaited() bool {
	return e.Next.NextControllerReplicas != e.Next.ControllerReplicas && e.Next.Awaits(standing.Env(e.In.Workload))
}

// Replaced reports whether every pod runs by the present template, and is ready.
func (e Env) Replaced() bool {
	w := e.In.Workload
	return !Rolling(e.In, e.Next) && w.UpdatedReplicas >= w.Replicas && w.ReadyReplicas >= w.Replicas
}

// Of is the env that goes with so many replicas, since an Argo CD without one believes in one replica; one that was
// found larger stays as large, so that no pod restarts for it; so does one that an autoscaler has gone up to, which
// goes down and up again.
func (e Env) Of(replicas int) int {
	switch {
	case e.Next.Unmanaged && replicas == e.Next.Replicas:
		return e.Next.ControllerReplicas // people's
	case e.Awaits() && replicas <= e.Next.ControllerReplicas:
		return e.Next.ControllerReplicas
	case e.In.Config.Rollout.Live != nil:
		return max(replicas, e.Constant())
	case replicas == e.Next.Replicas && e.unheldIsEnough():
		return 0 // the same in a value of our own is worth no restart
	case (e.Next.ControllerReplicas > e.Next.Replicas || e.Next.FreeReplicas) && e.inClusterBelow(replicas):
		return max(replicas, e.Next.ControllerReplicas)
	}
	return replicas
}

// unheldIsEnough reports whether the plan holds no env, and Argo CD counts as many replicas as there are, or more.
func (e Env) unheldIsEnough() bool {
	counted := e.counted()
	if e.Next.ControllerReplicas != 0 || counted < e.Next.Replicas {
		return false
	}
	return counted == e.Next.Replicas || e.inClusterBelow(e.Next.Replicas)
}

// inClusterBelow reports whether an implicit in-cluster, whose shard only the env decides, is on one of these replicas.
func (e Env) inClusterBelow(replicas int) bool {
	for _, c := range e.Fleet.Clusters {
		if c.FixedAt != nil && *c.FixedAt >= replicas {
			return false
		}
	}
	return true
}

// Rolling reports whether the workload's pods are being replaced, by whomever.
func Rolling(in input.Inputs, p plan.Plan) bool {
	w := in.Workload
	if w.ObservedGeneration < w.Generation || w.UpdatedReplicas < min(w.Replicas, w.CurrentReplicas) {
		return true
	}
	if p.Rollout == nil || OnlyGrows(p.Rollout) {
		return false
	}
	switch p.Rollout.Stage {
	case plan.Moving, plan.Verifying:
		return false
	case plan.Assigning: // default moves clusters between pods that stay; x0y has stopped them
		return p.Rollout.Mode == plan.ModeX0Y
	case plan.Reverting:
		return p.Rollout.Mode != plan.ModeLive
	}
	return true
}

// OnlyGrows reports whether a rollout adds pods and replaces none.
func OnlyGrows(r *plan.Rollout) bool {
	if r == nil || r.Mode != plan.ModeLive || r.Stage != plan.Scaling {
		return false
	}
	restarts := r.ControllerReplicas != r.From.ControllerReplicas
	return r.Replicas > r.From.Replicas && !restarts
}
