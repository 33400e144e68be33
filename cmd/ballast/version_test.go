package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/version"
)

func TestVersionSaysWhatItIsProvenWith(t *testing.T) {
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := newRootCommand()
		root.SetOut(&out)
		root.SetArgs(append([]string{"version"}, args...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	lines := strings.Split(run(), "\n")
	want := []string{"ballast " + version.Build(), "commit " + version.Commit(), runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		"proven with Kubernetes 1.36.1 and Argo CD 3.2.11", ""}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var got version.About
	if err := json.Unmarshal([]byte(run("-o", "json")), &got); err != nil || got != version.This() {
		t.Errorf("%v, %v", got, err)
	}
}
