// Package reference holds the contracts that people and tools go by, as the code has them: `go test ./docs/reference -update` writes
// the pages anew.
package reference

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/watch"
	"ballast/planner/telemetry"
	"ballast/webhook"
	"ballast/webhook/source"
)

var update = flag.Bool("update", false, "write the pages anew")

// TestThePagesAreTheCodes: each page says what the code has, no more and no less.
func TestThePagesAreTheCodes(t *testing.T) {
	for file, page := range map[string]func(*testing.T) string{
		"plan.md": planPage, "annotations.md": annotationsPage, "reasons.md": reasonsPage, "../metrics.md": metricsPage, "webhooks.md": webhooksPage,
		"events.md": eventsPage, "status.md": statusPage,
	} {
		t.Run(file, func(t *testing.T) {
			want := "<!-- Written by `go test ./docs/reference -update`. -->\n" + page(t)
			if *update {
				if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("run `go test ./docs/reference -update`; the page is (-want +got):\n%s", diff)
			}
		})
	}
}

func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// table is a Markdown table.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(strings.Join(strings.Fields(row[i]), " "), "|", "\\|")
		}
		line(row)
	}
	return b.String()
}

// planPage is the plan's document: its types, each with its fields, in the order in which the encoder writes them.
func planPage(t *testing.T) string {
	types := map[string]*ast.GenDecl{}
	for _, file := range []string{"planner/plan/wire.go", "planner/plan/types.go", "planner/plan/sizes.go"} {
		for _, d := range parsed(t, file).Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				types[g.Specs[0].(*ast.TypeSpec).Name.Name] = g
			}
		}
	}
	var b strings.Builder
	b.WriteString("# The plan: `data.plan` of the plan ConfigMap\n\nOne YAML document, without aliases. The planner alone writes it; `data.pins` beside it is people's: `cluster: replica`, a line each.\n")
	for _, part := range []struct{ title, wire, words string }{
		{"Plan", "Wire", "Plan"}, {"target", "Target", "Target"}, {"groups: one", "ClusterGroup", "ClusterGroup"}, {"clusters: a row", "Row", "Row"}, {"rollout", "Rollout", "Rollout"},
		{"rollout.from", "Count", "Count"}, {"resources", "Resources", "Resources"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", part.title, strings.Join(strings.Fields(types[part.words].Doc.Text()), " "))
		var rows [][]string
		for _, f := range types[part.wire].Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
			tag, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			name, left, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			rows = append(rows, []string{"`" + name + "`", "`" + written(f.Type) + "`", map[bool]string{true: "left out where empty", false: "always"}[left != ""]})
		}
		b.WriteString(table([]string{"field", "type", "written"}, rows))
	}
	fmt.Fprintf(&b, "\n## sizes\n\n%s\n", strings.Join(strings.Fields(types["Sizes"].Doc.Text()), " "))
	for _, of := range []string{"Mode", "Stage"} {
		b.WriteString("\n## " + of + "\n\n" + table([]string{"value", "meaning"}, constants(t, "planner/plan/types.go", of)))
	}
	return b.String()
}

// statusPage is what the leader says, by its conditions.
func statusPage(t *testing.T) string {
	const file = "planner/status/condition.go"
	return "# The status: `data.status` of ConfigMap `ballast-plan-status`\n\nOne JSON document, by the leader, as soon as anything in it changes, and once a minute. " +
		"It is for `ballast status` and people's tools. ballast itself goes by its revision alone, where plan and history are lost together, " +
		"and a leader goes on with since when its conditions hold.\n\n## Conditions\n\nIn the words of Kubernetes' conditions: `type`, `status` (True, False, Unknown), `reason`, " +
		"`message`, `lastTransitionTime`.\n\n" + table([]string{"type", "True says"}, constants(t, file, "Type")) +
		"\n## Reasons\n\nBeside these Planning has the kind of the problem that keeps the plan, and Progressing the stage of the rollout.\n\n" +
		table([]string{"reason", "meaning"}, constants(t, file, "ConditionReason"))
}

// written is a type as the document's reader knows it.
func written(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return written(e.X)
	case *ast.MapType:
		return "map of " + written(e.Value)
	case *ast.ArrayType:
		return "list of " + written(e.Elt)
	case *ast.SelectorExpr:
		return "time"
	case *ast.Ident:
		if plain := map[string]string{"int64": "integer", "int": "integer", "bool": "boolean"}[e.Name]; plain != "" {
			return plain
		}
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}

// annotationsPage is every annotation, with the comment of its group and its own.
func annotationsPage(t *testing.T) string {
	rows, words := map[string][][]string{}, ""
	var titles []string
	for _, d := range parsed(t, "planner/plan/names.go").Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if v.Doc != nil {
				words = strings.Join(strings.Fields(v.Doc.Text()), " ")
			}
			sum, ok := v.Values[0].(*ast.BinaryExpr)
			if !ok || !strings.HasPrefix(v.Names[0].Name, "Annotation") {
				continue
			}
			name, err := strconv.Unquote(sum.Y.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if _, known := rows[words]; !known {
				titles = append(titles, words)
			}
			rows[words] = append(rows[words], []string{"`ballast.argoproj.io" + name + "`", v.Comment.Text()})
		}
	}
	var b strings.Builder
	b.WriteString("# Annotations\n\nValues that people write are quoted in YAML: `\"true\"`, `\"off\"`.\n")
	for _, title := range titles {
		b.WriteString("\n" + title + "\n\n" + table([]string{"annotation", "meaning"}, rows[title]))
	}
	return b.String()
}

// constants are a type's, each with its comment, in their order.
func constants(t *testing.T, file, of string) (rows [][]string) {
	for _, d := range parsed(t, file).Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if named, ok := v.Type.(*ast.Ident); ok && named.Name == of {
				value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, []string{"`" + value + "`", v.Comment.Text()})
			}
		}
	}
	return rows
}

// reasonsPage is the closed sets of reasons: of an answer, and of a move.
func reasonsPage(t *testing.T) string {
	return "# Reasons of the webhook's answers\n\nMetric label, log value and audit annotation. The set is closed.\n\n" +
		table([]string{"reason", "meaning"}, constants(t, "planner/plan/view.go", "Reason")) +
		"\n# Reasons of moves\n\nWhy a cluster would move: of `ballast plan`, as a table, as JSON (`candidate.moves[].reason`) and as a page. The set is closed.\n\n" +
		table([]string{"reason", "meaning"}, constants(t, "planner/cycle/outcome/movereason.go", "MoveReason"))
}

// described is what a registry is told of a metric.
type described struct{ metrics *[]prometheus.Collector }

func (d described) Register(c prometheus.Collector) error {
	*d.metrics = append(*d.metrics, c)
	return nil
}
func (d described) MustRegister(cs ...prometheus.Collector) { *d.metrics = append(*d.metrics, cs...) }
func (d described) Unregister(prometheus.Collector) bool    { return false }

// metricsPage is every metric of the planner and the webhook.
func metricsPage(t *testing.T) string {
	desc := regexp.MustCompile(`fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)".*variableLabels: \{([^}]*)\}`)
	var b strings.Builder
	b.WriteString("# Metrics\n\nNames and labels are a contract; help texts are not. Beside these, ports show Go's and controller-runtime's own.\n" +
		"Those of ballast_cluster show nothing without telemetry.clusters in the configuration. The planner serves plain HTTP alone and has no " +
		"certificate; the webhook's end is ballast_webhook_certificate_expiry_timestamp_seconds.\n")
	for _, part := range []struct {
		title    string
		register func(prometheus.Registerer)
	}{
		{"Planner", func(r prometheus.Registerer) { telemetry.NewMetrics(r) }},
		{"Webhook", func(r prometheus.Registerer) { webhook.NewMetrics(r); source.NewMetrics(r) }},
		{"ballast watch", func(r prometheus.Registerer) { watch.NewFigures(r) }},
	} {
		var all []prometheus.Collector
		part.register(described{&all})
		var rows [][]string
		for _, c := range all {
			found := make(chan *prometheus.Desc, 64)
			c.Describe(found)
			close(found)
			for d := range found {
				m := desc.FindStringSubmatch(d.String())
				if m == nil {
					t.Fatalf("%s is not understood", d)
				}
				help, err := strconv.Unquote(`"` + m[2] + `"`)
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, []string{"`" + m[1] + "`", m[3], help})
			}
		}
		slices.SortFunc(rows, func(x, y []string) int { return strings.Compare(x[0], y[0]) })
		b.WriteString("\n## " + part.title + "\n\n" + table([]string{"metric", "labels", "help"}, rows))
	}
	return b.String()
}

// webhooksPage is what the API server is told to ask, as it ships.
func webhooksPage(t *testing.T) string {
	text, err := os.ReadFile("../../manifests/base/webhook-configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c admissionregistration.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, w := range c.Webhooks {
		var asked []string
		for _, r := range w.Rules {
			var operations []string
			for _, o := range r.Operations {
				operations = append(operations, string(o))
			}
			asked = append(asked, strings.Join(operations, ", ")+" of "+strings.Join(r.Resources, ", "))
		}
		rows = append(rows, []string{"`" + w.Name + "`", "`" + *w.ClientConfig.Service.Path + "`", strings.Join(asked, "; "), string(*w.FailurePolicy), fmt.Sprint(*w.TimeoutSeconds, " s")})
	}
	return "# Webhooks\n\nAs manifests/base ships them, in the namespace of Argo CD alone. The names stand in the API server's audit log.\n\n" +
		table([]string{"webhook", "path", "asked about", "failurePolicy", "timeout"}, rows)
}
