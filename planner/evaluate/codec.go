package evaluate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// What a history may be at most, in both directions: what one writes the other reads, and a decoder that is handed a
// hostile document takes some 150 MB at worst.
const (
	maxEncoded     = 1 << 20  // a ConfigMap's size
	maxDecoded     = 16 << 20 // bytes once unpacked
	maxNames       = 200_000  // clusters
	maxNameLength  = 253      // of a Secret
	maxKeys        = 2 * maxBallots
	maxTextLength  = 256       // of a basis or key
	maxAssignments = 2_000_000 // candidates x clusters
	maxReplicas    = 1 << 20
)

// magic starts an unpacked history; its last byte is the version.
const magic = "ballast history\x01"

// MarshalBinary packs a history for a ConfigMap's binaryData. Equal histories give equal bytes. Sixty candidates of 5,000
// clusters on 128 replicas, no two alike, take some 290 kB; as JSON they take some 13 MB.
//
// The form is gzip of: magic; the basis; the names of all clusters, sorted, each as the length it shares with the one
// before, and the rest; the keys, sorted; the ballots as key number and time since the one before; the candidates as
// key number, replicas and, for each name in order, 1 + its replica, or 0 for a cluster that it does not have. Numbers are
// varints, texts have their length before them.
func (h History) MarshalBinary() ([]byte, error) {
	w := &writer{}
	w.raw(magic)
	w.text(h.Basis)
	names := clusterNames(h.Candidates)
	w.names(names)
	keys := allKeys(h)
	w.number(len(keys))
	for _, k := range keys {
		w.text(k)
	}
	w.ballots(h.Ballots, keys)
	if err := w.candidates(h.Candidates, keys, names); err != nil {
		return nil, fmt.Errorf("packing the history: %w", err)
	}
	if err := w.check(h, len(names), len(keys)); err != nil {
		return nil, fmt.Errorf("packing the history: %w", err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(w.buf); err != nil {
		return nil, fmt.Errorf("packing the history: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("packing the history: %w", err)
	}
	if out.Len() > maxEncoded {
		return nil, fmt.Errorf("packing the history: it takes %d bytes, and a ConfigMap holds %d: lower maxAssignments", out.Len(), maxEncoded)
	}
	return out.Bytes(), nil
}

// UnmarshalBinary unpacks what MarshalBinary wrote. It refuses, without changing h, what is damaged, of another version,
// or larger than any history is, before it has taken memory for it.
func (h *History) UnmarshalBinary(data []byte) error {
	plain, err := unzip(data)
	if err != nil {
		return fmt.Errorf("unpacking the history: %w", err)
	}
	r := &reader{rest: plain}
	r.magic()
	out := History{Basis: r.text()}
	names := r.names()
	keys := r.keys()
	out.Ballots = r.ballots(keys)
	out.Candidates = r.candidates(keys, names)
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%d bytes are left over", len(r.rest))
	}
	if r.err != nil {
		return fmt.Errorf("unpacking the history: %w", r.err)
	}
	*h = out
	return nil
}

func unzip(data []byte) ([]byte, error) {
	if len(data) > maxEncoded {
		return nil, fmt.Errorf("it has %d bytes, and a history has at most %d", len(data), maxEncoded)
	}
	src := bytes.NewReader(data)
	z, err := gzip.NewReader(src)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	plain, err := io.ReadAll(io.LimitReader(z, maxDecoded+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxDecoded {
		return nil, fmt.Errorf("it unpacks to more than %d bytes", maxDecoded)
	}
	if src.Len() > 0 {
		return nil, errors.New("something follows it")
	}
	return plain, nil
}

func clusterNames(candidates map[string]Candidate) []string {
	all := map[string]struct{}{}
	for _, c := range candidates {
		for name := range c.Of {
			all[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func allKeys(h History) []string {
	var keys []string
	for key := range h.Candidates {
		keys = append(keys, key)
	}
	for _, b := range h.Ballots {
		keys = append(keys, b.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
