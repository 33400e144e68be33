package webhook

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/cmd/ballast/fixture"
)

// TestARunningWebhookShowsTheDocumentedMetrics at its port, once it has answered a write, and each says what is so.
func TestARunningWebhookShowsTheDocumentedMetrics(t *testing.T) {
	api := httptest.NewServer(planServer(t, []corev1.ConfigMap{*largePlan(t, 7)}))
	t.Cleanup(api.Close)
	port, err := strconv.Atoi(fixture.FreePort(t))
	fixture.MustDo(t, err)
	at := &envtest.WebhookInstallOptions{LocalServingHost: fixture.ApiServer, LocalServingPort: port, LocalServingCertDir: t.TempDir()}
	asks := &floodTarget{address: net.JoinHostPort(fixture.ApiServer, strconv.Itoa(port)), roots: selfSigned(t, at.LocalServingCertDir)}
	began := time.Now()
	address := runHere(t, kubeconfigOf(t, api.URL), at, "webhook")
	write := honestSecret(t)
	answer, err := post(asks.from(fixture.ApiServer), asks.address, write.path, write.body)
	if err != nil || !strings.Contains(string(answer), write.answer) {
		t.Fatalf("the write is answered %.300s: %v", answer, err)
	}
	shown := scrape(t, address)
	page, err := os.ReadFile("../../../docs/metrics.md")
	fixture.MustDo(t, err)
	_, own, _ := strings.Cut(string(page), "## Webhook")
	own, _, _ = strings.Cut(own, "\n## ")
	names := regexp.MustCompile("(?m)^\\| `(ballast_[a-z_]+)`").FindAllStringSubmatch(own, -1)
	if len(names) < 12 {
		t.Fatalf("only %d metrics are documented: %q", len(names), names)
	}
	for _, name := range names {
		if shown[name[1]] == nil {
			t.Errorf("a running webhook does not show %s", name[1])
		}
	}
	want, got := map[string][]string{
		"ballast_webhook_requests_total":   {"UPDATE Restored clusters 1"},
		"ballast_webhook_duration_seconds": {"clusters 1"},
		"ballast_webhook_plan_revision":    {" 7"},
		"ballast_webhook_plan_cache":       {"Current 1"},
		"ballast_webhook_break_glass":      nil,
		"ballast_webhook_busy_total":       nil,
		"ballast_webhook_faults_total":     nil,
		"ballast_webhook_malformed_total":  nil,
		"ballast_webhook_plan_reads_total": nil,
	}, map[string][]string{}
	for name := range want {
		got[name] = above0(shown[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, from := range map[string]time.Time{
		"ballast_webhook_plan_received_timestamp_seconds":      began,
		"ballast_webhook_plan_heard_timestamp_seconds":         began,
		"ballast_webhook_certificate_expiry_timestamp_seconds": began.Add(24*time.Hour - time.Minute),
	} {
		if !between(shown[name], from, from.Add(2*time.Minute)) {
			t.Errorf("%s is %v, not after %s", name, shown[name], from)
		}
	}
	if shown["go_goroutines"] == nil || shown["process_start_time_seconds"] == nil {
		t.Error("Go's own metrics are not shown")
	}
}

// between reports whether a gauge shows a time between two.
func between(f *dto.MetricFamily, from, to time.Time) bool {
	at := f.GetMetric()[0].GetGauge().GetValue()
	return at >= float64(from.Unix()) && at <= float64(to.Unix()+1)
}

// above0 are a metric's labels with what they count, where that is above 0.
func above0(f *dto.MetricFamily) (all []string) {
	for _, m := range f.GetMetric() {
		value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		if value > 0 {
			all = append(all, fmt.Sprint(strings.Join(labels, " "), " ", value))
		}
	}
	return all
}

// scrape is what a port shows.
func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	fixture.MustDo(t, err)
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	shown, err := parser.TextToMetricFamilies(response.Body)
	fixture.MustDo(t, err)
	return shown
}
