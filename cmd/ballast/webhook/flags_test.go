package webhook

import (
	"testing"
	"time"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/serve"
)

func TestFlags(t *testing.T) {
	fixture.ParseFlags(t, command, func(o *options) { o.log = serve.LogOptions{} }, map[string]fixture.Flags[options]{
		"as shipped": {Want: options{namespace: "argocd", configMap: "ballast-plan", port: 9443, metricsPort: 8080, healthPort: 8081,
			certDir: "/etc/ballast/tls", lameDuck: 5 * time.Second}},
		"each": {Args: []string{"--namespace=n", "--plan-configmap=p", "--planner-user=u", "--bind-address=b", "--port=1", "--metrics-port=2", "--health-port=3",
			"--cert-dir=c", "--client-ca-file=f", "--client-name=x,y", "--lame-duck=7s"}, Want: options{namespace: "n", configMap: "p", plannerUser: "u", bindAddress: "b", port: 1, metricsPort: 2, healthPort: 3, certDir: "c",
			clientCAFile: "f", clientNames: []string{"x", "y"}, lameDuck: 7 * time.Second}},
	})
}

func TestLogsAreAskedForAsTheyCanBe(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1GiB") // no bound of the test's own memory
	t.Setenv("GOGC", "100")
	for arg, want := range map[string]string{
		"--verbosity=10":    "--verbosity: 10 is not between 0 and 9",
		"--log-format=text": `--log-format: "text" is neither json nor console`,
	} {
		if err := fixture.RunLine(t.Context(), NewCommand(), "webhook", arg); err == nil || err.Error() != want {
			t.Errorf("%s ends with %v", arg, err)
		}
	}
}
