package plan

import (
	"testing"

	"pgregory.net/rapid"
)

func ask(requests, limits map[string]string) Resources {
	return Resources{Requests: requests, Limits: limits}
}

func TestMisfit(t *testing.T) {
	type m = map[string]string
	const whole = "let the size name requests and limits of what it changes, and the same of both"
	for name, test := range map[string]struct {
		pod  []Resources // the controller's first
		size Resources
		want string
	}{
		"more of what it asks for":      {[]Resources{ask(m{"cpu": "1"}, nil)}, ask(m{"cpu": "2"}, nil), ""},
		"a limit beside":                {[]Resources{ask(m{"cpu": "1"}, nil)}, ask(nil, m{"memory": "2Gi"}), ""},
		"a request above its limit":     {[]Resources{ask(m{"memory": "1Gi"}, m{"memory": "4Gi"})}, ask(m{"memory": "6Gi"}, nil), "its request of memory would be above its limit: let the size name limits.memory, too"},
		"a limit below its request":     {[]Resources{ask(m{"cpu": "2"}, nil)}, ask(nil, m{"cpu": "1"}), "its request of cpu would be above its limit: let the size name limits.cpu, too"},
		"both":                          {[]Resources{ask(m{"memory": "1Gi"}, m{"memory": "4Gi"})}, ask(m{"memory": "6Gi"}, m{"memory": "6Gi"}), ""},
		"a pod that asks for nothing":   {[]Resources{{}, {}}, ask(m{"cpu": "1"}, nil), "its quality of service would be Burstable and no longer BestEffort: let the pod template ask for something of what the size names"},
		"beside one that asks":          {[]Resources{{}, ask(m{"cpu": "1"}, nil)}, ask(m{"cpu": "1"}, nil), ""},
		"all of a guaranteed one":       {[]Resources{ask(nil, m{"cpu": "1", "memory": "1Gi"})}, ask(m{"cpu": "2", "memory": "2Gi"}, m{"cpu": "2", "memory": "2Gi"}), ""},
		"what a limit says twice":       {[]Resources{ask(m{"cpu": "1", "memory": "1Gi"}, m{"cpu": "1000m", "memory": "1024Mi"})}, ask(m{"cpu": "2"}, m{"cpu": "2000m"}), ""},
		"a guaranteed one's request":    {[]Resources{ask(m{"cpu": "1", "memory": "2Gi"}, m{"cpu": "1", "memory": "2Gi"})}, ask(m{"memory": "1Gi"}, nil), "its quality of service would be Burstable and no longer Guaranteed: " + whole},
		"a guaranteed one's limit":      {[]Resources{ask(m{"cpu": "1", "memory": "2Gi"}, m{"cpu": "1", "memory": "2Gi"})}, ask(nil, m{"memory": "3Gi"}), "its quality of service would be Burstable and no longer Guaranteed: " + whole},
		"one that would be guaranteed":  {[]Resources{ask(m{"cpu": "1", "memory": "1Gi"}, m{"cpu": "1"})}, ask(nil, m{"memory": "1Gi"}), "its quality of service would be Guaranteed and no longer Burstable: let the size leave a limit above its request"},
		"not beside one that is not":    {[]Resources{ask(m{"cpu": "1", "memory": "1Gi"}, m{"cpu": "1"}), ask(m{"cpu": "1"}, nil)}, ask(nil, m{"memory": "1Gi"}), ""},
		"a pod with resources of a pod": {nil, ask(m{"cpu": "2"}, nil), "the pod has resources as a whole (spec.resources): take them out of the pod template"},
		"a request of 0 is none":        {[]Resources{ask(m{"cpu": "0"}, nil)}, ask(m{"cpu": "2"}, nil), "its quality of service would be Burstable and no longer BestEffort: let the pod template ask for something of what the size names"},
		"what nobody can read is none":  {[]Resources{ask(m{"cpu": "x"}, m{"memory": "1Gi"})}, ask(m{"cpu": "2"}, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := PodSize{Whole: true}
			if len(test.pod) > 0 {
				pod = NewPodSize(test.pod[0], test.pod[1:], false)
			}
			if got := pod.Misfit(test.size); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A pod's other containers decide as one what they decide each for itself.
func TestOtherContainersAreSummedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]Resources, rapid.IntRange(1, 5).Draw(t, "containers"))
		for i := range all {
			all[i] = drawSize(t)
		}
		summed := NewPodSize(all[0], all[1:], false)
		if len(summed.Others) > 2 {
			t.Fatalf("%d others", len(summed.Others))
		}
		if got, want := class(summed.containers(all[0])), class(all); got != want {
			t.Fatalf("%+v is %s, and summed up %+v is %s", all, want, summed, got)
		}
	})
}
