package fleet

import (
	"fmt"
	"io"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"k8s.io/utils/ptr"
)

const (
	// Before the history begins its counters ran for a day already: a counter that starts at 0 would bend the first
	// rates.
	runBefore = 24 * time.Hour
	// infoPast is how much of the history shows argocd_app_info, one series an Application: nothing asks for more.
	infoPast = 15 * time.Minute
)

// WriteHistory writes what a Prometheus would hold of the running pods if they had held their present clusters all
// along: samples from, a step apart, up to to, as OpenMetrics text for `promtool tsdb create-blocks-from`. What the
// pods show from then on continues it. With a step of whole minutes every rate over it is exact.
func (e *Exporter) WriteHistory(w io.Writer, from, to time.Time, step time.Duration) error {
	e.backdate(from.Add(-runBefore))
	history := map[string]*dto.MetricFamily{}
	for _, p := range e.runningPods() {
		labels := e.fleet.targetLabels(p)
		for at := from; !at.After(to); at = at.Add(step) {
			registry := view{exporter: e, process: e.process(p.name), now: func() time.Time { return at }}.registry()
			families, err := registry.Gather()
			if err != nil {
				return fmt.Errorf("gathering the metrics of pod %q at %s: %w", p.name, at, err)
			}
			for _, f := range families {
				if f.GetName() == "argocd_app_info" && to.Sub(at) > infoPast {
					continue
				}
				scrape(f, labels, at)
				keep(history, f)
			}
		}
	}
	return writeOpenMetrics(w, history)
}

// scrape does to a family what Prometheus does at a scrape without honor_labels: the target's labels win, and a label
// of the metric's own that stands in their way is kept with the prefix exported_.
func scrape(f *dto.MetricFamily, target map[string]string, at time.Time) {
	for _, m := range f.Metric {
		for _, l := range m.Label {
			if _, taken := target[l.GetName()]; taken {
				l.Name = ptr.To("exported_" + l.GetName())
			}
		}
		for _, name := range sortedKeys(target) {
			m.Label = append(m.Label, &dto.LabelPair{Name: ptr.To(name), Value: ptr.To(target[name])})
		}
		m.TimestampMs = ptr.To(at.UnixMilli())
	}
}

func keep(history map[string]*dto.MetricFamily, f *dto.MetricFamily) {
	if history[f.GetName()] == nil {
		history[f.GetName()] = f
		return
	}
	history[f.GetName()].Metric = append(history[f.GetName()].Metric, f.Metric...)
}

func writeOpenMetrics(w io.Writer, history map[string]*dto.MetricFamily) error {
	for _, name := range sortedKeys(history) {
		if _, err := expfmt.MetricFamilyToOpenMetrics(w, history[name]); err != nil {
			return fmt.Errorf("writing the history of %q: %w", name, err)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(w); err != nil {
		return fmt.Errorf("ending the history: %w", err)
	}
	return nil
}
