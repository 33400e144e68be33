package plan

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/say"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// answer is who would own what, for those who write it themselves.
type answer struct {
	in       input.Inputs
	replicas int
	secrets  []owned
}

// owned is a cluster Secret that may be written, with its owner.
type owned struct {
	namespace, name string
	replica         int
}

// answers are the forms of the answer alone, each a few YAML documents with how they are used above.
var answers = map[string]struct {
	use  string
	form func(answer) []map[string]any
}{
	"patch": {"kubectl apply --server-side --force-conflicts -f FILE", answer.patches},
	"external-secrets": {"a patch of each ExternalSecret, where it is called as its Secret is; " +
		"its own labels and annotations belong into template.metadata, too: a template's replace those that the operator copied", answer.externalSecrets},
	"helm-values": {"values of argo-helm's chart argo-cd, which has none for shards: -o patch has those",
		answer.helmValues},
}

// answered takes the answer out of a cycle's outcome.
func answered(in input.Inputs, out cycle.Outcome) (answer, error) {
	c := out.Candidate
	if c == nil {
		return answer{}, errors.New("no evidence, no answer: without believable metrics everything stays as it is; `ballast plan` says what is missing")
	}
	owner := map[string]int{}
	for _, r := range c.Replicas {
		for _, l := range r.LoadIndexes {
			owner[l.Shard.ID] = r.ID
		}
	}
	a := answer{in: in, replicas: len(c.Replicas)}
	for _, cl := range out.Fleet.Clusters {
		replica, has := owner[cl.Shard.ID]
		if has && stamped(cl) {
			a.secrets = append(a.secrets, owned{cl.Shard.Namespace, cl.Shard.ID, replica})
		}
	}
	return a, nil
}

// stamped reports whether ballast may write the shard of a cluster's Secret.
func stamped(cl discover.Cluster) bool {
	if cl.Implicit || cl.Unmanaged {
		return false
	}
	return !cl.Immutable && !cl.Alone
}

func writeAnswer(w io.Writer, form string, in input.Inputs, out cycle.Outcome) error {
	a, err := answered(in, out)
	if err != nil {
		return err
	}
	say.To(w, "# %s\n", answers[form].use)
	for i, object := range answers[form].form(a) {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	return nil
}

type fields = map[string]any

func (a answer) patches() []map[string]any {
	var objects []map[string]any
	for _, s := range a.secrets {
		objects = append(objects, fields{"apiVersion": "v1", "kind": "Secret",
			"metadata":   fields{"name": s.name, "namespace": s.namespace},
			"stringData": fields{"shard": strconv.Itoa(s.replica)}})
	}
	wl := a.in.Workload
	env := []any{fields{"name": plan.EnvReplicas, "value": strconv.Itoa(a.replicas)}}
	return append(objects, fields{"apiVersion": "apps/v1", "kind": wl.Kind,
		"metadata": fields{"name": wl.Name, "namespace": wl.Namespace},
		"spec": fields{"replicas": a.replicas,
			"template": fields{"spec": fields{"containers": []any{fields{"name": wl.Container, "env": env}}}}}})
}

// externalSecrets have Argo CD's label in the template: with a template the operator takes labels from it alone, and
// removes those that it set before. Without this one Argo CD forgets the cluster.
func (a answer) externalSecrets() []map[string]any {
	var objects []map[string]any
	for _, s := range a.secrets {
		template := fields{"engineVersion": "v2", "mergePolicy": "Merge",
			"data":     fields{"shard": strconv.Itoa(s.replica)},
			"metadata": fields{"labels": fields{plan.SecretTypeLabel: plan.SecretTypeCluster}}}
		objects = append(objects, fields{"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
			"metadata": fields{"name": s.name, "namespace": s.namespace},
			"spec":     fields{"target": fields{"template": template}}})
	}
	return objects
}

func (a answer) helmValues() []map[string]any {
	return []map[string]any{{"controller": fields{"replicas": a.replicas}}}
}
