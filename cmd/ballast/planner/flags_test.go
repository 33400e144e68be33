package planner

import (
	"testing"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/serve"
)

func TestFlags(t *testing.T) {
	t.Setenv("POD_NAME", "ballast-planner-0")
	fixture.ParseFlags(t, command, func(o *options) { o.log = serve.LogOptions{} }, map[string]fixture.Flags[options]{
		"as shipped": {Want: options{config: "/etc/ballast/config/config.yaml", metricsPort: 8080, healthPort: 8081, pageAddress: "127.0.0.1:8082",
			identity: "ballast-planner-0"}},
		"each": {Args: []string{"--config=c", "--bind-address=b", "--metrics-port=1", "--health-port=2", "--page-address=p", "--page-host=h,i", "--identity=n"}, Want: options{
			config: "c", bindAddress: "b", metricsPort: 1, healthPort: 2, pageAddress: "p", pageHosts: []string{"h", "i"}, identity: "n"}},
	})
}

func TestLogsAreAskedForAsTheyCanBe(t *testing.T) {
	for arg, want := range map[string]string{
		"--verbosity=10":    "--verbosity: 10 is not between 0 and 9",
		"--log-format=text": `--log-format: "text" is neither json nor console`,
	} {
		err := fixture.RunLine(t.Context(), NewCommand(), "planner", arg)
		if err == nil || err.Error() != want {
			t.Errorf("%s ends with %v", arg, err)
		}
	}
}
