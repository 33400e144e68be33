package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func made(t testing.TB, spec string) []Step {
	t.Helper()
	s, err := ParseSynthetic(spec)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := All(g)
	if err != nil {
		t.Fatal(err)
	}
	if g.Share() != 1 {
		t.Errorf("all is made, and it says %v of it", g.Share())
	}
	return steps
}

// TestASeedIsAlwaysTheSameTrace: pictures are made again from it, on any machine.
func TestASeedIsAlwaysTheSameTrace(t *testing.T) {
	for spec, want := range map[string]string{
		"days=0.1": "51ee", "days=0.1,seed=2": "c414", "days=0.5,step=5m,spikes=30,joins=20,leaves=20,growth=0.5": "8ee9",
	} {
		sum := sha256.New()
		for _, s := range made(t, spec) {
			fmt.Fprintln(sum, s.At.Unix(), s.Roster, s.Clusters, s.Values)
		}
		if got := hex.EncodeToString(sum.Sum(nil))[:4]; got != want {
			t.Errorf("%s is another trace than it was: %s, want %s", spec, got, want)
		}
	}
}

func TestASyntheticTraceIsWhatItsSettingsSay(t *testing.T) {
	still := made(t, "clusters=40,days=2,step=1h,swing=0,jitter=0")
	if len(still) != 48 || len(still[0].Clusters) != 40 || !still[47].At.Equal(begins.Add(47*time.Hour)) {
		t.Fatalf("%d steps, %d clusters, the last at %s", len(still), len(still[0].Clusters), still[47].At)
	}
	for i, v := range still[0].Values[0] {
		if last := still[47].Values[0][i]; last != v || v <= 0 {
			t.Errorf("cluster %d makes %v at first, %v at last, want the same without swing and jitter", i, v, last)
		}
	}
	swings := made(t, "clusters=40,days=1,step=1h,swing=0.4,jitter=0")
	for i := range 40 {
		least, most := math.Inf(1), 0.0
		for _, s := range swings {
			least, most = min(least, s.Values[0][i]), max(most, s.Values[0][i])
		}
		if got := (most - least) / (most + least); math.Abs(got-0.4) > 0.01 {
			t.Errorf("cluster %d swings by %.3f of its mean, want 0.4", i, got)
		}
	}
	grown := made(t, "clusters=5,days=30,step=24h,swing=0,jitter=0,growth=0.3")
	if got := grown[29].Values[0][0] / grown[0].Values[0][0]; math.Abs(got-(1+0.3*29/30)) > 0.001 {
		t.Errorf("after 29 days it makes %.4f of what it did, want 1.29", got)
	}
}

func TestSpikesAreAsManyAsAreAskedFor(t *testing.T) {
	steps := made(t, "clusters=50,days=7,step=10m,swing=0,jitter=0,spikes=4")
	spikes := 0
	for i := range 50 {
		low := math.Inf(1)
		for _, s := range steps {
			low = min(low, s.Values[0][i])
		}
		was := false
		for _, s := range steps {
			is := s.Values[0][i] > 1.9*low
			if is && !was {
				spikes++
			}
			if was = is; s.Values[0][i] > 5.01*low {
				t.Fatalf("a spike is %.1f times the load, want five at most", s.Values[0][i]/low)
			}
		}
	}
	if spikes < 150 || spikes > 220 { // one that begins as another ends is none of its own
		t.Errorf("%d spikes of 50 clusters in a week, want some 4 each", spikes)
	}
}

func TestClustersComeAndGoAsOftenAsIsAskedFor(t *testing.T) {
	steps := made(t, "clusters=30,days=28,step=1h,joins=10,leaves=5")
	joined, left := 0, 0
	for k := 1; k < len(steps); k++ {
		before, now := map[string]bool{}, map[string]bool{}
		for _, c := range steps[k-1].Clusters {
			before[c.Name] = true
		}
		for _, c := range steps[k].Clusters {
			if now[c.Name] = true; !before[c.Name] {
				joined++
			}
		}
		for name := range before {
			if !now[name] {
				left++
			}
		}
		changed := steps[k].Roster != steps[k-1].Roster
		if changed != !maps.Equal(before, now) {
			t.Fatalf("step %d: the roster changes: %t, from %v to %v", k, changed, before, now)
		}
	}
	if joined < 25 || joined > 60 || left < 8 || left > 34 {
		t.Errorf("in four weeks %d joined and %d left, want some 40 and 20", joined, left)
	}
}

func TestOneClusterStaysAtLeast(t *testing.T) {
	steps := made(t, "clusters=2,days=20,step=1h,leaves=50")
	if n := len(steps[len(steps)-1].Clusters); n != 1 {
		t.Errorf("%d clusters are left, want 1", n)
	}
}

func TestSettingsOfASyntheticTrace(t *testing.T) {
	got, err := ParseSynthetic(" clusters=9, days=0.5 ,step=30s,seed=3,swing=0.1")
	if err != nil {
		t.Fatal(err)
	}
	want := Usual()
	want.Clusters, want.Days, want.Step, want.Seed, want.Swing = 9, 0.5, 30*time.Second, 3, 0.1
	same(t, want, got)
	for text, want := range map[string]string{
		"cluster=9":             `"cluster" is no setting of a synthetic trace: they are seed, clusters, replicas, days,`,
		"clusters":              "clusters has no value: write it behind an =",
		"clusters=9,clusters=8": "clusters stands twice",
		"clusters=many":         `clusters: "many" is no whole number`,
		"seed=-1":               `seed: "-1" is no whole number`,
		"swing=a":               `swing: "a" is no number`,
		"step=1":                `step: "1" is not a length of time: write it like 90s, 1h30m or 7d`,
		"clusters=0":            "clusters: 0 is none from 1 to 20000",
		"jitter=2":              "jitter: 2 is none from 0 to 1",
		"days=NaN":              "days: NaN is none from 0 to 400",
	} {
		if _, err := ParseSynthetic(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is refused with %v, want %s", text, err, want)
		}
	}
	for _, name := range Settings() {
		if !strings.Contains(Describe(), "  "+name+"=") {
			t.Errorf("the help does not describe %s:\n%s", name, Describe())
		}
	}
}

// TestASyntheticTraceIsATrace: whatever its settings, its steps can be written and read.
func TestASyntheticTraceIsATrace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := Usual()
		s.Clusters, s.Days, s.Step = rapid.IntRange(1, 5).Draw(r, "clusters"), 1, time.Hour
		s.Seed, s.Spread = rapid.Uint64().Draw(r, "seed"), rapid.Float64Range(0, 5).Draw(r, "spread")
		s.Swing, s.Jitter = rapid.Float64Range(0, 1).Draw(r, "swing"), rapid.Float64Range(0, 1).Draw(r, "jitter")
		s.Growth, s.Spikes = rapid.Float64Range(-1, 10).Draw(r, "growth"), rapid.Float64Range(0, 1000).Draw(r, "spikes")
		s.Joins, s.Leaves = rapid.Float64Range(0, 50).Draw(r, "joins"), rapid.Float64Range(0, 50).Draw(r, "leaves")
		g, err := Generate(s)
		if err != nil {
			r.Fatal(err)
		}
		steps, err := All(g)
		if err != nil || len(steps) != 24 {
			r.Fatalf("%d steps: %v", len(steps), err)
		}
		rewritten(t, g.Header(), steps)
	})
}

func FuzzSynthetic(f *testing.F) {
	f.Add("clusters=3,days=0.01,spikes=2")
	f.Add("step=90s,,growth=-1")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSynthetic(text)
		if err != nil {
			return
		}
		s.Clusters, s.Days = min(s.Clusters, 50), min(s.Days, 0.01)
		g, err := Generate(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Next(); err != nil && s.Days > 0.01 {
			t.Fatal(err)
		}
	})
}
