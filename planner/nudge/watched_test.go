package nudge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// asked are namespaces that the cases ask for.
var asked = []string{"argocd", "app-team-one", "app-team-two", "team-1", "team-a", "kube-system", "not-allowed", "also-not-allowed-here", "x"}

func TestWatched(t *testing.T) {
	filler, slow := "/^"+strings.Repeat("(?!a)", 200_000)+"x/", "/^((([a-z]|-)*)*)*_/"
	cases := map[string]struct {
		setting string
		want    []string // of asked
		open    bool
		unread  []string
	}{
		"nothing is set": {setting: "", want: []string{"argocd"}},
		"names, with spaces as in Argo CD's documentation": {setting: "app-team-one, app-team-two", want: []string{"argocd", "app-team-one", "app-team-two"}},
		"an empty entry allows nothing":                    {setting: " , ,x,", want: []string{"argocd", "x"}},
		"all":                                              {setting: "*", want: asked, open: true},
		"a beginning":                                      {setting: "app-team-*", want: []string{"argocd", "app-team-one", "app-team-two"}, open: true},
		"an end and a middle":                              {setting: "*-system,*not*here", want: []string{"argocd", "kube-system", "also-not-allowed-here"}, open: true},
		"two stars are one":                                {setting: "**-one", want: []string{"argocd", "app-team-one"}, open: true},
		"one character":                                    {setting: "team-?", want: []string{"argocd", "team-1", "team-a"}, open: true},
		"one of a range":                                   {setting: "team-[0-9]", want: []string{"argocd", "team-1"}, open: true},
		"none of a range":                                  {setting: "team-[!0-9]", want: []string{"argocd", "team-a"}, open: true},
		"one of a list":                                    {setting: "team-[xa]", want: []string{"argocd", "team-a"}, open: true},
		"none of a list":                                   {setting: "team-[!xa]", want: []string{"argocd", "team-1"}, open: true},
		"braces are lost at the comma":                     {setting: "team-{a,1}", want: []string{"argocd", "team-a"}, open: true},
		"an escaped character is itself":                   {setting: `te\am-a`, want: []string{"argocd", "team-a"}, open: true},
		"an escaped star is no namespace":                  {setting: `team-\*`, want: []string{"argocd"}, open: true},
		"a set of two ranges is refused by Argo CD, too":   {setting: "team-[a-z0-9]", want: []string{"argocd"}},
		"a set that is not closed is refused, too":         {setting: "team-[a,team-[a-", want: []string{"argocd"}},
		"an empty set is refused, too":                     {setting: "team-[],team-[!]", want: []string{"argocd"}},
		"a range from high to low is refused, too":         {setting: "team-[9-0]", want: []string{"argocd"}},
		"an expression is found anywhere":                  {setting: "/team/", want: []string{"argocd", "app-team-one", "app-team-two", "team-1", "team-a"}, open: true},
		"an expression that is anchored":                   {setting: "/^team-[a-z0-9]+$/", want: []string{"argocd", "team-1", "team-a"}, open: true},
		"all but some, as in Argo CD's documentation":      {setting: "/^((?!not-allowed).)*$/", want: []string{"argocd", "app-team-one", "app-team-two", "team-1", "team-a", "kube-system", "x"}, open: true},
		"the same without a capture, and not empty":        {setting: "/^(?:(?!not-allowed|team).)+$/", want: []string{"argocd", "kube-system", "x"}, open: true},
		"all but some beginnings":                          {setting: "/^(?!kube-)(?!app-|also).*$/", want: []string{"argocd", "team-1", "team-a", "not-allowed", "x"}, open: true},
		"what has to follow":                               {setting: "/^(?=.*-one)app/", want: []string{"argocd", "app-team-one"}, open: true},
		"a set with a parenthesis in a lookahead":          {setting: `/^(?!t[)e]am|x\)|x).*m-/`, want: []string{"argocd", "app-team-one", "app-team-two"}, open: true},
		"a lookahead in the middle":                        {setting: "x,/team-(?!one)/", want: []string{"argocd", "app-team-two", "team-1", "team-a", "x"}, open: true},
		"a lookahead in one branch only":                   {setting: "/^(?!a)t.*1|c/", want: []string{"argocd", "team-1"}, open: true},
		"what stands before":                               {setting: "/(?<=app-)team|^(.).*\\1$/", want: []string{"argocd", "app-team-one", "app-team-two"}, open: true},
		"an expression that nobody reads is named":         {setting: "/team(/", want: []string{"argocd"}, unread: []string{"/team(/"}},
		"as many expressions as are read":                  {setting: strings.Repeat("/x/,", maxExpressions-1) + "/team-a/", want: []string{"argocd", "team-a", "x"}, open: true},
		"the first beyond them is named":                   {setting: strings.Repeat("/x/,", maxExpressions) + "/team-a/,/team/", want: []string{"argocd", "x"}, open: true, unread: []string{"/team-a/"}},
		"an expression that fills the setting is named":    {setting: filler, want: []string{"argocd"}, unread: []string{filler}},
		"one that takes years is given up":                 {setting: slow + ",team-a", want: []string{"argocd", "team-a"}, unread: []string{slow}},
		"a slash alone is no expression":                   {setting: "/", want: []string{"argocd"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := Watch("argocd", c.setting)
			var got, unread []string
			for _, namespace := range asked {
				if w.Has(namespace) {
					got = append(got, namespace)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
			for _, e := range failed(w.expressions) {
				unread = append(unread, e.text)
			}
			if diff := cmp.Diff(c.unread, unread); diff != "" {
				t.Errorf("unread (-want +got):\n%s", diff)
			}
			if w.Open() != c.open {
				t.Errorf("Open() = %v", w.Open())
			}
		})
	}
}

// TestAnExpressionThatIsNotReadSaysWhy, and shows little of one that is long.
func TestAnExpressionThatIsNotReadSaysWhy(t *testing.T) {
	said := func(text, why string) []ListingProblem {
		return []ListingProblem{{PatternUnread, "no Application is looked for in the namespaces of " + text + " (Argo CD's setting application.namespaces): " + why + "; name them, or use globs"}}
	}
	for name, tc := range map[string]struct {
		setting string
		want    []ListingProblem
	}{
		"too long":   {"/^" + strings.Repeat("a", maxExpression) + "/", said("/^"+strings.Repeat("a", 198)+"…", "it has more than 4 KiB")},
		"too many":   {strings.Repeat("/x/,", maxExpressions+9), said("/x/", "there are 32 others before it (put several into one, as in /^(?:a|b)$/)")},
		"too slow":   {"/^((a|a)*)*_/", said("/^((a|a)*)*_/", "it takes too long to match")},
		"malformed":  {"/a(/", said("/a(/", "error parsing regexp: missing closing ) in `a(`")},
		"well":       {"/a/", nil},
		"no UTF-8":   {"/\xff(/", said("/?(/", "error parsing regexp: missing closing ) in `?(`")},
		"of no form": {"/(?z)a/", said("/(?z)a/", "error parsing regexp: unrecognized grouping construct: (?z in `(?z)a`")},
	} {
		w := Watch("argocd", tc.setting)
		w.Has(strings.Repeat("a", 63))
		if diff := cmp.Diff(tc.want, w.problems()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatNoNamespaceCanBeCalledKeepsNoListing: the API's client refuses such a name, and with it the whole listing ended.
func TestWhatNoNamespaceCanBeCalledKeepsNoListing(t *testing.T) {
	w := Watch("argocd", "team-a,x/y,/^team$,..,a%2fb,"+strings.Repeat("n", 64))
	if diff := cmp.Diff([]string{"argocd", "team-a"}, w.Named()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := []ListingProblem{{PatternUnread, "no namespace can be called x/y (5 such in Argo CD's setting application.namespaces): " +
		"it allows nothing, there neither; write the name of one, a glob or a /regular expression/"}}
	if diff := cmp.Diff(want, w.problems()); diff != "" || w.Open() {
		t.Errorf("open: %t; problems (-want +got):\n%s", w.Open(), diff)
	}
}

// TestManyNamesAreLookedForInOneLook: asked for one by one, 61,000 took longer than a listing may.
func TestManyNamesAreLookedForInOneLook(t *testing.T) {
	for n, open := range map[int]bool{manyNames: false, manyNames + 1: true, maxNames + 9: true} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("n%04d", i))
		}
		w := Watch("argocd", strings.Join(names, ","))
		if last := names[n-1]; w.Open() != open || len(w.Named()) != 1+min(n, maxNames) || !w.Has(last) || w.Has("n9999") {
			t.Errorf("%d names: open %t, %d by name, the last allowed: %t", n, w.Open(), len(w.Named()), w.Has(last))
		}
	}
	if got := firstOf([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e and 2 more" {
		t.Errorf("told as %q", got)
	}
}

func TestNamedNamespacesAreSortedAfterArgoCDsOwn(t *testing.T) {
	w := Watch("argocd", "zoo,argocd,ant,a*,zoo")
	if diff := cmp.Diff([]string{"argocd", "ant", "zoo"}, w.Named()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// namespaces are names as Kubernetes has them, of few letters so that patterns meet them.
func namespaces() *rapid.Generator[string] { return rapid.StringMatching(`[ab](-?[ab01]){0,6}`) }

// patterns are globs of the dialect, with the regular expression that says the same in another engine.
func patterns() *rapid.Generator[[2]string] {
	part := rapid.SampledFrom([][2]string{
		{"*", ".*"}, {"**", ".*"}, {"?", "."}, {"a", "a"}, {"b", "b"}, {"-", "-"}, {"[ab]", "[ab]"}, {"[!ab]", "[^ab]"},
		{"[0-9]", "[0-9]"}, {"[!a-b]", "[^a-b]"}, {"{a}", "a"}, {`\b`, "b"},
	})
	return rapid.Custom(func(t *rapid.T) [2]string {
		var glob, expression strings.Builder
		for _, p := range rapid.SliceOfN(part, 1, 7).Draw(t, "parts") {
			glob.WriteString(p[0])
			expression.WriteString(p[1])
		}
		return [2]string{glob.String(), "^(?:" + expression.String() + ")$"}
	})
}

func TestGlobsMatchWhatTheirExpressionsMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, namespace := patterns().Draw(t, "pattern"), namespaces().Draw(t, "namespace")
		g, ok := parseGlob(p[0])
		if !ok {
			t.Fatalf("%q is refused", p[0])
		}
		if want := regexp.MustCompile(p[1]).MatchString(namespace); g.match(namespace) != want {
			t.Errorf("%q on %q: %v, want %v", p[0], namespace, !want, want)
		}
	})
}

func TestLookaheadsLeaveOutWhatTheyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out, namespace := namespaces().Draw(t, "left out"), namespaces().Draw(t, "namespace")
		anywhere := Watch("argocd", "/^((?!"+out+").)*$/")
		if got, want := anywhere.Has(namespace), !strings.Contains(namespace, out); got != want {
			t.Errorf("without %q anywhere: %q is %v", out, namespace, got)
		}
		begin := Watch("argocd", "/^(?!"+out+").*$/")
		if got, want := begin.Has(namespace), !strings.HasPrefix(namespace, out); got != want {
			t.Errorf("without %q at the beginning: %q is %v", out, namespace, got)
		}
		exact := Watch("argocd", "/^(?!"+out+"$).*$/")
		if got, want := exact.Has(namespace), namespace != out; got != want {
			t.Errorf("without exactly %q: %q is %v", out, namespace, got)
		}
	})
}

func TestEachEntryAllowsWhatItAllowsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.OneOf(namespaces(), rapid.Map(patterns(), func(p [2]string) string { return p[0] }), rapid.Map(namespaces(), func(s string) string { return "/" + s + "/" }))
		entries := rapid.SliceOfN(entry, 0, 4).Draw(t, "entries")
		namespace := namespaces().Draw(t, "namespace")
		all := Watch("argocd", strings.Join(entries, " ,"))
		want := slices.ContainsFunc(entries, func(e string) bool {
			w := Watch("argocd", e)
			return w.Has(namespace)
		})
		if got := all.Has(namespace); got != want {
			t.Errorf("%q on %q: %v, want %v", entries, namespace, got, want)
		}
		if !all.Has("argocd") {
			t.Error("Argo CD's own namespace is left out")
		}
		if !all.Open() && slices.Contains(all.Named(), namespace) != all.Has(namespace) {
			t.Errorf("without patterns Named() is all, but %q is in one only", namespace)
		}
	})
}

func FuzzWatch(f *testing.F) {
	for _, seed := range []string{"", "*", "a,b", "app-team-*", "/^((?!x).)*$/", "/^(?!a)(?=b)[)]c/", "[!a-z]", "[a-", `\`, "{", "/(/", "/", "//", "a*a*a*a*b", "\xff*", "/^(?!a)*b/"} {
		f.Add(seed, "argocd")
	}
	f.Fuzz(func(t *testing.T, setting, namespace string) {
		began := time.Now()
		w := Watch("argocd", setting)
		w.Has(namespace)
		if !w.Has("argocd") {
			t.Error("Argo CD's own namespace is left out")
		}
		if took := time.Since(began); took > maxExpressions*time.Second {
			t.Errorf("two answers took %v", took)
		}
		for _, name := range w.Named() {
			if !w.Has(name) {
				t.Errorf("%q is named, but not allowed", name)
			}
		}
	})
}
