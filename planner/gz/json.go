package gz

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Bounds is what a document may be at most, in both directions: what one packs, the other unpacks. Bytes are those of
// its JSON. Nested is how many arrays and objects it has: "{}," may become a hundred bytes in memory, a number ten.
type Bounds struct {
	Bytes  int64
	Nested int
}

// PackJSON packs v as JSON.
func (b Bounds) PackJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	if int64(len(text)) > b.Bytes {
		return nil, fmt.Errorf("packing: it is larger than %d MiB", b.Bytes>>20)
	}
	if err := b.nested(text); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return Pack(text)
}

// UnpackJSON reverses PackJSON. What the JSON is to mean is for the caller to check.
func (b Bounds) UnpackJSON(packed []byte, into any) error {
	text, err := Unpack(packed, b.Bytes)
	if err != nil {
		return err
	}
	if err := b.nested(text); err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	return nil
}

// nested counts brackets in texts, too: what is kept has none in its names.
func (b Bounds) nested(text []byte) error {
	if n := bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("[")); n > b.Nested {
		return fmt.Errorf("it has %d arrays and objects, and at most %d are taken", n, b.Nested)
	}
	return nil
}
