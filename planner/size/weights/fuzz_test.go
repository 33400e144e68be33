package weights

import "testing"

func FuzzIntervals(f *testing.F) {
	f.Add(0.0, 1.0, 1.0, 2.0, 2.0, 50, 0.7)
	f.Fuzz(func(t *testing.T, a, aTo, b, bTo, c float64, weight int, load float64) {
		in, wrong := Check([]Interval{{c, nil, weight}, {b, &bTo, 0}, {a, &aTo, 100}})
		if (in == nil) != (len(wrong) > 0) {
			t.Fatalf("%v, %v", in, wrong)
		}
		if i := in.Holds(load); in != nil && load >= 0 {
			if in[i].From > load || in[i].To != nil && *in[i].To <= load {
				t.Errorf("%v lies in %v", load, in[i])
			}
		}
	})
}
