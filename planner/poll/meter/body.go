// Package meter reads what a Prometheus answers within bounds of memory, with the OAuth 2 token that it asks for within
// bounds of time: an answer is weighed before it is decoded, and large ones are read one at a time.
package meter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	promapi "github.com/prometheus/client_golang/api"
)

// What an answer takes is told from its text, before anything of it is decoded: client_golang holds the text up to
// five times, and makes of a sample of 42 bytes a map, a struct and strings of 500. Of 20,000 clusters, four times the
// fleet that ballast is made for, a default metric takes 40 MiB and the owners 48.
const (
	maxAnswer    = 72 << 20      // bytes of memory for one answer, of which there is one at a time: 14 MiB of text, or 55,000 lean samples
	smallAnswer  = 512 << 10     // what each answer may take beside the others: that of 250 clusters
	maxComplaint = 64 << 10      // bytes read of an answer that is an error
	maxRead      = 4 * maxAnswer // bytes of text, with the strings that are passed over for their length
	readAtOnce   = 32 << 10
)

var (
	errNoText   = errors.New("the answer is no UTF-8, as every Prometheus' is: look at what answers at poll.prometheus.url")
	errTooLarge = fmt.Errorf("the answer would take more than %d MiB of memory: let the query aggregate by the label that it is matched by", maxAnswer>>20)
)

// Allowance is what one query's answer may take. A large one waits for the slot, so that there is one at a time.
type Allowance struct {
	slot     Semaphore
	used     int64
	mine     bool
	answered bool
}

// Answered reports whether an answer was read to its end, so that what fails behind it is the decoding.
func (a *Allowance) Answered() bool { return a.answered }

func (a *Allowance) take(ctx context.Context, more int64) error {
	a.used += more
	switch {
	case a.used > maxAnswer:
		return errTooLarge
	case a.mine || a.used <= smallAnswer:
		return nil
	}
	err := a.slot.acquire(ctx)
	a.mine = err == nil
	return err
}

// Release is called when nothing is left of the answer but what was read of it.
func (a *Allowance) Release() {
	if a.mine {
		a.slot.release()
	}
	*a = Allowance{slot: a.slot}
}

// NewAllowance is that of a query whose large answer takes this slot.
func NewAllowance(slot Semaphore) *Allowance { return &Allowance{slot: slot} }

// NewClient is the client of one query, whose answer is read within its allowance.
func NewClient(client promapi.Client, http *http.Client, a *Allowance) promapi.Client {
	return metered{client, http, a}
}

// metered is the client of one query. Its answer, decompressed, stays within the allowance.
type metered struct {
	promapi.Client
	http      *http.Client
	allowance *Allowance
}

// Do sends a request and reads the answer to its end.
func (m metered) Do(ctx context.Context, r *http.Request) (*http.Response, []byte, error) {
	m.allowance.answered = false
	response, err := m.http.Do(r.WithContext(ctx))
	if err != nil {
		return nil, nil, plainly(err)
	}
	defer response.Body.Close()
	body, err := m.read(ctx, response)
	m.allowance.answered = err == nil
	return response, body, err
}

func (m metered) read(ctx context.Context, response *http.Response) ([]byte, error) {
	var text clipping
	from, add := io.LimitReader(response.Body, maxRead), text.add
	if response.StatusCode/100 != 2 {
		from, add = io.LimitReader(response.Body, maxComplaint), text.addWhole
	}
	for part, read := make([]byte, readAtOnce), 0; ; {
		n, err := from.Read(part)
		if refused := m.allowance.take(ctx, add(part[:n])); refused != nil {
			return nil, refused
		}
		switch read += n; {
		case read >= maxRead:
			return nil, errTooLarge
		case errors.Is(err, io.EOF) && !utf8.Valid(text.kept): // each byte that is none becomes three
			return nil, errNoText
		case errors.Is(err, io.EOF):
			return text.kept, nil
		case err != nil:
			return nil, err
		}
	}
}
