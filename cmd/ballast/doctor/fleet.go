package doctor

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"ballast/cmd/ballast/say"
	"ballast/planner/conflicts"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

// checkSecrets tells the discovery's problems, one line for each kind.
func (s *seen) checkSecrets() []Finding {
	faulty := []discover.ProblemKind{discover.MissingData, discover.MissingServer, discover.TooLong, discover.TooMany, discover.ConfigUnread}
	byKind := map[discover.ProblemKind][]discover.SecretProblem{}
	for _, p := range s.out.Fleet.Problems {
		byKind[p.Kind] = append(byKind[p.Kind], p)
	}
	var all []Finding
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		names := make([]string, len(byKind[kind]))
		for i, p := range byKind[kind] {
			names[i] = p.Secret
		}
		f := Finding{Result: Warning, Message: fmt.Sprintf("%s: %s", kind, byKind[kind][0].Message), Mend: s.secretMend(kind, names)}
		if slices.Contains(faulty, kind) {
			f.Result = Fault
		}
		if len(byKind[kind]) > 1 {
			f.Message, f.Subjects = fmt.Sprintf("%s, and %d more", f.Message, len(byKind[kind])-1), names
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return ok("%s of %d clusters, each with a name and a server", say.Plural(len(s.in.Discovered.Secrets), "cluster Secret"),
			len(s.out.Fleet.Clusters))
	}
	return all
}

// checkShards tells what adoption will write, and what it cannot.
func (s *seen) checkShards() (all []Finding) {
	var bare, fixed, free, twins, beyond []string
	counts := max(standing.ControllerReplicas(s.in.Workload), s.in.Workload.Replicas)
	servers := map[string]int{}
	for _, secret := range s.in.Discovered.Secrets {
		servers[plan.NormalizeServer(secret.Server)]++
	}
	for _, secret := range s.in.Discovered.Secrets {
		switch {
		case secret.Immutable:
			fixed = append(fixed, secret.Name)
		case secret.Unmanaged:
			free = append(free, secret.Name)
		case secret.Shard.State == discover.ShardAbsent:
			bare = append(bare, secret.Name)
		case secret.Shard.State == discover.ShardValid && secret.Shard.N >= counts:
			beyond = append(beyond, secret.Name)
		}
		if secret.Server != "" && servers[plan.NormalizeServer(secret.Server)] > 1 {
			twins = append(twins, secret.Name)
		}
	}
	add := func(of []string, result Result, message, mend string) {
		if len(of) > 0 {
			slices.Sort(of)
			all = append(all, Finding{Result: result, Message: say.Plural(len(of), "Secret") + " " + message, Mend: mend, Subjects: of})
		}
	}
	add(bare, OK, "without data.shard: adoption writes the replica that owns each now, and moves nothing", "")
	add(beyond, Warning, fmt.Sprintf("with a data.shard at or above the %s that Argo CD counts, which puts their clusters on shard 0",
		say.Plural(counts, "replica")), "adoption writes what is so; by hand: "+
		s.kubectl(`patch secret NAME --type=merge -p '{"stringData":{"shard":"0"}}'`, beyond))
	add(fixed, Warning, "immutable, so ballast cannot move the cluster", "make it again, for which Argo CD loses the cluster for a moment: "+
		s.kubectl("get secret NAME -o json | jq 'del(.immutable, .metadata.uid, .metadata.resourceVersion)' | "+
			"kubectl replace --force -f -", fixed))
	add(free, Warning, "annotated as unmanaged, so ballast leaves it where it is",
		"where that is not meant: "+s.kubectl("annotate secret NAME "+plan.AnnotationUnmanaged+"-", free))
	add(twins, Warning, "with a server that another Secret has, too: Argo CD goes by whichever it saw last, and ballast keeps them together",
		"keep the one that Applications name: "+s.kubectl("delete secret NAME", nil)+" for each other; then pin the one that is left to another replica and back, for until its shard changes Argo CD has it on replica 0")
	if len(all) == 0 {
		return ok("every Secret has data.shard")
	}
	return all
}

// kubectl is a command in Argo CD's namespace. Where it is for one object alone, NAME becomes that.
func (s *seen) kubectl(command string, of []string) string {
	if len(of) == 1 {
		command = strings.ReplaceAll(command, "NAME", of[0])
	}
	return "kubectl -n " + s.namespace + " " + command
}

func (s *seen) checkInCluster() []Finding {
	if !s.in.Discovered.InClusterEnabled {
		return ok("cluster.inClusterEnabled is false: Argo CD leaves its own cluster out")
	}
	for _, c := range s.out.Fleet.Clusters {
		if c.Implicit {
			return warn(fmt.Sprintf("the cluster that Argo CD runs in has no Secret: it stays on replica %d, and nothing can move it",
				s.in.Discovered.InClusterOwner), "if it is to be placed, too: "+
				s.kubectl("create secret generic in-cluster --from-literal=name=in-cluster --from-literal=server="+plan.InClusterServer+
					` --from-literal=config='{"tlsClientConfig":{"insecure":false}}' && `, nil)+
				s.kubectl("label secret in-cluster "+plan.SecretTypeLabel+"="+plan.SecretTypeCluster, nil))
		}
	}
	return ok("it has a Secret like every other")
}

// checkMetrics says where each metric's values come from, and what is wrong with it.
func (s *seen) checkMetrics() (all []Finding) {
	told := map[string]bool{}
	for _, p := range s.out.Table.Problems {
		if key := string(p.Kind) + p.Metric; !told[key] {
			told[key] = true
			result := Warning
			if slices.Contains([]measure.ProblemKind{measure.QueryFailed, measure.NothingFound, measure.LowCoverage, measure.TotalDropped,
				measure.DuplicateSeries}, p.Kind) {
				result = Fault
			}
			all = append(all, Finding{Result: result, Message: fmt.Sprintf("%s: %s", p.Kind, p.Message), Mend: metricMend(p.Kind)})
		}
	}
	if len(all) > 0 {
		return all
	}
	var parts []string
	for _, c := range s.out.Table.Columns {
		if len(c.Flags) > 0 && !slices.Contains(c.Flags, measure.Fresh) {
			all = append(all, Finding{Result: Warning,
				Message: fmt.Sprintf("%s: no series says anything of any cluster (%s)", c.ID, gather.Coverage(c)),
				Mend:    metricMend(measure.NothingFound)})
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", c.ID, gather.Coverage(c)))
	}
	switch {
	case len(parts) == 0:
		return unknown("nothing was measured", metricMend(measure.NothingFound))
	case len(all) > 0:
		return all
	}
	return ok("%s", joined(parts))
}

// metricMend is what mends it, where its message does not say so.
func metricMend(kind measure.ProblemKind) string {
	switch kind {
	case measure.QueryFailed:
		return "it has to be reached from here (kubectl -n monitoring port-forward svc/prometheus-operated 9090, then " +
			"--prometheus http://localhost:9090) and from the planner: poll: {prometheus: {url: http://SERVICE.NAMESPACE:9090}}"
	case measure.NothingFound:
		return "scrape the application-controller's pods on port 8082 " +
			"(argo-helm: controller: {metrics: {enabled: true, serviceMonitor: {enabled: true}}})"
	case measure.LowCoverage, measure.TotalDropped, measure.OldValue, measure.HeldLong:
		return `ask Prometheus which of the application-controller's pods it scrapes: up{pod=~".*application-controller.*"}; ` +
			"one that it does not: kubectl get servicemonitors,podmonitors -A"
	case measure.BadValue, measure.QueryWarned, measure.DuplicateSeries, measure.Unmatched:
		return "ask the query in Prometheus itself and mend it: poll.prometheus.metrics has it, ballast config default the shipped ones"
	case measure.SharedName:
		return `give each cluster Secret a data.name of its own: kubectl patch secret NAME --type=merge -p '{"stringData":{"name":"NAME"}}'`
	}
	return ""
}

var window = regexp.MustCompile(`\[(\d+[a-z0-9]*)[\]:]`)

// scrapesAWindow is how many a rate needs to say anything while one is missed now and then.
const scrapesAWindow = 4

func (s *seen) checkScrapes() []Finding {
	switch {
	case s.in.Config.Poll.Prometheus == nil:
		return ok("poll.pods: the planner asks the pods itself")
	case s.scrapesErr != "":
		return unknown(s.scrapesErr, metricMend(measure.QueryFailed))
	case len(s.scrapes) == 0:
		return unknown("no series process_resident_memory_bytes of the pods was found", metricMend(measure.NothingFound))
	}
	longest := 0.0
	for _, sample := range s.scrapes {
		longest = max(longest, sample.Value)
	}
	shortest := math.Inf(1)
	for _, m := range loads.MetricsOf(s.in.Config) {
		for _, found := range window.FindAllStringSubmatch(m.Query, -1) {
			if d, err := model.ParseDuration(found[1]); err == nil {
				shortest = min(shortest, time.Duration(d).Seconds())
			}
		}
	}
	if longest*scrapesAWindow > shortest {
		seen := fmt.Sprintf("a pod is scraped every %.0f s, and the shortest window of a query is %.0f s: "+
			"a rate over fewer than %d scrapes is empty now and then", longest, shortest, scrapesAWindow)
		return fault(seen, fmt.Sprintf("scrape every %.0f s or more often: interval: %[1]vs in the ServiceMonitor or PodMonitor "+
			"of its pods (Helm: controller.metrics.serviceMonitor.interval)", math.Floor(shortest/scrapesAWindow)))
	}
	return ok("every %.0f s, the shortest window of a query is %.0f s", longest, shortest)
}

// checkNeighbours tells who else changes the workload's number, size or pods.
func (s *seen) checkNeighbours() (all []Finding) {
	for _, f := range s.neighbours {
		if f.Kind == conflicts.CannotLook { // its words are about the planner's rights
			all = append(all, Finding{Result: Unknown, Message: f.Subject + " may not be listed", Mend: s.mayNot("list", f.Subject)})
			continue
		}
		all = append(all, Finding{Result: Warning, Message: fmt.Sprintf("%s: %s", f.Kind, f.Message), Mend: s.neighbourMend(f)})
	}
	if len(all) == 0 {
		return ok("none scales or resizes the workload, and its nodes can be drained")
	}
	return all
}

// neighbourMend is what lets both be, or one alone.
func (s *seen) neighbourMend(f conflicts.Finding) string {
	switch f.Kind {
	case conflicts.Autoscaled:
		return "leave it the number of replicas: partition: {replicas: workload}; or take it away: " + s.kubectl("get hpa,scaledobjects", nil)
	case conflicts.Resized:
		return "leave it the sizes: size: {policies: []}; or take it away: " + s.kubectl("get vpa", nil)
	case conflicts.PDBBlocks:
		return "spec: {maxUnavailable: 1} in it: " + s.kubectl("get poddisruptionbudgets", nil)
	}
	return ""
}

// mayNot is how somebody who may gives the right to look.
func (s *seen) mayNot(verb, resource string) string {
	return fmt.Sprintf("whoever may gives it: kubectl create clusterrole ballast-doctor --verb=%s --resource=%s && "+
		"kubectl create clusterrolebinding ballast-doctor --clusterrole=ballast-doctor --user=YOU (kubectl auth whoami)", verb, resource)
}

func (s *seen) checkSize() []Finding {
	room := codec.Room(s.out.Next)
	if room < codec.MaxBytes/10 {
		return warn(fmt.Sprintf("the plan of %s leaves %d KiB of %d", say.Plural(len(s.out.Next.Clusters), "cluster"), max(room, 0)>>10,
			codec.MaxBytes>>10),
			"shorter names of cluster Secrets, the longest first: "+s.kubectl("get secrets -l "+plan.SecretTypeLabel+"="+plan.SecretTypeCluster+
				" -o name | awk '{print length, $0}' | sort -rn | head", nil)+"; or a second Argo CD")
	}
	return ok("%s leave %d KiB of %d", say.Plural(len(s.out.Next.Clusters), "cluster"), room>>10, codec.MaxBytes>>10)
}
