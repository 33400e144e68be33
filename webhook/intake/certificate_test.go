package intake

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"ballast/certs/privatekey"
	"ballast/webhook/fixture"
)

// put replaces one file of the pair, as the kubelet does: it appears whole.
func (s *served) put(t testing.TB, name string, content []byte) {
	t.Helper()
	path := filepath.Join(s.certDir, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

func (l *lines) into(o *ServerOptions) {
	o.Log = funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		fmt.Fprintln(&l.text, prefix, args)
	}, funcr.Options{})
}

func (s *served) serial(t testing.TB) int64 {
	t.Helper()
	resp, _ := get(t, s.client(nil), s.address)
	return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// TestAKeyThatComputesForHoursKeepsNoServerFromTheNextPair: the last good pair is served meanwhile, which the log says once.
func TestAKeyThatComputesForHoursKeepsNoServerFromTheNextPair(t *testing.T) {
	var log lines
	s := serve(t, hello(), log.into)
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", time.Minute, ready(s))
	const refused = "the serving certificate cannot be taken up; the last good one is served"
	for serial, bad := range map[int64][]byte{3: fixture.VastKey(t), 4: []byte("junk"), 5: bytes.Repeat([]byte("a"), maxPEM+1)} {
		was, told := s.serial(t), log.count(refused)
		s.put(t, "tls.key", bad)
		fixture.Eventually(t, "a line in the log", time.Minute, func() bool { return log.count(refused) > told })
		if got, times := s.serial(t), log.count(refused)-told; got != was || times != 1 {
			t.Errorf("pair %d is served, not %d; told %d times", got, was, times)
		}
		end := time.Now().Add(time.Duration(serial) * time.Hour).Truncate(time.Second)
		s.install(t, serial, end)
		fixture.Eventually(t, "the next pair", time.Minute, func() bool { return s.serial(t) == serial })
		if got := s.expiry.Load(); got != end.Unix() {
			t.Errorf("pair %d ends at %d by its metric, not at %d", serial, got, end.Unix())
		}
	}
	if log.count(privatekey.ErrNumbers.Error()) != 1 {
		t.Error("the log does not say what is wrong with the key")
	}
}

// TestARefusedPairIsToldOnce: looks are a second apart, and the log of a pair that stays refused must not be.
func TestARefusedPairIsToldOnce(t *testing.T) {
	var log lines
	options := ServerOptions{CertDir: t.TempDir()}
	log.into(&options)
	c, s := NewServer(options).newServing(), &served{certDir: options.CertDir}
	cert, key := fixture.NewAuthority(t).Leaf(t, 1, time.Now().Add(time.Hour))
	s.put(t, "tls.crt", cert)
	for i, step := range []struct {
		key  []byte
		told int
	}{{key, 0}, {fixture.VastKey(t), 1}, {nil, 1}, {nil, 1}, {[]byte("junk"), 2}, {nil, 2}, {key, 2}, {[]byte("junk"), 3}} {
		if step.key != nil {
			s.put(t, "tls.key", step.key)
		}
		c.look()
		if got := log.count("the serving certificate cannot be taken up; the last good one is served"); got != step.told {
			t.Errorf("look %d: told %d times, want %d", i, got, step.told)
		}
	}
}

// TestOneLineTellsOfAFileOfForeignBlocks: the error of crypto/tls has the type of each.
func TestOneLineTellsOfAFileOfForeignBlocks(t *testing.T) {
	dir := t.TempDir()
	_, key := fixture.NewAuthority(t).Leaf(t, 1, time.Now().Add(time.Hour))
	s := &served{certDir: dir}
	c := NewServer(ServerOptions{CertDir: dir}).newServing()
	s.put(t, "tls.crt", bytes.Repeat([]byte("-----BEGIN A\x1b[2J-----\n-----END A\x1b[2J-----\n"), maxPEM/64))
	s.put(t, "tls.key", key)
	c.look()
	if c.refused == nil || !strings.Contains(c.refused.Error(), "failed to find") {
		t.Fatal(c.refused)
	}
	if text := c.refused.Error(); len(text) > 1024 || strings.Contains(text, "\x1b") {
		t.Errorf("%d bytes are told: %.300q", len(text), text)
	}
}

// TestAServerThatStartsWithSuchAKeyServesOnceItIsMended.
func TestAServerThatStartsWithSuchAKeyServesOnceItIsMended(t *testing.T) {
	var log lines
	s := serve(t, hello(), log.into)
	cert, _ := s.ca.Leaf(t, 1, time.Now().Add(time.Hour))
	s.put(t, "tls.crt", cert)
	s.put(t, "tls.key", fixture.VastKey(t))
	fixture.Eventually(t, "a line in the log", time.Minute, func() bool { return log.count(privatekey.ErrNumbers.Error()) == 1 })
	if s.server.Ready() == nil {
		t.Error("it is ready")
	}
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", time.Minute, ready(s))
	if got := s.serial(t); got != 2 {
		t.Errorf("pair %d is served", got)
	}
}

// TestAPairThatWasAwayIsTakenUpAgain: it is the one of before, to the byte.
func TestAPairThatWasAwayIsTakenUpAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := fixture.NewAuthority(t).Leaf(t, 1, time.Now().Add(time.Hour))
	s := &served{certDir: dir}
	c := NewServer(ServerOptions{CertDir: dir}).newServing()
	s.put(t, "tls.crt", cert)
	for _, step := range []struct {
		key  []byte
		good bool
	}{{nil, false}, {key, true}, {key, true}, {nil, false}, {key, true}, {[]byte("junk"), false}, {[]byte("junk"), false}, {key, true}} {
		if step.key == nil {
			_ = os.Remove(filepath.Join(dir, "tls.key"))
		} else {
			s.put(t, "tls.key", step.key)
		}
		if c.look(); (c.refused == nil) != step.good {
			t.Errorf("with a key of %d bytes: %v", len(step.key), c.refused)
		}
	}
}
