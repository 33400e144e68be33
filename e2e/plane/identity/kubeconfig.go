package identity

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig replaces the file in one step: a reader never sees half.
func WriteKubeconfig(path string, c *rest.Config, namespace string) error {
	const name = "plane"
	file := api.NewConfig()
	file.Clusters[name] = &api.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	file.AuthInfos[name] = &api.AuthInfo{Token: c.BearerToken, ClientCertificateData: c.CertData,
		ClientKeyData: c.KeyData}
	file.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	file.CurrentContext = name
	data, err := clientcmd.Write(*file)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig %q: %w", path, err)
	}
	return ReplaceFile(path, data, 0o600)
}

// ReplaceFile writes a file so that a reader sees the old one or the new one.
func ReplaceFile(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", data, mode); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("replacing %q: %w", path, err)
	}
	return nil
}
