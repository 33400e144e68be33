package ownership

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// runs is an observation by that setting, of pods that started so many minutes after noon.
func runs(setting string, minutes ...int) Observation {
	s := Observation{Setting: setting, Clusters: map[string]ClusterObservation{"none": {}, "some": {Apps: 2}}}
	for i, m := range minutes {
		s.Pods = append(s.Pods, PodObservation{Name: fmt.Sprintf("controller-%d", i), Started: noon().Add(time.Duration(m) * time.Minute)})
	}
	return s
}

// TestAPodGoesByTheSettingOfItsStart: while one may have another setting than the listing went by, no cluster is without Applications.
func TestAPodGoesByTheSettingOfItsStart(t *testing.T) {
	a := []Setting{{Of: "a"}}
	ab := []Setting{{Of: "a"}, {Of: "b", Since: noon().Add(time.Hour)}}
	aba := append(slices.Clone(ab), Setting{Of: "a", Since: noon().Add(2 * time.Hour)})
	late := []Setting{{Of: "a"}, {Of: "b", Since: noon().Add(170 * time.Minute)}}
	unseen := []Setting{{Of: "a", Seen: noon().Add(20 * time.Minute)}, {Of: "b", Since: noon().Add(time.Hour)}}
	for name, test := range map[string]struct {
		before []Setting
		now    Observation
		none   int
		kept   []string
	}{
		"nobody says it":               {nil, runs("", 0), 0, nil},
		"the first that is seen":       {nil, runs("a", -999, 0), 0, []string{"a"}},
		"the same":                     {a, runs("a", -999, 170), 0, []string{"a"}},
		"another one now":              {a, runs("b", 0, 0), Unknown, []string{"a", "b"}},
		"one pod has started since":    {ab, runs("b", 0, 70), Unknown, []string{"a", "b"}},
		"both have":                    {ab, runs("b", 63, 70), 0, []string{"b"}},
		"a pod that started just then": {late, runs("b", 171, 175), Unknown, []string{"a", "b"}},
		"a pod that started just then, two hours ago":          {ab, runs("b", 61, 70), 0, []string{"a", "b"}},
		"nobody looked when it started, two hours ago":         {unseen, runs("b", 25, 30), 0, []string{"a", "b"}},
		"it started before somebody looked":                    {unseen, runs("b", 17, 30), Unknown, []string{"a", "b"}},
		"a pod that has no container now":                      {ab, func() Observation { s := runs("b", 70, 0); s.Pods[1].Started = time.Time{}; return s }(), 0, []string{"b"}},
		"put back, and no pod has started meanwhile":           {ab, runs("a", 0, 10), 0, []string{"a"}},
		"put back, and one has":                                {ab, runs("a", 0, 90), Unknown, []string{"a", "b", "a"}},
		"put back, one has, and was started again":             {aba, runs("a", 0, 130), 0, []string{"a"}},
		"put back an hour ago, and one has the one in between": {aba, runs("a", 0, 100), Unknown, []string{"a", "b", "a"}},
		"nobody says it any more":                              {ab, runs("", 0), Unknown, []string{"a", "b"}},
		"no pod is seen":                                       {ab, runs("b"), 0, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, now := Memory{Settings: test.before}, noon().Add(3*time.Hour)
			got := test.now.Doubted(m, now).Clusters
			if got["none"].Apps != test.none || got["some"].Apps != 2 {
				t.Errorf("%d and %d Applications, want %d and 2", got["none"].Apps, got["some"].Apps, test.none)
			}
			if test.now.Clusters["none"].Apps != 0 {
				t.Error("what was given is changed")
			}
			next, _ := Judge(m, test.now, func(string) (int, bool) { return 0, true }, now, Grace{})
			var kept []string
			for _, s := range next.Settings {
				kept = append(kept, s.Of)
			}
			if !slices.Equal(kept, test.kept) {
				t.Errorf("remembered are %v, want %v", kept, test.kept)
			}
		})
	}
}

// TestNoSequenceOfSettingsHidesAnOlderOne: whatever is written when, a pod that has another setting than the one of the listing is known to.
func TestNoSequenceOfSettingsHidesAnOlderOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pod struct {
			started time.Time
			has     string
		}
		m, now, live := Memory{}, noon(), "a"
		pods := []pod{{now.Add(-time.Hour), live}, {now.Add(-2 * time.Hour), live}}
		m.Settings = m.settings(Observation{Setting: live, Pods: make([]PodObservation, 2)}, now)
		for range rapid.IntRange(1, 110).Draw(t, "cycles") {
			now = now.Add(time.Minute)
			live = rapid.SampledFrom([]string{live, live, live, "a", "b", "c"}).Draw(t, "setting")
			s := Observation{Setting: live}
			differs := false
			for i := range pods {
				if rapid.IntRange(0, 20).Draw(t, "restarts") == 0 {
					pods[i] = pod{now, live}
				}
				differs = differs || pods[i].has != live
				s.Pods = append(s.Pods, PodObservation{Started: pods[i].started})
			}
			if since := m.Unsettled(s, now); differs && since.IsZero() {
				t.Fatalf("pods %v go by another setting than %q, and nobody says so: %v", pods, live, m.Settings)
			}
			if m.Settings = m.settings(s, now); len(m.Settings) > mostSettings {
				t.Fatalf("%d settings are remembered", len(m.Settings))
			}
		}
	})
}
