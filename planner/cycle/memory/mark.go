package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	"ballast/planner/discover"
)

const (
	// mostMoved is how many clusters a trip for memory keeps marks of: as many as are planned, some 200 KiB. Where the
	// names of more are lost, the trip stops every failover.
	mostMoved = discover.MostSecrets
	// mostFailed is how many clusters that failed over are marked, the latest, and as many that are suspect: some 30 KiB
	// each.
	mostFailed = 2000

	// markSign begins a mark and no Secret's name.
	markSign = "#"
	// markBytes of a hash: nobody finds a name with another one's mark.
	markBytes = 8
)

func isMark(name string) bool { return strings.HasPrefix(name, markSign) }

// mark stands for a name; it is its own mark.
func mark(name string) string {
	if isMark(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return markSign + base64.RawURLEncoding.EncodeToString(sum[:markBytes])
}

// marked has the latest times by mark.
func marked(times map[string]time.Time) map[string]time.Time {
	latest := slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(times[b].Compare(times[a]), cmp.Compare(a, b))
	})
	out := map[string]time.Time{}
	for _, name := range latest[:min(len(latest), mostFailed)] {
		out[mark(name)] = times[name]
	}
	return out
}

func hasMark(times map[string]time.Time) bool {
	for name := range times {
		if isMark(name) {
			return true
		}
	}
	return false
}

func unmarked(times map[string]time.Time, of map[string]string) map[string]time.Time {
	out := make(map[string]time.Time, len(times))
	for key, at := range times {
		name := cmp.Or(of[key], key)
		out[name] = later(out[name], at)
	}
	return out
}
