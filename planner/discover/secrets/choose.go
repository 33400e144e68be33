package secrets

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// choose takes the Secrets that are planned, by name, and counts the others. Those known for an hour come first, then
// those that were until lately, then the oldest: whoever makes Secrets, as many as they like, has none but their own
// left out by it.
func choose(k discover.Known, all []corev1.Secret, most int, groups ...string) ([]discover.Secret, int) {
	order := make([]ranked, len(all))
	for i := range all {
		order[i] = ranked{Secret: &all[i]}
	}
	if len(order) > most {
		sort(k, order)
	}
	most = min(most, len(order))
	chosen := make([]discover.Secret, 0, most)
	for _, s := range order[:most] {
		one := FromSecret(s.Secret)
		if isPacked(s.Secret) {
			one.Labels = one.Labels.Only(groups)
		} else {
			one = one.WithLabels(s.Labels, groups)
		}
		chosen = append(chosen, one)
	}
	noteLeftOut(chosen, order[most:])
	slices.SortFunc(chosen, func(a, b discover.Secret) int { return cmp.Compare(a.Name, b.Name) })
	return chosen, len(order) - most
}

// ranked is a Secret, and after whom it comes.
type ranked struct {
	*corev1.Secret
	rank int
}

func sort(k discover.Known, all []ranked) {
	for i, s := range all {
		switch {
		case k.Has(s.Name):
		case k.Knew(s.Name):
			all[i].rank = 1
		default:
			all[i].rank = 2
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
}

// noteLeftOut marks the chosen ones that have their server or their name in common with one that is left out: Argo CD
// has that one all the same, and may take it for them. Of one that is too long, the name counts elsewhere.
func noteLeftOut(chosen []discover.Secret, others []ranked) {
	tooLong := func(s discover.Secret) bool { return s.TooLong }
	if len(others) == 0 && !slices.ContainsFunc(chosen, tooLong) {
		return
	}
	servers, names := make(map[string]bool, len(chosen)), make(map[string]bool, len(chosen)) // whether one that is left out has it
	for _, s := range chosen {
		servers[plan.NormalizeServer(s.Server)], names[s.Cluster] = false, false
	}
	for _, s := range chosen {
		if s.TooLong {
			servers[plan.NormalizeServer(s.Server)] = true
		}
	}
	for _, o := range others {
		s := FromSecret(o.Secret)
		if server := plan.NormalizeServer(s.Server); has(servers, server) {
			servers[server] = true
		}
		if has(names, s.Cluster) {
			names[s.Cluster] = true
		}
	}
	for i, s := range chosen {
		chosen[i].Beside = servers[plan.NormalizeServer(s.Server)] && s.Server != "" && !s.TooLong
		chosen[i].Namesake = names[s.Cluster] && s.Cluster != "" && !s.TooLong
	}
}

func has(m map[string]bool, key string) bool {
	_, found := m[key]
	return found
}
