package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWhatIsPrinted is that of go test without -json, which prints the logs of no test that passed.
func TestWhatIsPrinted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":              "module example\n\ngo 1.26\n",
		"good/good_test.go":   "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) { t.Log(\"quiet\") }\n",
		"none/none.go":        "package none\n",
		"bad/bad_test.go":     "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) {\n\tt.Run(\"one\", func(t *testing.T) { t.Error(\"loud\") })\n\tt.Run(\"two\", func(t *testing.T) { t.Log(\"quiet\") })\n}\n",
		"worse/worse_test.go": "package worse\n\nimport \"testing\"\n\nfunc TestPanics(t *testing.T) { t.Log(\"before\"); panic(\"gone\") }\n",
		"unbuilt/unbuilt.go":  "package unbuilt\n\nvar x int = \"\"\n", "unbuilt/unbuilt_test.go": "package unbuilt\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-json", "./...")
	test.Dir = dir
	said, err := test.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := follow(bytes.NewReader(said), &out, time.Now, time.Hour); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, want := range []string{"ok  \texample/good\t", "?   \texample/none\t[no test files]\n", "--- FAIL: TestBad/one", "loud", "FAIL\texample/bad\t",
		"before", "panic: gone", "FAIL\texample/worse\t", "cannot use \"\"", "FAIL\texample/unbuilt [build failed]"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q it prints\n%s", want, got)
		}
	}
	if strings.Contains(got, "quiet") {
		t.Errorf("the log of a test that passed is printed:\n%s", got)
	}
}

// TestWhatRunsIsTold where nothing else was for a while.
func TestWhatRunsIsTold(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	r := &report{out: &out, now: func() time.Time { return now }, running: map[string]*running{}, told: now}
	r.tell()
	for _, e := range []event{{Action: "start", Package: "a"}, {Action: "start", Package: "b"}, {Action: "run", Package: "b", Test: "TestOne"},
		{Action: "run", Package: "b", Test: "TestOne/sub"}, {Action: "pass", Package: "b", Test: "TestOne/sub"}, {Action: "run", Package: "b", Test: "TestTwo"},
		{Action: "pause", Package: "b", Test: "TestTwo"}} {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		r.line(line)
		now = now.Add(10 * time.Second)
	}
	r.tell()
	r.line([]byte("go: a fault of its own\n"))
	const want = "...  building\n...  \ta\trunning for 1m10s\n...  \tb\trunning for 1m0s, TestOne\ngo: a fault of its own\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestItIsToldByItself, and what cannot be read is an error.
func TestItIsToldByItself(t *testing.T) {
	in, feed := io.Pipe()
	out, said := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- follow(in, said, time.Now, 6*time.Millisecond) }()
	buffer := make([]byte, 100)
	n, err := out.Read(buffer)
	if err != nil || string(buffer[:n]) != "...  building\n" {
		t.Errorf("it prints %q (%v)", buffer[:n], err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if err := feed.CloseWithError(iotest.ErrTimeout); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("it ends with %v", err)
	}
}

// TestTheSlowestTestsAreTold, each with its subtests as one.
func TestTheSlowestTestsAreTold(t *testing.T) {
	lines := `{"Action":"start","Package":"a"}
{"Action":"pass","Package":"a","Test":"TestQuick","Elapsed":29.9}
{"Action":"pass","Package":"a","Test":"TestSlow/one","Elapsed":50}
{"Action":"pass","Package":"a","Test":"TestSlow","Elapsed":61.4}
{"Action":"fail","Package":"a","Test":"TestSlower","Elapsed":100}
{"Action":"pass","Package":"a","Elapsed":200}
`
	var out bytes.Buffer
	if err := follow(strings.NewReader(lines), &out, time.Now, time.Minute); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("slow \ta\tTestSlower took 100s\nslow \ta\tTestSlow took 61s\n", out.String()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
