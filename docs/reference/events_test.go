package reference

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// told is what people are told under one name, as the source has it.
type told struct {
	from     map[string]bool // packages
	meaning  string          // a constant's comment
	messages []string        // with … for what differs
}

// meanings are those of names whose words are made up when they are told.
var meanings = map[string]string{
	"ChangeBlocked":      "a change of sizes, of the number of replicas, or of where clusters are, waits: since when, why, and what would be otherwise",
	"ApplicationsUnseen": "Applications that Argo CD works on, or may work on, are not listed, and what to do",
	"CordonRefused":      "an entry of the annotation cordon cannot be read", "Doubled": "several pods reconcile one cluster", "OwnerAstray": "a cluster is with another replica than its plan and its Secret say, for 5 min", "PodsUnseen": "what the pods say of themselves cannot be read",
	"MemoryUnknown": "what a replica has of memory, or what clusters take of it, is not known", "MemoryShort": "a replica has not the memory for its clusters, and no plan mends it",
	"GroupLeaves": "a group leaves out clusters that it selects, and why", "RebaseRefused": "references are not taken anew, or back, and why",
	"RulesClash": "pins, groups and bounds cannot all be kept", "SizeHeld": "pods, or the pod template, are left at their size, and why",
	"RestartWaits": "the one restart of rollout.live is left to whoever changes the pod template next (rollout.live.adopt)",
	"Refused":      "no candidate fits the configuration", "RollbackRefused": "the plan that a person asks for cannot be gone back to", "Shrunk": "more clusters are gone at once than is believed",
	"Unwell": "a replica is unwell, and why", "RolloutFinished": "a rollout ended as wanted", "BudgetTooSmall": "what is to move never finds room in change.moves.rate",
	"RolloutTurnedBack": "a stage passed its deadline, and the way back begins", "RolloutReverted": "the way back ended", "RolloutGaveUp": "a rollout ended where it was",
	"PodRefused":  "no pod is made for a replica, or a LimitRange or ResourceQuota refuses its size: it is given up for the time being",
	"PlanForeign": "the plan that stood was written by nobody who has this installation's key", "PlanBroken": "the plan that stood does not match its digest", "PlanOlder": "the plan that stood was an older one",
}

// eventsPage is every problem and event by its name, with the beginning of what it says.
func eventsPage(t *testing.T) string {
	all := map[string]*told{}
	for _, dir := range []string{"cycle", "cycle/*", "cycle/*/*", "discover", "measure", "failover", "conflicts", "installation", "telemetry"} {
		collect(t, dir, all)
	}
	var rows [][]string
	for name := range meanings {
		if all[name] == nil {
			all[name] = &told{from: map[string]bool{"cycle": true}}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		says := cmp.Or(all[name].meaning, meanings[name])
		if m := all[name].messages; says == "" && len(m) > 0 {
			slices.Sort(m)
			says = strings.Join(slices.Compact(m), "<br>")
		}
		if strings.Trim(says, "…<br>") == "" {
			t.Errorf("%s means nothing: write a comment behind its constant, or its row in meanings", name)
		}
		rows = append(rows, []string{"`" + name + "`", strings.Join(slices.Sorted(maps.Keys(all[name].from)), ", "), says})
	}
	return "# Events and problems\n\nWhat a cycle finds is a problem: an event of the plan ConfigMap by that name when it is new, a line of `ballast status`, and the metric `ballast_planner_problems`. " +
		"What telemetry tells is an event alone: on the plan, where it concerns the workload there, too, and those of `Cluster…` on the cluster's Secret, as are `Orphaned` and `Doubled`. " +
		"Secrets get twenty of each name in ten minutes at most, four of them one Secret, and ten of what a Secret's writer has told at will (`ClusterPinned`, `ClusterPutBack`, " +
		"`ClusterAssigned`, `ClusterRefused`), the oldest Secrets' first; `MoreSecrets` counts the others on the plan, and what lasts of them is told once there is room." +
		" What lasts is told once in six hours, and again when it comes back after ten minutes or more. Names outlive a version; messages do not.\n\n" + table([]string{"name", "told by", "what it says"}, rows)
}

// collect reads a package's names: the constants of its kinds, and the literals of what it tells.
func collect(t *testing.T, dir string, all map[string]*told) {
	t.Helper()
	files, err := filepath.Glob("../../planner/" + dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{} // constants by their Go names
	find := func(name string) *told {
		if all[name] == nil {
			all[name] = &told{from: map[string]bool{}}
		}
		all[name].from[strings.TrimRight(dir, "/*")] = true
		return all[name]
	}
	var trees []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
		ast.Inspect(tree, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 || !regexp.MustCompile(`^(Problem|Note)?Kind$`).MatchString(typeName(v.Type)) {
				return true
			}
			name := literal(v.Values[0])
			kinds[v.Names[0].Name] = name
			find(name).meaning = strings.TrimSpace(v.Comment.Text())
			return true
		})
	}
	for _, tree := range trees {
		ast.Inspect(tree, func(n ast.Node) bool {
			c, ok := n.(*ast.CompositeLit)
			if !ok || !slices.Contains([]string{"Problem", "Note", "Finding", "Event", "gate", ""}, typeName(c.Type)) {
				return true
			}
			name, message := "", ""
			for _, e := range c.Elts {
				field, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				switch key, _ := field.Key.(*ast.Ident); {
				case key == nil:
				case slices.Contains([]string{"Kind", "Reason", "kind"}, key.Name):
					name = literal(field.Value)
					if of, ok := field.Value.(*ast.Ident); ok {
						name = kinds[of.Name]
					}
				case key.Name == "Message" || key.Name == "brief":
					message = template(field.Value)
				}
			}
			if name != "" {
				if say := find(name); message != "" {
					say.messages = append(say.messages, message)
				}
			}
			return true
		})
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literal is a string that stands in the source; empty for anything else.
func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if s, err := strconv.Unquote(lit.Value); err == nil {
			return s
		}
	}
	return ""
}

// template is the text of a message, with … for what is only known when it is told.
func template(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return literal(e)
	case *ast.BinaryExpr:
		return template(e.X) + template(e.Y)
	case *ast.CallExpr:
		if len(e.Args) > 0 && typeName(e.Fun) == "Sprintf" {
			return regexp.MustCompile(`%[.\d*]*[a-z]`).ReplaceAllString(template(e.Args[0]), "…")
		}
	}
	return "…"
}
