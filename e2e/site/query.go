package site

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Query asks Prometheus now and gives the samples by the value of that label.
func (s *Site) Query(ctx context.Context, label, query string) (map[string]float64, error) {
	client, err := api.NewClient(api.Config{Address: s.Prometheus})
	if err != nil {
		return nil, fmt.Errorf("making a client of Prometheus: %w", err)
	}
	value, _, err := promv1.NewAPI(client).Query(ctx, query, time.Now())
	if err != nil {
		return nil, fmt.Errorf("querying %q: %w", query, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("querying %q: the answer is a %s, want a vector", query, value.Type())
	}
	samples := make(map[string]float64, len(vector))
	for _, sample := range vector {
		samples[string(sample.Metric[model.LabelName(label)])] = float64(sample.Value)
	}
	return samples, nil
}
