package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/config/httpclient"
	"ballast/planner/config/validation"
)

// FuzzParse: nothing panics, and what parses is valid and means the same after Marshal, and as JSON.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(config.DefaultYAML()))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := configfile.Parse(data)
		if err != nil {
			return
		}
		if errs := validation.Validate(first); len(errs) != 0 {
			t.Fatalf("parsed, but %v", errs)
		}
		sameAfterMarshal(t, first)
		sameAfterJSON(t, first)
	})
}

// sameAfterMarshal compares without the HTTP client, whose secrets are masked; that one must print the same again.
func sameAfterMarshal(t *testing.T, first config.PlannerConfig) {
	t.Helper()
	text, err := marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := configfile.Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	again, err := marshal(second)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(again)); diff != "" {
		t.Fatalf("marshalled twice:\n%s", diff)
	}
	if diff := cmp.Diff(withoutHTTP(first), withoutHTTP(second)); diff != "" {
		t.Fatalf("through Marshal:\n%s", diff)
	}
}

func sameAfterJSON(t *testing.T, first config.PlannerConfig) {
	t.Helper()
	data, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var second config.PlannerConfig
	if err := json.Unmarshal(data, &second); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	if diff := cmp.Diff(withoutHTTP(first), withoutHTTP(second)); diff != "" {
		t.Fatalf("through JSON:\n%s", diff)
	}
}

func withoutHTTP(c config.PlannerConfig) config.PlannerConfig {
	if c.Poll.Prometheus == nil {
		return c
	}
	p := *c.Poll.Prometheus
	p.HTTP = httpclient.Config{}
	c.Poll.Prometheus = &p
	return c
}

// FuzzScalars: what a value type reads, it writes so that it reads the same again.
func FuzzScalars(f *testing.F) {
	for _, s := range []string{"1m", "7d", "1h30m", "0", "1y2w3d4h5m6s7ms", "50%", "-1%", "0.9", "12", "-0.000000000001", "workload", "", "9999999999y", "null"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d, d2 config.Duration
		if d.UnmarshalText([]byte(s)) == nil && (d2.UnmarshalText([]byte(d.String())) != nil || d2 != d) {
			t.Errorf("duration %q is %v is %v", s, d, d2)
		}
		var p, p2 config.Percent
		if p.UnmarshalText([]byte(s)) == nil && (p2.UnmarshalText([]byte(p.String())) != nil || p2 != p) {
			t.Errorf("percentage %q is %v is %v", s, p, p2)
		}
		var n config.Decimal
		if n.UnmarshalText([]byte(s)) == nil && string(n) != s {
			t.Errorf("decimal %q is %q", s, n)
		}
		var r config.Replicas
		if r.UnmarshalText([]byte(s)) == nil {
			text, err := json.Marshal(r)
			var r2 config.Replicas
			if err != nil || json.Unmarshal(text, &r2) != nil || r != r2 {
				t.Errorf("replicas %q is %s", s, text)
			}
		}
	})
}

func TestEveryDurationOfWholeMillisecondsReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := config.Duration(rapid.Int64Range(0, int64(366*24*time.Hour)/1e6).Draw(t, "ms") * 1e6)
		var got config.Duration
		if err := got.UnmarshalText([]byte(d.String())); err != nil || got != d {
			t.Fatalf("%v became %v: %v", d, got, err)
		}
	})
}
