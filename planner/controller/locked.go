package controller

import (
	"fmt"

	"ballast/planner/cycle/problem"
	"ballast/planner/store"
)

// locked names ballast's ConfigMaps that somebody made immutable: nothing decided can be written there any more,
// whoever writes it, and only deleting them helps.
func (a *archive) locked(base store.Snapshot) []problem.Problem {
	var list []problem.Problem
	add := func(name string) {
		list = append(list, problem.Problem{Phase: problem.PhaseStore, Subject: name, Kind: "Immutable", Message: fmt.Sprintf(
			"ConfigMap %q is immutable, so that nothing is written to it any more: delete it (kubectl -n %s delete configmap %s; where it stays, take its finalizers out), and ballast makes it anew", name, a.Store.Namespace, name)})
	}
	if base.Immutable() {
		add(a.Store.Plan)
	}
	if a.history.Immutable() {
		add(a.Store.History)
	}
	return list
}
