package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/replay"
)

var nine = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// report has its points a minute apart.
func report(name string, points ...replay.Point) replay.Report {
	for i := range points {
		points[i].At = nine.Add(time.Duration(i) * time.Minute)
	}
	return replay.Report{Name: name, From: nine, To: nine.Add(time.Duration(len(points)-1) * time.Minute), Clusters: 2, Series: points}
}

// TestLinesAreWhereTheValuesAre: from the floor of the axis to its highest line, held where a number holds, and broken where
// nothing is known.
func TestLinesAreWhereTheValuesAre(t *testing.T) {
	svg := string(SVG("t", []replay.Report{report("a", replay.Point{Replicas: 2, MaxOverIdeal: 1}, replay.Point{Replicas: 2, MaxOverIdeal: 1.5, Moves: 5}, replay.Point{Replicas: 4},
		replay.Point{Replicas: 4, MaxOverIdeal: 1.25, Moves: 5}, replay.Point{Replicas: 4, MaxOverIdeal: 1.25, Moves: 10})}))
	var got []string
	for _, m := range regexp.MustCompile(`<path d="([^"]*)"`).FindAllStringSubmatch(svg, -1) {
		got = append(got, m[1])
	}
	want := []string{ // panels begin at 68, 264 and 460, and are 150 high
		"M56.0 218.0L278.0 68.0M722.0 143.0L944.0 143.0",
		"M56.0 414.0H278.0V339.0H500.0V414.0H722.0V339.0H944.0V264.0H944.0",
		"M56.0 535.0H278.0V535.0H500.0V460.0H722.0V460.0H944.0V460.0H944.0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(svg, `stroke-dasharray="4,4"`) {
		t.Errorf("the line of %v is missing", replay.TooFull)
	}
}

// TestNoNameOfTheLegendIsOnAnother, or beyond the picture, or on a panel, however many there are and however long they are.
func TestNoNameOfTheLegendIsOnAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var reports []replay.Report
		for range rapid.IntRange(0, 30).Draw(t, "setups") {
			reports = append(reports, replay.Report{Name: rapid.StringMatching(`[a-zé]{1,90}`).Draw(t, "name")})
		}
		entries, rows := legend(reports)
		if len(entries) != len(reports) {
			t.Fatalf("%d names of %d", len(entries), len(reports))
		}
		end := func(e entry) float64 { return e.x + 24 + character*float64(len([]rune(e.name))) }
		for i, e := range entries {
			beside := i > 0 && entries[i-1].y == e.y
			if beside && end(entries[i-1]) >= e.x || end(e) > width-right || e.x < left {
				t.Errorf("%q at %v, %d", e.name, e.x, e.y)
			}
			if bottom := head + (rows-1)*row; e.y+4 >= bottom {
				t.Errorf("%q is on the first panel: %d of %d", e.name, e.y, bottom)
			}
		}
	})
}

// TestNoTimeIsOnAnother, or beyond the picture, however long a trace is, up to nine years.
func TestNoTimeIsOnAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := nine.Add(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "from")))
		long := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour}).Draw(t, "unit")
		d := &drawing{from: from, to: from.Add(long * time.Duration(rapid.IntRange(1, 9).Draw(t, "long")))}
		all := d.moments()
		for i, m := range all {
			half := character * float64(len(m.text)) / 2
			if m.x-half < 0 || m.x+half > width {
				t.Errorf("%s is at %v", m.text, m.x)
			}
			if i > 0 && all[i-1].x+half >= m.x-half {
				t.Errorf("%s at %v and %s at %v are on each other", all[i-1].text, all[i-1].x, m.text, m.x)
			}
		}
	})
}

// TestALongTitleEndsWithinThePicture, and is whole for whoever asks.
func TestALongTitleEndsWithinThePicture(t *testing.T) {
	title := strings.Repeat("long ", 60)
	svg := string(SVG(title, nil))
	if want := "<title>" + title + "</title>"; !strings.Contains(svg, want) {
		t.Errorf("it lacks %s", want)
	}
	drawn := regexp.MustCompile(`font-weight="bold">([^<]*)<`).FindStringSubmatch(svg)
	if n := len([]rune(drawn[1])); n != headline || float64(n)*character > width-left-right || !strings.HasSuffix(drawn[1], "…") {
		t.Errorf("%d characters are drawn: %q", n, drawn[1])
	}
}

func TestAnAxisHasRoundLines(t *testing.T) {
	for span, want := range map[float64]float64{0: 1, 1: 0.2, 0.5: 0.1, 4: 1, 5: 1, 6: 2, 10: 2, 13: 5, 26: 10, 0.03: 0.01, 700: 200} {
		if got := tick(span); got != want {
			t.Errorf("over %v the lines are %v apart, want %v", span, got, want)
		}
	}
}

// TestWhateverIsDrawnIsXML of finite numbers, the same each time.
func TestWhateverIsDrawnIsXML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var reports []replay.Report
		for range rapid.IntRange(0, 20).Draw(t, "setups") {
			var points []replay.Point
			for range rapid.IntRange(1, 5).Draw(t, "points") {
				points = append(points, replay.Point{Replicas: rapid.IntRange(0, 1000).Draw(t, "replicas"), Moves: rapid.IntRange(0, 1e6).Draw(t, "moves"),
					MaxOverIdeal: rapid.SampledFrom([]float64{0, 1, 1.0001, 1.2, 7, 1e6}).Draw(t, "over")})
			}
			reports = append(reports, report(rapid.StringMatching(`[a-z<>&"' ]*`).Draw(t, "name"), points...))
		}
		svg := SVG("<&\">", reports)
		if string(svg) != string(SVG("<&\">", reports)) {
			t.Error("it is another picture the second time")
		}
		if m := regexp.MustCompile(`NaN|Inf|%!`).Find(svg); m != nil {
			t.Errorf("it has %q in it", m)
		}
		d := xml.NewDecoder(strings.NewReader(string(svg)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("it is no XML: %v\n%s", err, svg)
			}
		}
	})
}

func TestAPageHasEveryFigure(t *testing.T) {
	r := report("a & b", replay.Point{Replicas: 2, MaxOverIdeal: 1.5})
	r.Cycles, r.Moves, r.Rebalances, r.Replicas, r.MaxOverIdeal, r.AboveTooFull = 1, 7, 3, replay.Replicas{Last: 4, Least: 2, Most: 5}, replay.Levels{Mean: 1.25, Most: 1.5, Last: 1.125}, 0.333
	text, err := Page("title <1>", []replay.Report{r}, []string{"a <note>"})
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, want := range []string{"<title>title &lt;1&gt; · ballast</title>", "<th scope=\"row\">a &amp; b</th><td>3</td><td>7</td><td>4 (2 to 5)</td><td>1.250</td><td>1.500</td><td>1.125</td><td>33.3 %</td><td>-</td>",
		`<strong>Note.</strong> a &lt;note&gt;</p>`, `<title>title &lt;1&gt;</title>`, "<svg xmlns="} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	for _, not := range []string{"<script", "script-src", "What waits", `id="clusters"`, `id="cluster-table"`, "Load again"} {
		if strings.Contains(page, not) {
			t.Errorf("a report of no fleet has %s in it", not)
		}
	}
}
