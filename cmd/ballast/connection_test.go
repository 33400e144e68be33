package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// silentServer is a kubeconfig for an API server that accepts connections and answers nothing, and its URL. What is
// accepted is told.
func silentServer(t *testing.T) (kubeconfig, url string, accepted <-chan struct{}) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	came := make(chan struct{}, 1000)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			came <- struct{}{}
		}
	}()
	url = "http://" + listener.Addr().String()
	kubeconfig = filepath.Join(t.TempDir(), "config")
	mustDo(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"a",
		"clusters":[{"name":"a","cluster":{"server":%q}}],"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":{}}]}`, url), 0o600))
	return kubeconfig, url, came
}

// asking are the commands that ask the API server for a person.
func asking() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"status": newStatusCommand, "plan --prometheus=http://127.0.0.1:1": newPlanCommand, "freeze --reason=x": newFreezeCommand, "resume": newResumeCommand,
		"evacuate 1": newEvacuateCommand, "rollback 1": newRollbackCommand, "uninstall --yes": newUninstallCommand,
	}
}

// TestNoCommandWaitsForASilentAPIServer: it ends in time, and says whom it asked and what to do.
func TestNoCommandWaitsForASilentAPIServer(t *testing.T) {
	for line, made := range asking() {
		t.Run(line, func(t *testing.T) {
			kubeconfig, url, _ := silentServer(t)
			started := time.Now()
			err := runLine(t.Context(), made(), line, "--kubeconfig="+kubeconfig, "--request-timeout=200ms")
			want := fmt.Sprintf("\nAPI server %q did not answer in time: see whether `kubectl get --raw /readyz` does; "+
				"another one is chosen by --context or --kubeconfig, more time given by --request-timeout", url)
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("error %v, want one that ends in %s", err, want)
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestAnInterruptEndsACommandThatWaits, though the discovery of the API takes no context.
func TestAnInterruptEndsACommandThatWaits(t *testing.T) {
	for line, made := range asking() {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			kubeconfig, url, accepted := silentServer(t)
			ctx, interrupt := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- runLine(ctx, made(), line, "--kubeconfig="+kubeconfig, "--request-timeout=0") }()
			select {
			case <-accepted:
			case err := <-ended:
				t.Fatalf("it asks nobody: %v", err)
			}
			interrupt()
			select {
			case err := <-ended:
				if want := fmt.Sprintf("interrupted before API server %q answered", url); err == nil || err.Error() != want {
					t.Errorf("error %v, want %s", err, want)
				}
			case <-time.After(interruptGrace + 10*time.Second):
				t.Error("it goes on after an interrupt")
			}
		})
	}
}

// runLine runs a command with the arguments of a line and others.
func runLine(ctx context.Context, cmd *cobra.Command, line string, more ...string) error {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(append(strings.Fields(line)[1:], more...))
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetIn(strings.NewReader(""))
	return cmd.ExecuteContext(ctx)
}

// TestKubectlsFlagsAreTaken: whom to ask, and as whom, is said as to kubectl.
func TestKubectlsFlagsAreTaken(t *testing.T) {
	kubeconfig, _, _ := silentServer(t)
	o := &clusterOptions{}
	cmd := &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil }}
	o.register(cmd)
	if err := runLine(t.Context(), cmd, "status", "--kubeconfig="+kubeconfig, "--as=alice", "--as-group=platform", "--server=https://a.example.org", "--token=t0ken", "--request-timeout=7s", "-n", "gitops"); err != nil {
		t.Fatal(err)
	}
	cfg, err := o.rest()
	if err != nil {
		t.Fatal(err)
	}
	type asked struct {
		Host, User, Token, Namespace string
		Groups                       []string
		Timeout                      time.Duration
	}
	want := asked{"https://a.example.org", "alice", "t0ken", "gitops", []string{"platform"}, 7 * time.Second}
	got := asked{cfg.Host, cfg.Impersonate.UserName, cfg.BearerToken, o.namespace, cfg.Impersonate.Groups, cfg.Timeout}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
