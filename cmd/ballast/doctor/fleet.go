package doctor

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/look"
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
func checkSecrets(s *look.Seen) []finding.Finding {
	faulty := []discover.ProblemKind{discover.MissingData, discover.MissingServer, discover.TooLong, discover.TooMany,
		discover.ConfigUnread}
	byKind := map[discover.ProblemKind][]discover.SecretProblem{}
	for _, p := range s.Out.Fleet.Problems {
		byKind[p.Kind] = append(byKind[p.Kind], p)
	}
	var all []finding.Finding
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		names := make([]string, len(byKind[kind]))
		for i, p := range byKind[kind] {
			names[i] = p.Secret
		}
		f := finding.Finding{Result: finding.Warning, Message: fmt.Sprintf("%s: %s", kind, byKind[kind][0].Message),
			Mend: secretMend(s, kind, names)}
		if slices.Contains(faulty, kind) {
			f.Result = finding.Fault
		}
		if len(byKind[kind]) > 1 {
			f.Message, f.Subjects = fmt.Sprintf("%s, and %d more", f.Message, len(byKind[kind])-1), names
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return finding.Well("%s of %d clusters, each with a name and a server",
			say.Plural(len(s.In.Discovered.Secrets), "cluster Secret"),
			len(s.Out.Fleet.Clusters))
	}
	return all
}

// checkShards tells what adoption will write, and what it cannot.
func checkShards(s *look.Seen) (all []finding.Finding) {
	var bare, fixed, free, twins, beyond []string
	counts := max(standing.ControllerReplicas(s.In.Workload), s.In.Workload.Replicas)
	servers := map[string]int{}
	for _, secret := range s.In.Discovered.Secrets {
		servers[plan.NormalizeServer(secret.Server)]++
	}
	for _, secret := range s.In.Discovered.Secrets {
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
	add := func(of []string, result finding.Result, message, mend string) {
		if len(of) > 0 {
			slices.Sort(of)
			all = append(all, finding.Finding{Result: result, Message: say.Plural(len(of), "Secret") + " " + message,
				Mend: mend, Subjects: of})
		}
	}
	add(bare, finding.OK, "without data.shard: adoption writes the replica that owns each now, and moves nothing", "")
	add(beyond, finding.Warning, fmt.Sprintf("with a data.shard at or above the %s that Argo CD counts, which puts their clusters on shard 0",
		say.Plural(counts, "replica")), "adoption writes what is so; by hand: "+
		s.Kubectl(`patch secret NAME --type=merge -p '{"stringData":{"shard":"0"}}'`, beyond))
	add(fixed, finding.Warning, "immutable, so ballast cannot move the cluster",
		"make it again, for which Argo CD loses the cluster for a moment: "+
			s.Kubectl("get secret NAME -o json | jq 'del(.immutable, .metadata.uid, .metadata.resourceVersion)' | "+
				"kubectl replace --force -f -", fixed))
	add(free, finding.Warning, "annotated as unmanaged, so ballast leaves it where it is",
		"where that is not meant: "+s.Kubectl("annotate secret NAME "+plan.AnnotationUnmanaged+"-", free))
	add(twins, finding.Warning, "with a server that another Secret has, too: "+
		"Argo CD goes by whichever it saw last, and ballast keeps them together",
		"keep the one that Applications name: "+s.Kubectl("delete secret NAME", nil)+" for each other; "+
			"then pin the one that is left to another replica and back, "+
			"for until its shard changes Argo CD has it on replica 0")
	if len(all) == 0 {
		return finding.Well("every Secret has data.shard")
	}
	return all
}

func checkInCluster(s *look.Seen) []finding.Finding {
	if !s.In.Discovered.InClusterEnabled {
		return finding.Well("cluster.inClusterEnabled is false: Argo CD leaves its own cluster out")
	}
	for _, c := range s.Out.Fleet.Clusters {
		if c.Implicit {
			return finding.Warning.With(fmt.Sprintf("the cluster that Argo CD runs in has no Secret: "+
				"it stays on replica %d, and nothing can move it",
				s.In.Discovered.InClusterOwner), "if it is to be placed, too: "+
				s.Kubectl("create secret generic in-cluster --from-literal=name=in-cluster --from-literal=server="+plan.InClusterServer+
					` --from-literal=config='{"tlsClientConfig":{"insecure":false}}' && `, nil)+
				s.Kubectl("label secret in-cluster "+plan.SecretTypeLabel+"="+plan.SecretTypeCluster, nil))
		}
	}
	return finding.Well("it has a Secret like every other")
}

// checkMetrics says where each metric's values come from, and what is wrong with it.
func checkMetrics(s *look.Seen) (all []finding.Finding) {
	told := map[string]bool{}
	for _, p := range s.Out.Table.Problems {
		if key := string(p.Kind) + p.Metric; !told[key] {
			told[key] = true
			result := finding.Warning
			if slices.Contains([]measure.ProblemKind{measure.QueryFailed, measure.NothingFound, measure.LowCoverage, measure.TotalDropped,
				measure.DuplicateSeries}, p.Kind) {
				result = finding.Fault
			}
			all = append(all, finding.Finding{Result: result, Message: fmt.Sprintf("%s: %s", p.Kind, p.Message),
				Mend: metricMend(p.Kind)})
		}
	}
	if len(all) > 0 {
		return all
	}
	var parts []string
	for _, c := range s.Out.Table.Columns {
		if len(c.Flags) > 0 && !slices.Contains(c.Flags, measure.Fresh) {
			all = append(all, finding.Warning.With(fmt.Sprintf("%s: no series says anything of any cluster (%s)", c.ID,
				gather.Coverage(c)),
				metricMend(measure.NothingFound))...)
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", c.ID, gather.Coverage(c)))
	}
	switch {
	case len(parts) == 0:
		return finding.Unknown.With("nothing was measured", metricMend(measure.NothingFound))
	case len(all) > 0:
		return all
	}
	return finding.Well("%s", joined(parts))
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

func checkScrapes(s *look.Seen) []finding.Finding {
	switch {
	case s.In.Config.Poll.Prometheus == nil:
		return finding.Well("poll.pods: the planner asks the pods itself")
	case s.ScrapesErr != "":
		return finding.Unknown.With(s.ScrapesErr, metricMend(measure.QueryFailed))
	case len(s.Scrapes) == 0:
		return finding.Unknown.With("no series process_resident_memory_bytes of the pods was found",
			metricMend(measure.NothingFound))
	}
	longest := 0.0
	for _, sample := range s.Scrapes {
		longest = max(longest, sample.Value)
	}
	shortest := math.Inf(1)
	for _, m := range loads.MetricsOf(s.In.Config) {
		for _, found := range window.FindAllStringSubmatch(m.Query, -1) {
			if d, err := model.ParseDuration(found[1]); err == nil {
				shortest = min(shortest, time.Duration(d).Seconds())
			}
		}
	}
	if longest*scrapesAWindow > shortest {
		seen := fmt.Sprintf("a pod is scraped every %.0f s, and the shortest window of a query is %.0f s: "+
			"a rate over fewer than %d scrapes is empty now and then", longest, shortest, scrapesAWindow)
		return finding.Fault.With(seen, fmt.Sprintf("scrape every %.0f s or more often: interval: %[1]vs in the ServiceMonitor or PodMonitor "+
			"of its pods (Helm: controller.metrics.serviceMonitor.interval)", math.Floor(shortest/scrapesAWindow)))
	}
	return finding.Well("every %.0f s, the shortest window of a query is %.0f s", longest, shortest)
}

// checkNeighbours tells who else changes the workload's number, size or pods.
func checkNeighbours(s *look.Seen) (all []finding.Finding) {
	for _, f := range s.Conflicts {
		if f.Kind == conflicts.CannotLook { // its words are about the planner's rights
			all = append(all, finding.Unknown.With(f.Subject+" may not be listed",
				finding.MayNot("list", f.Subject))...)
			continue
		}
		all = append(all, finding.Warning.With(fmt.Sprintf("%s: %s", f.Kind, f.Message), neighbourMend(s, f))...)
	}
	if len(all) == 0 {
		return finding.Well("none scales or resizes the workload, and its nodes can be drained")
	}
	return all
}

// neighbourMend is what lets both be, or one alone.
func neighbourMend(s *look.Seen, f conflicts.Finding) string {
	switch f.Kind {
	case conflicts.Autoscaled:
		return "leave it the number of replicas: partition: {replicas: workload}; or take it away: " +
			s.Kubectl("get hpa,scaledobjects", nil)
	case conflicts.Resized:
		return "leave it the sizes: size: {policies: []}; or take it away: " + s.Kubectl("get vpa", nil)
	case conflicts.PDBBlocks:
		return "spec: {maxUnavailable: 1} in it: " + s.Kubectl("get poddisruptionbudgets", nil)
	}
	return ""
}

func checkSize(s *look.Seen) []finding.Finding {
	room := codec.Room(s.Out.Next)
	if room < codec.MaxBytes/10 {
		return finding.Warning.With(fmt.Sprintf("the plan of %s leaves %d KiB of %d",
			say.Plural(len(s.Out.Next.Clusters), "cluster"), max(room, 0)>>10,
			codec.MaxBytes>>10),
			"shorter names of cluster Secrets, the longest first: "+s.Kubectl("get secrets -l "+plan.SecretTypeLabel+"="+plan.SecretTypeCluster+
				" -o name | awk '{print length, $0}' | sort -rn | head", nil)+"; or a second Argo CD")
	}
	return finding.Well("%s leave %d KiB of %d", say.Plural(len(s.Out.Next.Clusters), "cluster"), room>>10,
		codec.MaxBytes>>10)
}
