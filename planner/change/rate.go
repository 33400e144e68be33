package change

import (
	"strings"
	"time"
)

// Rate allows moves of Percent of the fleet's clusters in any window of Period.
type Rate struct {
	Percent int           `json:"percent"`
	Period  time.Duration `json:"period"`
}

// Allowed is how many moves of a fleet that is; where anything is allowed at all, one: 10 % of seven clusters would
// stop every change for good.
func (r Rate) Allowed(clusters int) int {
	if r.Percent <= 0 {
		return 0
	}
	return max(1, r.Percent*clusters/100)
}

// Window is a rate with what was used of it: moves of every cause less than Period ago.
type Window struct {
	Rate    Rate
	Allowed int
	Used    int
}

// period leaves out what is zero: 1h, 24h, 1m30s.
func period(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
