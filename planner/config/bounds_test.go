package config_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"ballast/planner/config/configfile"
	"ballast/planner/config/strict"
)

// numbered are n texts, each with its number.
func numbered(n int, format, between string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, between)
}

// Each of these is smaller than a ConfigMap may be. Those that nest ended the planner, which keeps the path of every
// value; 15,000 metrics kept it busy for minutes.
func TestNoFileGrows(t *testing.T) {
	const head = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"
	const nests = "it nests too many values too deep, or under too long names"
	metrics := func(n int) string {
		list := numbered(n, "{id: a%d, query: up, match: {label: a}}", ", ")
		weights := numbered(n, `a%d: "1"`, ", ")
		return "poll: {prometheus: {metrics: [" + list + "]}}\nindex: {pNorm: {weights: {" + weights + "}}}\n"
	}
	claims := func(value string) string { return "poll: {prometheus: {http: {oauth2: {claims: {" + value + "}}}}}\n" }
	headers := func(name string, n int) string {
		return "poll:\n  prometheus:\n    http:\n      http_headers:\n        ? " + name +
			"\n        : {values: [" + numbered(n, "a%d", ", ") + "]}\n"
	}
	rates := func(n int) string {
		return "change: {moves: {rate: [" + numbered(n, "{percent: 1, period: 1%04dms}", ", ") + "]}}\n"
	}
	for name, tc := range map[string]struct{ text, want string }{
		"claims within claims": {claims(strings.Repeat("k: {", 9000) + strings.Repeat("}", 9000)), nests},
		"claims of long names": {
			claims(strings.Repeat("k", 900) + ": [" + strings.Repeat("0, ", 30_000) + "]"), nests,
		},
		"a header of a long name": {headers(strings.Repeat("k", 5000), 5000), nests},
		"a header of a thousand":  {headers("a", 1000), ""},
		"claims of a few levels":  {claims("a: {b: {c: [[1], {d: 2}]}}"), "oauth2 client_id"},
		"64 metrics":              {metrics(64), ""},
		"65 metrics": {
			metrics(65), "poll.prometheus.metrics: Invalid value: has 65 entries: leave 64 at most (line 3)",
		},
		"15,000 metrics": {
			metrics(15_000), "poll.prometheus.metrics: Invalid value: has 15000 entries: leave 64 at most (line 3)",
		},
		"20,000 rates": {
			rates(20_000), "change.moves.rate: Invalid value: has 20000 entries: leave 64 at most (line 3)",
		},
		"80,000 fields that are not": {
			"poll: {" + numbered(80_000, "a%d: 1", ", ") + "}\n", "the file: Invalid value: has 79900 mistakes more",
		},
		"an aliased fleet": {"poll: {prometheus: {metrics: [{id: a, query: up, match: {label: a, aliases: {" +
			numbered(15_000, `"https://10.0.0.1:6443/%[1]d": "https://cluster-%[1]d"`, ", ") +
			"}}}]}}\nindex: {pNorm: {weights: {a: \"1\"}}}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := head + tc.text
			_, err := configfile.Parse([]byte(text))
			if len(text) > strict.MaxBytes || (err == nil) != (tc.want == "") || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%d bytes: error %.300v, want %q", len(text), err, tc.want)
			}
			var all utilerrors.Aggregate
			if errors.As(err, &all) && len(all.Errors()) > strict.MaxMistakes+1 {
				t.Errorf("%d mistakes", len(all.Errors()))
			}
		})
	}
}

// TestNoFileIsReadBeyondItsBound: a file of as many bytes is read, one more is refused before it is.
func TestNoFileIsReadBeyondItsBound(t *testing.T) {
	const head = "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n#"
	largest := head + strings.Repeat("x", strict.MaxBytes-len(head))
	_, err := configfile.Parse([]byte(largest))
	_, beyond := configfile.Parse([]byte(largest + "x"))
	if err != nil || beyond == nil || beyond.Error() != "parsing the configuration: it has more than 1048576 bytes" {
		t.Errorf("%v; %v", err, beyond)
	}
}

// TestNoFileHidesItsDirectives: what the library reads in another encoding is past whatever looks at the bytes.
func TestNoFileHidesItsDirectives(t *testing.T) {
	text := strings.Repeat("%TAG !a! x\n", 20_000) + "---\napiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"
	encode := func(order binary.AppendByteOrder) []byte {
		wide := order.AppendUint16(nil, 0xfeff)
		for _, unit := range utf16.Encode([]rune(text)) {
			wide = order.AppendUint16(wide, unit)
		}
		return wide
	}
	for name, tc := range map[string]struct {
		text []byte
		want string
	}{
		"UTF-8":         {[]byte(text), "parsing the configuration: it has many directives (lines that begin with %): delete them"},
		"little UTF-16": {encode(binary.LittleEndian), "parsing the configuration: it is not UTF-8: save it as that"},
		"big UTF-16":    {encode(binary.BigEndian), "parsing the configuration: it is not UTF-8: save it as that"},
	} {
		if _, err := configfile.Parse(tc.text); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
