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
	add := func(name, keep string) {
		list = append(list, problem.Problem{Phase: problem.PhaseStore, Subject: name, Kind: "Immutable", Message: fmt.Sprintf(
			"ConfigMap %q is immutable, so that nothing is written to it any more: %s (kubectl -n %s delete configmap %s; where it stays, take its finalizers out), and ballast makes it anew", name, keep, l.Store.Namespace, name)})
	}
	if base.Immutable() {
		add(l.Store.Plan, "keep a copy of data.pins, which are yours to put back, and delete it")
	}
	if l.history.Immutable() {
		add(l.Store.History, "delete it")
	}
	return list
}
