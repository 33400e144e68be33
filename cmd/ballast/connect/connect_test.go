package connect_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/fixture"
)

// TestKubectlsFlagsAreTaken: whom to ask, and as whom, is said as to kubectl.
func TestKubectlsFlagsAreTaken(t *testing.T) {
	kubeconfig, _, _ := fixture.SilentServer(t)
	o := &connect.Options{}
	cmd := &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil }}
	o.Register(cmd)
	if err := fixture.RunLine(t.Context(), cmd, "status", "--kubeconfig="+kubeconfig, "--as=alice", "--as-group=platform", "--server=https://a.example.org", "--token=t0ken", "--request-timeout=7s", "-n", "gitops"); err != nil {
		t.Fatal(err)
	}
	cfg, err := o.REST()
	if err != nil {
		t.Fatal(err)
	}
	type asked struct {
		Host, User, Token, Namespace string
		Groups                       []string
		Timeout                      time.Duration
	}
	want := asked{"https://a.example.org", "alice", "t0ken", "gitops", []string{"platform"}, 7 * time.Second}
	got := asked{cfg.Host, cfg.Impersonate.UserName, cfg.BearerToken, o.Namespace, cfg.Impersonate.Groups, cfg.Timeout}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
