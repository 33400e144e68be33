package controller

import (
	"fmt"

	"ballast/planner/cycle/problem"
	"ballast/planner/store"
)

// locked names ballast's ConfigMaps that somebody made immutable: nothing decided can be written there any more,
// whoever writes it, and only deleting them helps.
func (l *Loop) locked(base store.Snapshot) []problem.Problem {
	var list []problem.Problem
	add := func(name string) {
		list = append(list, problem.Problem{Phase: problem.PhaseStore, Subject: name, Kind: "Immutable", Message: fmt.Sprintf(
			"ConfigMap %q is immutable, so that nothing is written to it any more: delete it (kubectl -n %s delete configmap %s; where it stays, take its finalizers out), and ballast makes it anew", name, l.Store.Namespace, name)})
	}
	if base.Immutable() {
		add(l.Store.Plan)
	}
	if l.history.Immutable() {
		add(l.Store.History)
	}
	return list
}
