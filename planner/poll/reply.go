package poll

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"
)

const (
	maxMessage = 1000 // bytes kept of what a Prometheus says in words
	// maxKept bounds what all answers of a Fetch leave, in bytes of memory: 20,000 clusters with the nine queries of
	// the default set leave 44 MiB.
	maxKept = 64 << 20
	// keptSample is what a sample without its key becomes: 48 bytes here, and up to 100 in the index or the report
	// made of it.
	keptSample = 150
	// keptQuestion is what a query for one cluster takes, with the sample that becomes of it: 4,194 clusters may be
	// asked for by 64 metrics each, 20,000 by thirteen.
	keptQuestion = 250
	// patience is what a request has to end in once its time is over: it says then why there is no answer.
	patience = time.Second
)

// reply is what was read of the answer to one query.
type reply struct {
	samples  []Sample // of the fleet
	rows     []row    // of the targets
	passed   int      // series of the fleet that are passed over, for the length of their label
	value    float64  // of one cluster
	found    bool
	warnings []string
	err      error
	hung     bool // there was no answer within the timeout
}

// size is what the reply takes, in bytes.
func (r reply) size() (sum int64) {
	for _, s := range r.samples {
		sum += keptSample + int64(len(s.Key))
	}
	for _, w := range r.warnings {
		sum += int64(len(w))
	}
	return sum
}

// single reads an answer for one cluster: no sample is no value, and two are an error.
func single(value model.Value, into *reply) error {
	switch v := value.(type) {
	case *model.Scalar:
		into.value, into.found = float64(v.Value), true
		return nil
	case model.Vector:
		if len(v) == 0 {
			return nil
		}
		if len(v) > 1 {
			return fmt.Errorf("it answers with %d series: aggregate them into one", len(v))
		}
		if err := checkSample(0, v[0]); err != nil {
			return err
		}
		into.value, into.found = float64(v[0].Value), true
		return nil
	}
	return fmt.Errorf("it answers with a %s; a query must answer with an instant vector of one series or a scalar",
		typeOf(value))
}
