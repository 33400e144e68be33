package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/config"
	"ballast/planner/plan"
)

// Synthetic is a load that is made up: a fleet as fleets are, with many small clusters and a few heavy ones. The same
// numbers make the same trace on every machine.
type Synthetic struct {
	Seed     uint64        `name:"seed" says:"another one is another fleet of the same kind"`
	Clusters int           `name:"clusters" says:"at the beginning"`
	Replicas int           `name:"replicas" says:"at the beginning"`
	Days     float64       `name:"days" says:"how long it lasts"`
	Step     time.Duration `name:"step" says:"between two samples"`
	Spread   float64       `name:"spread" says:"how unlike the clusters are: the sigma of the lognormal distribution of their loads"`
	Swing    float64       `name:"swing" says:"by which share of its mean a cluster's load rises and falls each day, in one of three regions"`
	Jitter   float64       `name:"jitter" says:"by which share it differs from sample to sample"`
	Spikes   float64       `name:"spikes" says:"spikes of a cluster in a week: two to five times its load, for ten minutes to two hours"`
	Joins    float64       `name:"joins" says:"clusters that come in a week"`
	Leaves   float64       `name:"leaves" says:"clusters that go in a week"`
	Growth   float64       `name:"growth" says:"by which share every load grows in 30 days"`
}

// Usual is a synthetic week as it is where nobody says otherwise.
func Usual() Synthetic {
	return Synthetic{Seed: 1, Clusters: 60, Replicas: 3, Days: 7, Step: time.Minute, Spread: 1, Swing: 0.4,
		Jitter: 0.05}
}

// begins is when every synthetic trace does.
var begins = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// ParseSynthetic reads what differs from the usual week, as in clusters=200,days=30,seed=7.
func ParseSynthetic(text string) (Synthetic, error) {
	s := Usual()
	into, seen := reflect.ValueOf(&s).Elem(), map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, is := strings.Cut(part, "=")
		field := slices.Index(Settings(), name)
		switch {
		case field < 0:
			return s, fmt.Errorf("%.60q is no setting of a synthetic trace: they are %s", name,
				strings.Join(Settings(), ", "))
		case !is:
			return s, fmt.Errorf("%s has no value: write it behind an =", name)
		case seen[name]:
			return s, fmt.Errorf("%s stands twice", name)
		}
		seen[name] = true
		if err := set(into.Field(field), value); err != nil {
			return s, fmt.Errorf("%s: %.60q %w", name, value, err)
		}
	}
	return s, s.check()
}

// Settings are the names of a synthetic trace's settings.
func Settings() (names []string) {
	for f := range reflect.TypeFor[Synthetic]().Fields() {
		names = append(names, f.Tag.Get("name"))
	}
	return names
}

// Describe is a line for each setting: its name, what it is where nobody says otherwise, and what it means.
func Describe() string {
	var b strings.Builder
	usual := reflect.ValueOf(Usual())
	for i, name := range Settings() {
		value := usual.Field(i).Interface()
		if step, is := value.(time.Duration); is {
			value = config.Duration(step)
		}
		fmt.Fprintf(&b, "  %-14s %s\n", fmt.Sprintf("%s=%v", name, value), usual.Type().Field(i).Tag.Get("says"))
	}
	return b.String()
}

func set(field reflect.Value, text string) error {
	switch field.Interface().(type) {
	case time.Duration:
		var d config.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil {
			return err
		}
		field.SetInt(int64(d))
	case uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return errors.New("is no whole number")
		}
		field.SetUint(n)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("is no whole number")
		}
		field.SetInt(int64(n))
	default:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.New("is no number")
		}
		field.SetFloat(v)
	}
	return nil
}

func (s Synthetic) check() error {
	for _, c := range []struct {
		name        string
		is          float64
		least, most float64
	}{
		{"clusters", float64(s.Clusters), 1, 20_000}, {"replicas", float64(s.Replicas), 1, 1000},
		{"days", s.Days, 0, 400},
		{"step", s.Step.Seconds(), 1, 86400}, {"spread", s.Spread, 0, 5}, {"swing", s.Swing, 0, 1},
		{"jitter", s.Jitter, 0, 1},
		{"spikes", s.Spikes, 0, 1000}, {"joins", s.Joins, 0, 10_000}, {"leaves", s.Leaves, 0, 10_000},
		{"growth", s.Growth, -1, 10},
	} {
		if !(c.is >= c.least && c.is <= c.most) { // a NaN is neither
			return fmt.Errorf("%s: %v is none from %v to %v", c.name, c.is, c.least, c.most)
		}
	}
	return nil
}

// Generator is a synthetic trace as a source. It keeps the fleet, and none of the steps.
type Generator struct {
	of     Synthetic
	coin   *rand.Rand
	steps  int
	step   int
	made   int // clusters so far
	roster int
	now    []Cluster
	loads  []synthetic
}

// synthetic is what a cluster's load is made of.
type synthetic struct {
	base   float64
	phase  float64 // of its day, as a share of it
	spikes int     // steps that the spike under way still lasts
	times  float64 // what it multiplies the load by
}

var _ Source = (*Generator)(nil)

// Generate makes the source.
func Generate(s Synthetic) (*Generator, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	g := &Generator{of: s, coin: rand.New(rand.NewPCG(s.Seed, 12)),
		steps: int(math.Round(float64(s.Days*86400) / s.Step.Seconds()))}
	for range s.Clusters {
		g.join()
	}
	g.roster = 1
	return g, nil
}

func (g *Generator) join() {
	g.now = append(g.now, Cluster{Name: fmt.Sprintf("c%04d", g.made), Replica: plan.NoReplica}.named())
	g.loads = append(g.loads, synthetic{base: 20 * math.Exp(float64(g.of.Spread*g.coin.NormFloat64())),
		phase: float64(g.made%3) / 3})
	g.made++
}

// Header implements Source.
func (g *Generator) Header() Header {
	return Header{Step: g.of.Step, Metrics: []string{LoadMetric}, Replicas: g.of.Replicas}
}

// Share implements Source.
func (g *Generator) Share() float64 { return float64(g.step) / float64(max(g.steps, 1)) }

// Next implements Source.
func (g *Generator) Next() (Step, error) {
	if g.step >= g.steps {
		return Step{}, io.EOF
	}
	passed := time.Duration(g.step) * g.of.Step
	if g.step > 0 {
		g.comeAndGo()
	}
	g.step++
	values := make([]float64, len(g.now))
	for i := range g.loads {
		values[i] = g.load(i, passed.Hours())
	}
	return Step{At: begins.Add(passed), Roster: g.roster, Clusters: g.now, Values: [][]float64{values}}, nil
}

// inStep is how likely what happens so often in a week happens in a step.
func (g *Generator) inStep(weekly float64) float64 {
	return float64(weekly * g.of.Step.Hours() / (7 * 24))
}

// comeAndGo has clusters join and leave; one stays at least.
func (g *Generator) comeAndGo() {
	joins, leaves := g.draw(g.inStep(g.of.Joins)), min(g.draw(g.inStep(g.of.Leaves)), len(g.now)-1)
	if joins+leaves == 0 {
		return
	}
	g.roster++
	g.now, g.loads = slices.Clone(g.now), slices.Clone(g.loads)
	for range leaves {
		i := g.coin.IntN(len(g.now))
		g.now, g.loads = slices.Delete(g.now, i, i+1), slices.Delete(g.loads, i, i+1)
	}
	for range joins {
		g.join()
	}
}

// draw is how often something happens in a step that does so that often on average.
func (g *Generator) draw(mean float64) int {
	if mean == 0 {
		return 0
	}
	whole := math.Floor(mean)
	n := int(whole)
	if g.coin.Float64() < mean-whole {
		n++
	}
	return n
}

// load is a cluster's now, with four digits. Every product is rounded by itself, so that no machine fuses it with a
// sum: the trace is the same on all.
func (g *Generator) load(i int, hours float64) float64 {
	l, s := &g.loads[i], g.of
	day := 1 + float64(s.Swing*math.Sin(float64(2*math.Pi)*(float64(hours/24)+l.phase)))
	noise := 1 + float64(s.Jitter*(float64(2*g.coin.Float64())-1))
	grown := max(1+float64(s.Growth*hours/(30*24)), 0)
	if s.Spikes > 0 {
		g.spike(l)
	}
	v := float64(l.base*day) * float64(noise*grown)
	if l.spikes > 0 {
		v *= l.times
	}
	return digits4(v)
}

// spike begins one, or lets the one under way go on.
func (g *Generator) spike(l *synthetic) {
	if l.spikes > 0 {
		l.spikes--
		return
	}
	if g.coin.Float64() < g.inStep(g.of.Spikes) {
		lasts := 10 + g.coin.IntN(111) // minutes
		l.spikes = max(int(time.Duration(lasts)*time.Minute/g.of.Step), 1)
		l.times = 2 + float64(3*g.coin.Float64())
	}
}

// digits4 rounds to four significant digits.
func digits4(v float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // it printed a number
	return short
}
