package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"ballast/cmd/ballast/say"
	ballast "ballast/cmd/ballast/version"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/status"
)

// check is one precondition. It says something in every case: a check that is silent looks like one that was forgotten.
type check struct {
	name  string
	fleet bool // it needs the fleet and its workload
	look  func(*seen) []Finding
}

// checks is the table, in the order in which people mend.
func checks() []check {
	return []check{
		{"Kubernetes", false, (*seen).checkKubernetes},
		{"configuration", false, (*seen).checkConfiguration},
		{"workload", false, (*seen).checkFound},
		{"Argo CD", true, (*seen).checkArgoCD},
		{"sharding", true, (*seen).checkSharding},
		{"Secrets", true, (*seen).checkSecrets},
		{"shards", true, (*seen).checkShards},
		{"in-cluster", true, (*seen).checkInCluster},
		{"metrics", true, (*seen).checkMetrics},
		{"scrapes", true, (*seen).checkScrapes},
		{"size inputs", true, (*seen).checkSizeInputs},
		{"sizes", true, (*seen).checkSizes},
		{"autoscalers", true, (*seen).checkNeighbours},
		{"GitOps", true, (*seen).checkOwners},
		{"plan size", true, (*seen).checkSize},
		{"cert-manager", false, (*seen).checkCertManager},
		{"webhook", false, (*seen).checkWebhook},
		{"rights", false, (*seen).checkRights},
		{"leader", false, (*seen).checkLeader},
		{"planning", true, (*seen).checkRest},
	}
}

// examine runs every check.
func (s *seen) examine() (all []Finding) {
	for _, c := range checks() {
		if c.fleet && (s.fleet != nil || s.config != nil) {
			continue // its cause is told once
		}
		for _, f := range c.look(s) {
			f.Check = c.name
			all = append(all, f)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(s.notSeen)) {
		f := Finding{Check: "looking", Result: Unknown, Message: fmt.Sprintf("%s: %v", what, s.notSeen[what]), Mend: s.mendOf(what)}
		if apierrors.IsForbidden(s.notSeen[what]) {
			f.Message, f.Mend = what+" may not be read", "let somebody run ballast doctor who may get and list it; what you may: kubectl auth can-i --list"
		}
		all = append(all, f)
	}
	return all
}

// What is not only asked for, but also read from what is written somewhere.
const (
	ofWriters = "who writes the Secrets"
	ofShipped = "the webhook configuration"
	ofLeader  = "what the leader says"
)

// mendOf is the way out where something could not be looked at: what is not the API server's doing is no matter of its answers.
func (s *seen) mendOf(what string) string {
	var said apierrors.APIStatus
	var network net.Error
	if err := s.notSeen[what]; !errors.As(err, &said) && !errors.As(err, &network) {
		switch what {
		case ofWriters:
			return "mend discover.selector in the configuration: ballast config check FILE"
		case ofShipped:
			return "this ballast's own manifests cannot be read: get its binary again, and report it (SECURITY.md says where)"
		case ofLeader:
			return "see who wrote it (ballast audit), and take it away, and the leader writes it anew: " +
				s.kubectl("delete configmap "+status.Name(s.in.Config.Plan.ConfigMap), nil)
		}
	}
	return "see that the API server answers, then run ballast doctor again: kubectl get --raw '/readyz?verbose'"
}

func ok(format string, args ...any) []Finding {
	return []Finding{{Result: OK, Message: fmt.Sprintf(format, args...)}}
}

func fault(message, mend string) []Finding {
	return []Finding{{Result: Fault, Message: message, Mend: mend}}
}

func warn(message, mend string) []Finding {
	return []Finding{{Result: Warning, Message: message, Mend: mend}}
}

func unknown(message, mend string) []Finding {
	return []Finding{{Result: Unknown, Message: message, Mend: mend}}
}

func joined(names []string) string { return strings.Join(names, ", ") }

func (s *seen) checkKubernetes() []Finding {
	found, err := installation.Kubernetes(s.kubernetes)
	switch {
	case err != nil:
		return unknown(err.Error(), "see that `kubectl version` says "+installation.LowestKubernetes+" or later")
	case len(found) > 0:
		return fault(found[0].Message, "upgrade Kubernetes to "+installation.LowestKubernetes+" or later")
	}
	return ok("%s; ballast is made for %s and later, and tested with %s", s.kubernetes, installation.LowestKubernetes,
		ballast.ProvenKubernetes)
}

func (s *seen) checkConfiguration() []Finding {
	if s.config != nil {
		return fault(s.config.Error(), "ballast config check FILE names each mistake with its line; the installed one: "+
			`kubectl -n NAMESPACE get configmap ballast-config -o jsonpath='{.data.config\.yaml}' | ballast config check -`)
	}
	return ok("it can be read; mode %s", s.in.Config.Mode)
}

func (s *seen) checkFound() []Finding {
	if s.config != nil {
		return nil
	}
	if s.fleet != nil {
		return fault(s.fleet.Error(), "target: {kind: StatefulSet, name: NAME} in the configuration, or Argo CD's namespace with -n: "+
			"kubectl get statefulsets,deployments -A -l app.kubernetes.io/part-of=argocd")
	}
	w := s.in.Workload
	if w.Unmanaged {
		return warn(fmt.Sprintf("%s %s is annotated as unmanaged: its replicas and env are left alone", w.Kind, w.Name),
			fmt.Sprintf("kubectl -n %s annotate %s %s %s-", s.namespace, strings.ToLower(w.Kind), w.Name, plan.AnnotationUnmanaged))
	}
	planned := 0
	if s.in.InForce != nil {
		planned = s.in.InForce.Widest()
	}
	if why := w.Renumbered(planned); why != "" {
		message, mend, _ := strings.Cut(why, "; ")
		return fault(message, mend)
	}
	if why := cmp.Or(w.OnlyReplica0(planned), w.Unnumbered()); why != "" {
		message, mend, _ := strings.Cut(why, "; ")
		return warn(message, mend)
	}
	return ok("%s %s, container %s, %s, %d ready", w.Kind, w.Name, w.Container, say.Plural(w.Replicas, "replica"), w.ReadyReplicas)
}

var tag = regexp.MustCompile(`:v?(\d+\.\d+\.\d+)`)

// checkArgoCD judges the version in the image's tag.
func (s *seen) checkArgoCD() []Finding {
	m := tag.FindStringSubmatch(s.image)
	if m == nil {
		return unknown(fmt.Sprintf("the image %q does not name its version", s.image),
			"see that Argo CD is 2.11 or later, a Deployment's 3.0 or later")
	}
	v := version.MustParseGeneric(m[1])
	older := func(than string) bool { return v.LessThan(version.MustParseGeneric(than)) }
	switch {
	case s.in.Workload.Kind == plan.Deployment && older("3.0.0"):
		return fault(m[1]+" as a Deployment: a pod that starts without a shard never takes one",
			"upgrade Argo CD to 3.0.6 or later, or run a StatefulSet")
	case older("2.11.0"):
		return fault(m[1]+" takes data.shard over in other ways than later releases", "upgrade Argo CD to 2.11 or later")
	case !older("3.0.0") && older("3.0.6"):
		return warn(m[1]+" shows Applications that name their cluster without a dest_server: their clusters seem to have no load",
			"upgrade Argo CD to 3.0.6 or later")
	}
	return ok("%s; ballast is tested with the controllers of %s", m[1], ballast.ProvenArgoCD)
}

func (s *seen) checkSharding() []Finding {
	w := s.in.Workload
	algorithm := w.Algorithm
	if algorithm == "" {
		algorithm = s.in.Discovered.Algorithm
	}
	if algorithm == "" {
		algorithm = "legacy (Argo CD's default)"
	}
	env := "absent"
	if w.EnvReplicas != nil {
		env = *w.EnvReplicas
	}
	differs := w.EnvReplicas != nil && env != fmt.Sprint(w.Replicas)
	switch {
	case w.EnvMixed:
		return fault(plan.EnvReplicas+" stands several times, and not with one value", "leave one entry in the container's env: "+s.env())
	case w.EnvUnknown && w.EnvSaid == nil:
		return warn(plan.EnvReplicas+" comes from a reference that ballast cannot read", "give it a value in the pod template: "+s.env())
	case w.Kind == plan.StatefulSet && differs && s.in.InForce == nil:
		return warn(fmt.Sprintf("%s is %s and %s run: pods own by another number than there is", plan.EnvReplicas, env,
			say.Plural(w.Replicas, "replica")), "ballast adopts what the pods really own, and sets the env once (rollout.live)")
	}
	return ok("algorithm %s, %s %s", algorithm, plan.EnvReplicas, env)
}

// env is the entry that the container is to have.
func (s *seen) env() string {
	return fmt.Sprintf(`env: [{name: %s, value: "%d"}]`, plan.EnvReplicas, s.in.Workload.Replicas)
}

// checkRest tells what a cycle has found beside the above.
func (s *seen) checkRest() (all []Finding) {
	for _, p := range s.out.Problems {
		inSecrets := slices.ContainsFunc(s.out.Fleet.Problems,
			func(d discover.SecretProblem) bool { return string(d.Kind) == p.Kind && d.Secret == p.Subject })
		saidAbove := inSecrets || p.Kind == "Renumbered" || p.Kind == "EnforcementDown"
		if saidAbove || p.Phase == problem.PhasePoll || ofSizeInputs(p) {
			continue
		}
		f := Finding{Result: Warning, Message: p.Kind + ": " + p.Message}
		switch {
		case p.Kind == "RestartAhead", p.Kind == "RestartWaits": // what to expect, and nothing to mend
			f.Result = OK
		case p.Keeps:
			f.Result = Fault
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return ok("a cycle runs to its end: ballast plan shows what it would change")
	}
	return all
}
