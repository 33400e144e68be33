// Package discover turns cluster Secrets into the fleet that is planned for. It is a function of values: package
// secrets reads them.
package discover

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/plan"
)

// All is the fleet as it stands, compared with none.
func All(in Input, now time.Time) Fleet {
	fleet, _, _ := Discover(in, Known{}, Options{MaxShrink: 1}, now) // nothing is known, so nothing is lost
	return fleet
}

// Discover lists the fleet and compares it with the last accepted one. The error, a *ShrinkError, says that too many
// clusters went at once: the plan in force stays, and the returned Known is to be kept for the next call all the same.
func Discover(in Input, known Known, o Options, now time.Time) (Fleet, Known, error) {
	fleet := list(in)
	fleet.Units = grouped(fleet.Clusters, func(c Cluster) string { return c.Shard.Server })
	for _, u := range fleet.Units {
		fleet.mislead(u)
		if p, found := conflict(u.Server, fleet.Clusters, u); found {
			fleet.Problems = append(fleet.Problems, p)
		}
	}
	twins := fleet.twins(known.Twins, now)
	leaders, passed := known.lead(fleet, o, now)
	fleet.Problems = append(fleet.Problems, passed...)
	slices.SortFunc(fleet.Problems, func(a, b SecretProblem) int {
		return cmp.Or(cmp.Compare(a.Secret, b.Secret), cmp.Compare(a.Kind, b.Kind))
	})
	all, ours := fleet.secretNames()
	known, err := known.accept(all, ours, in.AcceptDiscovery, o, now)
	known.Leaders, known.Twins = leaders, twins
	return fleet, known, err
}

func list(in Input) Fleet {
	fleet := Fleet{Clusters: make([]Cluster, 0, len(in.Secrets)+1)}
	explicit, nameTaken := false, false
	shared := sharedNames(in.Secrets)
	for _, s := range in.Secrets {
		nameTaken = nameTaken || s.Name == ImplicitID
		if p, out := leftOut(s); out {
			fleet.Problems = append(fleet.Problems, p)
			continue
		}
		fleet.Problems = append(fleet.Problems, flaws(s)...)
		c := newCluster(s)
		if others := shared[s.Cluster]; len(others) > 1 {
			c.Nameless = true
			fleet.Problems = append(fleet.Problems, sharedName(s, others))
		}
		if c.Shard.Server == plan.InClusterServer {
			explicit = true
			if !in.InClusterEnabled {
				c.Skip = true
				fleet.Problems = append(fleet.Problems, SecretProblem{s.Name, InClusterDisabled, fmt.Sprintf(
					"Secret %q describes the cluster Argo CD runs in, which cluster.inClusterEnabled in argocd-cm turns off: nobody owns it; delete the Secret or turn it on", s.Name)})
			}
		}
		fleet.Clusters = append(fleet.Clusters, c)
	}
	if in.LeftOut > 0 {
		fleet.Problems = append(fleet.Problems, tooMany(in))
	}
	if in.InClusterEnabled && !explicit {
		fleet.Clusters = append(fleet.Clusters, implicit(in, nameTaken))
	}
	slices.SortFunc(fleet.Clusters, func(a, b Cluster) int { return plan.CompareShards(a.Shard, b.Shard) })
	return fleet
}

// sharedNames are the Secrets of each data.name that several have, those too that are left out: Argo CD finds no
// cluster by it.
func sharedNames(secrets []Secret) map[string][]string {
	first, shared := make(map[string]string, len(secrets)), map[string][]string{}
	for _, s := range secrets {
		other, taken := first[s.Cluster]
		switch {
		case s.Cluster == "":
		case !taken:
			first[s.Cluster] = s.Name
		case shared[s.Cluster] == nil:
			shared[s.Cluster] = []string{other, s.Name}
		default:
			shared[s.Cluster] = append(shared[s.Cluster], s.Name)
		}
	}
	return shared
}

// Selector converts the configured selector of cluster Secrets. One that would select every Secret of the namespace is
// refused: reading them all is neither needed nor granted.
func Selector(s metav1.LabelSelector) (labels.Selector, error) {
	sel, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of cluster secrets: %w", err)
	}
	if sel.Empty() {
		return nil, errors.New(`reading the selector of cluster secrets: it is empty and would select every Secret; ` +
			`set matchLabels, as in {argocd.argoproj.io/secret-type: cluster}`)
	}
	if sel.Matches(labels.Set{}) {
		return nil, fmt.Errorf("reading the selector of cluster secrets: %q also selects Secrets without any label; require a label that only cluster Secrets have", sel)
	}
	return sel, nil
}
