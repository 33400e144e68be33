package discover

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// argoConfig is data.config as Argo CD v3.2.11 reads it (ClusterConfig of its v1alpha1 types), for comparison.
type argoConfig struct {
	Username, Password, BearerToken string
	TLSClientConfig                 struct {
		Insecure                  bool
		ServerName                string
		CertData, KeyData, CAData []byte
	}
	AWSAuthConfig      *struct{ ClusterName, RoleARN, Profile string }
	ExecProviderConfig *struct {
		Command                 string
		Args                    []string
		Env                     map[string]string
		APIVersion, InstallHint string
	}
	DisableCompression bool
	ProxyURL           string
}

func argoReads(raw []byte) bool {
	var c argoConfig
	return len(raw) == 0 || json.Unmarshal(raw, &c) == nil
}

var configs = map[string]bool{
	``: true, `{}`: true, `null`: true, `{"bearerToken":"t","tlsClientConfig":{"insecure":false,"caData":"YWJj"}}`: true,
	`{"tlsClientConfig":{"caData":"YQ=="}}`: true, `{"tlsClientConfig":{"caData":"YW\nJj"}}`: true, `{"execProviderConfig":{"args":["a"],"env":{"a":"b"}}}`: true,
	`{x`: false, `{"username":5}`: false, `{"tlsClientConfig":{"caData":"a"}}`: false, `{"tlsClientConfig":{"keyData":"YWJ*"}}`: false, `[]`: false,
	`{"tlsClientConfig":[]}`: false, `{"execProviderConfig":{"env":{"a":1}}}`: false, `{"disableCompression":"yes"}`: false, `{"tlsClientConfig":{"caData":"Y=Jj"}}`: false,
}

func TestAConfigIsReadAsArgoCDReadsIt(t *testing.T) {
	for raw, want := range configs {
		if got, argo := configReads([]byte(raw)), argoReads([]byte(raw)); got != want || argo != want {
			t.Errorf("%s: %t, Argo CD %t, want %t", raw, got, argo, want)
		}
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"name": []byte("a"), "config": []byte(raw)}}
		kept, err := TransformSecret(s)
		if err != nil {
			t.Fatal(err)
		}
		if direct, transformed := FromSecret(s).Unread, FromSecret(kept.(*corev1.Secret)).Unread; direct == want || transformed == want {
			t.Errorf("%s: unread %t, and %t once it is stripped, want %t", raw, direct, transformed, !want)
		}
		if held := string(kept.(*corev1.Secret).Data["config"]); held != "" && held != unreadConfig {
			t.Errorf("%s: %q is kept of it", raw, held)
		}
	}
}

// FuzzConfig: what Argo CD reads is never said to be unread.
func FuzzConfig(f *testing.F) {
	for raw := range configs {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if argoReads(raw) && !configReads(raw) {
			t.Errorf("Argo CD reads %q", raw)
		}
	})
}
