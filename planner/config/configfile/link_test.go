package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
