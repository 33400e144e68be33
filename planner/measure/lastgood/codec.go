package lastgood

import (
	"fmt"
	"slices"
	"time"

	"ballast/planner/gz"
)

const (
	codecVersion = 1
	maxColumns   = 1 << 10
)

// codecBounds: 20,000 clusters with 6 metrics, one of them by the name, take 3.9 MB of JSON.
func codecBounds() gz.Bounds { return gz.Bounds{Bytes: 8 << 20, Nested: 5 * (1 + maxColumns)} }

// document is what is stored of Values, as JSON and gzip. 5,000 clusters take 148 kB with 4 metrics and 201 kB with 6,
// and another 48 kB where a metric goes by the name: a name's key does not pack. See
// TestFiveThousandClustersFitIntoTheHistory.
type document struct {
	Version int      `json:"version"`
	IDs     []string `json:"ids"`
	Names   []string `json:"names,omitempty"`
	Columns []column `json:"columns"`
}

// column is a Column whose times are written as seconds before the newest, which packs smaller.
type column struct {
	ID           string    `json:"id"`
	Values       []float64 `json:"values"`
	Newest       int64     `json:"newest"`
	Age          []int64   `json:"age"`
	Measured     []bool    `json:"measured"`
	DroppedSince time.Time `json:"droppedSince,omitzero"`
	DropsFirst   time.Time `json:"dropsFirst,omitzero"`
	Held         []int64   `json:"held,omitempty"`
	Low
}

// MarshalBinary writes the last good values as the history keeps them. The same values give the same bytes.
func (l Values) MarshalBinary() ([]byte, error) {
	d := document{Version: codecVersion, IDs: l.IDs, Names: l.Names}
	for _, c := range l.Columns {
		kept := column{ID: c.ID, Values: c.Values, Measured: c.Measured, DroppedSince: c.DroppedSince,
			DropsFirst: c.DropsFirst, Held: c.Held, Low: c.Low}
		kept.Age = make([]int64, len(c.At))
		for _, at := range c.At {
			kept.Newest = max(kept.Newest, at)
		}
		for i, at := range c.At {
			kept.Age[i] = kept.Newest - at
		}
		d.Columns = append(d.Columns, kept)
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return codecBounds().PackJSON(d)
}

// UnmarshalBinary reads what MarshalBinary writes. Anything else is an error and leaves the receiver as it is.
func (l *Values) UnmarshalBinary(stored []byte) error {
	var d document
	if err := codecBounds().UnpackJSON(stored, &d); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	*l = Values{IDs: d.IDs, Names: d.Names}
	for _, c := range d.Columns {
		read := Column{ID: c.ID, Values: c.Values, Measured: c.Measured, DroppedSince: c.DroppedSince,
			DropsFirst: c.DropsFirst, Held: c.Held, Low: c.Low, At: c.Age}
		for i, age := range c.Age {
			read.At[i] = c.Newest - age
		}
		l.Columns = append(l.Columns, read)
	}
	return nil
}

// check holds what is written and what is read against the same rules.
func (d document) check() error {
	if d.Version != codecVersion {
		return fmt.Errorf("their version is %d, and this ballast reads %d", d.Version, codecVersion)
	}
	for i := 1; i < len(d.IDs); i++ {
		if d.IDs[i-1] >= d.IDs[i] {
			return fmt.Errorf("ID %q follows %q", d.IDs[i], d.IDs[i-1])
		}
	}
	if len(d.Names) > 0 && len(d.Names) != len(d.IDs) {
		return fmt.Errorf("they have %d names for %d IDs", len(d.Names), len(d.IDs))
	}
	for _, c := range d.Columns {
		if len(c.Values) != len(d.IDs) || len(c.Age) != len(d.IDs) || len(c.Measured) != len(d.IDs) {
			return fmt.Errorf("metric %q has %d values, %d times and %d marks for %d IDs",
				c.ID, len(c.Values), len(c.Age), len(c.Measured), len(d.IDs))
		}
		if len(c.Held) > 0 && len(c.Held) != len(d.IDs) {
			return fmt.Errorf("metric %q has %d times of being held for %d IDs", c.ID, len(c.Held), len(d.IDs))
		}
		if slices.ContainsFunc(c.Held, func(seconds int64) bool { return seconds < 0 }) {
			return fmt.Errorf("metric %q has a value that is held for less than no time", c.ID)
		}
		if slices.ContainsFunc(c.Values, func(v float64) bool { return v < 0 }) { // JSON has neither NaN nor Inf
			return fmt.Errorf("metric %q has a value below 0", c.ID)
		}
	}
	return nil
}
