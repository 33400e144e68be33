package people

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlnode "go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/plan/fixture"
)

func TestParsePins(t *testing.T) {
	const behind = behindDocument
	for name, test := range map[string]struct {
		text     string
		want     plan.Pins
		problems []string
	}{
		"nothing":              {"", plan.Pins{}, nil},
		"only a comment":       {"# none yet\n", plan.Pins{}, nil},
		"null":                 {"null", plan.Pins{}, nil},
		"two pins":             {"prod-eu: 3 # near its repo\nprod-us: 0\n", plan.Pins{"prod-eu": 3, "prod-us": 0}, nil},
		"flow style":           {"{a: 1}", plan.Pins{"a": 1}, nil},
		"a word":               {"a: 1\nb: three\n", plan.Pins{"a": 1}, []string{"pins line 2: b: a replica is a whole number, like 3"}},
		"a hexadecimal":        {"a: 0x1", plan.Pins{}, []string{"pins line 1: a: a replica is a whole number, like 3"}},
		"a negative":           {"a: -1", plan.Pins{}, []string{"pins line 1: a: replica -1 is below 0: a negative shard leaves the cluster without an owner"}},
		"at maxReplicas":       {"a: 4", plan.Pins{}, []string{"pins line 1: a: replica 4 is not below maxReplicas 4: choose 0 to 3, or raise maxReplicas"}},
		"a name twice":         {"a: 1\nb: 2\na: 3\n", plan.Pins{"a": 1, "b": 2}, []string{"pins line 3: a: is pinned twice: delete one of the lines"}},
		"a list":               {"- a\n", plan.Pins{}, []string{"pins line 1: is not a mapping; write one `cluster-secret: replica` a line"}},
		"no YAML":              {"a: [", plan.Pins{}, []string{"pins line 1: is not YAML; write one `cluster-secret: replica` a line"}},
		"an anchor":            {"a: &x 1\nb: *x\nc: 2\n", plan.Pins{"c": 2}, []string{"pins line 1: a: has an anchor or an alias: write the number out", "pins line 2: b: has an anchor or an alias: write the number out"}},
		"an anchor on a name":  {"&x a: 1\n", plan.Pins{}, []string{"pins line 1: a: has an anchor or an alias: write the number out"}},
		"too long":             {"a: 1\n" + strings.Repeat("#", MaxPinsBytes), plan.Pins{}, []string{"pins line 1: has 257 KiB, and at most 256 are read: pin fewer clusters"}},
		"a directive":          {"%YAML 1.1\n---\na: 1\n", plan.Pins{"a": 1}, nil},
		"many directives":      {fixture.ManyDirectives() + "---\na: 1\n", plan.Pins{}, []string{"pins line 1: has many directives (lines that begin with %): write one `cluster-secret: replica` a line"}},
		"an end":               {"---\na: 1\n...\n# done\n", plan.Pins{"a": 1}, nil},
		"an empty document":    {"a: 1\n---\n# none\n---\n", plan.Pins{"a": 1}, nil},
		"a block with a line":  {"? |\n  ---\n  x\n: 1\n", plan.Pins{"---\nx\n": 1}, nil},
		"a name with a dash":   {"---a: 1\n...b: 2\n", plan.Pins{"---a": 1, "...b": 2}, nil},
		"a second document":    {"a: 1\n---\nb: 2\n", plan.Pins{"a": 1}, []string{"pins line 3: " + behind}},
		"a third one":          {"# ours\n---\na: 1\n---\n# none\n---\n\nb: 2\nc: 3\n", plan.Pins{"a": 1}, []string{"pins line 8: " + behind}},
		"on the marker's line": {"a: 1\n--- {b: 2}\n", plan.Pins{"a": 1}, []string{"pins line 2: " + behind}},
		"behind an end":        {"a: 1\n...\nb: 2\n", plan.Pins{"a": 1}, []string{"pins line 3: " + behind}},
		"one that is broken":   {"a: 1\n---\n[", plan.Pins{"a": 1}, []string{"pins line 3: " + behind}},
		"behind nothing":       {"# ours\n---\n# none\n---\nb: 2\n", plan.Pins{}, []string{"pins line 5: " + behind}},
		"behind Mac's lines":   {"a: 1\r---\rb: 2\r", plan.Pins{"a": 1}, []string{"pins line 3: " + behind}},
		"left of the first":    {"  a: 1\nb: 2\n", plan.Pins{"a": 1}, []string{"pins line 2: " + behind}},
		"behind the braces":    {"{a: 1}\nb: 2\n", plan.Pins{"a": 1}, []string{"pins line 2: " + behind}},
		"and a mistake":        {"a: x\n---\nb: 2\n", plan.Pins{}, []string{"pins line 3: " + behind, "pins line 1: a: a replica is a whole number, like 3"}},
		"a name to print":      {"\"\\e[2K\\u202ex\": x", plan.Pins{}, []string{`pins line 1: \u001b[2K\u202ex: a replica is a whole number, like 3`}},
		"a mapping as a value": {"a: {b: 1}", plan.Pins{}, []string{"pins line 1: a: a replica is a whole number, like 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			pins, problems := ParsePins(test.text, 4)
			var messages []string
			for _, p := range problems {
				messages = append(messages, p.Error())
			}
			if diff := cmp.Diff(test.want, pins); diff != "" {
				t.Errorf("pins (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, messages); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddPinsLeavesEveryOtherWord(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		add  plan.Pins
		want string
	}{
		"to nothing":          {"", plan.Pins{"b": 2, "a": 1}, "a: 1\nb: 2\n"},
		"to a comment":        {"# ours\n", plan.Pins{"a": 1}, "# ours\na: 1\n"},
		"without a newline":   {"z: 1", plan.Pins{"a": 1}, "z: 1\na: 1\n"},
		"changes in place":    {"# top\nz: 1   # why\n\na: 2\n", plan.Pins{"z": 3}, "# top\nz: 3   # why\n\na: 2\n"},
		"quoted":              {"\"1e5\": \"1\" # q\n", plan.Pins{"1e5": 2}, "\"1e5\": 2 # q\n"},
		"indented":            {"  z: 1\n", plan.Pins{"a": 1}, "  z: 1\n  a: 1\n"},
		"flow":                {"{z: 1, y: 2}", plan.Pins{"z": 3}, "z: 3\n\"y\": 2\n"},
		"a name YAML renames": {"", plan.Pins{"null": 1}, "\"null\": 1\n"},
		"to null":             {"null\n", plan.Pins{"b": 3}, "b: 3\n"},
		"to a tilde":          {"# ours\n~ # none yet\n", plan.Pins{"b": 3}, "# ours\n# none yet\nb: 3\n"},
		"to a marked nothing": {"---\n# ours\n...\n", plan.Pins{"b": 3}, "# ours\nb: 3\n"},
		"before an end":       {"a: 1\n# last\n...\n", plan.Pins{"b": 3}, "a: 1\n# last\nb: 3\n...\n"},
		"before another text": {"---\na: 1\n--- # more\nz: 9\n", plan.Pins{"a": 2, "b": 3}, "---\na: 2\nb: 3\n--- # more\nz: 9\n"},
		"flow with comments": {"# top\n{z: 1, # near\n  # why y\n  y: 2, 'x#1': 4 # both\n} # end\n# last\n", plan.Pins{"z": 3, "b": 5},
			"# top\nz: 3 # near\n# why y\n\"y\": 2\n\"x#1\": 4 # both\n# end\n# last\nb: 5\n"},
		"flow with a mistake": {"{z: 1, y: two words, w: \"0x1\"}", plan.Pins{"z": 3}, "z: 3\n\"y\": \"two words\"\nw: \"0x1\"\n"},
		"an empty flow":       {"{} # none\n", plan.Pins{"z": 3}, "# none\nz: 3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := AddPins(test.text, test.add)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be edited without saying something else is refused, and never half done.
func TestAddPinsRefusesWhatItWouldBreak(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		add  plan.Pins
	}{
		"an anchor":                 {"a: &x 1\n", plan.Pins{"a": 2}},
		"a value of several words":  {"a: \"1 \"\n", plan.Pins{"a": 2}},
		"a mapping within braces":   {"{a: {b: 1}}", plan.Pins{"c": 2}},
		"an alias within braces":    {"{a: &x 1, b: *x}", plan.Pins{"c": 2}},
		"lines that end in \\r":     {"a: 1\rb: 2\r", plan.Pins{"b": 3}},
		"a name that is none":       {"", plan.Pins{"": 3}},
		"a name that is no text":    {"", plan.Pins{"\xff": 3}},
		"a replica that is none":    {"", plan.Pins{"a": -1}},
		"a block within the braces": {"? {a: 1}\n: 2\n", plan.Pins{"{a": 2, "b": -2}},
		"no YAML":                   {"a: [", plan.Pins{"a": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := AddPins(test.text, test.add); err == nil {
				t.Errorf("it became %q", got)
			}
		})
	}
}

func TestAddedPinsAreReadBack(t *testing.T) {
	names := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,10}[a-z0-9])?`)
	pins := rapid.MapOfN(names, rapid.IntRange(0, 15), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		text, err := AddPins("", pins.Draw(t, "first"))
		if err != nil {
			t.Fatal(err)
		}
		before, _ := ParsePins(text, 16)
		add := pins.Draw(t, "second")
		text, err = AddPins(text, add)
		if err != nil {
			t.Fatal(err)
		}
		got, problems := ParsePins(text, 16)
		if len(problems) > 0 {
			t.Fatalf("%v in\n%s", problems, text)
		}
		for name, replica := range add {
			before[name] = replica
		}
		if diff := cmp.Diff(before, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// What YAML reads as a second document is found by its lines.
func TestNoDocumentIsPassedOverInSilence(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"a: 1", "b: 2", "---", "...", "--- ", "--- # c", "---x: 1", "# c", "", " ", "  c: 3", "'q", "q': 1", "d: |", "  ---", "\r", "\u2028", "%YAML 1.1", "{", "}"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieces, 0, 9).Draw(t, "lines"), "\n")
		d := yamlnode.NewDecoder(strings.NewReader(text))
		var doc yamlnode.Node
		if d.Decode(&doc) != nil {
			return // it is told as no YAML
		}
		_, problems := ParsePins(text, 0)
		said := len(problems) > 0
		for {
			doc = yamlnode.Node{}
			err := d.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if !said && (err != nil || len(doc.Content) > 0 && doc.Content[0].Tag != "!!null") {
				t.Fatalf("%q goes on, and that is not said (%v)", text, err)
			}
			if err != nil {
				return
			}
		}
	})
}

func TestNearest(t *testing.T) {
	names := []string{"prod-eu-1", "prod-eu-2", "prod-us-1", "staging"}
	for name, want := range map[string]string{"prod-eu1": "prod-eu-1", "stagin": "staging", "prod-us-2": "prod-us-1", "unheard-of": "", "": ""} {
		if got := Nearest(name, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

// levenshtein fills the whole table: the definition.
func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func TestEditDistanceIsLevenshteinsUpToItsLimit(t *testing.T) {
	names := rapid.StringMatching(`[abc]{0,9}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, limit := names.Draw(t, "a"), names.Draw(t, "b"), rapid.IntRange(0, 10).Draw(t, "limit")
		want, got := levenshtein(a, b), editDistance(a, b, limit)
		if got != want && (want <= limit || got <= limit) {
			t.Fatalf("editDistance(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
	})
}

func FuzzPins(f *testing.F) {
	f.Add("a: 1\n", "b")
	f.Add("{a: 1}", "a")
	f.Add("a: |\n  1\n", "a")
	f.Add("? a\n: 1\n", "a")
	f.Add("a: 1\n...\n", "b")
	f.Add("null", "b")
	f.Add("~ # none", "b")
	f.Add("a: 1\rb: 2", "b")
	f.Add("{a: 1, # why\n b: 2} # c\n", "b")
	f.Add("a: &x 1\nb: *x\n", "a")
	f.Add("---\na: 1\n---\nb: 2\n", "c")
	f.Fuzz(func(t *testing.T, text, name string) {
		pins, _ := ParsePins(text, 16)
		for n, replica := range pins {
			if replica < 0 || replica >= 16 {
				t.Fatalf("%q pinned to %d", n, replica)
			}
		}
		added, err := AddPins(text, plan.Pins{name: 3})
		if err != nil {
			return
		}
		want, _ := ParsePins(text, 0)
		want[name] = 3
		if got, _ := ParsePins(added, 0); !cmp.Equal(want, got) {
			t.Fatalf("%q became %q, which says %v, want %v", text, added, got, want)
		}
	})
}
