// Package gz packs what is kept in ConfigMaps, and unpacks it within a bound: a few bytes must not become gigabytes.
package gz

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// Pack compresses data. The header carries no time, so that the same content gives the same bytes.
func Pack(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return b.Bytes(), nil
}

// Unpack reverses Pack; what unpacks to more bytes than most is an error.
func Unpack(packed []byte, most int64) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("unpacking: it is larger than %d MiB", most>>20)
	}
	return data, nil
}
