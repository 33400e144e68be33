package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"

	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/config/httpclient"
	"ballast/webhook/fixture"
)

const withSecrets = `apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
poll:
  prometheus:
    http:
      basic_auth: {username: ballast, password: hunter2}
      tls_config: {key: hunter2, cert: public, server_name: prometheus}
      proxy_url: http://me:hunter2@proxy:3128
      proxy_connect_header: {Proxy-Key: [hunter2]}
      http_headers: {X-Scope-OrgID: {values: [team-a]}, X-Key: {secrets: [hunter2]}}
`

const withOAuth2 = `apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
poll:
  prometheus:
    http:
      oauth2:
        client_id: ballast
        client_secret: hunter2
        token_url: https://issuer/token
        endpoint_params: {client_assertion: hunter2}
        claims: {aud: [a, b], nested: {deep: 1}}
        tls_config: {key: hunter2, cert: public, server_name: issuer}
`

func TestTheHTTPClientIsReadWithItsSecrets(t *testing.T) {
	h := parsed(t, withSecrets).Poll.Prometheus.HTTP
	got := []string{
		string(h.BasicAuth.Password), string(h.TLSConfig.Key), h.ProxyURL.String(),
		string(h.ProxyConnectHeader["Proxy-Key"][0]), string(h.HTTPHeaders.Headers["X-Key"].Secrets[0]), h.HTTPHeaders.Headers["X-Scope-OrgID"].Values[0],
	}
	want := []string{"hunter2", "hunter2", "http://me:hunter2@proxy:3128", "hunter2", "hunter2", "team-a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	o := parsed(t, withOAuth2).Poll.Prometheus.HTTP.OAuth2
	wantClaims := map[string]any{"aud": []any{"a", "b"}, "nested": map[string]any{"deep": 1}}
	if diff := cmp.Diff(wantClaims, o.Claims); diff != "" {
		t.Errorf("claims -want +got:\n%s", diff)
	}
	if o.ClientSecret != "hunter2" || o.TLSConfig.ServerName != "issuer" {
		t.Errorf("got secret %q for %q", string(o.ClientSecret), o.TLSConfig.ServerName)
	}
}

func TestNothingPrintsTheHTTPClientsSecrets(t *testing.T) {
	for name, text := range map[string]string{"basic auth": withSecrets, "OAuth 2": withOAuth2} {
		c := parsed(t, text)
		file, err := marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		for way, printed := range map[string]string{
			"Marshal": string(file), "JSON": string(data),
			"%v": fmt.Sprintf("%v", c.Poll.Prometheus), "%+v": fmt.Sprintf("%+v", *c.Poll.Prometheus), "%#v": fmt.Sprintf("%#v", *c.Poll.Prometheus),
		} {
			if strings.Contains(printed, "hunter2") {
				t.Errorf("%s of %s prints a secret:\n%s", way, name, printed)
			}
			if !strings.Contains(printed, "server_name") {
				t.Errorf("%s of %s does not print the rest:\n%s", way, name, printed)
			}
		}
		if _, err := configfile.Parse(file); err != nil {
			t.Errorf("what Marshal printed of %s does not parse: %v", name, err)
		}
	}
}

// TestAVastKeyIsRefusedWithTheConfiguration, by its field and without a word of it.
func TestAVastKeyIsRefusedWithTheConfiguration(t *testing.T) {
	key := string(fixture.VastKey(t))
	inline := fmt.Sprintf("{cert: public, key: %q}", key)
	for at, http := range map[string]string{
		"tls_config.key":        "tls_config: " + inline,
		"oauth2.tls_config.key": "oauth2: {client_id: b, client_secret: s, token_url: https://t, tls_config: " + inline + "}",
	} {
		text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\npoll: {prometheus: {http: {" + http + "}}}\n"
		_, err := configfile.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "poll.prometheus.http."+at) || !strings.Contains(err.Error(), "give it another key") {
			t.Errorf("%s: %v", at, err)
		} else if strings.Contains(err.Error(), "BEGIN") {
			t.Error("the error quotes the key")
		}
	}
}

func TestTheHTTPClientStartsFromPrometheusDefaults(t *testing.T) {
	if h := parsed(t, withOAuth2).Poll.Prometheus.HTTP; !h.FollowRedirects || !h.EnableHTTP2 {
		t.Errorf("follow_redirects %t, enable_http2 %t", h.FollowRedirects, h.EnableHTTP2)
	}
	var h httpclient.Config
	if err := json.Unmarshal([]byte(`{}`), &h); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(httpclient.Config{HTTPClientConfig: promconfig.DefaultHTTPClientConfig}, h); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheHTTPClientIsStrictAsJSONToo(t *testing.T) {
	var h httpclient.Config
	err := json.Unmarshal([]byte(`{"tls_conf": {}}`), &h)
	if err == nil || err.Error() != "tls_conf: Forbidden: is not a field: did you mean tls_config?" {
		t.Errorf("got %v", err)
	}
}

func TestTwoHTTPClientsAreEqualByTheirSettings(t *testing.T) {
	a, b := parsed(t, withSecrets).Poll.Prometheus.HTTP, parsed(t, withSecrets).Poll.Prometheus.HTTP
	a.Proxy() // caches a function
	if !a.Equal(b) {
		t.Error("the same settings differ")
	}
	b.BasicAuth.Password = "hunter3"
	if a.Equal(b) {
		t.Error("a changed secret went unseen")
	}
}

func parsed(t *testing.T, text string) config.PlannerConfig {
	t.Helper()
	c, err := configfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
