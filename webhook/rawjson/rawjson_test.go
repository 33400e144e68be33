package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseNodeRefusesWhatEndsEarly(t *testing.T) {
	for _, doc := range []string{``, ` `, `{`, `{"a":`, `{"a":"b`, `"a\"`, `[1,2`, `{} {}`, `}`, `,`} {
		if n, err := Parse([]byte(doc)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q was read as %q", doc, n)
		}
	}
}

// TestIsComparesTheWholeString, whatever way it is written.
func TestIsComparesTheWholeString(t *testing.T) {
	for name, tc := range map[string]struct {
		node, with string
		want       bool
	}{
		"the same":                            {`"plan"`, "plan", true},
		"the same, in escapes":                {`"pl\u0061n"`, "plan", true},
		"a longer one":                        {`"planned"`, "plan", false},
		"a longer one, in escapes":            {`"pl\u0061nned"`, "plan", false},
		"nothing":                             {`""`, "", true},
		"an escape is not nothing":            {`"\n"`, "", false},
		"lines are not nothing":               {`"a\nb"`, "", false},
		"an escape that is none, and nothing": {`"\x"`, "", false},
		"no UTF-8, and nothing":               {"\"\\n\xff\"", "", false},
		"no string, and nothing":              {`0`, "", false},
		"no value, and nothing":               {``, "", false},
		"an escape and half a character":      {`"\ud83d"`, "\ufffd", true}, // as encoding/json has it
	} {
		t.Run(name, func(t *testing.T) {
			if got := Node(tc.node).Is(tc.with); got != tc.want {
				t.Errorf("%s is %q: %v, want %v", tc.node, tc.with, got, tc.want)
			}
		})
	}
}

// TestWhatCannotBeReadIsNotNothing: an absent value, and what people typed but ballast cannot read, are two things.
func TestWhatCannotBeReadIsNotNothing(t *testing.T) {
	for name, tc := range map[string]struct{ node, want string }{
		"nothing":                         {`""`, ""},
		"no value":                        {``, ""},
		"no string":                       {`7`, ""},
		"a word":                          {`"off"`, "off"},
		"a word in escapes":               {`"\u006fff"`, "off"},
		"a longer one":                    {`"offoff"`, Unreadable},
		"a longer one with an escape":     {`"off\noff"`, Unreadable},
		"many escapes":                    {`"` + strings.Repeat(`\u006f`, 7) + `"`, Unreadable},
		"no UTF-8":                        {"\"\xff\"", Unreadable},
		"no UTF-8, with an escape":        {"\"\\n\xff\"", Unreadable},
		"an escape that JSON has not":     {`"\x"`, Unreadable},
		"an escape that ends too early":   {`"\u00"`, Unreadable},
		"as long as may be, with escapes": {`"a\nb\nc"`, "a\nb\nc"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Node(tc.node).Legible(5); got != tc.want {
				t.Errorf("%s was read as %q, want %q", tc.node, got, tc.want)
			}
		})
	}
}

// FuzzNode compares the reader to encoding/json on every document that the latter takes, and only asks for an end of the
// others.
func FuzzNode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"b":[true,{"c":"\\\""}],"a":"é"}`, `{"\u0061":null}`, ` [ ] `, `"\\"`, `{"a":{"b":{"c":[[[]]]}}}`, `{"a"`, "{\"a\":\"\xff\"}", `-1.5e+3`,
		`"a\n\t\r\b\f\/\"\\\u003c\u00e9é"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\u00"`, `"\x"`, `{"\n":"\u0000"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		n, err := Parse(doc)
		if err == nil {
			walk(n, 0)
		}
		if !json.Valid(doc) || !utf8.Valid(doc) {
			return // the API server writes valid UTF-8; what encoding/json mends elsewhere is not our matter
		}
		if err != nil {
			t.Fatalf("%q is JSON: %v", doc, err)
		}
		if !bytes.Equal(bytes.TrimSpace(doc), n) {
			t.Errorf("%q was read as %q", doc, n)
		}
		compare(t, n)
	})
}

// walk visits everything and asks every question.
func walk(n Node, depth int) {
	n.Text(1 << 20)
	n.Integer()
	n.Is("a")
	n.Field("a")
	if depth > 50 {
		return
	}
	for k, v := range n.Members {
		k.Text(1 << 20)
		walk(v, depth+1)
	}
}

// compare holds a node against what encoding/json makes of it.
func compare(t *testing.T, n Node) {
	t.Helper()
	switch n.Kind() {
	case '"':
		var want string
		if json.Unmarshal(n, &want) != nil {
			return
		}
		if n.Text(1<<20) != want {
			t.Errorf("%s was read as %q, want %q", n, n.Text(1<<20), want)
		}
		if !n.Is(want) || n.Is("") != (want == "") {
			t.Errorf("%s is %q: %v, is nothing: %v", n, want, n.Is(want), n.Is(""))
		}
	case '{':
		var want map[string]json.RawMessage
		if err := json.Unmarshal(n, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		for k, v := range n.Members {
			got[k.Text(1<<20)] = json.RawMessage(v)
			if !bytes.Equal(n.Field(k.Text(1<<20)), want[k.Text(1<<20)]) {
				t.Errorf("field %q is %q, want %q", k.Text(1<<20), n.Field(k.Text(1<<20)), want[k.Text(1<<20)])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
	case '[':
		want, got := []json.RawMessage{}, []json.RawMessage{}
		if err := json.Unmarshal(n, &want); err != nil {
			t.Fatal(err)
		}
		for _, v := range n.Members {
			got = append(got, json.RawMessage(v))
			compare(t, v)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
	}
}
