package httpclient

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
)

// TestEveryFileThatTheHTTPClientReadsIsSeen fails where a new version of prometheus/common reads one more.
func TestEveryFileThatTheHTTPClientReadsIsSeen(t *testing.T) {
	h := promconfig.HTTPClientConfig{}
	fillFiles(reflect.ValueOf(&h).Elem())
	h.HTTPHeaders.Headers = map[string]promconfig.Header{"X-B": {Files: []string{"b", "c"}}, "X-A": {Files: []string{"a"}}}
	var got []string
	eachFile(reflect.ValueOf(h), nil, func(p *field.Path, path string) { got = append(got, p.String()+" "+path) })
	want := []string{
		"authorization.credentials_file CredentialsFile", "basic_auth.password_file PasswordFile", "basic_auth.username_file UsernameFile",
		"bearer_token_file BearerTokenFile", "http_headers[X-A].files[0] a", "http_headers[X-B].files[0] b", "http_headers[X-B].files[1] c",
		"oauth2.client_certificate_key_file ClientCertificateKeyFile", "oauth2.client_secret_file ClientSecretFile",
		"oauth2.tls_config.ca_file CAFile", "oauth2.tls_config.cert_file CertFile", "oauth2.tls_config.key_file KeyFile",
		"tls_config.ca_file CAFile", "tls_config.cert_file CertFile", "tls_config.key_file KeyFile",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// fillFiles writes its name into each text whose Go name speaks of a file, whatever its tag says.
func fillFiles(v reflect.Value) {
	for i := range v.NumField() {
		f, is := v.Field(i), v.Type().Field(i)
		switch {
		case !is.IsExported() || is.Type == reflect.TypeFor[promconfig.URL]():
		case f.Kind() == reflect.String && strings.Contains(is.Name, "File"):
			f.SetString(is.Name)
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			fillFiles(f.Elem())
		case f.Kind() == reflect.Struct:
			fillFiles(f)
		}
	}
}

// TestNoSpellingOfTheOwnTokenPasses: slashes, dots and detours lead there as the plain path does.
func TestNoSpellingOfTheOwnTokenPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom([]string{"/", "//", "../../../", "./../../../../", ""}).Draw(t, "start")
		way := rapid.SampledFrom([]string{"var/run/secrets", "run/secrets", "proc/self/root/run/secrets", "proc/1/cwd/../run/secrets", "dev/fd/../root/run/secrets"}).Draw(t, "way")
		file := rapid.SampledFrom([]string{"token", "..data/token", "ca.crt", "..2026_11_20/token"}).Draw(t, "file")
		for _, part := range strings.Split(way+"/kubernetes.io/serviceaccount/"+file, "/") {
			path += part + rapid.SampledFrom([]string{"/", "//", "/./", "/x/../", "/../" + part + "/"}).Draw(t, "between")
		}
		if path = strings.TrimRight(path, "/"); !ownFile(path) {
			t.Fatalf("%s passes", path)
		}
	})
}

func TestOtherFilesPass(t *testing.T) {
	for _, path := range []string{"/var/run/secrets/ballast/prometheus/token", "token", "/etc/ballast/kubernetes.io/token", "/etc/process/token", "/etc/kubernetes.io/serviceaccounts/token", "/var/run/secrets/kubernetes.io/other/token"} {
		if ownFile(path) {
			t.Errorf("%s is refused", path)
		}
	}
}
