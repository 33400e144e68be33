package printable

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		most int
		want string
	}{
		"nothing":                 {"", 9, ""},
		"plain":                   {"prod-eu: 3", 20, "prod-eu: 3"},
		"other scripts":           {"größe 集群 █▏", 20, "größe 集群 █▏"},
		"a line and a tab":        {"a\r\nb\tc\u2028d", 20, "a  b c d"},
		"an escape sequence":      {"\x1b[2Ka", 20, `\u001b[2Ka`},
		"a title":                 {"\x1b]0;owned\x07", 40, `\u001b]0;owned\u0007`},
		"an 8-bit escape":         {"\u009b2J\x7f", 20, `\u009b2J\u007f`},
		"the writing direction":   {"a\u202eb\u2066c\u200f", 40, `a\u202eb\u2066c\u200f`},
		"zero width":              {"a\u200bb\ufeffc\u00ad\u034f\u3164", 60, `a\u200bb\ufeffc\u00ad\u034f\u3164`},
		"a variation selector":    {"a\ufe0f", 20, `a\ufe0f`},
		"a tag of plane 14":       {"a\U000e0041", 20, `a\udb40\udc41`},
		"no UTF-8":                {"a\xffb\xc3", 20, "a\ufffdb\ufffd"},
		"cut":                     {"abcdef", 4, "abc…"},
		"not cut":                 {"abcd", 4, "abcd"},
		"cut before an escape":    {"abc\x1bdef", 8, "abc…"},
		"cut to one":              {"abc", 1, "…"},
		"cut to nothing":          {"abc", 0, ""},
		"cut behind a credential": {"https://u:secret@host and more", 16, "https://***@hos…"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Text(test.text, test.most)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestServer(t *testing.T) {
	for name, test := range map[string]struct{ url, want string }{
		"none":                      {"", ""},
		"plain":                     {"https://10.0.0.1:6443", "https://10.0.0.1:6443"},
		"IPv6":                      {"https://[fd00::1]:6443/k8s", "https://[fd00::1]:6443/k8s"},
		"user and password":         {"https://user:token@host:6443/x", "https://***@host:6443/x"},
		"a token as the user":       {"https://eyJhbGciOi@host", "https://***@host"},
		"an @ in the password":      {"https://u:p@ss@host", "https://***@host"},
		"a / in the password":       {"https://u:p/a@host", "https://***@host"},
		"a # and a ? in it":         {"https://u:p#?a@host", "https://***@host"},
		"a space in it":             {"https://u:p a@host", "https://***@host"},
		"a line break in it":        {"https://u:p\na@host", "https://***@host"},
		"no scheme":                 {"u:p@host:6443", "***@host:6443"},
		"one slash":                 {"https:/u:p@host", "***@host"},
		"the password's end is cut": {"https://u:secret", "https://u:***"},
		"a token in the query":      {"https://host/?a=1&access_token=abc&b=2#x", "https://host/?a=1&access_token=***&b=2#x"},
		"several in the query":      {"https://host?API-Key=1;Password=2;tenant=3", "https://host?API-Key=***;Password=***;tenant=3"},
		"an escaped name":           {"https://host?tok%65n=abc&a=1", "https://host?tok%65n=***&a=1"},
		"a name with a gap":         {"https://host?to\u200bken=abc#b", `https://host?to\u200bken=***#b`},
		"an escaped parameter":      {"https://host?a=b%26token=abc", "https://host?a=***"},
		"no parameter at all":       {"https://host?a%3Db;c", "https://host?***;c"},
		"in the fragment":           {"https://host#id_token=abc", "https://host#id_token=***"},
		"terminal escapes":          {"https://a\x1b]0;owned\x07\x1b[2K\rNothing was changed.\u202e", `https://a\u001b]0;owned\u0007\u001b[2K Nothing was changed.\u202e`},
		"long":                      {"https://" + strings.Repeat("a", 4000), "https://" + strings.Repeat("a", maxServer-9) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Server(test.url)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMaskCredentialsInText(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"none":                    {"at 10:00 // see a@b.example, key=3; token = x", "at 10:00 // see a@b.example, key=3; token = x"},
		"an error of Go":          {`Post "https://u:***@prom:9090/api?token=abc": dial tcp: lookup a@b`, `Post "https://***@prom:9090/api?token=***": dial tcp: lookup a@b`},
		"ports before commas":     {"https://a:1, https://b:2; (https://c:3) https://d:4. https://e:", "https://a:1, https://b:2; (https://c:3) https://d:4. https://e:"},
		"two URLs":                {"http://a:b@c and http://d:e@f", "http://***@c and http://***@f"},
		"a URL within a query":    {"http://a?next=http://u:p@b", "http://a?next=http://***@b"},
		"a path with an @":        {"https://host/a@b", "https://host/a@b"},
		"quoted within JSON":      {`{"why":"Get \"https://u:p\"q@h/?a=1\u0026key=x\u0026b=2\": EOF","user":"a@b"}`, `{"why":"Get \"https://u:***\"q@h/?a=1\u0026key=***\u0026b=2\": EOF","user":"a@b"}`},
		"JSON beside a plain URL": {`{"server":"https://h:6443","user":"a@b"}`, `{"server":"https://h:6443","user":"a@b"}`},
		"a label of Prometheus":   {`two series have dest_server="https://u:p@h": aggregate`, `two series have dest_server="https://***@h": aggregate`},
		"bytes that are no text":  {"\xff//u:p@\xfe", "\xff//***@\xfe"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, MaskCredentials(test.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// hostileText draws what people write, and what people write to be read wrongly.
func hostileText() *rapid.Generator[string] {
	pieces := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b[2J", "\u009b", "\u202e", "\u200b", "\r\n", "\t", "\xff\xfe", "//", ":", "@", "?token=", "https://", "\\", `"`, "…", "***@"}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	return rapid.Map(rapid.SliceOfN(pieces, 0, 12), func(list []string) string { return strings.Join(list, "") })
}

func TestWhateverIsPrintableIsOneHarmlessLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, most := hostileText().Draw(t, "text"), rapid.IntRange(0, 80).Draw(t, "most")
		got := Text(text, most)
		if n := utf8.RuneCountInString(got); n > most || !utf8.ValidString(got) {
			t.Fatalf("%q has %d characters of at most %d", got, n, most)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) || unicode.In(r, unicode.Cf, unicode.Cc) }) {
			t.Fatalf("%q acts on a terminal", got)
		}
		if twice := Text(got, most); twice != got && !strings.HasSuffix(got, "…") {
			t.Fatalf("once it is %q, twice %q", got, twice)
		}
		if seen := Visible(text); seen != Visible(seen) || strings.ContainsFunc(seen, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }) {
			t.Fatalf("%q acts on a terminal", seen)
		}
	})
}

var userinfo = regexp.MustCompile(`//[^/?#\s"]*@`)

// A URL's user and password are in no output, however they are written and whatever stands around the URL.
func TestNoCredentialIsPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := "s3cr" + rapid.StringMatching("[a-zA-Z0-9]{4,20}").Draw(t, "secret")
		user := rapid.StringMatching("[a-z]{0,5}").Draw(t, "user")
		around := rapid.StringMatching("[^\"@]{0,8}").Draw(t, "around")
		url := "https://" + user + ":" + secret + around + "@host/x"
		if got := Server(url); strings.Contains(got, secret) {
			t.Fatalf("%q shows %q", got, secret)
		}
		text := hostileText().Draw(t, "before") + " https://" + user + ":" + secret + "@host?a=1&my_token=" + secret + "&c " + hostileText().Draw(t, "after")
		got := Text(text, 1<<20)
		for _, found := range userinfo.FindAllString(got, -1) {
			if found != "//"+Mark+"@" {
				t.Fatalf("%q shows %q", got, found)
			}
		}
		if strings.Contains(got, secret) {
			t.Fatalf("%q shows %q", got, secret)
		}
	})
}

// What is JSON stays JSON: the value is the same but for its credentials.
func TestVisibleJSONMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := hostileText().Filter(utf8.ValidString).Draw(t, "text")
		line, err := json.Marshal(map[string]string{"a": text, "b": "https://u:p@h"})
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(Visible(string(line))), &got); err != nil || got["a"] != text {
			t.Fatalf("%q became %q (%v)", text, got["a"], err)
		}
		got = nil
		if err := json.Unmarshal([]byte(MaskCredentials(string(line))), &got); err != nil || got["b"] != "https://***@h" {
			t.Fatalf("b is %q (%v)", got["b"], err)
		}
	})
}

// A text of a megabyte that is written to be slow costs no more than another.
func TestMaskingIsLinear(t *testing.T) {
	for name, piece := range map[string]string{"slashes": "/", "no ports": "//a:b/", "users": "//a:b@", "parameters": "?token=", "equals": "="} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(piece, 1<<20/len(piece))
			start := time.Now()
			MaskCredentials(text)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
