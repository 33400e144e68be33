package serve

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/cmd/ballast/fixture"
)

// A log line is one line, without control characters and credentials, whatever is logged.
func TestLogsAreHarmless(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var b bytes.Buffer
				log, err := (&LogOptions{format: format, level: 1}).loggerTo(&b)
				if err != nil {
					t.Fatal(err)
				}
				text, before := fixture.Hostile(t), 0
				for _, write := range []func(){
					func() { log.Info("m", "server", text) },
					func() { log.V(1).Info(text, "list", []string{text}, text, time.Second) },
					func() { log.WithName("n").WithValues("map", map[string]any{text: text}).Info("m") },
					func() { log.Error(errors.New(text), "m") },
					func() { log.Info("m", "any", struct{ Server string }{text}, "bytes", []byte(text)) },
				} {
					write()
					line := b.String()[before:]
					before = b.Len()
					line = strings.ReplaceAll(line, "\t", " ")
					fixture.CheckOutput(t, "the line", line)
					if n := strings.Count(line, "\n"); n != 1 {
						t.Fatalf("it has %d lines:\n%s", n, line)
					}
				}
			})
		})
	}
}
