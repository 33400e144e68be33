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

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/installed"
	"ballast/cmd/ballast/doctor/look"
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
	look  func(*look.Seen) []finding.Finding
}

// checks is the table, in the order in which people mend.
func checks() []check {
	return []check{
		{"Kubernetes", false, checkKubernetes},
		{"configuration", false, checkConfiguration},
		{"workload", false, checkFound},
		{"Argo CD", true, checkArgoCD},
		{"sharding", true, checkSharding},
		{"Secrets", true, checkSecrets},
		{"shards", true, checkShards},
		{"in-cluster", true, checkInCluster},
		{"metrics", true, checkMetrics},
		{"scrapes", true, checkScrapes},
		{"size inputs", true, checkSizeInputs},
		{"sizes", true, checkSizes},
		{"autoscalers", true, checkNeighbours},
		{"GitOps", true, checkOwners},
		{"plan size", true, checkSize},
		{"cert-manager", false, installed.CheckCertManager},
		{"webhook", false, installed.CheckWebhook},
		{"rights", false, installed.CheckRights},
		{"leader", false, installed.CheckLeader},
		{"planning", true, checkRest},
	}
}

// examine runs every check.
func examine(s *look.Seen) (all []finding.Finding) {
	for _, c := range checks() {
		if c.fleet && (s.NoFleet != nil || s.NoConfig != nil) {
			continue // its cause is told once
		}
		for _, f := range c.look(s) {
			f.Check = c.name
			all = append(all, f)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(s.NotSeen)) {
		f := finding.Finding{Check: "looking", Result: finding.Unknown,
			Message: fmt.Sprintf("%s: %v", what, s.NotSeen[what]),
			Mend:    mendOf(s, what)}
		if apierrors.IsForbidden(s.NotSeen[what]) {
			f.Message, f.Mend = what+" may not be read",
				"let somebody run ballast doctor who may get and list it; what you may: kubectl auth can-i --list"
		}
		all = append(all, f)
	}
	return all
}

// mendOf is the way out where something could not be looked at: what is not the API server's doing is no matter of its
// answers.
func mendOf(s *look.Seen, what string) string {
	var said apierrors.APIStatus
	var network net.Error
	if err := s.NotSeen[what]; !errors.As(err, &said) && !errors.As(err, &network) {
		switch what {
		case look.OfWriters:
			return "mend discover.selector in the configuration: ballast config check FILE"
		case look.OfShipped:
			return "this ballast's own manifests cannot be read: get its binary again, and report it (SECURITY.md says where)"
		case look.OfLeader:
			return "see who wrote it (ballast audit), and take it away, and the leader writes it anew: " +
				s.Kubectl("delete configmap "+status.Name(s.In.Config.Plan.ConfigMap), nil)
		}
	}
	return "see that the API server answers, then run ballast doctor again: kubectl get --raw '/readyz?verbose'"
}

func joined(names []string) string { return strings.Join(names, ", ") }

func checkKubernetes(s *look.Seen) []finding.Finding {
	found, err := installation.Kubernetes(s.Kubernetes)
	switch {
	case err != nil:
		return finding.Unknown.With(err.Error(), "see that `kubectl version` says "+installation.LowestKubernetes+" or later")
	case len(found) > 0:
		return finding.Fault.With(found[0].Message, "upgrade Kubernetes to "+installation.LowestKubernetes+" or later")
	}
	return finding.Well("%s; ballast is made for %s and later, and tested with %s", s.Kubernetes,
		installation.LowestKubernetes,
		ballast.ProvenKubernetes)
}

func checkConfiguration(s *look.Seen) []finding.Finding {
	if s.NoConfig != nil {
		return finding.Fault.With(s.NoConfig.Error(),
			"ballast config check FILE names each mistake with its line; the installed one: "+
				`kubectl -n NAMESPACE get configmap ballast-config -o jsonpath='{.data.config\.yaml}' | ballast config check -`)
	}
	return finding.Well("it can be read; mode %s", s.In.Config.Mode)
}

func checkFound(s *look.Seen) []finding.Finding {
	if s.NoConfig != nil {
		return nil
	}
	if s.NoFleet != nil {
		return finding.Fault.With(s.NoFleet.Error(),
			"target: {kind: StatefulSet, name: NAME} in the configuration, or Argo CD's namespace with -n: "+
				"kubectl get statefulsets,deployments -A -l app.kubernetes.io/part-of=argocd")
	}
	w := s.In.Workload
	if w.Unmanaged {
		return finding.Warning.With(fmt.Sprintf("%s %s is annotated as unmanaged: its replicas and env are left alone",
			w.Kind, w.Name),
			fmt.Sprintf("kubectl -n %s annotate %s %s %s-", s.Namespace, strings.ToLower(w.Kind), w.Name,
				plan.AnnotationUnmanaged))
	}
	planned := 0
	if s.In.InForce != nil {
		planned = s.In.InForce.Widest()
	}
	if why := w.Renumbered(planned); why != "" {
		message, mend, _ := strings.Cut(why, "; ")
		return finding.Fault.With(message, mend)
	}
	if why := cmp.Or(w.OnlyReplica0(planned), w.Unnumbered()); why != "" {
		message, mend, _ := strings.Cut(why, "; ")
		return finding.Warning.With(message, mend)
	}
	return finding.Well("%s %s, container %s, %s, %d ready", w.Kind, w.Name, w.Container,
		say.Plural(w.Replicas, "replica"), w.ReadyReplicas)
}

var tag = regexp.MustCompile(`:v?(\d+\.\d+\.\d+)`)

// checkArgoCD judges the version in the image's tag.
func checkArgoCD(s *look.Seen) []finding.Finding {
	m := tag.FindStringSubmatch(s.Image)
	if m == nil {
		return finding.Unknown.With(fmt.Sprintf("the image %q does not name its version", s.Image),
			"see that Argo CD is 2.11 or later, a Deployment's 3.0 or later")
	}
	v := version.MustParseGeneric(m[1])
	older := func(than string) bool { return v.LessThan(version.MustParseGeneric(than)) }
	switch {
	case s.In.Workload.Kind == plan.Deployment && older("3.0.0"):
		return finding.Fault.With(m[1]+" as a Deployment: a pod that starts without a shard never takes one",
			"upgrade Argo CD to 3.0.6 or later, or run a StatefulSet")
	case older("2.11.0"):
		return finding.Fault.With(m[1]+" takes data.shard over in other ways than later releases",
			"upgrade Argo CD to 2.11 or later")
	case !older("3.0.0") && older("3.0.6"):
		return finding.Warning.With(m[1]+" shows Applications that name their cluster without a dest_server: their clusters seem to have no load",
			"upgrade Argo CD to 3.0.6 or later")
	}
	return finding.Well("%s; ballast is tested with the controllers of %s", m[1], ballast.ProvenArgoCD)
}

func checkSharding(s *look.Seen) []finding.Finding {
	w := s.In.Workload
	algorithm := w.Algorithm
	if algorithm == "" {
		algorithm = s.In.Discovered.Algorithm
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
		return finding.Fault.With(plan.EnvReplicas+" stands several times, and not with one value",
			"leave one entry in the container's env: "+envEntry(s))
	case w.EnvUnknown && w.EnvSaid == nil:
		return finding.Warning.With(plan.EnvReplicas+" comes from a reference that ballast cannot read",
			"give it a value in the pod template: "+envEntry(s))
	case w.Kind == plan.StatefulSet && differs && s.In.InForce == nil:
		return finding.Warning.With(fmt.Sprintf("%s is %s and %s run: pods own by another number than there is",
			plan.EnvReplicas, env,
			say.Plural(w.Replicas, "replica")), "ballast adopts what the pods really own, and sets the env once (rollout.live)")
	}
	return finding.Well("algorithm %s, %s %s", algorithm, plan.EnvReplicas, env)
}

// envEntry is the entry that the container is to have.
func envEntry(s *look.Seen) string {
	return fmt.Sprintf(`env: [{name: %s, value: "%d"}]`, plan.EnvReplicas, s.In.Workload.Replicas)
}

// checkRest tells what a cycle has found beside the above.
func checkRest(s *look.Seen) (all []finding.Finding) {
	for _, p := range s.Out.Problems {
		inSecrets := slices.ContainsFunc(s.Out.Fleet.Problems,
			func(d discover.SecretProblem) bool { return string(d.Kind) == p.Kind && d.Secret == p.Subject })
		saidAbove := inSecrets || p.Kind == "Renumbered" || p.Kind == "EnforcementDown"
		if saidAbove || p.Phase == problem.PhasePoll || ofSizeInputs(p) {
			continue
		}
		f := finding.Finding{Result: finding.Warning, Message: p.Kind + ": " + p.Message}
		switch {
		case p.Kind == "RestartAhead", p.Kind == "RestartWaits": // what to expect, and nothing to mend
			f.Result = finding.OK
		case p.Keeps:
			f.Result = finding.Fault
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return finding.Well("a cycle runs to its end: ballast plan shows what it would change")
	}
	return all
}
