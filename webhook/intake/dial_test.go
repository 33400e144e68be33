package intake

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAConnectionIsNewForItsFirstCall, if that comes at once: a client may have dialled ahead.
func TestAConnectionIsNewForItsFirstCall(t *testing.T) {
	type call struct {
		at  time.Duration
		new bool
	}
	for name, calls := range map[string][]call{
		"at once, and again": {{0, true}, {time.Millisecond, false}, {time.Minute, false}},
		"after a handshake":  {{newConnection - 1, true}, {newConnection - 1, false}},
		"dialled ahead":      {{newConnection, false}, {newConnection, false}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := noteDial(t.Context())
			since := ctx.Value(dialKey{}).(*dial).since
			var got []call
			for _, c := range calls {
				got = append(got, call{c.at, FirstOnConnection(ctx, since.Add(c.at))})
			}
			if diff := cmp.Diff(calls, got, cmp.AllowUnexported(call{})); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
	if FirstOnConnection(t.Context(), time.Now()) {
		t.Error("a connection of which nothing is known is new")
	}
}
