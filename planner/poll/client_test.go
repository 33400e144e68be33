package poll

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"

	"ballast/planner/discover"
)

// redirected is a Prometheus that redirects queries, and what was asked of it behind that, by host.
type redirected struct {
	*httptest.Server
	mu     sync.Mutex
	behind []string
}

func redirecting(t *testing.T, to string, status int) *redirected {
	t.Helper()
	r := &redirected{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/api/") {
			http.Redirect(w, request, r.fill(to), status)
			return
		}
		r.mu.Lock()
		r.behind = append(r.behind, request.URL.Path+" of "+strings.Split(request.Host, ":")[0]+" with "+request.Header.Get("Authorization"))
		r.mu.Unlock()
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a"},"value":[0,"7"]}]}}`)
	}))
	t.Cleanup(r.Close)
	return r
}

// fill puts the server's port into a URL.
func (r *redirected) fill(text string) string {
	at, _ := url.Parse(r.URL)
	return strings.ReplaceAll(text, "PORT", at.Port())
}

// prometheus/common adds the credentials to every request, to one that a redirect sends elsewhere, too; and what another host
// answers would be believed.
func TestCredentialsStayWithTheConfiguredHost(t *testing.T) {
	m := Metric{ID: "m", Query: "q", Match: Match{Label: "server"}}
	for name, test := range map[string]struct {
		to     string
		stay   bool // follow_redirects: false
		want   Fetched
		behind []string
	}{
		"within the host": {to: "/moved", want: Fetched{Metric: "m", Samples: []Sample{{Key: "a", Value: 7}}}, behind: []string{"/moved of 127.0.0.1 with Bearer CANARY"}},
		"another host": {to: "http://localhost:PORT/elsewhere", want: Fetched{Metric: "m",
			Err: "it redirects to another host, http://localhost:PORT, which gets neither credentials nor queries: let poll.prometheus.url name the host that answers"}},
		"another port": {to: "http://127.0.0.1:1/elsewhere", want: Fetched{Metric: "m",
			Err: "it redirects to another host, http://127.0.0.1:1, which gets neither credentials nor queries: let poll.prometheus.url name the host that answers"}},
		"another scheme": {to: "https://127.0.0.1:PORT/elsewhere", want: Fetched{Metric: "m",
			Err: "it redirects to another host, https://127.0.0.1:PORT, which gets neither credentials nor queries: let poll.prometheus.url name the host that answers"}},
		"within the host, where none is followed": {to: "/moved", stay: true, want: Fetched{Metric: "m", Err: "bad_response: bad response code 30"}},
		"without end": {to: "/api/again", want: Fetched{Metric: "m", Err: "it redirects more than 10 times"}},
	} {
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
			t.Run(fmt.Sprintf("%s, %d", name, status), func(t *testing.T) {
				server := redirecting(t, test.to, status)
				c := config.DefaultHTTPClientConfig
				c.FollowRedirects, c.BearerToken = !test.stay, "CANARY"
				p, err := New(Config{URL: server.URL, HTTP: c})
				if err != nil {
					t.Fatal(err)
				}
				got := p.Fetch(t.Context(), []Metric{m}, discover.Fleet{}, noon)[0]
				if want := server.fill(test.want.Err); strings.Contains(got.Err, want) && want != "" {
					got.Err = test.want.Err
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.behind, server.behind); diff != "" {
					t.Errorf("asked behind the redirect (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A proxy that the configuration names is asked instead of the host; of a plain URL it sees the query and the credentials, as of
// any client.
func TestAProxyIsAskedWhereOneIsNamed(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"server":"a"},"value":[0,"7"]}]}}`)
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := config.DefaultHTTPClientConfig
	c.ProxyURL = config.URL{URL: at}
	p, err := New(Config{URL: "http://prometheus.monitoring.svc:9090/prefix", HTTP: c})
	if err != nil {
		t.Fatal(err)
	}
	got := p.Fetch(t.Context(), []Metric{{ID: "m", Query: "q", Match: Match{Label: "server"}}}, discover.Fleet{}, noon)[0]
	if diff := cmp.Diff(Fetched{Metric: "m", Samples: []Sample{{Key: "a", Value: 7}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "http://prometheus.monitoring.svc:9090/prefix/api/v1/query"; asked != want {
		t.Errorf("the proxy was asked %q, want %q", asked, want)
	}
}
