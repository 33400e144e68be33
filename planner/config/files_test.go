package config

import (
	"os"
	"path/filepath"
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

// TestALinkToTheOwnTokenIsRefused when the file is read, and when it is reloaded.
func TestALinkToTheOwnTokenIsRefused(t *testing.T) {
	dir := t.TempDir()
	mount, file := filepath.Join(dir, "kubernetes.io", "serviceaccount"), filepath.Join(dir, "config.yaml")
	for _, err := range []error{
		os.MkdirAll(mount, 0o700), os.WriteFile(filepath.Join(mount, "token"), []byte("its own"), 0o600),
		os.WriteFile(filepath.Join(dir, "bound"), []byte("bound"), 0o600), os.Symlink(mount, filepath.Join(dir, "harmless")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(credentials string) {
		text := "apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\npoll: {prometheus: {http: {authorization: {credentials_file: " + credentials + "}}}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bound")
	var refused []string
	r, err := NewReloader(file, ReloaderOptions{OnError: func(err error) { refused = append(refused, err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, credentials := range []string{"harmless/token", filepath.Join(dir, "harmless", "token"), filepath.Join(dir, "harmless") + "/../serviceaccount/token"} {
		write(credentials)
		refused = nil
		r.Reload()
		_, err := ParseFile(file)
		for _, got := range append(refused, errorText(err)) {
			if !strings.Contains(got, "poll.prometheus.http.authorization.credentials_file") || !strings.Contains(got, "is of the planner's own identity") {
				t.Errorf("%s: %q", credentials, got)
			}
		}
		if got := r.Current().Poll.Prometheus.HTTP.Authorization.CredentialsFile; len(refused) != 1 || got != filepath.Join(dir, "bound") {
			t.Errorf("%s: told %q, %q is in force", credentials, refused, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
