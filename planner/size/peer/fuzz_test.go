package peer

import "testing"

const scalingPolicy = `apiVersion: scalingpolicy.kope.io/v1alpha1
kind: ScalingPolicy
metadata: {name: kube-dns}
spec:
  containers:
  - name: dns
    resources:
      limits:
      - resource: cpu
        function: {base: 200m, input: cores, slope: 10m, segments: [{at: 4, every: 4}], delayScaleDown: {max: 2, delaySeconds: 30}}
`

func FuzzReadCPVPS(f *testing.F) {
	f.Add([]byte(scalingPolicy))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ReadCPVPS(data)
		if err != nil {
			return
		}
		p, err := c.Policy()
		if err != nil {
			return
		}
		for _, r := range p.Rules {
			if len(r.Wrong()) > 0 {
				continue
			}
			if low, high := r.Value(1, true), r.Value(1000, true); r.Slope.Sign() > 0 && low.Cmp(high) > 0 {
				t.Errorf("%+v: %s, and then %s", r, low.String(), high.String())
			}
		}
	})
}

func FuzzReadHVPA(f *testing.F) {
	f.Add([]byte(`{"spec": {"hpa": {"deploy": true, "template": {"spec": {"maxReplicas": 3}}}, "vpa": {"scaleUp": {"minChange": {"cpu": {"value": "3", "percentage": 80}}}},
"weightBasedScalingIntervals": [{"vpaWeight": 50, "startReplicaCount": 1, "lastReplicaCount": 3}], "maintenanceTimeWindow": {"begin": "220000-0000", "end": "230000-0000"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ReadHVPA(data)
		if err != nil {
			return
		}
		for current := range 5 {
			h.Spec.Weight(current, 3)
		}
		next, _ := h.Spec.Bounds()
		for _, span := range h.Spec.Spans() {
			if span.Start != next || span.Last < span.Start {
				t.Errorf("%+v does not begin with %d replicas", span, next)
			}
			next = span.Last + 1
		}
		if _, err := h.Spec.Replicas(2, 4, 50, Moment{Now: now}); err != nil && h.Spec.Window == nil {
			t.Error(err)
		}
	})
}
