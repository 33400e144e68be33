// Package promql writes the queries that a Prometheus is asked: templates with holes for a cluster or for the fleet's
// pods, filled within bounds.
package promql

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"ballast/planner/plan"
)

// Template is a query with holes for a cluster. What fills them is escaped for a PromQL string in double or single
// quotes, so that no cluster's name or URL can end the string it stands in; an ordinary one is not changed by that.
// Functions may cut or decode what is escaped: where what an action gives would end the string all the same, the query
// is refused for that cluster. A hole outside of quotes is PromQL that whoever names the cluster writes.
type Template struct {
	parsed *template.Template

	mu    sync.Mutex // one rendering at a time
	spent *account   // by the rendering
	out   *bounded   // of the rendering
}

var (
	errLongTemplate = fmt.Errorf("it has more than %d KiB: shorten it", maxTemplate>>10)
	errLoops        = errors.New("range, define, block and template may go on without end: write the query without them")
)

// ParseTemplate reads a Go template. It has if, with, variables, and those of sprig's functions that make text and
// numbers of text, numbers, flat lists and flat maps: the same input gives the same query, and none is without end.
func ParseTemplate(text string) (*Template, error) {
	t, err := parseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("parsing the query template: %w", shortened(err))
	}
	return t, nil
}

func parseTemplate(text string) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, errLongTemplate
	}
	const name = "query"
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck // judge says more of a function than that it is not defined
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		return nil, err
	}
	if delete(trees, name); len(trees) > 0 {
		return nil, errLoops
	}
	t := &Template{spent: &account{}}
	offered := functions(t.spent)
	if err := judge(tree.Root, offered); err != nil {
		return nil, err
	}
	watch(tree.Root)
	offered[keeps] = t.keepsItsPlace
	var err error
	t.parsed, err = template.New(name).Funcs(offered).Option("missingkey=error").AddParseTree(name, tree)
	return t, err
}

// judge refuses what may go on without end, and every function that is not offered.
func judge(n parse.Node, offered template.FuncMap) error {
	switch n := n.(type) {
	case *parse.ListNode:
		return judgeList(n, offered)
	case *parse.ActionNode:
		return judge(n.Pipe, offered)
	case *parse.IfNode:
		return judgeBranch(n.BranchNode, offered)
	case *parse.WithNode:
		return judgeBranch(n.BranchNode, offered)
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			for _, arg := range command.Args {
				if err := judge(arg, offered); err != nil {
					return err
				}
			}
		}
	case *parse.ChainNode:
		return judge(n.Node, offered)
	case *parse.IdentifierNode:
		if _, ok := offered[n.Ident]; !ok && !slices.Contains(fromGo[:], n.Ident) {
			return refusal(n.Ident, offered)
		}
	case *parse.TextNode, *parse.CommentNode, *parse.DotNode, *parse.NilNode, *parse.FieldNode, *parse.VariableNode,
		*parse.BoolNode, *parse.NumberNode, *parse.StringNode: // they end
	default: // range, template, break, continue, and what a later Go adds
		return errLoops
	}
	return nil
}

func judgeList(l *parse.ListNode, offered template.FuncMap) error {
	if l == nil {
		return nil
	}
	for _, n := range l.Nodes {
		if err := judge(n, offered); err != nil {
			return err
		}
	}
	return nil
}

func judgeBranch(b parse.BranchNode, offered template.FuncMap) error {
	for _, n := range []parse.Node{b.Pipe, b.List, b.ElseList} {
		if err := judge(n, offered); err != nil {
			return err
		}
	}
	return nil
}

// Render fills the query for one cluster. The keys are id, uid, namespace, name and server, and the seed's spellings
// shardID, shardUID, shardNamespace, shardName and shardServer.
func (t *Template) Render(shard plan.Shard) (string, error) { return NewBudget().Render(t, shard) }

// Render is Template.Render within the budget.
func (b *Budget) Render(t *Template, shard plan.Shard) (string, error) {
	id, uid, namespace := Escape(shard.ID), Escape(shard.UID), Escape(shard.Namespace)
	name, server := Escape(shard.Name), Escape(shard.Server)
	query, err := b.execute(t, map[string]string{
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

// FleetVars fill a query for the whole fleet. poll/targets.go says what the last two are for.
type FleetVars struct {
	Pod       string // the label that has a pod's name
	Pods      string // a label matcher that selects the application-controller's pods by their names, in any namespace
	Targets   string // one that selects them in their namespace
	OfTargets string // what keeps of the vector before it what is of these pods
}

// RenderFleet fills a query for the whole fleet; its keys are pod, pods, targets and ofTargets, which go in as they
// are.
func RenderFleet(query string, vars FleetVars) (string, error) {
	return NewBudget().RenderFleet(query, vars)
}

// RenderFleet is the function of that name within the budget.
func (b *Budget) RenderFleet(query string, vars FleetVars) (string, error) {
	t, err := ParseTemplate(query)
	if err != nil {
		return "", err
	}
	rendered, err := b.execute(t, map[string]string{"pod": vars.Pod, "pods": vars.Pods, "targets": vars.Targets,
		"ofTargets": vars.OfTargets})
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

// Matchers are label matchers for all series, in the order of their labels' names.
func Matchers(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, `,%s="%s"`, name, Escape(labels[name]))
	}
	return b.String()
}

// execute fills the template. An error quotes the values that it met: of each cluster's only so much is kept. A panic
// of text/template's own is an error of the query, as one of a function is already: queries are rendered side by side,
// and no goroutine of them may end the planner.
func (b *Budget) execute(t *Template, data map[string]string) (query string, err error) {
	defer func() {
		if met := recover(); met != nil {
			query, err = "", fmt.Errorf("the template ended in a panic of type %T: write it in another way", met)
		}
	}()
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.spent() {
		return "", ErrSpent
	}
	*t.spent, t.out = newAccount(), &bounded{}
	defer func() { b.take(*t.spent, t.out.Len()) }()
	if err = t.parsed.Execute(t.out, data); err != nil {
		return "", shortened(err)
	}
	return t.out.String(), nil
}

// shortened keeps both ends of an error: where in the template, and why.
func shortened(err error) error {
	text := err.Error()
	if len(text) <= maxError {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:maxError/2]+"…"+text[len(text)-maxError/2:], ""))
}

// bounded refuses to grow beyond maxQuery, and knows where in the query its end is.
type bounded struct {
	bytes.Buffer
	at place
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxQuery {
		return 0, errTooLong
	}
	b.at, _ = b.at.after(string(p))
	return b.Buffer.Write(p)
}

var errLeaves = errors.New("what it gives for this cluster would end the PromQL string that it stands in, or leave one open: " +
	"look at the cluster's name and server, and at the functions that cut them")

// keepsItsPlace gives a value as it is, if the query goes on behind it in the string, or outside of any, where it
// began.
func (t *Template) keepsItsPlace(value any) (any, error) {
	began := t.out.at
	if end, left := began.after(fmt.Sprint(value)); end != (place{in: began.in}) || left && began.in != 0 {
		return nil, errLeaves
	}
	return value, nil
}
