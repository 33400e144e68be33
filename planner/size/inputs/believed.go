package inputs

import (
	"fmt"
	"time"
)

// believedFor is how long what was seen last is believed while the API server does not answer.
const believedFor = 30 * time.Minute

const neverSeen = "it was not asked for yet"

func unknown(why string, at, now time.Time) string {
	if age := now.Sub(at); why == "" && age > believedFor {
		return fmt.Sprintf("it was seen last %s ago", age.Round(time.Minute))
	}
	return why
}
