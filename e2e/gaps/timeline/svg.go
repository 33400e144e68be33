package timeline

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
	"time"
)

// Mark is an instant that a picture names: what was asked for, and when.
type Mark struct {
	At   time.Time
	Text string
}

// The picture's measures, in pixels.
const (
	pictureWidth = 1180
	labelWidth   = 120
	noteWidth    = 240
	laneHeight   = 15
	barHeight    = 11
	headHeight   = 66
	axisHeight   = 34
	leastWidth   = 2 // of a gap, which would not be seen otherwise
)

// palette can be told apart by most people (Okabe and Ito); the first pod has the first colour.
func palette() []string {
	return []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"}
}

const (
	unownedColour = "#d40000"
	doubledColour = "#000000"
)

// picture is a timeline being drawn.
type picture struct {
	Timeline
	out     bytes.Buffer
	colours map[string]string // by pod
}

// SVG draws the timeline: a lane for each pod with the times it ran, then one for each cluster in the colour of its
// owner. Where a cluster had no owner it is red, where it had two black; each move has its gap beside it.
func (t Timeline) SVG(title string, marks ...Mark) []byte {
	p := &picture{Timeline: t, colours: map[string]string{}}
	pods := p.pods()
	for i, pod := range pods {
		p.colours[pod] = palette()[i%len(palette())]
	}
	height := headHeight + (len(pods)+len(t.Clusters)+1)*laneHeight + axisHeight
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`, pictureWidth, height, pictureWidth, height)
	p.printf(`<rect width="%d" height="%d" fill="#ffffff"/>`, pictureWidth, height)
	p.text(labelWidth, 20, "start", "#000000", "bold", title)
	p.axis(height)
	y := headHeight
	for _, pod := range pods {
		p.podLane(y, pod)
		y += laneHeight
	}
	y += laneHeight
	for _, a := range t.Accounts() {
		p.clusterLane(y, a)
		y += laneHeight
	}
	for i, m := range marks {
		p.mark(i, m, height)
	}
	p.printf("</svg>")
	return p.out.Bytes()
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *picture) text(x, y float64, anchor, colour, weight, s string) {
	p.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" font-weight="%s">%s</text>`, x, y, anchor, colour,
		weight, html.EscapeString(s))
}

// x is where an instant lies; what lies outside of the window lies at its border.
func (p *picture) x(at time.Time) float64 {
	const width = pictureWidth - labelWidth - noteWidth
	share := float64(at.Sub(p.From)) / float64(max(p.To.Sub(p.From), 1))
	return labelWidth + width*min(max(share, 0), 1)
}

func (p *picture) bar(y int, from, to time.Time, least float64, colour, what string) {
	x := p.x(from)
	p.printf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`, x, y,
		max(p.x(to)-x, least), barHeight, colour, html.EscapeString(what))
}

// pods are the pods that ran in the window, by their ordinals.
func (p *picture) pods() []string {
	ran := map[string]bool{}
	for _, e := range p.Events {
		if !ran[e.Pod] {
			ran[e.Pod] = slices.ContainsFunc(p.Runs(e.Pod), func(s Span) bool { return s.To.After(p.From) })
		}
	}
	maps.DeleteFunc(ran, func(_ string, ran bool) bool { return !ran })
	return slices.SortedFunc(maps.Keys(ran), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
}

// step is the distance of the axis's ticks: a round one, of which at most ten fit.
func (p *picture) step() time.Duration {
	for _, s := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute} {
		if p.To.Sub(p.From) <= 10*s {
			return s
		}
	}
	return 5 * time.Minute
}

func (p *picture) axis(height int) {
	bottom := float64(height - axisHeight + 4)
	for d, s := time.Duration(0), p.step(); d <= p.To.Sub(p.From); d += s {
		x := p.x(p.From.Add(d))
		p.printf(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`, x, headHeight-4, x, bottom)
		p.text(x, bottom+12, "middle", "#444444", "normal", fmt.Sprintf("%g s", d.Seconds()))
	}
	for i, legend := range []struct{ colour, what string }{{unownedColour, "no owner"}, {doubledColour, "two owners"}} {
		x := float64(pictureWidth - noteWidth + 8 + i*80)
		p.printf(`<rect x="%.1f" y="11" width="%d" height="%d" fill="%s"/>`, x, barHeight, barHeight, legend.colour)
		p.text(x+barHeight+4, 20, "start", "#000000", "normal", legend.what)
	}
}

// podLane shows when the pod's processes ran.
func (p *picture) podLane(y int, pod string) {
	p.text(labelWidth-6, float64(y+10), "end", "#000000", "normal", shortPod(pod))
	for _, s := range p.Runs(pod) {
		if s.To.After(p.From) {
			p.bar(y, s.From, s.To, leastWidth, p.colours[pod], shortPod(pod)+" runs")
		}
	}
	if n := p.Restarts()[pod]; n > 0 {
		p.text(pictureWidth-noteWidth+8, float64(y+10), "start", "#000000", "normal", fmt.Sprintf("restarts: %d", n))
	}
}

func (p *picture) clusterLane(y int, a Account) {
	p.text(labelWidth-6, float64(y+10), "end", "#000000", "normal", a.Cluster)
	for _, n := range p.Tenures(p.server(a.Cluster)) {
		to := n.To
		if to.IsZero() {
			to = p.To
		}
		if to.After(p.From) {
			p.bar(y, n.From, to, 0.5, p.colours[n.Pod], shortPod(n.Pod))
		}
	}
	for _, s := range a.Unowned {
		p.bar(y, s.From, s.To, leastWidth, unownedColour, "no owner for "+seconds(s.Length()))
	}
	for _, s := range a.Doubled {
		p.bar(y, s.From, s.To, leastWidth, doubledColour, "two owners for "+seconds(s.Length()))
	}
	note, colour := "untouched", "#888888"
	if a.Touched {
		note, colour = notes(a.Moves), "#000000"
	}
	p.text(pictureWidth-noteWidth+8, float64(y+10), "start", colour, "normal", note)
}

func (p *picture) server(name string) string {
	i := slices.IndexFunc(p.Clusters, func(c Cluster) bool { return c.Name == name })
	return p.Clusters[i].Server
}

// notes are a cluster's moves: 0 → 2 after 31 ms. There is room for two.
func notes(moves []Move) string {
	if len(moves) > 2 {
		longest := slices.MaxFunc(moves, func(a, b Move) int { return cmp.Compare(a.Gap, b.Gap) })
		return fmt.Sprintf("%d moves, after at most %s", len(moves), seconds(max(longest.Gap, 0)))
	}
	var words []string
	for _, m := range moves {
		how := "after " + seconds(m.Gap)
		if m.Gap < 0 {
			how = "with both for " + seconds(-m.Gap)
		}
		words = append(words, fmt.Sprintf("%s → %s %s", ordinal(m.From), ordinal(m.To), how))
	}
	return strings.Join(words, ", ")
}

func (p *picture) mark(i int, m Mark, height int) {
	x, y := p.x(m.At), 36+float64(i%2)*13
	p.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%d" stroke="#444444" stroke-dasharray="3,3"/>`, x, y+3, x,
		height-axisHeight+4)
	p.text(x+3, y, "start", "#444444", "normal", m.Text)
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// ordinal is the number at the end of a pod's name, or a dash for no pod.
func ordinal(pod string) string {
	if pod == "" {
		return "–"
	}
	return pod[strings.LastIndex(pod, "-")+1:]
}

func shortPod(pod string) string { return "replica " + ordinal(pod) }
