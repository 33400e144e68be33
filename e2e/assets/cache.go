package assets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// lock takes the file's lock, waiting while another process builds. The lock
// ends with its holder, so a killed build blocks nobody.
func lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking the build: %w", err), f.Close())
		}
		if !told {
			fmt.Fprintln(progress, "waiting for another process that builds the same binaries")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for the build lock: %w", ctx.Err()), f.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sourceHash names a build by everything that decides its outcome.
func (s set) sourceHash(e2e string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, buildEnv)
	for _, c := range s.components {
		fmt.Fprintf(h, "%q\n", []string{c.name, c.module, c.pkg, strings.Join(c.flags, "\n")})
	}
	for _, module := range s.modules {
		err := filepath.WalkDir(filepath.Join(e2e, module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isSource(d.Name()) {
				return err
			}
			data, err := os.ReadFile(path)
			fmt.Fprintf(h, "%s/%s %d\n%s", module, d.Name(), len(data), data)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("hashing the sources of %q: %w", module, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func isSource(name string) bool {
	return name == "go.mod" || name == "go.sum" || filepath.Ext(name) == ".go"
}

// repoRoot walks up from the working folder, which for a test is its package,
// to the go.mod of this module, past those of the nested ones.
func repoRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working folder: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module ballast\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding ballast's go.mod above %q: %w", wd, fs.ErrNotExist)
		}
	}
}

func cacheDir() (string, error) {
	if dir := os.Getenv("BALLAST_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(dir, "ballast"), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
