package validation

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
	"ballast/planner/config/strict"
)

// Bounds of a configuration.
const (
	minInterval    = config.Duration(10 * time.Second) // below, cycles overlap with Prometheus's own scrape intervals
	maxTime        = config.Duration(366 * 24 * time.Hour)
	maxReplicas    = 999 // Argo CD's largest known fleets have dozens
	maxConcurrency = 64  // above, ballast is Prometheus's load

	maxShownClusters = 5000 // the largest fleet that ballast is tested with; seven series each with the default metrics
)

// between wants low <= got <= high.
func between[T cmp.Ordered](p *field.Path, got, low, high T) field.ErrorList {
	if got >= low && got <= high {
		return nil
	}
	return field.ErrorList{field.Invalid(p, field.OmitValueType{},
		fmt.Sprintf("%v is not between %v and %v", got, low, high))}
}

// required wants low <= got <= high of a field that has no default.
func required[T int | config.Duration](p *field.Path, got, low, high T) field.ErrorList {
	if got == 0 {
		return field.ErrorList{field.Required(p, fmt.Sprintf("write one between %v and %v", low, high))}
	}
	return between(p, got, low, high)
}

// only wants one of a closed set.
func only[T ~string](p *field.Path, got T, want ...T) field.ErrorList {
	if slices.Contains(want, got) {
		return nil
	}
	if got == "" {
		return field.ErrorList{field.Required(p, fmt.Sprintf("write %s", join(want, " or ")))}
	}
	return field.ErrorList{field.NotSupported(p, got, want)}
}

func join[T ~string](words []T, between string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, between)
}

// oneImplementation wants exactly one of a phase's implementations.
func oneImplementation(phase any, p *field.Path) field.ErrorList {
	known := strict.FieldsOf(reflect.ValueOf(phase).Elem())
	var set []string
	for _, name := range strict.Implementations(known) {
		if !known[name].Value.IsNil() {
			set = append(set, name)
		}
	}
	switch len(set) {
	case 1:
		return nil
	case 0:
		return field.ErrorList{field.Required(p, "name one of "+strings.Join(strict.Implementations(known), ", "))}
	default:
		return field.ErrorList{field.Invalid(p, field.OmitValueType{},
			fmt.Sprintf("names %s: name one", strings.Join(set, " and ")))}
	}
}

// validURL wants an absolute http or https URL without a password in it, which would stand in logs.
func validURL(p *field.Path, text string) field.ErrorList {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return field.ErrorList{field.Invalid(p, field.OmitValueType{},
			"is not a URL like http://prometheus.monitoring:9090")}
	case u.User != nil:
		return field.ErrorList{field.Invalid(p, field.OmitValueType{},
			"carries a user: move it to http.basic_auth, where it is kept secret")}
	case u.RawQuery != "" || u.Fragment != "":
		return field.ErrorList{field.Invalid(p, field.OmitValueType{},
			"carries a query or a fragment: leave the server and its path")}
	}
	return nil
}
