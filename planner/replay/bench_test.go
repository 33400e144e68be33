package replay

import (
	"errors"
	"io"
	"testing"
	"time"
)

// BenchmarkReplay is a replay of the shipped configuration, from the synthetic load to the report. The bars are those of the names,
// each for one pass: -benchtime 1x.
func BenchmarkReplay(b *testing.B) {
	for _, of := range []struct {
		name, load string
		bar        time.Duration
	}{
		{"days=30/clusters=200/bar=60s", "clusters=200,days=30", time.Minute},
		{"days=1/clusters=5000/bar=120s", "clusters=5000,days=1", 2 * time.Minute},
	} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			var last Report
			for b.Loop() {
				g := source(b, of.load)
				r := newRun(b, known(b, Shipped), g.Header())
				for {
					step, err := g.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					r.Step(step)
				}
				last = r.Report()
			}
			b.ReportMetric(float64(last.Cycles), "cycles")
			ofBar := b.Elapsed().Seconds() / float64(b.N) / of.bar.Seconds()
			if b.ReportMetric(ofBar, "of-bar"); ofBar > 1 {
				b.Errorf("it took %.2f of the bar", ofBar)
			}
		})
	}
}
