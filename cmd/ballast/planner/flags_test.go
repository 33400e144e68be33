package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/serve"
)

func TestFlags(t *testing.T) {
	t.Setenv("POD_NAME", "ballast-planner-0")
	for name, test := range map[string]struct {
		args []string
		want options
	}{
		"as shipped": {nil, options{config: "/etc/ballast/config/config.yaml", metricsPort: 8080, healthPort: 8081, pageAddress: "127.0.0.1:8082",
			identity: "ballast-planner-0"}},
		"each": {[]string{"--config=c", "--bind-address=b", "--metrics-port=1", "--health-port=2", "--page-address=p", "--page-host=h,i", "--identity=n"},
			options{config: "c", bindAddress: "b", metricsPort: 1, healthPort: 2, pageAddress: "p", pageHosts: []string{"h", "i"}, identity: "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got options
			fixture.MustDo(t, command(&got).ParseFlags(test.args))
			got.log = serve.LogOptions{} // of package serve
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(options{}, serve.LogOptions{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
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
