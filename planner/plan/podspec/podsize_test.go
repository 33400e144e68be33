package podspec

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/plan/fixture"
)

func ask(requests, limits map[string]string) plan.Resources {
	return plan.Resources{Requests: requests, Limits: limits}
}

func TestMisfit(t *testing.T) {
	type m = map[string]string
	const whole = "let the size name requests and limits of what it changes, and the same of both"
	for name, test := range map[string]struct {
		pod  []plan.Resources // the controller's first
		size plan.Resources
		want string
	}{
		"more of what it asks for":      {[]plan.Resources{ask(m{"cpu": "1"}, nil)}, ask(m{"cpu": "2"}, nil), ""},
		"a limit beside":                {[]plan.Resources{ask(m{"cpu": "1"}, nil)}, ask(nil, m{"memory": "2Gi"}), ""},
		"a request above its limit":     {[]plan.Resources{ask(m{"memory": "1Gi"}, m{"memory": "4Gi"})}, ask(m{"memory": "6Gi"}, nil), "its request of memory would be above its limit: let the size name limits.memory, too"},
		"a limit below its request":     {[]plan.Resources{ask(m{"cpu": "2"}, nil)}, ask(nil, m{"cpu": "1"}), "its request of cpu would be above its limit: let the size name limits.cpu, too"},
		"both":                          {[]plan.Resources{ask(m{"memory": "1Gi"}, m{"memory": "4Gi"})}, ask(m{"memory": "6Gi"}, m{"memory": "6Gi"}), ""},
		"a pod that asks for nothing":   {[]plan.Resources{{}, {}}, ask(m{"cpu": "1"}, nil), "its quality of service would be Burstable and no longer BestEffort: let the pod template ask for something of what the size names"},
		"beside one that asks":          {[]plan.Resources{{}, ask(m{"cpu": "1"}, nil)}, ask(m{"cpu": "1"}, nil), ""},
		"all of a guaranteed one":       {[]plan.Resources{ask(nil, m{"cpu": "1", "memory": "1Gi"})}, ask(m{"cpu": "2", "memory": "2Gi"}, m{"cpu": "2", "memory": "2Gi"}), ""},
		"what a limit says twice":       {[]plan.Resources{ask(m{"cpu": "1", "memory": "1Gi"}, m{"cpu": "1000m", "memory": "1024Mi"})}, ask(m{"cpu": "2"}, m{"cpu": "2000m"}), ""},
		"a guaranteed one's request":    {[]plan.Resources{ask(m{"cpu": "1", "memory": "2Gi"}, m{"cpu": "1", "memory": "2Gi"})}, ask(m{"memory": "1Gi"}, nil), "its quality of service would be Burstable and no longer Guaranteed: " + whole},
		"a guaranteed one's limit":      {[]plan.Resources{ask(m{"cpu": "1", "memory": "2Gi"}, m{"cpu": "1", "memory": "2Gi"})}, ask(nil, m{"memory": "3Gi"}), "its quality of service would be Burstable and no longer Guaranteed: " + whole},
		"one that would be guaranteed":  {[]plan.Resources{ask(m{"cpu": "1", "memory": "1Gi"}, m{"cpu": "1"})}, ask(nil, m{"memory": "1Gi"}), "its quality of service would be Guaranteed and no longer Burstable: let the size leave a limit above its request"},
		"not beside one that is not":    {[]plan.Resources{ask(m{"cpu": "1", "memory": "1Gi"}, m{"cpu": "1"}), ask(m{"cpu": "1"}, nil)}, ask(nil, m{"memory": "1Gi"}), ""},
		"a pod with resources of a pod": {nil, ask(m{"cpu": "2"}, nil), "the pod has resources as a whole (spec.resources): take them out of the pod template"},
		"a request of 0 is none":        {[]plan.Resources{ask(m{"cpu": "0"}, nil)}, ask(m{"cpu": "2"}, nil), "its quality of service would be Burstable and no longer BestEffort: let the pod template ask for something of what the size names"},
		"what nobody can read is none":  {[]plan.Resources{ask(m{"cpu": "x"}, m{"memory": "1Gi"})}, ask(m{"cpu": "2"}, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := Size{Whole: true}
			if len(test.pod) > 0 {
				pod = NewSize(test.pod[0], test.pod[1:], false)
			}
			if got := pod.Misfit(test.size); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A pod template holds what of a size it can have: a limit that nobody but people has in it bounds the request.
func TestWhatOfASizeATemplateCanHold(t *testing.T) {
	type m = map[string]string
	size := ask(m{"cpu": "1", "memory": "4Gi"}, m{"cpu": "2"})
	for name, test := range map[string]struct {
		has, fits plan.Resources
		above     []string
	}{
		"no limit":                    {ask(m{"memory": "1Gi"}, nil), size, nil},
		"a limit above the request":   {ask(m{"memory": "1Gi"}, m{"memory": "6Gi"}), size, nil},
		"a limit that equals it":      {ask(nil, m{"memory": "4096Mi"}), size, nil},
		"a limit below it":            {ask(m{"memory": "1Gi"}, m{"memory": "2Gi"}), ask(m{"cpu": "1"}, m{"cpu": "2"}), []string{"memory"}},
		"a limit that the size holds": {ask(m{"cpu": "100m"}, m{"cpu": "500m"}), size, nil},
		"a limit of nothing":          {ask(nil, m{"memory": "0"}), ask(m{"cpu": "1"}, m{"cpu": "2"}), []string{"memory"}},
		"a limit that is none":        {ask(nil, m{"memory": "much"}), size, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fits, above := test.has.Fitting(size)
			if !fits.Same(test.fits) || !slices.Equal(above, test.above) {
				t.Errorf("got %+v and %v, want %+v and %v", fits, above, test.fits, test.above)
			}
		})
	}
	if fits, above := ask(m{"memory": "4Gi"}, nil).Fitting(ask(nil, m{"memory": "2Gi"})); !fits.Empty() || !slices.Equal(above, []string{"memory"}) {
		t.Errorf("a limit below the request that stands: got %+v and %v", fits, above)
	}
}

// Whatever a container asks for that Kubernetes took, it takes what fits, too.
func TestWhatFitsIsNeverAboveItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		has, size := fixture.DrawSize(t), fixture.DrawSize(t)
		fits, above := has.Fitting(size)
		all := has.With(fits)
		if _, refused := all.Fitting(all); len(refused) > 0 {
			t.Fatalf("%+v with %+v of %+v has requests above their limits: %v", has, fits, size, refused)
		}
		if len(above) == 0 && !fits.Same(size) {
			t.Fatalf("nothing of %+v is above its limit in %+v, and %+v fits", size, has, fits)
		}
	})
}

// A pod's other containers decide as one what they decide each for itself.
func TestOtherContainersAreSummedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]plan.Resources, rapid.IntRange(1, 5).Draw(t, "containers"))
		for i := range all {
			all[i] = fixture.DrawSize(t)
		}
		summed := NewSize(all[0], all[1:], false)
		if len(summed.Others) > 2 {
			t.Fatalf("%d others", len(summed.Others))
		}
		if got, want := class(summed.containers(all[0])), class(all); got != want {
			t.Fatalf("%+v is %s, and summed up %+v is %s", all, want, summed, got)
		}
	})
}
