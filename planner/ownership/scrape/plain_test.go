package scrape

import (
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestPlainLinesAreReadWithoutTheParser(t *testing.T) {
	type read struct {
		Server string
		Value  float64
		Plain  bool
	}
	for rest, want := range map[string]read{
		`{group="",kind="Pod",server="https://a:6443"} 9211`: {"https://a:6443", 9211, true},
		`{server="https://a"} 1.86179584e+08`:                {"https://a", 186179584, true},
		`{server="a",kind="{}, x="} -1`:                      {"a", -1, true},
		`{group="apps"} 3`:                                   {"", 3, true},
		`{server="a\\"b"} 1`:                                 {},
		`{server="a\"b\\c\nd"} 1`:                            {"a\"b\\c\nd", 1, true},
		`{server="ä",other="="} 1`:                           {"ä", 1, true},
		`{server="a\xb"} 1`:                                  {},
		"{server=\"a\xff\"} 1":                               {},
		`{server="a"} 1 1700000000`:                          {},
		`{server="a",server="b"} 1`:                          {},
		`{server="a",} 1`:                                    {},
		`{server = "a"} 1`:                                   {},
		`{__name__="a"} 1`:                                   {},
		`{server="a"} NaN`:                                   {},
		`{server="a"} 0x1p2`:                                 {},
		`{server="a"}  1`:                                    {},
		`{server="a"} `:                                      {},
		`{server="a"`:                                        {},
		`{server=""`:                                         {},
		`{} 1`:                                               {},
		`{`:                                                  {},
		` 1`:                                                 {},
		``:                                                   {},
	} {
		server, value, plain := readPlain([]byte(rest), "server")
		if !plain {
			server, value = "", 0
		}
		if got := (read{server, value, plain}); got != want {
			t.Errorf("%q is read as %+v, want %+v", rest, got, want)
		}
	}
}

// What is read without the parser, the parser reads, too, and as the same.
func FuzzPlainLine(f *testing.F) {
	f.Add(`{group="",kind="Pod",server="https://a:6443"} 9211`)
	f.Add(`{server="a",kind="b"} -1e-3`)
	f.Add(`{server="a",kind="b",} 1`)
	f.Add(`{server="a"} 1e999`)
	f.Add(`{server="a"} 1 5`)
	f.Add(`{server="ä\"b\\c\nd"} 1`)
	f.Add(`{le="1",quantile="x",server=""} .5`)
	f.Fuzz(func(t *testing.T, rest string) {
		if strings.ContainsAny(rest, "\n") {
			return
		}
		server, value, plain := readPlain([]byte(rest), "server")
		if !plain {
			return
		}
		x := text{parser: expfmt.NewTextParser(model.LegacyValidation)}
		sample, err := x.parse(metricEvents, []byte(metricEvents+rest))
		if err != nil {
			t.Fatalf("the parser refuses %q: %v", rest, err)
		}
		want := ""
		for _, pair := range sample.GetLabel() {
			if pair.GetName() == "server" {
				want = pair.GetValue()
			}
		}
		number := sample.GetUntyped().GetValue()
		if same := number == value || math.IsNaN(number) && math.IsNaN(value); server != want || !same {
			t.Errorf("%q is read as %q %v, by the parser as %q %v", rest, server, value, want, number)
		}
	})
}
