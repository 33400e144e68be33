package assets

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheHashOfABuildFollowsItsSources(t *testing.T) {
	e2e := t.TempDir()
	for _, module := range []string{"kube", "prometheus", "tools/cert-manager"} {
		if err := os.MkdirAll(filepath.Join(e2e, module), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hash := func() string {
		h, err := planeSet.sourceHash(e2e)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(e2e, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := hash()
	write("kube/README.md", "no source")
	if hash() != before {
		t.Error("the hash follows a file that is no source")
	}
	for _, name := range []string{"kube/go.mod", "prometheus/go.sum", "tools/cert-manager/main.go"} {
		write(name, "x")
		if after := hash(); after == before {
			t.Errorf("the hash does not follow %s", name)
		} else {
			before = after
		}
	}
}

func TestABuildWaitsForTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "build.lock")
	unlock, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(impatient, path, &told); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(told.String(), "waiting") {
		t.Errorf("the lock while held: got %v and %q, want a told wait", err, told.String())
	}
	unlock()
	again, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	cache, e2e := t.TempDir(), t.TempDir()
	for _, module := range []string{"kube", "prometheus", "tools"} { // no go.mod in it
		if err := os.MkdirAll(filepath.Join(e2e, module), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := planeSet.buildAll(t.Context(), e2e, filepath.Join(cache, "whole"), io.Discard); err == nil {
		t.Fatal("a build of nothing succeeded")
	}
	if left, err := os.ReadDir(cache); len(left) > 0 || err != nil {
		t.Errorf("left: got %v, %v, want nothing", left, err)
	}
}
