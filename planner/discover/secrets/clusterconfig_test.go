package secrets

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/discover"
	"ballast/planner/plan"
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
	`{"tlsClientConfig":{"caData":"\u0021"}}`: false, `{"tlsClientConfig":{"caData":"ab=c"}}`: false, `{"tlsClientConfig":{"caData":"\u0059Q=="}}`: true,
	`{"tlsClientConfig":{"caData":"YQ="}}`: false, `{"tlsClientConfig":{"caData":"===="}}`: false, `{"tlsClientConfig":{"caData":"YWJj="}}`: false,
	`{"tlsClientConfig":[]}`: false, `{"execProviderConfig":{"env":{"a":1}}}`: false, `{"disableCompression":"yes"}`: false, `{"tlsClientConfig":{"caData":"Y=Jj"}}`: false,
}

func TestAConfigIsReadAsArgoCDReadsIt(t *testing.T) {
	for raw, want := range configs {
		if got, argo := configReads([]byte(raw)), argoReads([]byte(raw)); got != want || argo != want {
			t.Errorf("%s: %t, Argo CD %t, want %t", raw, got, argo, want)
		}
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"name": []byte("a"), "config": []byte(raw)}}
		kept, err := transformed(s)
		if err != nil {
			t.Fatal(err)
		}
		if direct, transformed := FromSecret(s).Unread, FromSecret(kept.(*corev1.Secret)).Unread; direct == want || transformed == want {
			t.Errorf("%s: unread %t, and %t once it is stripped, want %t", raw, direct, transformed, !want)
		}
		if held := fmt.Sprintf("%q", kept); len(raw) > 2 && strings.Contains(held, strings.Trim(strconv.Quote(raw), `"`)) {
			t.Errorf("%s: it is kept: %s", raw, held)
		}
	}
}

// FuzzConfig: what Argo CD reads is read, and nothing else.
func FuzzConfig(f *testing.F) {
	for raw := range configs {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if argo := argoReads(raw); argo != configReads(raw) {
			t.Errorf("Argo CD reads %q: %t, and here the other way round", raw, argo)
		}
	})
}

// TestALargeSecretIsKeptSmall: of what its maker may fill, little stays in memory, and people are told.
func TestALargeSecretIsKeptSmall(t *testing.T) {
	large, labels := []byte(strings.Repeat("x", 1<<20)), map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}
	for i := range 2030 { // by bytes they are few
		labels[strconv.FormatInt(int64(i), 36)] = ""
	}
	for name, data := range map[string]map[string][]byte{
		"data.server": {"server": large, "name": []byte("a")},
		"data.name":   {"server": []byte("https://a"), "name": large},
	} {
		t.Run(name, func(t *testing.T) {
			whole := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: labels}, Data: data}
			kept, err := transformed(whole)
			if err != nil {
				t.Fatal(err)
			}
			s := kept.(*corev1.Secret)
			if bytes := len(fmt.Sprintf("%+v", s)); bytes > 1000 {
				t.Errorf("%d bytes are kept", bytes)
			}
			if diff := cmp.Diff(map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}, s.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			want := []discover.SecretProblem{{Secret: "s", Kind: discover.TooLong, Message: `Secret "s" is left out: its data.name has more than 512 bytes, or its data.server more than 512, which no cluster has: see who made it`}}
			for what, read := range map[string]discover.Secret{"as it is": FromSecret(whole), "stripped": FromSecret(s)} {
				fleet, _, err := discover.Discover(discover.Input{Secrets: []discover.Secret{read}}, discover.Known{}, discover.Options{MaxShrink: 1}, time.Time{})
				if diff := cmp.Diff(want, fleet.Problems); diff != "" || err != nil || len(fleet.Clusters) > 0 {
					t.Errorf("%s: %d clusters, %v (-want +got):\n%s", what, len(fleet.Clusters), err, diff)
				}
			}
		})
	}
}
