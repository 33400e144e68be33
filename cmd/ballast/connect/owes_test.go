package connect_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/fixture"
)

// TestAnInterruptWaitsForWhatACommandTakesBack, and for nothing else beyond the grace.
func TestAnInterruptWaitsForWhatACommandTakesBack(t *testing.T) {
	const within = 10 * time.Second
	for name, tc := range map[string]struct {
		owes, paid bool
		takes      time.Duration // after the interrupt
		after      time.Duration
		want       string
	}{
		"it owes nothing":            {false, false, time.Minute, connect.InterruptGrace, `interrupted before API server %!q(<nil>) answered`},
		"it takes back in time":      {true, false, 9 * time.Second, 9 * time.Second, "own"},
		"it took back":               {true, true, time.Minute, connect.InterruptGrace, `interrupted before API server %!q(<nil>) answered`},
		"it does not come to an end": {true, false, time.Minute, connect.InterruptGrace + within, "interrupted before API server %!q(<nil>) answered\na freeze stays"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				o := &connect.Options{}
				cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
					if tc.owes {
						o.Owe(within, "a freeze stays")
					}
					if tc.paid {
						o.OwesNothing()
					}
					<-cmd.Context().Done()
					<-time.After(tc.takes)
					return errors.New("own")
				}}
				o.Register(cmd)
				time.AfterFunc(time.Second, interrupt)
				began := time.Now()
				err := fixture.RunLine(ctx, cmd, "ballast uninstall")
				if took := time.Since(began) - time.Second; err == nil || err.Error() != tc.want || took != tc.after {
					t.Errorf("it ends %s after the interrupt with %v, want %s with %q", took, err, tc.after, tc.want)
				}
				<-time.After(2 * time.Minute) // of the bubble's clock: until what was left behind has ended, too
			})
		})
	}
}
