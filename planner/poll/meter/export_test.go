package meter

import (
	"net/http"
	"time"
)

// MaxAnswer is the bound of one answer, for the tests that fill it.
const MaxAnswer = maxAnswer

// Weight is what a text counts as of MaxAnswer.
var Weight = weight

// SetTokenWait sets how long a client of NewHTTPClient waits for the token endpoint.
func SetTokenWait(c *http.Client, wait time.Duration) {
	c.Transport.(*bearer).tokens.client.Timeout = wait
}

// TokenWait is how long that is.
func TokenWait(c *http.Client) time.Duration { return c.Transport.(*bearer).tokens.client.Timeout }
