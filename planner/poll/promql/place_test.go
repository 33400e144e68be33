package promql

import (
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"text/template"

	"pgregory.net/rapid"

	"ballast/planner/plan"
)

// calls are calls of every function with V, the text of a cluster, and N, a small number.
const calls = `trim V|trimPrefix "a" V|trimSuffix "x22" V|upper V|lower V|title V|untitle V|swapcase V|camelcase V|kebabcase V|
	snakecase V|trunc N V|substr 0 N V|substr N 9 V|abbrev N V|initials V|nospace V|quote V|squote V|cat V V|contains "a" V|
	hasPrefix "a" V|hasSuffix "a" V|base V|dir V|ext V|clean V|isAbs V|(urlParse V).path|(urlParse V).fragment|(urlParse V).host|
	(urlParse V).query|(urlParse V).opaque|get (urlParse V) "userinfo"|regexQuoteMeta V|b64enc V|b64dec V|b32enc V|b32dec V|
	b64dec (b64enc V)|sha1sum V|sha256sum V|sha512sum V|adler32sum V|default "a" V|empty V|coalesce "" V|ternary V "a" true|
	fail V|toString V|int V|int64 V|float64 V|atoi V|add V N|add1 V|sub V N|mul V N|div V 9|mod V 9|max V N|min V N|floor V|
	ceil V|round V N|print V N|println V|urlquery V|printf "%.3s" V|printf "%c" (atoi V)|printf "%c" (index V N)|
	printf "%q" V|printf "%x" V|printf "%#q" V|repeat N V|replace "x22" "" V|replace "a" V "aba"|trimAll "x2" V|
	list V V|dict "a" V|dict V "a"|splitList "x" V \| first|splitList "2" V \| last|join V (list "a" "b")|
	join "" (splitList "x22" V)|first (list V)|last (list V)|has V (list "a")|hasKey (dict "a" 1) V|get (dict "k" V) "k"|
	regexMatch "a" V|regexFind "^.{N}" V|regexReplaceAll "[0-9a-z]" V ""|regexReplaceAllLiteral "x.*" V ""|
	regexReplaceAll "(.).*" V "$1"|mustRegexMatch "a" V|mustRegexFind ".$" V|mustRegexReplaceAll "[^\\\\]" V ""|
	mustRegexReplaceAllLiteral "[x2]" V ""|and V V|or V ""|not V|eq V "a"|ne V "a"|lt V "a"|le V "a"|gt V "a"|ge V "a"|len V|
	index V N|slice V 0 N|slice V N|. `

// hostile are texts of whoever names a cluster: a way out at each cut, and what functions decode.
func hostile() []string {
	const out, between = `"}) or vector(1e12) #`, `p"} or vector(1) or x{a="`
	texts := []string{
		out, `\`, `"`, `'`, "`", `aa"`, `aaa\`, `a.`, "34", "92", "39", `x22"`, `22\`, "a\n", `https://a/%22%7D)%20or%20vector(1e12)%20%23`,
		`https://a/%5C`, `https://a/#%22`, `a:%22`, `https://%22:%5C@a/?%22`, `https://a/?"`, `/"/`, `a/b.\`, `a b"`,
		base64.StdEncoding.EncodeToString([]byte(out)), base64.StdEncoding.EncodeToString([]byte(`\`)),
		base32.StdEncoding.EncodeToString([]byte(out)), base32.StdEncoding.EncodeToString([]byte(`\`)),
		between, base64.StdEncoding.EncodeToString([]byte(between)), base32.StdEncoding.EncodeToString([]byte(between)),
		"https://a/" + url.PathEscape(between), "https://a/#" + url.PathEscape(between),
	}
	for at := range 10 {
		texts = append(texts, strings.Repeat("a", at)+out)
	}
	return texts
}

// written are the calls with a hole and a number.
func written(value string, n int) []string {
	var all []string
	for call := range strings.SplitSeq(strings.ReplaceAll(calls, `\|`, "\x00"), "|") {
		call = strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(call, "\x00", "|")), "V", value)
		all = append(all, strings.ReplaceAll(call, "N", fmt.Sprint(n)))
	}
	return all
}

// unescaped counts the quotes of PromQL that are not escaped.
func unescaped(query string) (count int) {
	for i := 0; i < len(query); i++ {
		switch query[i] {
		case '\\':
			i++
		case '"':
			count++
		}
	}
	return count
}

// Whatever a function cuts or decodes of a cluster's name or server, it stays in the string that the template has it in.
func TestNoFunctionLetsAValueOut(t *testing.T) {
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(functions(&account{}))), fromGo[:]) {
		if !strings.Contains(calls, name+" ") {
			t.Errorf("%s is not called", name)
		}
	}
	seen := map[string]bool{}
	for n := range 10 {
		for _, call := range slices.Concat(written(".name", n), written(".server", n)) {
			if seen[call] {
				continue
			}
			seen[call] = true
			staysWithin(t, `sum(x{a="{{ `+call+` }}",b="{{ .id }}"})`)
			if !strings.Contains(call, "quote") && !strings.Contains(call, "q\"") { // its own quotes would be within the format's
				staysWithin(t, `sum(x{ {{ printf "a=\"%v\"" (`+call+`) }},b="{{ .id }}"})`)
			}
		}
	}
}

// staysWithin fails where a query of two strings has another number of quotes.
func staysWithin(t *testing.T, query string) {
	parsed, err := ParseTemplate(query)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	for _, value := range hostile() {
		got, err := parsed.Render(plan.Shard{ID: `} or vector(1) #`, Name: value, Server: value})
		if err == nil && unescaped(got) != 4 {
			t.Errorf("%s of %q gives %s", query, value, got)
		}
	}
}

// What people wrote before goes on: a value that holds nothing of PromQL is what it was.
func TestWhatHostileValuesBecome(t *testing.T) {
	for name, tc := range map[string]struct{ query, value, want string }{
		"a path is decoded":         {`"{{ (urlParse .server).path }}"`, `https://a/%22%7D)%20or%20vector(1)`, `"/\x22}) or vector(1)"`},
		"so is a fragment":          {`"{{ (urlParse .server).fragment }}"`, `https://a#%5C`, `"\\"`},
		"base64":                    {`"{{ b64dec .name }}"`, "InA=", `"\x22p"`},
		"base32":                    {`'{{ b32dec .name }}'`, base32.StdEncoding.EncodeToString([]byte(`it's`)), `'it\x27s'`},
		"a cut before a quote":      {`"{{ trunc 2 .name }}"`, `pa"b`, `"pa"`},
		"a cut behind one":          {`"{{ trunc 5 .name }}"`, `p"ab`, `"p\x22"`},
		"an expression":             {"`{{ regexQuoteMeta .name }}`", "a.b", "`a\\.b`"},
		"a string of a format":      {`x{ {{ printf "a=%q,b=\"%s\"" .id .name }} }`, "p", `x{ a="p",b="p" }`},
		"a backslash of a template": {`"\\{{ .name }}"`, "p", `"\\p"`},
		"in a comment":              {"# \"{{ .name }}\nx", `p"`, "# \"p\\x22\nx"},
		"behind one":                {"# it's\nx{a=\"{{ .name }}\"}", `p"`, "# it's\nx{a=\"p\\x22\"}"},
		"a list":                    {`"{{ list .name 1 }}"`, `p'`, `"[p\x27 1]"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(tc.query, plan.Shard{ID: tc.value, Name: tc.value, Server: tc.value})
			if err != nil || got != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestWhatLeavesItsStringIsRefused(t *testing.T) {
	for query, value := range map[string]string{
		`"{{ trunc 1 .name }}"`:                            `"`,
		`"{{ slice .name 0 2 }}{{ .id }}"`:                 `p\`,
		`"{{ if .name }}{{ substr 0 1 .name }}{{ end }}"`:  `"`,
		`"{{ with .name }}{{ trunc 1 . }}{{ end }}"`:       `"`,
		`"{{ if 0 }}{{ else }}{{ quote .name }}{{ end }}"`: "p",
		`"{{ regexQuoteMeta .name | trunc 2 }}"`:           "a.",
		`'{{ squote .name }}'`:                             "p",
		"`{{ printf \"%#q\" .name }}`":                     "p",
		`"\{{ trunc 0 .name }}"`:                           "p",
		`{{ quote .name | trunc 2 }}`:                      "prod",
		`{{ .name }}`:                                      "a # b",
		"# {{ println .name }}":                            "p",
	} {
		t.Run(query, func(t *testing.T) {
			got, err := Render(query, plan.Shard{ID: value, Name: value})
			var told template.ExecError
			if !errors.As(err, &told) || !strings.Contains(err.Error(), errLeaves.Error()) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

// Functions are put behind each other.
func TestNoPipeLetsAValueOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		call := ".name"
		for range rapid.IntRange(1, 4).Draw(t, "functions") {
			all := written("("+call+")", rapid.IntRange(0, 9).Draw(t, "n"))
			call = all[rapid.IntRange(0, len(all)-1).Draw(t, "function")]
		}
		value := rapid.SampledFrom(hostile()).Draw(t, "value")
		query := `sum(x{a="{{ ` + call + ` }}",b="{{ .id }}"})`
		got, err := Render(query, plan.Shard{ID: `} or vector(1) #`, Name: value})
		if err == nil && unescaped(got) != 4 {
			t.Fatalf("%s of %q gives %s", call, value, got)
		}
	})
}

func FuzzPlace(f *testing.F) {
	for _, call := range written(".name", 2) {
		for _, value := range []string{`"`, `a\`, "https://a/%22#%5C", "IlxcIg=="} {
			f.Add(call, value)
		}
	}
	f.Fuzz(func(t *testing.T, call, value string) {
		if strings.Contains(call, "{{") || strings.Contains(call, "}}") {
			return // it is more than one action
		}
		got, err := Render(`sum(x{a="{{ `+call+` }}",b="{{ .id }}"})`, plan.Shard{ID: value, Name: value, Server: value})
		if err == nil && unescaped(got) != 4 {
			t.Errorf("%s of %q gives %s", call, value, got)
		}
	})
}
