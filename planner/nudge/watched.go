package nudge

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	configMapParams = "argocd-cmd-params-cm"
	keyNamespaces   = "application.namespaces"
)

// Watched is the namespaces in which Argo CD looks at Applications: its own, and those that application.namespaces
// allows. It is for one listing, and for one goroutine.
type Watched struct {
	own         string
	names       []string // sorted, without own
	globs       []glob
	expressions []*expression
	none        []string // what no namespace can be called

	last    string // the namespace that was asked for last: a listing has those of one namespace together
	lastHas bool
}

// Watch reads the setting application.namespaces of ConfigMap argocd-cmd-params-cm: names, globs and /regular
// expressions/ with commas between, as Argo CD reads them. What Argo CD cannot read, and what no namespace can be
// called, allows nothing there, nor here.
func Watch(own, setting string) *Watched {
	w := &Watched{own: own, last: own, lastHas: true}
	for entry := range strings.SplitSeq(setting, ",") {
		entry = strings.TrimSpace(entry)
		switch {
		case entry == "":
		case isExpression(entry):
			w.addExpression(entry)
		case strings.ContainsAny(entry, globSpecial):
			if g, ok := parseGlob(entry); ok {
				w.globs = append(w.globs, g)
			}
		case len(validation.IsDNS1123Label(entry)) > 0:
			w.none = append(w.none, entry)
		case entry != own:
			w.names = append(w.names, entry)
		}
	}
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)
	return w
}

// addExpression takes as many as there may be, and the first of those beyond as one that is not read.
func (w *Watched) addExpression(entry string) {
	switch {
	case len(w.expressions) < maxExpressions:
		w.expressions = append(w.expressions, newExpression(entry))
	case len(w.expressions) == maxExpressions:
		w.expressions = append(w.expressions, &expression{text: entry, err: errManyExpressions})
	}
}

// isExpression tells what stands between slashes. A single slash is both its beginning and its end to Argo CD, which
// then cannot cut it.
func isExpression(entry string) bool {
	return len(entry) > 1 && strings.HasPrefix(entry, "/") && strings.HasSuffix(entry, "/")
}

// Has tells whether Argo CD looks at the Applications of a namespace.
func (w *Watched) Has(namespace string) bool {
	if namespace != w.last {
		w.last, w.lastHas = namespace, w.allows(namespace)
	}
	return w.lastHas
}

func (w *Watched) allows(namespace string) bool {
	_, named := slices.BinarySearch(w.names, namespace)
	return namespace == w.own || named ||
		slices.ContainsFunc(w.globs, func(g glob) bool { return g.match(namespace) }) ||
		slices.ContainsFunc(w.expressions, func(e *expression) bool { return e.match(namespace) })
}

const (
	manyNames = 256   // beyond it one look at all namespaces takes less than one at each, where it is allowed
	maxNames  = 2_000 // that are listed one by one, some ten seconds of it
)

// Open tells that all namespaces have to be looked at: the setting has patterns, or names many.
func (w *Watched) Open() bool { return len(w.names) > manyNames || w.patterned() }

func (w *Watched) patterned() bool {
	return len(w.globs)+len(w.expressions) > len(failed(w.expressions))
}

// Named is the namespaces that are known by name, maxNames at most, Argo CD's own first.
func (w *Watched) Named() []string {
	return append([]string{w.own}, w.names[:min(len(w.names), maxNames)]...)
}

// beyondNames tells that Named is not all that Argo CD looks at.
func (w *Watched) beyondNames() bool { return len(w.names) > maxNames || w.patterned() }

// problems names the expressions that allowed nothing, and the first of what is no name.
func (w *Watched) problems() []ListingProblem {
	var out []ListingProblem
	for _, e := range failed(w.expressions) {
		out = append(out, ListingProblem{PatternUnread, fmt.Sprintf("no Application is looked for in the namespaces of %s (Argo CD's setting %s): %v; name them, or use globs",
			shown(e.text), keyNamespaces, e.err)})
	}
	if len(w.none) > 0 {
		out = append(out, ListingProblem{PatternUnread, fmt.Sprintf("no namespace can be called %s (%d such in Argo CD's "+
			"setting %s): it allows nothing, there neither; write the name of one, a glob or a /regular expression/",
			shown(w.none[0]), len(w.none), keyNamespaces)})
	}
	return out
}
