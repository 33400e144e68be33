package promql

import (
	"strconv"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

var prod = plan.Shard{UID: "u-1", ID: "prod-eu", Namespace: "argocd", Name: "prod", Server: "https://prod:6443"}

func TestRender(t *testing.T) {
	tests := map[string]struct {
		query   string
		shard   plan.Shard
		want    string
		wantErr string
	}{
		"our spelling":      {`x{a="{{ .id }}",b="{{.uid}}",c="{{.namespace}}",d="{{.name}}",e="{{.server}}"}`, prod, `x{a="prod-eu",b="u-1",c="argocd",d="prod",e="https://prod:6443"}`, ""},
		"the seed's":        {`x{a="{{ .shardID }}",b="{{.shardUID}}",c="{{.shardNamespace}}",d="{{.shardName}}",e="{{.shardServer}}"}`, prod, `x{a="prod-eu",b="u-1",c="argocd",d="prod",e="https://prod:6443"}`, ""},
		"sprig":             {`x{a="{{ .server | trimPrefix "https://" | upper }}"}`, prod, `x{a="PROD:6443"}`, ""},
		"a quote stays in":  {`x{a="{{ .name }}"}`, plan.Shard{Name: `p"} or vector(1e9) or x{a="`}, `x{a="p\x22} or vector(1e9) or x{a=\x22"}`, ""},
		"single ones too":   {`x{a='{{ .name }}'}`, plan.Shard{Name: `p'`}, `x{a='p\x27'}`, ""},
		"a backslash":       {`x{a="{{ .name }}"}`, plan.Shard{Name: `p\`}, `x{a="p\\"}`, ""},
		"a line end":        {`x{a="{{ .name }}"}`, plan.Shard{Name: "p\n"}, `x{a="p\x0a"}`, ""},
		"a key that is not": {`x{a="{{ .cluster }}"}`, prod, "", `map has no entry for key "cluster"`},
		"the environment":   {`{{ env "HOME" }}`, prod, "", `the function "env" may not be used in a query: write the value out`},
		"expandenv":         {`{{ expandenv "$HOME" }}`, prod, "", `the function "expandenv" may not be used in a query: write the value out`},
		"the network":       {`{{ getHostByName "localhost" }}`, prod, "", `the function "getHostByName" may not be used in a query: write the value out`},
		"the clock":         {`{{ now }}`, prod, "", `the function "now" may not be used in a query: use PromQL's own time()`},
		"randomness":        {`{{ genCA "a" 1 }}`, prod, "", `the function "genCA" may not be used in a query: write the value out`},
		"no template":       {`{{ .id `, prod, "", "parsing the query template"},
		"too long":          {`{{ repeat 40000 "x" }}{{ repeat 40000 "x" }}`, prod, "", "the query is longer than 64 KiB"},
		"far too long":      {`{{ repeat 4000000000 "x" }}`, prod, "", "the query is longer than 64 KiB"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Render(test.query, test.shard)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoFunctionReadsHostClockOrChance(t *testing.T) {
	hermetic, all := sprig.HermeticTxtFuncMap(), sprig.TxtFuncMap()
	for name := range functions(&account{}) {
		if _, ok := hermetic[name]; !ok && all[name] != nil {
			t.Errorf("%s is not repeatable, says sprig itself", name)
		}
	}
	for name := range all {
		if _, ok := hermetic[name]; !ok {
			_, err := ParseTemplate("{{ " + name + " }}")
			if err == nil || !strings.Contains(err.Error(), strconv.Quote(name)+" may not be used in a query: ") {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

func TestRenderFleet(t *testing.T) {
	sts := plan.Target{Kind: plan.StatefulSet, Name: "argocd-application-controller"}
	tests := map[string]struct {
		query, pods, want string
	}{
		"a StatefulSet":  {"x{ {{.pods}} }", PodsMatcher("pod", sts), `x{ pod=~"argocd-application-controller-[0-9]+" }`},
		"a Deployment":   {"x{ {{.pods}},a!=\"\"}", PodsMatcher("kubernetes_pod_name", plan.Target{Kind: plan.Deployment, Name: "ctl"}), `x{ kubernetes_pod_name=~"ctl-[a-z0-9]+-[a-z0-9]{5}",a!=""}`},
		"a dotted name":  {"x{ {{.pods}} }", PodsMatcher("pod", plan.Target{Name: "my.argocd"}), `x{ pod=~"my\\.argocd-[0-9]+" }`},
		"without a hole": {"vector(1)", "", "vector(1)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := RenderFleet(test.query, FleetVars{Pods: test.pods})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := RenderFleet("{{ .server }}", FleetVars{}); err == nil || !strings.Contains(err.Error(), `no entry for key "server"`) {
		t.Errorf("error %v", err)
	}
}

// staysInside checks that a value fills one PromQL string and means itself there: PromQL and Go unquote alike.
func staysInside(t interface{ Fatalf(string, ...any) }, value string) {
	for _, quote := range []string{`"`, `'`, "`"} {
		got, err := Render(quote+"{{ .server }}"+quote, plan.Shard{Server: value})
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		inside := got[1 : len(got)-1]
		if strings.ContainsAny(inside, "\"'`\n") {
			t.Fatalf("%q breaks out of %s: %s", value, quote, got)
		}
		if quote == "`" {
			continue
		}
		if back, err := strconv.Unquote(`"` + inside + `"`); err != nil || back != strings.ToValidUTF8(value, "�") && strings.ToValidUTF8(value, "") == value {
			t.Fatalf("%q reads as %q, %v", value, back, err)
		}
	}
}

func TestNoValueBreaksOutOfItsString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		staysInside(t, rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\\\"'`\n\x00{}")))).Draw(t, "value"))
	})
}

func FuzzRender(f *testing.F) {
	for _, query := range []string{`x{a="{{ .server }}"}`, `{{ .id | quote }}`, `{{ with .name }}{{ . }}{{ end }}`, "{{ .pods }}", "{{", `{{ repeat 3 .uid }}`} {
		f.Add(query, `https://a"\`+"`'\n")
	}
	f.Fuzz(func(t *testing.T, query, server string) {
		staysInside(t, server)
		shard := plan.Shard{ID: server, Server: server}
		a, errA := Render(query, shard)
		b, errB := Render(query, shard)
		if a != b || (errA == nil) != (errB == nil) {
			t.Errorf("one query renders as %q and as %q", a, b)
		}
		if len(a) > maxQuery {
			t.Errorf("%d bytes", len(a))
		}
	})
}

// Whoever may write the configuration hangs nobody by it: the planner renders what it reads before it has taken it over.
func TestNoTemplateGoesOnWithoutEnd(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	doubled := func(first, step string) string {
		return "{{ $a := " + first + " }}" + strings.Repeat("{{ $a = "+step+" }}", 40) + "{{ $a }}"
	}
	for name, tc := range map[string]struct{ query, want string }{
		"range over a number":      {`{{ range 9223372036854775807 }}{{ end }}x`, "range, define, block and template may go on without end"},
		"range within if":          {`{{ if .id }}a{{ else }}{{ range 9 }}{{ end }}{{ end }}`, "range, define, block and template may go on"},
		"range within with":        {`{{ with .id }}{{ range 9 }}{{ end }}{{ end }}`, "range, define, block and template may go on"},
		"a template of itself":     {`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, "range, define, block and template may go on"},
		"a block":                  {`{{ block "a" . }}x{{ end }}`, "range, define, block and template may go on"},
		"replace":                  {`{{ replace "" .id .id }}`, errTooLong.Error()},
		"regexReplaceAll":          {`{{ regexReplaceAll "x" .id (repeat 30 "$0$0$0$0") }}`, errTooManySteps.Error()},
		"regexReplaceAllLiteral":   {`{{ regexReplaceAllLiteral "x" .id .id }}`, errTooManySteps.Error()},
		"a pattern that is none":   {`{{ regexReplaceAll "(" .id "" }}`, "missing closing"},
		"cat of itself":            {doubled(".id", "cat $a $a"), errTooLong.Error()},
		"quotes of quotes":         {doubled(".id", "quote $a"), errTooMuch.Error()},
		"a list of itself":         {doubled("list 1", "list $a $a"), errNested.Error()},
		"a list in a dict":         {`{{ dict "a" (list 1) }}`, errNested.Error()},
		"a dict in itself":         {`{{ $d := dict "a" 1 }}{{ $d = set $d "b" $d }}{{ $d }}`, `the function "set" may not be used in a query: use list or dict with all of its elements`},
		"a list beside itself":     {doubled("list 1 2", "concat $a $a"), `the function "concat" may not be used in a query: use list`},
		"what is split":            {`{{ splitList "" .id }}`, errTooManyElements.Error()},
		"what people write":        {`{{ .server | replace "https://" "" | regexReplaceAll "[.].*" }}`, "wrong number of args"},
		"functions that are shown": {`{{ if has .name (list "a" "prod") }}{{ .name | upper | trunc 3 }}{{ end }}{{ get (dict "k" "1") "k" }}{{ regexReplaceAll "p(.)" .name "$1" }}{{ replace "o" "0" .name }}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(tc.query, plan.Shard{ID: long, Name: "prod", Server: "https://a.example"})
			switch {
			case tc.want == "" && (err != nil || got != "PRO1"+"rod"+"pr0d"):
				t.Errorf("got %q, %v", got, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %.300v, want %q", err, tc.want)
			}
		})
	}
}

// A panic in a template's execution is an error of its query, and the next query is rendered: both are asked for beside others.
func TestAPanicOfATemplateIsAnErrorOfItsQuery(t *testing.T) {
	budget := NewBudget()
	const want = "rendering the query of cluster \"a\": the template ended in a panic of type runtime.errorString: write it in another way"
	if got, err := budget.Render(&Template{spent: &account{}}, plan.Shard{ID: "a"}); got != "" || err == nil || err.Error() != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	good, err := ParseTemplate(`up{cluster="{{.name}}"}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := budget.Render(good, plan.Shard{Name: "a"}); err != nil || got != `up{cluster="a"}` {
		t.Errorf("%q, %v", got, err)
	}
}
