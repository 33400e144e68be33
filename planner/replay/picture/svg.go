// Package picture draws replays: the same reports make the same bytes.
package picture

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"
	"time"

	"ballast/planner/replay"
)

// A picture's measures, in pixels.
const (
	width       = 960
	left, right = 56, 16
	head        = 52
	panel       = 150
	gap         = 46
	foot        = 28

	character = 7.2 // the width of most
	row       = 20  // of the legend
	longest   = 48  // characters of a name in the legend
	headline  = 123 // characters of the title that fit
)

// colours can be told apart by most people (Okabe and Ito).
func colours() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"}
}

// dashes tell lines apart where colours cannot, from the ninth setup on.
func dashes() []string { return []string{"", "6,3", "2,3"} }

func style(i int) string {
	s := fmt.Sprintf(`stroke="%s"`, colours()[i%len(colours())])
	if d := dashes()[i/len(colours())%len(dashes())]; d != "" {
		s += fmt.Sprintf(` stroke-dasharray="%s"`, d)
	}
	return s
}

// chart is one of a picture's panels.
type chart struct {
	title  string
	of     func(replay.Point) (float64, bool) // false: nothing is known of that time
	floor  float64                            // where the axis begins
	steps  bool                               // a line that holds until the next point
	format func(float64) string
	line   float64 // drawn across; 0: none
}

func charts(reports []replay.Report) []chart {
	whole := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	all := []chart{
		{title: "what the fullest replica carries over what it would in an ideal plan, the most in each stretch",
			floor: 1, line: replay.TooFull,
			of: func(p replay.Point) (float64, bool) { return p.MaxOverIdeal, p.MaxOverIdeal > 0 }, format: whole},
		{title: "clusters that moved so far", steps: true, format: whole,
			of: func(p replay.Point) (float64, bool) { return float64(p.Moves), true }},
		{title: "replicas", steps: true, format: whole,
			of: func(p replay.Point) (float64, bool) { return float64(p.Replicas), true }},
	}
	if replay.Sized(reports) {
		all = append(all, chart{title: "memory that sizes request of all replicas, in GiB", steps: true, format: whole,
			of: func(p replay.Point) (float64, bool) { return p.Memory, p.Memory > 0 }})
	}
	return all
}

// drawing is a picture under way.
type drawing struct {
	bytes.Buffer
	reports  []replay.Report
	from, to time.Time
}

// SVG draws reports of one trace over time.
func SVG(title string, reports []replay.Report) []byte {
	d := &drawing{reports: reports}
	for _, r := range reports {
		if d.from.IsZero() || r.From.Before(d.from) {
			d.from = r.From
		}
		if r.To.After(d.to) {
			d.to = r.To
		}
	}
	all := charts(reports)
	names, rows := legend(reports)
	below := head + (rows-1)*row
	height := below + len(all)*(panel+gap) + foot - gap + 20
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img">`,
		width, height, width, height)
	d.printf(`<title>%s</title>`, html.EscapeString(title))
	d.printf(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	d.text(left, 18, "start", "bold", shortened(title, headline))
	for i, n := range names {
		d.printf(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke-width="3" %s/>`, n.x, n.y, n.x+18, n.y, style(i))
		d.text(n.x+24, float64(n.y)+4, "start", "normal", n.name)
	}
	for i, c := range all {
		d.chart(c, below+i*(panel+gap)+16)
	}
	d.days(below+16, height-foot)
	d.printf(`</svg>`)
	return d.Bytes()
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *drawing) text(x, y float64, anchor, weight, s string) {
	d.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" font-weight="%s">%s</text>`, x, y, anchor, weight,
		html.EscapeString(s))
}

// entry is where the legend has a report's name.
type entry struct {
	name string
	x    float64
	y    int
}

// legend is where each report's name stands, beside each other as long as there is room; and in how many rows.
func legend(reports []replay.Report) (entries []entry, rows int) {
	x, rows := float64(left), 1
	for _, r := range reports {
		name := shortened(r.Name, longest)
		wide := 44 + character*float64(len([]rune(name)))
		if x > left && x+wide > width-right {
			x, rows = left, rows+1
		}
		entries = append(entries, entry{name, x, 36 + (rows-1)*row})
		x += wide
	}
	return entries, rows
}

// shortened is a text of so many characters at most.
func shortened(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func (d *drawing) x(at time.Time) float64 {
	share := float64(at.Sub(d.from)) / float64(max(d.to.Sub(d.from), 1))
	return left + (width-left-right)*min(max(share, 0), 1)
}

func (d *drawing) chart(c chart, top int) {
	d.text(left, float64(top)-6, "start", "normal", c.title)
	ceiling := c.floor
	for _, r := range d.reports {
		for _, p := range r.Series {
			if v, known := c.of(p); known {
				ceiling = max(ceiling, v)
			}
		}
	}
	step := tick(ceiling - c.floor)
	ceiling = c.floor + step*math.Ceil((ceiling-c.floor)/step-1e-9)
	if ceiling <= c.floor {
		ceiling = c.floor + step
	}
	y := func(v float64) float64 {
		return float64(top) + panel*(1-(v-c.floor)/(ceiling-c.floor))
	}
	for k := 0; c.floor+float64(k)*step <= ceiling+1e-9; k++ {
		v := math.Round((c.floor+float64(k)*step)*1e6) / 1e6
		d.printf(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#dddddd"/>`, left, y(v), width-right, y(v))
		d.text(left-6, y(v)+4, "end", "normal", c.format(v))
	}
	if c.line > c.floor && c.line < ceiling {
		d.printf(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#888888" stroke-dasharray="4,4"/>`, left, y(c.line),
			width-right, y(c.line))
	}
	for i, r := range d.reports {
		d.line(c, r, y, style(i))
	}
}

// line draws what a report says; it breaks where nothing is known.
func (d *drawing) line(c chart, r replay.Report, y func(float64) float64, style string) {
	var path bytes.Buffer
	pen := "M"
	for _, p := range r.Series {
		v, known := c.of(p)
		switch {
		case !known:
			pen = "M"
			continue
		case c.steps && pen == "L":
			fmt.Fprintf(&path, "H%.1fV%.1f", d.x(p.At), y(v))
		default:
			fmt.Fprintf(&path, "%s%.1f %.1f", pen, d.x(p.At), y(v))
		}
		pen = "L"
	}
	if c.steps && pen == "L" {
		fmt.Fprintf(&path, "H%.1f", d.x(d.to))
	}
	if path.Len() > 0 {
		d.printf(`<path d="%s" fill="none" stroke-width="1.5" %s><title>%s</title></path>`, path.Bytes(), style,
			html.EscapeString(r.Name))
	}
}

// tick is the distance of an axis's lines: a round one, of which at most five fit.
func tick(span float64) float64 {
	if span <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, round := range []float64{1, 2, 5, 10} {
		if span/(round*power) <= 5+1e-9 {
			return round * power
		}
	}
	return 10 * power
}

// moment is a time that is marked, with where its text stands.
type moment struct {
	at   time.Time
	text string
	x    float64
}

// moments are round times, of which at most nine fit.
func (d *drawing) moments() (all []moment) {
	span := d.to.Sub(d.from)
	step, format := time.Duration(0), "2006-01-02"
	const hour, day = time.Hour, 24 * time.Hour
	for _, s := range []time.Duration{time.Minute, 10 * time.Minute, hour, 3 * hour, 6 * hour, day, 7 * day, 28 * day, 365 * day} {
		if step = s; span <= 8*s {
			break
		}
	}
	if step < 24*time.Hour {
		format = "01-02 15:04"
	}
	half := character * float64(len(format)) / 2
	for at := d.from.Truncate(step); !at.After(d.to); at = at.Add(step) {
		if !at.Before(d.from) {
			all = append(all, moment{at, at.UTC().Format(format), min(d.x(at), width-half)})
		}
	}
	return all
}

// days marks the time below all panels.
func (d *drawing) days(top, bottom int) {
	for _, m := range d.moments() {
		d.printf(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#eeeeee"/>`, d.x(m.at), top, d.x(m.at), bottom-8)
		d.text(m.x, float64(bottom)+8, "middle", "normal", m.text)
	}
}
