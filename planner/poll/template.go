package poll

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"ballast/planner/plan"
)

// maxQuery bounds a rendered query, in bytes: a Prometheus takes no longer ones in a URL, and a template may loop.
const maxQuery = 64 << 10

// Template is a query with holes for a cluster. What fills them is escaped for a PromQL string in double or single
// quotes, so that no cluster's name or URL can end the string it stands in; an ordinary one is not changed by that.
type Template struct{ parsed *template.Template }

// ParseTemplate reads a Go template with sprig's functions, less those that read the host, a clock or a source of
// randomness, or that list a map in no order: the same input must give the same query.
func ParseTemplate(text string) (*Template, error) {
	parsed, err := template.New("query").Funcs(functions()).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parsing the query template: %w", err)
	}
	if len(parsed.Templates()) > 1 {
		return nil, fmt.Errorf("parsing the query template: %w", errLoops)
	}
	if err := endless(parsed.Root); err != nil {
		return nil, fmt.Errorf("parsing the query template: %w", err)
	}
	return &Template{parsed}, nil
}

// Render fills the query for one cluster. The keys are id, uid, namespace, name and server, and the seed's spellings
// shardID, shardUID, shardNamespace, shardName and shardServer.
func (t *Template) Render(shard plan.Shard) (string, error) {
	id, uid, namespace := escape(shard.ID), escape(shard.UID), escape(shard.Namespace)
	name, server := escape(shard.Name), escape(shard.Server)
	query, err := t.execute(map[string]string{
		"id": id, "uid": uid, "namespace": namespace, "name": name, "server": server,
		"shardID": id, "shardUID": uid, "shardNamespace": namespace, "shardName": name, "shardServer": server,
	})
	if err != nil {
		return "", fmt.Errorf("rendering the query of cluster %q: %w", shard.ID, err)
	}
	return query, nil
}

// Render parses and fills a query for one cluster.
func Render(queryPerCluster string, shard plan.Shard) (string, error) {
	t, err := ParseTemplate(queryPerCluster)
	if err != nil {
		return "", err
	}
	return t.Render(shard)
}

// FleetVars fill a query for the whole fleet.
type FleetVars struct {
	Pods string // a label matcher that selects the application-controller's pods
}

// RenderFleet fills a query for the whole fleet; its one key is pods, which goes in as it is.
func RenderFleet(query string, vars FleetVars) (string, error) {
	t, err := ParseTemplate(query)
	if err != nil {
		return "", err
	}
	rendered, err := t.execute(map[string]string{"pods": vars.Pods})
	if err != nil {
		return "", fmt.Errorf("rendering a query for the fleet: %w", err)
	}
	return rendered, nil
}

// PodsMatcher selects the pods of a workload: those of a StatefulSet end in an ordinal, those of a Deployment in the
// ReplicaSet's hash and five characters.
func PodsMatcher(label string, target plan.Target) string {
	tail := "-[0-9]+"
	if target.Kind == plan.Deployment {
		tail = "-[a-z0-9]+-[a-z0-9]{5}"
	}
	return fmt.Sprintf(`%s=~"%s%s"`, label, strings.ReplaceAll(regexp.QuoteMeta(target.Name), `\`, `\\`), tail)
}

func (t *Template) execute(data map[string]string) (string, error) {
	var out bounded
	if err := t.parsed.Execute(&out, data); err != nil {
		return "", err
	}
	return out.String(), nil
}

// bounded refuses to grow beyond maxQuery.
type bounded struct{ bytes.Buffer }

var errTooLong = errors.New("the query is longer than 64 KiB")

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxQuery {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}

// escape writes a value so that it stays inside a PromQL string. Quotes become \x22, \x27 and \x60, which both kinds of
// quotes allow, where \" would not be.
func escape(value string) string {
	if !strings.ContainsFunc(value, needsEscape) {
		return strings.ToValidUTF8(value, "�")
	}
	var b strings.Builder
	for _, r := range value {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case needsEscape(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func needsEscape(r rune) bool {
	return r < ' ' || r == 0x7f || r == '"' || r == '\'' || r == '`' || r == '\\'
}
