package poll

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// The last good values are stored as gzip of: a version, the IDs (each with the number of bytes it shares with the one
// before), and the columns: ID, DroppedSince, then by plane, which is what makes them small: the measured bits, the times
// as differences, and the four bytes kept of each value. 5,000 clusters with 4 metrics take some 110 KB.
const (
	codecVersion = 1
	maxDecoded   = 64 << 20 // bytes; 100,000 clusters with 6 metrics take 15 MB
	maxRows      = 1 << 20
	maxColumns   = 1 << 10
	maxText      = 1 << 12
	keptBytes    = keptBits / 8
)

// MarshalBinary writes the last good values as the history keeps them. The same values give the same bytes.
func (l LastGood) MarshalBinary() ([]byte, error) {
	raw := []byte{codecVersion}
	raw = binary.AppendUvarint(raw, uint64(len(l.IDs)))
	before := ""
	for _, id := range l.IDs {
		shared := sharedPrefix(before, id)
		raw = binary.AppendUvarint(raw, uint64(shared))
		raw = appendText(raw, id[shared:])
		before = id
	}
	raw = binary.AppendUvarint(raw, uint64(len(l.Columns)))
	for _, c := range l.Columns {
		if len(c.Values) != len(l.IDs) || len(c.At) != len(l.IDs) || len(c.Measured) != len(l.IDs) {
			return nil, fmt.Errorf("writing the last good values of metric %q: %d IDs, but %d values, %d times and %d marks",
				c.ID, len(l.IDs), len(c.Values), len(c.At), len(c.Measured))
		}
		raw = c.append(raw)
	}
	var out bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if _, err := zip.Write(raw); err != nil {
		return nil, fmt.Errorf("compressing the last good values: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("compressing the last good values: %w", err)
	}
	return out.Bytes(), nil
}

func (c LastColumn) append(raw []byte) []byte {
	raw = appendText(raw, c.ID)
	since := int64(0)
	if !c.DroppedSince.IsZero() {
		since = c.DroppedSince.Unix()
	}
	raw = binary.AppendVarint(raw, since)
	for _, measured := range c.Measured {
		raw = append(raw, bit(measured))
	}
	before := int64(0)
	for _, at := range c.At {
		raw = binary.AppendVarint(raw, at-before)
		before = at
	}
	for plane := range keptBytes {
		for _, v := range c.Values {
			raw = append(raw, byte(math.Float64bits(v)>>(56-8*plane)))
		}
	}
	return raw
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendText(raw []byte, text string) []byte {
	return append(binary.AppendUvarint(raw, uint64(len(text))), text...)
}

func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// UnmarshalBinary reads what MarshalBinary writes. Anything else is an error and leaves the receiver as it is.
func (l *LastGood) UnmarshalBinary(stored []byte) error {
	zip, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return fmt.Errorf("reading the last good values: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(zip, maxDecoded+1))
	if err != nil {
		return fmt.Errorf("reading the last good values: %w", err)
	}
	if len(raw) > maxDecoded {
		return fmt.Errorf("reading the last good values: they unpack to more than %d bytes", maxDecoded)
	}
	d := decoder{raw: raw}
	read := d.lastGood()
	if d.err != nil {
		return fmt.Errorf("reading the last good values: %w", d.err)
	}
	*l = read
	return nil
}

// decoder reads the unpacked bytes; after the first error it reads zeros.
type decoder struct {
	raw []byte
	err error
}

var (
	errShort  = errors.New("they end too early")
	errNumber = errors.New("a number is out of bounds")
	errOrder  = errors.New("the IDs are not in order")
)

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.raw = nil
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.raw) {
		d.fail(errShort)
		return nil
	}
	b := d.raw[:n]
	d.raw = d.raw[n:]
	return b
}

func (d *decoder) count(limit int) int {
	v, n := binary.Uvarint(d.raw)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	if v > uint64(limit) {
		d.fail(errNumber)
		return 0
	}
	d.raw = d.raw[n:]
	return int(v)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.raw)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.raw = d.raw[n:]
	return v
}

func (d *decoder) text() string { return string(d.bytes(d.count(maxText))) }

func (d *decoder) lastGood() LastGood {
	if v := d.bytes(1); v != nil && v[0] != codecVersion {
		d.fail(fmt.Errorf("their version is %d, and this ballast reads %d", v[0], codecVersion))
	}
	var l LastGood
	rows, before := d.count(maxRows), ""
	for range rows {
		shared := d.count(len(before))
		id := before[:min(shared, len(before))] + d.text()
		if d.err == nil && len(l.IDs) > 0 && id <= before {
			d.fail(errOrder)
		}
		if d.err != nil {
			return LastGood{}
		}
		l.IDs = append(l.IDs, id)
		before = id
	}
	for range d.count(maxColumns) {
		column := d.column(rows)
		if d.err != nil {
			return LastGood{}
		}
		l.Columns = append(l.Columns, column)
	}
	if len(d.raw) > 0 {
		d.fail(errors.New("there is more than there should be"))
	}
	return l
}

func (d *decoder) column(rows int) LastColumn {
	id, since := d.text(), d.varint()
	measured := d.bytes(rows)
	if d.err != nil {
		return LastColumn{} // before rows is believed and allocated for
	}
	c := newLastColumn(id, rows)
	if since != 0 {
		c.DroppedSince = time.Unix(since, 0).UTC()
	}
	for i, m := range measured {
		c.Measured[i] = m != 0
	}
	before := int64(0)
	for i := range c.At {
		before += d.varint()
		c.At[i] = before
	}
	for plane := range keptBytes {
		for i, b := range d.bytes(rows) {
			c.Values[i] = math.Float64frombits(math.Float64bits(c.Values[i]) | uint64(b)<<(56-8*plane))
		}
	}
	if slices.ContainsFunc(c.Values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) || v < 0 }) {
		d.fail(errNumber)
	}
	return c
}
