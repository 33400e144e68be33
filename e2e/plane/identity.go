package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"syscall"

	"ballast/e2e/assets"
	"ballast/e2e/plane/identity"
	"ballast/e2e/plane/process"

	"k8s.io/client-go/rest"
)

// ConfigFor is the access of a user in groups, by a client certificate that the
// plane signs: the audit log shows the person and not an impersonator. What the
// user may do is up to RBAC; the group system:masters may do everything. It has
// no client-side rate limit.
func (p *Plane) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	cert, err := p.ca.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            p.address,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.ca.PEM, CertData: cert.Cert, KeyData: cert.Key},
	}, nil
}

// KubeconfigFor writes the user's access into a file of the plane's folder. A
// second call for a user writes the file anew.
func (p *Plane) KubeconfigFor(user string, groups ...string) (string, error) {
	config, err := p.ConfigFor(user, groups...)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(p.path("kubeconfigs"), 0o700); err != nil {
		return "", fmt.Errorf("making the folder of kubeconfigs: %w", err)
	}
	path := p.path("kubeconfigs/" + regexp.MustCompile(`[^A-Za-z0-9.@-]`).ReplaceAllString(user, "-"))
	return path, identity.WriteKubeconfig(path, config, "")
}

// Kubectl runs kubectl as whom the kubeconfig file names (empty: the
// administrator) and gives what it printed. The error of a failed command
// carries its error output.
func (p *Plane) Kubectl(ctx context.Context, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	return p.KubectlStdin(ctx, nil, kubeconfig, args...)
}

// KubectlStdin is Kubectl with an input, as for `apply -f -`.
func (p *Plane) KubectlStdin(ctx context.Context, stdin io.Reader, kubeconfig string, args ...string) (stdout, stderr string, err error) {
	if kubeconfig == "" {
		kubeconfig = p.KubeconfigPath()
	}
	var out, errOut bytes.Buffer
	cmd := exec.Command(p.binaries.Path(assets.Kubectl), args...)
	cmd.Dir, cmd.Env = p.dir, p.env("KUBECONFIG="+kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	err = p.runToEnd(ctx, "kubectl", cmd)
	if err != nil {
		err = fmt.Errorf("running kubectl %q: %w: %s", args, err, process.Tail(errOut.String()))
	}
	return out.String(), errOut.String(), err
}

// runToEnd waits for a short command, and kills it when the context or the
// plane ends first.
func (p *Plane) runToEnd(ctx context.Context, name string, cmd *exec.Cmd) error {
	if err := p.nursery.Start(name, cmd); err != nil {
		return err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	defer context.AfterFunc(ctx, kill)()
	defer context.AfterFunc(p.ctx, kill)()
	return errors.Join(cmd.Wait(), ctx.Err())
}
