package validation

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
	"ballast/planner/config/httpclient"
	"ballast/planner/config/strict"
)

const (
	metricIDPattern  = `^[a-z][a-zA-Z0-9_]*$`
	labelNamePattern = `^[a-zA-Z_][a-zA-Z0-9_]*$` // Prometheus's label names before UTF-8: what Argo CD and relabelling make
)

func validatePoll(o config.Poll, interval config.Duration, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if share := o.MinCoverage.Float(); share < 0 || share > 1 {
		errs = append(errs, field.Invalid(p.Child("minCoverage"), string(o.MinCoverage),
			"is not a share between 0 and 1"))
	}
	errs = append(errs, between(p.Child("maxDrop"), o.MaxDrop, 0, 100)...)
	errs = append(errs, oneImplementation(&o, p)...)
	if o.Prometheus != nil {
		errs = append(errs, validatePrometheus(*o.Prometheus, interval, p.Child("prometheus"))...)
	}
	if o.Pods != nil && interval > longestLook && interval <= maxTime {
		errs = append(errs, field.Invalid(field.NewPath("interval"), interval.String(), fmt.Sprintf(
			"is above %s: with poll.pods the pods are asked once an interval, and rates of ten minutes need four looks",
			longestLook)))
	}
	return errs
}

// longestLook is how far apart the looks at the pods may be: below four of them a rate of ten minutes has gaps wherever
// one fails.
const longestLook = config.Duration(150 * time.Second)

func validatePrometheus(s config.Prometheus, interval config.Duration, p *field.Path) field.ErrorList {
	errs := validURL(p.Child("url"), s.URL)
	at := p.Child("timeout")
	switch {
	case s.Timeout < 1:
		errs = append(errs, field.Invalid(at, s.Timeout.String(), "is not above 0"))
	case s.Timeout >= interval && interval >= minInterval:
		errs = append(errs, field.Invalid(at, s.Timeout.String(),
			fmt.Sprintf("is not below the interval of %v: cycles would overlap", interval)))
	}
	errs = append(errs, between(p.Child("concurrency"), s.Concurrency, 1, maxConcurrency)...)
	errs = append(errs, between(p.Child("maxAge"), s.MaxAge, minInterval, maxTime)...)
	errs = append(errs, httpclient.OwnFiles(s.HTTP, p.Child("http"), httpclient.AsWritten)...)
	errs = append(errs, validateKeys(s.HTTP, p.Child("http"))...)
	errs = append(errs, validateLabels(s, p)...)
	at = p.Child("metrics")
	if s.Metrics != nil && len(s.Metrics) == 0 {
		errs = append(errs, field.Required(at, "name at least one, or leave metrics out for the default set"))
	}
	if s.Recorded && s.OfClusters() != nil {
		errs = append(errs, field.Forbidden(p.Child("recorded"),
			"it is of the default set, and metrics replaces that: leave one of the two out"))
	}
	seen := map[string]bool{}
	for i, m := range s.Metrics {
		errs = append(errs, validateMetric(m, at.Index(i))...)
		if m.ID != "" && seen[m.ID] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("id"), m.ID))
		}
		seen[m.ID] = true
	}
	return errs
}

// mostMatchers bounds what each query repeats.
const mostMatchers = 10

// validateLabels checks what goes into queries as it is, but for values, which are escaped.
func validateLabels(s config.Prometheus, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	isLabel := regexp.MustCompile(labelNamePattern).MatchString
	const notALabel = "is no label's name: letters, digits and _, not a digit first"
	if !isLabel(s.PodLabel) {
		errs = append(errs, field.Invalid(p.Child("podLabel"), s.PodLabel, notALabel))
	}
	at := p.Child("matchers")
	if len(s.Matchers) > mostMatchers {
		errs = append(errs, field.TooMany(at, len(s.Matchers), mostMatchers))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Matchers)) {
		switch value := s.Matchers[name]; {
		case !isLabel(name) || strings.HasPrefix(name, "__"):
			errs = append(errs, field.Invalid(at.Key(name), value, notALabel))
		case slices.Contains([]string{"namespace", "instance", "job", s.PodLabel}, name):
			errs = append(errs, field.Invalid(at.Key(name), value,
				"says nothing of whose Argo CD it is: ballast tells namespaces and pods apart itself; name a label that all series of this Kubernetes cluster have, as cluster"))
		case value == "":
			errs = append(errs, field.Required(at.Key(name),
				"a label without a value is one that is not there: write the value that series of this Argo CD have"))
		case len(value) > 200:
			errs = append(errs, field.TooLong(at.Key(name), value, 200))
		}
	}
	return errs
}

func validateMetric(m config.Metric, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !regexp.MustCompile(metricIDPattern).MatchString(m.ID) {
		errs = append(errs, field.Invalid(p.Child("id"), m.ID, "is not a letter a-z followed by letters, digits and _"))
	}
	switch {
	case m.Query == "" && m.QueryPerCluster == "":
		errs = append(errs, field.Required(p.Child("query"), "write query (one for the fleet) or queryPerCluster"))
	case m.Query != "" && m.QueryPerCluster != "":
		errs = append(errs, field.Forbidden(p.Child("queryPerCluster"),
			"there is a query for the whole fleet already: delete one of them"))
	case m.Query != "" && m.Match == nil:
		errs = append(errs, field.Required(p.Child("match"),
			"say which label of the samples names the cluster, like {label: dest_server, to: server}"))
	case m.QueryPerCluster != "" && m.Match != nil:
		errs = append(errs, field.Forbidden(p.Child("match"),
			"a query per cluster answers for its cluster: delete match"))
	}
	if m.QueryPerCluster != "" && m.AgeQuery != "" {
		errs = append(errs, field.Forbidden(p.Child("ageQuery"),
			"it answers for the whole fleet, as query does: delete it"))
	}
	if m.Match != nil {
		errs = append(errs, only(p.Child("match", "to"), m.Match.To, config.MatchServer, config.MatchName,
			config.MatchID, config.MatchReplica)...)
		if !regexp.MustCompile(labelNamePattern).MatchString(m.Match.Label) {
			errs = append(errs, field.Invalid(p.Child("match", "label"), m.Match.Label, "is not the name of a label"))
		}
	}
	if m.OfReplicas() {
		errs = append(errs, validateReplica(m, p)...)
	}
	if m.NoData != nil && m.NoData.Float() < 0 {
		errs = append(errs, field.Invalid(p.Child("noData"), string(*m.NoData), "is below 0"))
	}
	return errs
}

// validateReplica refuses what counts for clusters alone.
func validateReplica(m config.Metric, p *field.Path) (errs field.ErrorList) {
	if m.NoData != nil {
		const why = "it is for clusters: a replica of which nothing is measured keeps its size; delete it"
		errs = append(errs, field.Forbidden(p.Child("noData"), why))
	}
	if len(m.Match.Aliases) > 0 {
		errs = append(errs, field.Forbidden(p.Child("match", "aliases"),
			"they are for clusters: the label has the pod's own name; delete them"))
	}
	if !strings.Contains(m.Query, ".targets") && !strings.Contains(m.Query, "namespace=") {
		errs = append(errs, field.Invalid(p.Child("query"), field.OmitValueType{},
			"names no namespace, and another Argo CD's pods have the same names: write {{.targets}} in its braces, or namespace=\"...\""))
	}
	return errs
}

// validateWeights wants a weight for each metric and no other, where the metrics are known here: a nil set is the
// default one, which the poll phase fills in, and then asks Validate again.
func validateWeights(c config.PlannerConfig) field.ErrorList {
	if c.Index.PNorm == nil || c.Poll.Prometheus == nil || c.Poll.Prometheus.OfClusters() == nil {
		return nil
	}
	at, weights := field.NewPath("index", "pNorm", "weights"), c.Index.PNorm.Weights
	if weights == nil {
		return field.ErrorList{field.Required(at, "the metrics are your own, so give each its weight, like {apps: \"1\"}")}
	}
	var errs field.ErrorList
	named := map[string]bool{}
	for _, m := range c.Poll.Prometheus.OfClusters() {
		if _, ok := weights[m.ID]; !ok && !named[m.ID] {
			errs = append(errs, field.Required(at.Key(m.ID),
				"the metric has no weight: give it one, 0 to leave it out of the load"))
		}
		named[m.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		if !named[id] {
			errs = append(errs, field.Invalid(at.Key(id), field.OmitValueType{},
				"is no metric's id: "+strict.Hint(id, slices.Sorted(maps.Keys(named)))))
		}
	}
	return errs
}
