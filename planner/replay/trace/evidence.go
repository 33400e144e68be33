package trace

import (
	"math"
	"time"
)

// Evidence is how much a trace says: the steps that were read, the values in them, and for how long between them it
// says nothing.
type Evidence struct {
	Steps   int
	Samples int           // values that are there
	Missing int           // values of clusters that were there, and have none
	Gaps    int           // times that a step came later than the one before stands
	Gap     time.Duration // all of them together
	Long    time.Duration // from the first step to the end of the last one
}

// Counted counts what a source says while it is read.
type Counted struct {
	Source
	evidence    Evidence
	first, last time.Time
}

// Next implements Source.
func (c *Counted) Next() (Step, error) {
	s, err := c.Source.Next()
	if err == nil {
		c.count(s)
	}
	return s, err
}

// Evidence is what was read until now.
func (c *Counted) Evidence() Evidence { return c.evidence }

func (c *Counted) count(s Step) {
	e, step := &c.evidence, c.Header().Step
	if e.Steps++; e.Steps == 1 {
		c.first = s.At
	} else if late := s.At.Sub(c.last) - step; late > 0 {
		e.Gaps, e.Gap = e.Gaps+1, e.Gap+late
	}
	c.last = s.At
	e.Long = s.At.Sub(c.first) + step
	for _, row := range s.Values {
		for _, v := range row {
			if math.IsNaN(v) {
				e.Missing++
			} else {
				e.Samples++
			}
		}
	}
}
