package meter

import (
	"errors"
	"slices"
	"strings"
)

var errNoHTTP = errors.New("what answers there does not speak HTTP as it should: look at what the URL names")

// plainly keeps net/http from quoting an answer that it cannot read: the first line of what any port that the planner
// reaches says would be read by whoever reads the error.
func plainly(err error) error {
	text := err.Error()
	if slices.ContainsFunc([]string{"malformed", "transfer encoding", "Content-Length", "Location header"},
		func(of string) bool { return strings.Contains(text, of) }) {
		return errNoHTTP
	}
	return err
}
