package planner

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ballast/cmd/ballast/fixture"
)

// runs starts a planner that has the page there, on an API server that knows of nothing, and ends it with the test.
func runs(t *testing.T, page string) (*planning, *mute) {
	t.Helper()
	none := func(*http.Request) bool { return false }
	server := &mute{hangs: none, refuses: none, release: make(chan struct{})}
	api := httptest.NewServer(server)
	p, app := plannerOn(t, api.URL, time.Minute)
	app.options.pageAddress = page
	ctx, stop := context.WithCancelCause(context.Background())
	app.stop = stop
	ended := make(chan error, 1)
	go func() { ended <- app.run(ctx) }()
	t.Cleanup(func() {
		stop(nil)
		if err := <-ended; err != nil {
			t.Errorf("the planner ends with %v", err)
		}
		close(server.release)
		api.CloseClientConnections()
		api.Close()
	})
	return p, server
}

// get is an answer's status and body; 0 while nobody listens.
func get(t *testing.T, url, host string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	fixture.MustDo(t, err)
	if host != "" {
		r.Host = host
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

// TestEveryPlannerServesThePage, whether or not it leads, and only to who asks by its own names.
func TestEveryPlannerServesThePage(t *testing.T) {
	at := "127.0.0.1:" + fixture.FreePort(t)
	runs(t, at)
	text := ""
	fixture.WaitFor(t, "the page is served", func() bool {
		status, body := get(t, "http://"+at+"/", "")
		text = body
		return status == http.StatusOK
	})
	if !strings.Contains(text, "There is no plan yet") {
		t.Errorf("the page is %q", text)
	}
	if status, _ := get(t, "http://"+at+"/", "rebound.example"); status != http.StatusMisdirectedRequest {
		t.Errorf("another name is answered %d", status)
	}
}

// TestAPlannerWhosePageHasNoAddressPlans all the same, and says so.
func TestAPlannerWhosePageHasNoAddressPlans(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	fixture.MustDo(t, err)
	defer taken.Close()
	p, server := runs(t, taken.Addr().String())
	fixture.WaitFor(t, "the planner asks for its Lease", func() bool { return server.asked("/leases/") })
	if !p.logged("serving no page for people") {
		t.Errorf("it logs %q", p.log)
	}
}
