package track

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/sim"
)

var taken = []string{"apps", "objects"}

// pod is a look at one that takes 100 and 3 for each object, and 20 for each application.
func pod(name, of string, apps, objects float64) Look {
	return Look{Pod: name, Of: of, Values: []float64{apps, objects}, Memory: 100 + 20*apps + 3*objects}
}

func TestAPodIsSampledOnceItsClustersHaveSettled(t *testing.T) {
	at := func(minutes int) time.Time { return sim.Epoch.Add(time.Duration(minutes) * time.Minute) }
	var got []string
	var m Usage
	looks := map[int][]Look{0: {pod("a", "x", 1, 2), pod("b", "y", 1, 2)}}
	looks[40] = []Look{pod("a", "x", 2, 2), pod("b", "z", 1, 2)}                  // another set
	looks[60] = []Look{pod("b", "z", 1, 2), {Pod: "c", Of: "q", Memory: 5}}       // a is gone, c is new
	looks[75] = []Look{pod("b", "z", 1, 2), {Pod: "c", Of: "q", Started: at(70)}} // c began anew
	for minute := range 12 * 60 {
		if next, changes := looks[minute]; changes {
			looks[-1] = next
		}
		before := len(m.Rows)
		m = m.Next(looks[-1], taken, at(minute))
		for _, r := range m.Rows[before:] {
			got = append(got, fmt.Sprint(minute, " ", r.Pod, " ", r.Values))
		}
	}
	want := []string{"30 a [1 2]", "30 b [1 2]", "70 b [1 2]", "105 c []", "430 b [1 2]", "465 c []"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m = m.Next(nil, []string{"apps"}, at(1000)); len(m.Rows) > 0 {
		t.Errorf("%d samples of other metrics are kept", len(m.Rows))
	}
}

// spread is a look at a pod with clusters of these weights, each in the part that its number says.
func spread(of string, weights map[int]float64) Look {
	l, all := pod("a", of, 1, 2), 0.0
	l.Shape = make([]float64, Parts)
	for _, w := range weights {
		all += w
	}
	for part, w := range weights {
		l.Shape[part] = w / all
	}
	return l
}

func TestWhatIsLightComesAndGoes(t *testing.T) {
	at := func(minutes int) time.Time { return sim.Epoch.Add(time.Duration(minutes) * time.Minute) }
	whole := map[int]float64{1: 50, 2: 50}
	for name, tc := range map[string]struct {
		with map[int]float64 // every other three minutes
		of   string
		want bool
	}{
		"what carries nothing":         {whole, "x, and one that is idle", true},
		"next to nothing":              {map[int]float64{1: 50, 2: 50, 3: 0.1}, "x, and a light one", true},
		"a light one, over and over":   {map[int]float64{1: 50, 2: 50, 3: 4}, "x, and another", true},
		"one for another":              {map[int]float64{1: 50, 4: 50}, "y", false},
		"it makes more, and none came": {map[int]float64{1: 50, 2: 90}, "x", true},
	} {
		t.Run(name, func(t *testing.T) {
			var m Usage
			for minute := range 120 {
				l := spread("x", whole)
				if minute/3%2 == 1 {
					l = spread(tc.of, tc.with)
				}
				m = m.Next([]Look{l}, taken, at(minute))
			}
			if got := len(m.Rows) > 0; got != tc.want {
				t.Errorf("%d samples; %+v", len(m.Rows), m)
			}
		})
	}
}

// learned takes so many samples of pods whose clusters make what draw says.
func learned(pods, samples int, draw func(pod, sample int) Look) Usage {
	var m Usage
	for sample := range samples {
		var looks []Look
		for p := range pods {
			l := draw(p, sample)
			l.Pod, l.Of = fmt.Sprint("pod-", p), fmt.Sprint(sample)
			looks = append(looks, l)
		}
		now := sim.Epoch.Add(time.Duration(sample) * time.Hour)
		m = m.Next(looks, taken, now)
		m = m.Next(looks, taken, now.Add(settled))
	}
	return m
}

func TestBytesAreLearned(t *testing.T) {
	differ := func(pod, sample int) (apps, objects float64) {
		return float64(1 + (pod*7+sample*5)%11), float64(10 + (pod*31+sample*17)%50)
	}
	for name, test := range map[string]struct {
		pods int
		off  func(pod, sample int) float64
		fits bool
		why  string
	}{
		"it follows the metrics":    {4, func(int, int) float64 { return 0 }, true, ""},
		"nearly":                    {4, func(p, s int) float64 { return float64((p*13 + s*29) % 20) }, true, ""},
		"it follows something else": {4, func(p, s int) float64 { return 1000 * float64((p*p+s*7)%5) }, false, "R2 is "},
		"two pods bear nothing out": {2, func(int, int) float64 { return 0 }, false, "there are samples of 2 pods"},
	} {
		m := learned(test.pods, 12, func(p, s int) Look {
			apps, objects := differ(p, s)
			l := pod("", "", apps, objects)
			l.Memory += test.off(p, s)
			return l
		})
		if fits := m.Fit != nil; fits != test.fits || !strings.HasPrefix(m.Why, test.why) {
			t.Errorf("%s: %+v, %q", name, m.Fit, m.Why)
		}
		if test.fits && name == "it follows the metrics" {
			got := []float64{math.Round(m.Fit.Base), math.Round(m.Fit.Per["apps"]), math.Round(m.Fit.Per["objects"])}
			if diff := cmp.Diff([]float64{100, 20, 3}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}
