package status

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ballast/cmd/ballast/fixture"
)

// TestTheWebServesTheFleetUntilItIsInterrupted, with the words and figures of the plan.
func TestTheWebServesTheFleetUntilItIsInterrupted(t *testing.T) {
	w := fixture.QuietWorld()
	o := &options{plan: "ballast-plan", config: "ballast-config", address: "127.0.0.1:0", now: func() time.Time { return fixture.Noon }}
	o.cluster.Namespace = "argocd"
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- o.serveFleet(ctx, w.Client(t), in) }()
	said, err := bufio.NewReader(out).ReadString('\n')
	fixture.MustDo(t, err)
	url := strings.TrimPrefix(strings.TrimSuffix(said, " until this command is interrupted.\n"), "The page of the fleet is at ")
	answer, err := http.Get(url)
	fixture.MustDo(t, err)
	text, err := io.ReadAll(answer.Body)
	fixture.MustDo(t, err)
	fixture.Holds(t, string(text), "<h1>argocd/argocd-application-controller</h1>", "revision 17, decided 20m ago", ">prod-eu</th>", "https://prod-eu")
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
	if answer, err := http.Get(url); err == nil {
		t.Errorf("after that it answers %s", answer.Status)
	}
}

func TestTheWebNeedsAPlanThatCanBeRead(t *testing.T) {
	w := fixture.QuietWorld()
	w.Forbidden = []string{"ballast-plan"}
	o := &options{plan: "ballast-plan", config: "ballast-config", address: "127.0.0.1:0", now: time.Now}
	o.cluster.Namespace = "argocd"
	err := o.serveFleet(t.Context(), w.Client(t), io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), `reading ConfigMap "ballast-plan" in "argocd"`) {
		t.Errorf("it ends with %v", err)
	}
}

func TestAnAddressOfThePageNeedsThePage(t *testing.T) {
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--web-address=127.0.0.1:8083"})
	if err := cmd.Execute(); err == nil || err.Error() != "--web-address is of the page that --web serves: add --web" {
		t.Errorf("it ends with %v", err)
	}
}

func TestWithoutAPlanConfigMapItSaysWhereToLook(t *testing.T) {
	o := &options{plan: "other", config: "ballast-config", now: time.Now}
	o.cluster.Namespace = "argocd"
	_, err := o.read(t.Context(), fixture.QuietWorld().Client(t))
	const want = "reading the plan ConfigMap \"other\" in \"argocd\": configmaps \"other\" not found\n" +
		"is ballast installed there? --namespace and --plan-configmap say where to look; the first plan takes about a minute"
	if err == nil || err.Error() != want {
		t.Errorf("it ends with %v", err)
	}
}

func TestAnIntervalNeedsAWatch(t *testing.T) {
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--interval=1m"})
	if err := cmd.Execute(); err == nil || err.Error() != "--interval is between two looks of --watch: add --watch" {
		t.Errorf("it ends with %v", err)
	}
}
