package promql

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/template/parse"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func refused(name, mend string) string {
	return `the function "` + name + `" may not be used in a query: ` + mend
}

// endings are templates that each ended the planner, within seconds and 512 MiB, and what is said of them now.
func endings() map[string]struct{ query, want string } {
	const much = `{{ $x := repeat 65536 "<" }}`
	thousand := "list " + strings.Repeat("$x ", 1000)
	chunked := strings.Repeat("{{ $l = chunk 1000 $l }}{{ $l = concat $l $l }}", 60)
	return map[string]struct{ query, want string }{
		"a dict in itself": {`{{ $b := fromJson "{\"k\":{}}" }}{{ $x := merge (get $b "k") $b }}{{ print $b }}`,
			refused("fromJson", "use list or dict with all of its elements")},
		"a dict in itself, as it is": {
			`{{ $b := dict "k" 1 }}{{ $x := merge $b.k $b }}{{ $b }}`, refused("merge", "use list"),
		},
		"a wide format": {`{{ $x := printf (repeat 3000 "%999999[1]d") 1 }}x`, errVerb.Error()},
		"lists of lists": {
			`{{ $l := list 1 2 }}` + chunked + `{{ $y := print $l }}x`, refused("chunk", "use list or dict"),
		},
		"JSON of a long list": {
			much + `{{ $y := toJson (` + thousand + `) }}x`, refused("toJson", "use quote, or urlquery"),
		},
		"a long list": {much + `{{ $y := ` + thousand + `}}x`, errTooMuch.Error()},
		"HTML of a long list": {
			much + `{{ $y := html (print (` + thousand + `)) }}x`, refused("html", "use quote, or urlquery"),
		},
		"a long list, many times": {much + `{{ $y := print (` + thousand + `) }}x`, errTooMuch.Error()},
		"text, many times": {
			much + `{{ $y := print ` + strings.Repeat("$x ", 4000) + `}}x`, errTooMuch.Error(),
		},
		"a large expression": {
			`{{ $x := regexMatch (repeat 3500 ".{0,900}") "a" }}x`, "a regular expression has more than 256 bytes",
		},
		"a short one that is large": {`{{ $x := regexMatch ".{0,900}.{0,900}" "a" }}x`, errTooManySteps.Error()},
		"a long search": {
			`{{ $x := regexMatch ".{0,900}" (repeat 65536 "a") }}x`, errTooManySteps.Error(),
		},
		"many searches": {
			strings.Repeat(`{{ $x := regexMatch ".{0,400}b" (repeat 999 "a") }}`, 200) + "x", errTooManySteps.Error(),
		},
		"a search from each letter on": {
			`{{ $x := regexReplaceAll "a.*b|a" (repeat 9999 "a") "" }}x`, errTooManySteps.Error(),
		},
		"a cutset as long as the text": {`{{ $x := repeat 9999 "ä" }}{{ $y := trimAll $x $x }}x`, errTooMuch.Error()},
		"a template of great length":   {strings.Repeat("x", maxTemplate+1), errLongTemplate.Error()},
		"functions without end": {
			`{{ $x := repeat 65536 "x" }}` + strings.Repeat(`{{ $y := contains "y" $x }}`, 500), errTooMuch.Error(),
		},
		"parentheses": {
			"{{ " + strings.Repeat("(", 8000) + "1" + strings.Repeat(")", 8000) + " }}", "<nil>",
		},
		"a failure as long as it likes":  {`{{ fail (repeat 60000 "x") }}`, "error calling fail: xxx"},
		"an expression that is unclosed": {`{{ regexMatch (repeat 200 "(") "" }}`, "missing closing )"},
	}
}

// TestNoTemplateEndsThePlanner renders each in a process of its own: nothing recovers from a stack that overflows, or
// from memory that is at its end.
func TestNoTemplateEndsThePlanner(t *testing.T) {
	for name, tc := range endings() {
		t.Run(name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), renderOf+"="+name)
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("the process ended: %v: %.600s", err, out)
			}
			if !strings.Contains(string(out), "says: "+saying(tc.query)) || !strings.Contains(saying(tc.query), tc.want) {
				t.Errorf("it says %.600s, want %q", out, tc.want)
			}
		})
	}
}

func saying(query string) string {
	_, err := Render(query, prod)
	return fmt.Sprint(err)
}

// mostOfRendering is in bytes, with all garbage: 256 KiB of text several times, the template's tree, the functions.
const mostOfRendering = 16 << 20

// TestMain runs the package's tests or, where it is told of a template, is a process that renders it.
func TestMain(m *testing.M) {
	if name := os.Getenv(renderOf); name != "" {
		renderAlone(endings()[name].query)
		return
	}
	os.Exit(m.Run())
}

// renderOf names the case that a process of its own renders.
const renderOf = "BALLAST_TEST_TEMPLATE"

// renderAlone says what comes of a template; the process ends as soon as that takes more than it may.
func renderAlone(query string) {
	debug.SetMaxStack(64 << 20)
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: 5, Max: 5}); err != nil { // seconds; it needs 0.1
		panic(err)
	}
	go func() {
		for heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}; ; time.Sleep(time.Millisecond) {
			if metrics.Read(heap); heap[0].Value.Uint64() > 8*mostOfRendering {
				panic(fmt.Sprint("the heap grows beyond ", heap[0].Value.Uint64()))
			}
		}
	}()
	var said string
	if made := allocated(func() { said = saying(query) }); made > mostOfRendering {
		panic(fmt.Sprintf("it takes %d bytes", made))
	}
	fmt.Println("says:", said)
}

func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestFunctionsThatAreOffered(t *testing.T) {
	const want = "abbrev add add1 adler32sum atoi b32dec b32enc b64dec b64enc base camelcase cat ceil clean coalesce " +
		"contains default dict dir div empty ext fail first float64 floor get has hasKey hasPrefix hasSuffix " +
		"initials int int64 isAbs join kebabcase last list lower max min mod mul mustRegexFind " +
		"mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral nospace print printf println quote " +
		"regexFind regexMatch regexQuoteMeta regexReplaceAll regexReplaceAllLiteral repeat replace round " +
		"sha1sum sha256sum sha512sum snakecase splitList squote sub substr swapcase ternary title toString " +
		"trim trimAll trimPrefix trimSuffix trunc untitle upper urlParse urlquery"
	got := slices.Sorted(maps.Keys(functions(&account{})))
	if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatFunctionsMake(t *testing.T) {
	for query, want := range map[string]string{
		`{{ .server | trimPrefix "https://" | splitList ":" | first }}`:                                 "prod",
		`{{ .server | splitList ":" | last }}`:                                                          "6443",
		`{{ (urlParse .server).host }}`:                                                                 "prod:6443",
		`{{ (urlParse .server).hostname | quote }}`:                                                     `"prod"`,
		`{{ get (dict "prod" "0.5" "dev" 2) .name }}`:                                                   "0.5",
		`{{ get (dict "dev" 2) .name | default 1 }}`:                                                    "1",
		`{{ if hasKey (dict "prod" 1) .name }}yes{{ end }}`:                                             "yes",
		`{{ if has .name (list "dev" "prod") }}yes{{ end }}`:                                            "yes",
		`{{ if has .name (list "dev") }}yes{{ end }}`:                                                   "",
		`{{ join "|" (list .id .name 3) }}`:                                                             "prod-eu|prod|3",
		`{{ list 1 "b" }}{{ dict "k" true }}`:                                                           "[1 b]map[k:true]",
		`{{ printf "%s-%02d %.2f" .name 7 1.5 }}`:                                                       "prod-07 1.50",
		`{{ printf "%q %3s|%-2s|" .id "a" "b" }}`:                                                       `"prod-eu"   a|b |`,
		`{{ printf "100%%" }}{{ print .name 1 2 }}{{ urlquery "a b" }}`:                                 "100%prod1 2a+b",
		`{{ println .name }}`:                                                                           "prod\n",
		`{{ regexReplaceAll "^https://([^:/]+).*$" .server "${1}" }}`:                                   "prod",
		`{{ regexReplaceAllLiteral "[.:/]+" .server "$" }}`:                                             "https$prod$6443",
		`{{ regexFind "[0-9]+" .server }}{{ regexMatch "^p" .name }}`:                                   "6443true",
		`{{ mustRegexReplaceAll "o" .name "0" }}{{ mustRegexFind "r" .name }}`:                          "pr0dr",
		`{{ regexQuoteMeta "a.b" }}`:                                                                    `a\.b`,
		`{{ trimAll "/" "/a/" }}{{ trim " b " }}{{ nospace "c d" }}`:                                    "abcd",
		`{{ replace "-" "_" .id }}{{ repeat 2 "x" }}{{ cat "a" 1 }}`:                                    "prod_euxxa 1",
		`{{ .id | upper | trunc 4 }}{{ .id | substr 5 7 }}{{ slice .id 0 1 }}`:                          "PRODeup",
		`{{ index .id 0 | printf "%c" }}{{ len .id }}{{ index . "name" }}`:                              "p7prod",
		`{{ add 1 2 3 }}{{ mul 2 3 }}{{ div 7 2 }}{{ max 1 5 }}{{ round 1.26 1 }}`:                      "66351.3",
		`{{ ternary "a" "b" (eq .name "prod") }}{{ coalesce "" "c" }}{{ empty "" }}`:                    "actrue",
		`{{ sha1sum .id | trunc 4 }}{{ b64enc .name }}{{ b64dec "cHJvZA==" }}`:                          "f00ccHJvZA==prod",
		`{{ with $x := .name }}{{ $x }}{{ else }}none{{ end }}{{ base .server }}`:                       "prodprod:6443",
		`{{ if and (hasPrefix "p" .name) (not (contains "x" .id)) }}{{ .uid }}{{ else if 1 }}{{ end }}`: "u-1",
	} {
		t.Run(query, func(t *testing.T) {
			if got, err := Render(query, prod); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestWhatFunctionsRefuse(t *testing.T) {
	for query, want := range map[string]string{
		`{{ toYaml . }}`:             refused("toYaml", ""),
		`{{ trimprefix "a" .name }}`: refused("trimprefix", "did you mean trimPrefix?"),
		`{{ if true }}{{ with call .name }}{{ end }}{{ end }}`: refused("call", ""),
		`{{ with true }}{{ else }}{{ (js .name) }}{{ end }}`:   refused("js", "use quote, or urlquery"),
		`{{ (keys .).x }}`:                                             refused("keys", "use get or index"),
		`{{ $x := 1 | semver }}`:                                       refused("semver", ""),
		`{{ break }}`:                                                  "outside {{range}}",
		`{{ print (list 1) }}`:                                         errNested.Error(),
		`{{ print . }}`:                                                errNested.Error(),
		`{{ default 1 (dict "a" 1) }}`:                                 errNested.Error(),
		`{{ has (list 1) (list 1) }}`:                                  errNested.Error(),
		`{{ list . }}`:                                                 errNested.Error(),
		`{{ dict 1 2 }}`:                                               errDictPairs.Error(),
		`{{ dict "a" }}`:                                               errDictPairs.Error(),
		`{{ dict "a" (list 1) }}`:                                      errNested.Error(),
		`{{ list ` + strings.Repeat("1 ", 1025) + `}}`:                 errTooManyElements.Error(),
		`{{ dict ` + strings.Repeat(`"" 1 `, 1025) + `}}`:              errTooManyElements.Error(),
		`{{ splitList "" (repeat 1025 "a") }}`:                         errTooManyElements.Error(),
		`{{ printf "%*d" 9 1 }}`:                                       errVerb.Error(),
		`{{ printf "%[1]d" 1 }}`:                                       errVerb.Error(),
		`{{ printf "%100d" 1 }}`:                                       errVerb.Error(),
		`{{ printf "%.100f" 1.0 }}`:                                    errVerb.Error(),
		`{{ printf (repeat 1025 "x") }}`:                               errVerb.Error(),
		`{{ repeat 65537 "x" }}`:                                       errTooLong.Error(),
		`{{ repeat -1 "x" }}`:                                          errTooLong.Error(),
		`{{ replace "x" (repeat 300 "y") (repeat 300 "x") }}`:          errTooLong.Error(),
		`{{ regexReplaceAll "x" (repeat 300 "x") (repeat 300 "y") }}`:  errTooLong.Error(),
		`{{ regexReplaceAll "x+" (repeat 999 "x") (repeat 99 "$0") }}`: errTooLong.Error(),
		`{{ join (repeat 999 "x") (splitList "" (repeat 999 "x")) }}`:  errTooLong.Error(),
		`{{ quote (repeat 40000 "\x00") }}`:                            errTooLong.Error(),
		`{{ substr 9 1000 .name }}`:                                    "error calling substr",
		`{{ div 1 0 }}`:                                                "error calling div",
		`{{ urlParse ":" }}`:                                           "error calling urlParse",
	} {
		t.Run(query, func(t *testing.T) {
			if got, err := Render(query, prod); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, %.300v, want %q", got, err, want)
			} else if len(err.Error()) > 2*maxError {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// Of every function that sprig has and does not offer here, the error names it and what to use.
func TestEveryOtherFunctionIsRefusedByName(t *testing.T) {
	a := newAccount()
	offered := functions(&a)
	names := slices.Sorted(maps.Keys(sprig.TxtFuncMap()))
	for _, name := range append(names, "html", "js", "call") {
		if offered[name] != nil || slices.Contains(fromGo[:], name) {
			continue
		}
		_, err := ParseTemplate("{{ " + name + " }}")
		start := fmt.Sprintf("parsing the query template: the function %q may not be used in a query: ", name)
		if err == nil || !strings.HasPrefix(err.Error(), start) || len(err.Error()) == len(start) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, i := range instead {
		for _, name := range strings.Fields(i.names) {
			if err := judge(&parse.IdentifierNode{Ident: name}, offered); err == nil {
				t.Errorf("%s is offered, and refused", name)
			}
		}
	}
}

// steps are what a template does with $a and $l, one after the other.
var steps = []string{
	`$a = print $a $a`, `$a = printf "%q%99s" $a $a`, `$a = cat $a $a`, `$a = quote $a $a`, `$a = urlquery $a`,
	`$a = join $a $l`, `$a = replace "a" $a $a`, `$a = repeat 9 $a`, `$a = regexReplaceAll "a" $a "$0$0$0"`,
	`$a = regexReplaceAll "(a*.{0,9})+" $a $a`, `$a = snakecase $a`, `$a = b64enc $a`, `$a = first $l`,
	`$a = trunc 9 $a`, `$a = upper $a`, `$a = .server`, `$a = 1`, `$l = list $a $a $a`,
	`$l = splitList "a" $a`, `$l = list (len $l) $a`, `$d = dict $a $a "k" $a`, `$a = get $d "k"`,
	`$x := has $a $l`, `$x := regexMatch $a $a`, `$l = slice $l 1`, `$a = toString $l`, `$d = urlParse $a`,
	`$a = index $l 0`,
}

func TestNoTemplateMakesMuch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var query strings.Builder
		query.WriteString(`{{ $a := "aA" }}{{ $l := list "a" }}{{ $d := dict "k" "a" }}`)
		for _, step := range rapid.SliceOfN(rapid.SampledFrom(steps), 1, 200).Draw(t, "steps") {
			query.WriteString("{{ " + step + " }}")
		}
		query.WriteString("{{ $a }}{{ $l }}{{ $d }}")
		takesLittle(t, query.String(), plan.Shard{Server: "https://a.example"})
	})
}

// takesLittle fails for what is long or takes long: memory is counted, since time depends on the machine.
func takesLittle(t interface{ Fatalf(string, ...any) }, query string, shard plan.Shard) {
	var got string
	var err error
	if made := allocated(func() { got, err = Render(query, shard) }); made > mostOfRendering {
		t.Fatalf("rendering %q takes %d bytes", query, made)
	}
	if len(got) > maxQuery || err != nil && (got != "" || len(err.Error()) > 2*maxError) {
		t.Fatalf("%d bytes, and an error of %d", len(got), len(fmt.Sprint(err)))
	}
}

func FuzzTemplate(f *testing.F) {
	for _, tc := range endings() {
		f.Add(tc.query)
	}
	for _, step := range steps {
		f.Add(`{{ $a := "aA" }}{{ $l := list "a" }}{{ $d := dict "k" "a" }}{{ ` + step + ` }}{{ $a }}{{ $l }}{{ $d }}`)
	}
	f.Fuzz(func(t *testing.T, query string) {
		takesLittle(t, query, prod)
	})
}

// What a rendering takes of the budget of all is at least its text, and no more steps than three times what it may take
// alone: what is replaced is looked for twice.
func TestABudgetIsChargedForEachRendering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var query strings.Builder
		query.WriteString(`{{ $a := "aA" }}{{ $l := list "a" }}{{ $d := dict "k" "a" }}`)
		for _, step := range rapid.SliceOfN(rapid.SampledFrom(steps), 1, 30).Draw(t, "steps") {
			query.WriteString("{{ " + step + " }}")
		}
		template, err := ParseTemplate(query.String() + "{{ $a }}")
		if err != nil {
			return // a step that is refused by name
		}
		b := NewBudget()
		got, _ := b.Render(template, prod)
		if text := maxTextOfAll - b.text.Load(); text < int64(len(got)) || text > maxWork+maxQuery {
			t.Fatalf("%d bytes are charged for a query of %d", text, len(got))
		}
		if steps := maxStepsOfAll - b.steps.Load(); steps < 0 || steps > 3*maxSteps {
			t.Fatalf("%d steps are charged", steps)
		}
		b.steps.Store(0)
		if got, err := b.Render(template, prod); got != "" || !errors.Is(err, ErrSpent) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

// Of regular expressions the steps that they took are charged, and nothing is rendered once the budget has none.
func TestRegularExpressionsOfAllAreCharged(t *testing.T) {
	const ab, one = 256 + 2*16 + 3*(96+2), 256 + 16 + 2*(96+1) // to read and to compile
	for query, steps := range map[string]int64{                // of a text of 20 letters
		`{{ regexMatch "ab" .server }}`:                            ab + 3*21, // 3 steps a letter
		`{{ regexFind "ab" .server }}{{ regexFind "ab" .server }}`: 2 * (ab + 3*21),
		`{{ regexReplaceAll "a" .server "b" }}`:                    one + 2*21*(2+2*2), // two are found, and replaced
		`{{ regexReplaceAllLiteral "z" .server "b" }}`:             one + 2*21*2,
		`{{ .server }}`: 0,
	} {
		template, err := ParseTemplate(query)
		if err != nil {
			t.Fatal(err)
		}
		b, shard := NewBudget(), plan.Shard{ID: "c", Server: "https://a.b.c.d/a/xy"}
		if _, err := b.Render(template, shard); err != nil || maxStepsOfAll-b.steps.Load() != steps {
			t.Errorf("%s: %v, %d steps are charged, want %d", query, err, maxStepsOfAll-b.steps.Load(), steps)
		}
		b.steps.Store(0)
		if got, err := b.Render(template, shard); got != "" || !errors.Is(err, ErrSpent) {
			t.Errorf("%s: %q, %v", query, got, err)
		}
	}
}

// TestWhatPeopleWriteIsReadForLittle: what folds the case, or has a class of letters, is charged for no more than that.
func TestWhatPeopleWriteIsReadForLittle(t *testing.T) {
	for pattern, want := range map[string]int{
		"a":                 256 + 16,
		"[a-z0-9-]+":        256 + 10*16,
		"(?i)abc":           256 + 7*16,
		"(?i)[a-z0-9-]+":    256 + 14*16 + 4*512,
		`(?i)[a-\x{ff}]`:    256 + 14*16 + 3*512 + 2<<10 + 384<<10,
		`(?i)[A-\377]`:      256 + 12*16 + 3*512 + 2<<10,
		"(?i)[à-ÿ]":         256 + 11*16 + 2*512 + 8<<10,
		"(?i)[a-\uffee]":    256 + 11*16 + 2*512 + 384<<10,
		`\pL+|\P{Lu}`:       256 + 11*16 + 2*12<<10,
		"(?i)-\U0001f600 -": 256 + 11*16 + 2*512 + 384<<10,
	} {
		if got := reading(pattern); got != want {
			t.Errorf("%s: %d steps, want %d", pattern, got, want)
		}
	}
}

// TestARegularExpressionCostsWhatItTakesToReadIt: each takes at least as many steps as make all of a round come to six
// seconds of a processor, by how many microseconds reading and compiling it took, or is refused as soon as it is read.
func TestARegularExpressionCostsWhatItTakesToReadIt(t *testing.T) {
	const most = 6e6 // microseconds
	letters := strings.Join(strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", ""), "?")
	for pattern, took := range map[string]float64{
		`a`:                              2,
		`https?://([^.]+)\..*`:           15,
		strings.Repeat("ab|", 80) + "x":  55,
		`.{0,490}`:                       850,
		`\PL{490}`:                       300,
		strings.Repeat(`\PL`, 80):        1650,
		strings.Repeat(`\PL|`, 60) + "a": 7600,
		strings.Repeat(`(?i:\PL)`, 28):   1150,
		`^\PL{490}$`:                     80000,
		`^\PL{100}$`:                     2150,
		`^(?:\pLx|\PLy){90}$`:            9800,
		`^(\pL*\PL)*$`:                   700,
		`^(?:` + letters + `?\PL?)*$`:    2600,
		`^\p{Lu}?\p{Ll}?\p{Lt}?\p{Lo}?\p{Lm}?\p{N}?\p{P}?\p{S}?\p{Z}?\p{M}?$`: 4500,
		`^(?:(?:(?:(?:(?:\PL*a)*b)*c)*d)*e)*$`:                                1000,
		`^(?:\p{Lo}?` + letters + `?-)*$`:                                     740,
		`(?i)[` + strings.Repeat("A-z", 80):                                   216,
		`(?i)[` + strings.Repeat("kKsS", 60):                                  37,
		`(?i)[` + strings.Repeat(`A-\777`, 40):                                710,
		`(?i)[` + strings.Repeat("a-ߺ", 60):                                   3700,
		`(?i)[a-\x{10fffe}`:                                                   3700,
		`(?i)[a-\x{10fffe}]|[b-\x{10fffd}`:                                    7400,
		"(?s-U)(?mi)[a-\U0010fffe":                                            3700,
		strings.Repeat(`(?i:[a-\x{10fffe}])`, 12) + "[a":                      31000,
	} {
		if strings.Count(pattern, "[") > strings.Count(pattern, "]") {
			pattern += "]"
		}
		a := newAccount()
		_, _, err := a.compile(pattern, "", 1)
		if err != nil && !errors.Is(err, errTooManySteps) {
			t.Fatal(err)
		}
		if least := took * maxStepsOfAll / most; err == nil && float64(a.took) < least {
			t.Errorf("%.40s is charged %d steps, want at least %.0f", pattern, a.took, least)
		}
		if took > 20000 && err == nil {
			t.Errorf("%.40s is compiled", pattern)
		}
	}
}

// Nine queries of 2 KiB for each of 5,000 clusters, with a regular expression each, are a fleet as any other.
func TestTheTemplatesOfALargeFleetAreRendered(t *testing.T) {
	const clusters, queries = 5000, 9
	template, err := ParseTemplate(`sum(rate(x{of="{{ regexReplaceAll "https?://([^.]+)\\..*" .server "$1" }}"}[5m]))` + strings.Repeat(" ", 2000))
	if err != nil {
		t.Fatal(err)
	}
	b := NewBudget()
	for i := range clusters {
		got, err := b.Render(template, plan.Shard{ID: "c", Server: fmt.Sprintf("https://cluster-%d.team-21.eu-central-1.example.com:6443", i)})
		if want := fmt.Sprintf(`sum(rate(x{of="cluster-%d"}[5m]))`, i); err != nil || strings.TrimSpace(got) != want {
			t.Fatalf("%.60q, want %q, %v", got, want, err)
		}
	}
	if text := queries * (maxTextOfAll - b.text.Load()); text < 90<<20 || text > maxTextOfAll {
		t.Errorf("they take %d MiB", text>>20)
	}
	if steps := queries * (maxStepsOfAll - b.steps.Load()); steps < 200<<20 || steps > maxStepsOfAll {
		t.Errorf("they take %d Mi steps", steps>>20)
	}
}
