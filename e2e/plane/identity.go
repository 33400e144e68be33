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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// ConfigFor is the access of a user in groups, by a client certificate that the
// plane signs: the audit log shows the person and not an impersonator. What the
// user may do is up to RBAC; the group system:masters may do everything. It has
// no client-side rate limit.
func (p *Plane) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	cert, err := p.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            p.address,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.ca.pem, CertData: cert.cert, KeyData: cert.key},
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
	return path, writeKubeconfig(path, config, "")
}

// writeKubeconfig replaces the file in one step: a reader never sees half.
func writeKubeconfig(path string, c *rest.Config, namespace string) error {
	const name = "plane"
	file := api.NewConfig()
	file.Clusters[name] = &api.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	file.AuthInfos[name] = &api.AuthInfo{Token: c.BearerToken, ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	file.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	file.CurrentContext = name
	data, err := clientcmd.Write(*file)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig %q: %w", path, err)
	}
	return replaceFile(path, data, 0o600)
}

func replaceFile(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", data, mode); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("replacing %q: %w", path, err)
	}
	return nil
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
	cmd := exec.Command(p.binaries.Path(kubectlBinary), args...)
	cmd.Dir, cmd.Env = p.dir, p.env("KUBECONFIG="+kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	err = p.runToEnd(ctx, "kubectl", cmd)
	if err != nil {
		err = fmt.Errorf("running kubectl %q: %w: %s", args, err, tail(errOut.String()))
	}
	return out.String(), errOut.String(), err
}

// runToEnd waits for a short command, and kills it when the context or the
// plane ends first.
func (p *Plane) runToEnd(ctx context.Context, name string, cmd *exec.Cmd) error {
	if err := p.nursery.start(name, cmd); err != nil {
		return err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	defer context.AfterFunc(ctx, kill)()
	defer context.AfterFunc(p.ctx, kill)()
	return errors.Join(cmd.Wait(), ctx.Err())
}
