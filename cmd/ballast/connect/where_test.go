package connect_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/fixture"
)

// TestAQuestionNamesTheAPIServer without the credentials that a kubeconfig may have in its URL, and without what a terminal acts on.
func TestAQuestionNamesTheAPIServer(t *testing.T) {
	kubeconfig, url, _ := fixture.SilentServer(t)
	for name, test := range map[string]struct {
		server, want string
	}{
		"of the kubeconfig": {"", "This is API server \"" + url + "\", by context \"a\".\n"},
		"of a flag":         {"https://a.example.org", "This is API server \"https://a.example.org\", by context \"a\".\n"},
		"with credentials":  {"https://alice:s3cret@a.example.org", "This is API server \"https://***@a.example.org\", by context \"a\".\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &connect.Options{}
			cmd := &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil }}
			o.Register(cmd)
			var said strings.Builder
			if o.SayWhere(&said); said.Len() > 0 {
				t.Errorf("it knows %q already", &said)
			}
			args := []string{"--kubeconfig=" + kubeconfig}
			if test.server != "" {
				args = append(args, "--server="+test.server)
			}
			fixture.MustDo(t, fixture.RunLine(t.Context(), cmd, "ballast uninstall", args...))
			if _, err := o.REST(); err != nil {
				t.Fatal(err)
			}
			if o.SayWhere(&said); said.String() != test.want {
				t.Errorf("it says %q, want %q", &said, test.want)
			}
		})
	}
}
