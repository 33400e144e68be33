package poll

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"ballast/planner/poll/meter"
)

var errHistogram = errors.New("it answers with a native histogram: take histogram_sum, histogram_count or histogram_quantile of it")

// samples reads an answer for the whole fleet, and counts the series that are passed over.
func samples(m Metric, v model.Value) (out []Sample, passed int, err error) {
	vector, ok := v.(model.Vector)
	if !ok {
		return nil, 0, fmt.Errorf("it answers with a %s; a query for the fleet must answer with an instant vector that has the label %q", typeOf(v), m.Match.Label)
	}
	for i, s := range vector {
		if err := checkSample(i, s); err != nil {
			return nil, 0, err
		}
	}
	out = make([]Sample, 0, len(vector))
	for _, s := range vector {
		switch key := s.Metric[model.LabelName(m.Match.Label)]; key {
		case "": // it is no cluster's
		case meter.TooLong:
			passed++
		default:
			out = append(out, Sample{Key: string(key), Value: float64(s.Value)})
		}
	}
	if len(vector) > 0 && len(out)+passed == 0 {
		return nil, 0, fmt.Errorf("none of its %d series has the label %q: the first one has %s", len(vector),
			m.Match.Label, labelNames(vector[0].Metric))
	}
	slices.SortStableFunc(out, func(a, b Sample) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value)) })
	return out, passed, nil
}

// labelNames names a few of a series' labels, without their values: a person looks for one that is called otherwise.
func labelNames(metric model.Metric) string {
	const most, longest = 10, 100
	names := slices.Sorted(maps.Keys(metric))
	var shown []string
	for _, name := range names[:min(most, len(names))] {
		shown = append(shown, strconv.Quote(strings.ToValidUTF8(string(name[:min(longest, len(name))]), "")))
	}
	if more := len(names) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(shown, ", "), "none")
}

// checkSample refuses what is no number: JSON's null makes a sample that is not there.
func checkSample(i int, s *model.Sample) error {
	switch {
	case s == nil:
		return fmt.Errorf("its sample %d is null, which no Prometheus answers: look at what answers at poll.prometheus.url", i)
	case s.Histogram != nil:
		return errHistogram
	}
	return nil
}

func typeOf(v model.Value) string {
	if v == nil {
		return "nothing"
	}
	switch t := v.Type(); t {
	case model.ValMatrix:
		return "range vector (take rate, max_over_time or the like of it)"
	default:
		return t.String()
	}
}
