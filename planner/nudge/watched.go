package nudge

import (
	"slices"
	"strings"
)

// Watched is the namespaces in which Argo CD looks at Applications: its own, and those that application.namespaces allows.
type Watched struct {
	own      string
	names    []string // sorted, without own
	patterns []func(namespace string) bool
}

// Watch reads the setting application.namespaces of ConfigMap argocd-cmd-params-cm: names, globs and /regular expressions/
// with commas between, as Argo CD reads them. The second answer is the expressions that Argo CD's engine can read and Go's
// cannot; they allow nothing here. What Argo CD cannot read either allows nothing there, too.
func Watch(own, setting string) (Watched, []string) {
	w := Watched{own: own}
	var unread []string
	for entry := range strings.SplitSeq(setting, ",") {
		entry = strings.TrimSpace(entry)
		switch {
		case entry == "":
		case isExpression(entry):
			match, err := compileExpression(entry[1 : len(entry)-1])
			if err != nil {
				unread = append(unread, entry)
				continue
			}
			w.patterns = append(w.patterns, match)
		case !strings.ContainsAny(entry, globSpecial):
			if entry != own {
				w.names = append(w.names, entry)
			}
		default:
			if g, ok := parseGlob(entry); ok {
				w.patterns = append(w.patterns, g.match)
			}
		}
	}
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)
	return w, unread
}

// isExpression tells what stands between slashes. A single slash is both its beginning and its end to Argo CD, which then
// cannot cut it.
func isExpression(entry string) bool {
	return len(entry) > 1 && strings.HasPrefix(entry, "/") && strings.HasSuffix(entry, "/")
}

// Has tells whether Argo CD looks at the Applications of a namespace.
func (w Watched) Has(namespace string) bool {
	if namespace == w.own || slices.Contains(w.names, namespace) {
		return true
	}
	return slices.ContainsFunc(w.patterns, func(match func(string) bool) bool { return match(namespace) })
}

// Open tells that the namespaces cannot be told from the setting alone: it has patterns.
func (w Watched) Open() bool { return len(w.patterns) > 0 }

// Named is the namespaces that are known by name, Argo CD's own first.
func (w Watched) Named() []string { return append([]string{w.own}, w.names...) }
