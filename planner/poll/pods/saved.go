package pods

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ballast/planner/gz"
)

// HistoryPart names the history's part that a window is saved as.
const HistoryPart = "pods"

const (
	savedVersion = 1
	// mostSaved bounds what is packed: of 40,000 servers, each with all that it may have.
	mostSaved = 16 << 20
	// matter is how many of the largest rates an answer is made of: nine tenths of 36 values lie between the fourth and
	// the fifth of them.
	matter = 5
	// fineness is how many levels a doubling has: a saved rate is at most 1.1 % off.
	fineness = 32
	// lowest is the binary exponent of the smallest rate that is not 0: one in ten months.
	lowest    = -24
	mostLevel = (128 - lowest) * fineness
)

var errSaved = errors.New("it is not what a window is saved as")

// levelOf is the level of a rate, from 0 for none.
func levelOf(rate float32) uint64 {
	if !(rate > 0) { // nor is what is no number a rate
		return 0
	}
	level := math.Round((math.Log2(float64(rate))-lowest)*fineness) + 1
	return uint64(min(max(level, 1), mostLevel))
}

func rateOf(level uint64) float64 {
	if level == 0 {
		return 0
	}
	return math.Exp2(float64(level-1)/fineness + lowest)
}

// MarshalBinary packs what another leader needs to answer as this one would: of each server's rates those to which an
// answer may come yet, and of the others that they were. A rate counts for none once five later ones are as large. Of
// 5,000 clusters it takes 61 KiB where loads are steady, and 197 KiB where each rate is another by a fifth; of 10,000,
// 122 and 395 KiB. The same window gives the same bytes. The numbers are varints and not JSON as in the history's other
// parts, since a part is to take at most 200 KiB of 5,000 clusters: as JSON the same numbers take 218 KiB packed, and
// of 10,000 clusters 437.
func (w *Window) MarshalBinary() ([]byte, error) {
	all := maps.Clone(w.saved)
	if all == nil {
		all = map[digest]*server{}
	}
	for url, s := range w.servers {
		all[digestOf(url)] = s
	}
	out := []byte{savedVersion}
	out = binary.AppendUvarint(out, uint64(w.closed))
	out = binary.AppendUvarint(out, uint64(max(w.newest, w.restored)))
	for _, d := range slices.SortedFunc(maps.Keys(all), func(a, b digest) int { return bytes.Compare(a[:], b[:]) }) {
		out = append(out, d[:]...)
		out = w.appendServer(out, all[d])
	}
	if len(out) > mostSaved {
		return nil, fmt.Errorf("saving what the pods showed: it is larger than %d MiB", mostSaved>>20)
	}
	return gz.Pack(out)
}

func (w *Window) appendServer(out []byte, s *server) []byte {
	for _, seen := range s.seen {
		out = binary.AppendUvarint(out, uint64(since(max(w.newest, w.restored), seen)))
	}
	for _, ring := range s.most {
		out = appendMost(out, ring[:], w.closed)
	}
	for _, ring := range s.rates {
		out = appendRates(out, ring[:], w.closed)
	}
	return out
}

// since is how many seconds before the newest look something was seen, and one more; 0 is never.
func since(newest, seen int64) int64 {
	if seen == 0 {
		return 0
	}
	return max(newest-seen, 0)/1000 + 1
}

// appendMost writes the slots that are larger than all later ones: by how many steps each is before the one that is
// under way, and its value. A count closes the list.
func appendMost(out []byte, ring []slot, closed int64) []byte {
	var kept []byte
	count, largest := uint64(0), float32(-1)
	for back := range min(int64(slots), closed+1) {
		at := closed + 1 - back
		if s := ring[at%int64(len(ring))]; int64(s.at) == at && s.value > largest {
			largest = s.value
			kept = binary.AppendUvarint(binary.AppendUvarint(kept, uint64(back)), uint64(math.Float32bits(s.value)))
			count++
		}
	}
	return append(binary.AppendUvarint(out, count), kept...)
}

// appendRates writes which of the steps have a rate, which of them may matter yet, and their levels below the highest.
func appendRates(out []byte, ring []slot, closed int64) []byte {
	var there, kept uint64
	var levels []uint64 // of later steps, the largest first; no more than matter
	var written []uint64
	for back := range min(int64(steps), closed) {
		at := closed - back
		s := ring[at%int64(len(ring))]
		if int64(s.at) != at {
			continue
		}
		there |= 1 << back
		level := levelOf(s.value)
		if len(levels) == matter && levels[matter-1] >= level {
			continue
		}
		kept |= 1 << back
		written = append(written, level)
		place, _ := slices.BinarySearchFunc(levels, level, func(a, b uint64) int { return cmp.Compare(b, a) })
		levels = slices.Insert(levels, place, level)
		levels = levels[:min(len(levels), matter)]
	}
	out = binary.AppendUvarint(binary.AppendUvarint(out, there), there&^kept)
	if there == 0 {
		return out
	}
	out = binary.AppendUvarint(out, levels[0])
	for _, level := range written {
		out = binary.AppendUvarint(out, levels[0]-level)
	}
	return out
}

// UnmarshalBinary reads what MarshalBinary writes, as a window that looks for the first time. Anything else is an error
// and leaves the window as it is.
func (w *Window) UnmarshalBinary(packed []byte) error {
	text, err := gz.Unpack(packed, mostSaved)
	if err != nil {
		return err
	}
	return w.unpacked(text)
}

// unpacked reads the text that is packed.
func (w *Window) unpacked(text []byte) error {
	r := reader{left: text}
	if version := r.byte(); version != savedVersion {
		return fmt.Errorf("its version is %d, and this ballast reads %d", version, savedVersion)
	}
	closed, newest := r.number(math.MaxUint32/2), r.number(math.MaxInt64/2)
	read := Window{closed: closed, restored: newest, saved: map[digest]*server{}}
	for last := []byte(nil); len(r.left) > 0 && !r.bad; {
		d := digest(r.bytes(len(digest{})))
		s := r.server(closed, newest)
		if r.bad = r.bad || last != nil && bytes.Compare(last, d[:]) >= 0 || len(read.saved) >= mostServers; !r.bad {
			read.saved[d], last = s, d[:]
		}
	}
	if r.bad {
		return errSaved
	}
	*w = read
	return nil
}

// reader takes numbers from a text, and notes once something is missing or too large.
type reader struct {
	left []byte
	bad  bool
}

func (r *reader) bytes(n int) []byte {
	if len(r.left) < n {
		r.left, r.bad = nil, true
		return make([]byte, n)
	}
	taken := r.left[:n]
	r.left = r.left[n:]
	return taken
}

func (r *reader) byte() byte { return r.bytes(1)[0] }

func (r *reader) number(most uint64) int64 {
	v, n := binary.Uvarint(r.left)
	if n <= 0 || v > most {
		r.left, r.bad = nil, true
		return 0
	}
	r.left = r.left[n:]
	return int64(v)
}

func (r *reader) server(closed, newest int64) *server {
	s := &server{}
	for i := range s.seen {
		if ago := r.number(math.MaxUint32); ago > 0 {
			s.seen[i] = max(newest-(ago-1)*1000, 0)
		}
	}
	for i := range s.most {
		r.most(s.most[i][:], closed)
	}
	for i := range s.rates {
		r.rates(s.rates[i][:], closed)
	}
	return s
}

func (r *reader) most(ring []slot, closed int64) {
	for range r.number(uint64(slots)) {
		back := r.number(uint64(slots - 1))
		value := math.Float32frombits(uint32(r.number(math.MaxUint32)))
		if value >= 0 && value <= math.MaxFloat32 && closed+1 > back { // NaN is neither
			put(ring, closed+1-back, float64(value))
		} else {
			r.bad = true
		}
	}
}

// rates reads the steps; one that does not matter any more is as one without work.
func (r *reader) rates(ring []slot, closed int64) {
	there := r.number(1<<steps - 1)
	idle := r.number(1<<steps - 1)
	if there == 0 {
		r.bad = r.bad || idle != 0
		return
	}
	highest := r.number(mostLevel)
	for back := range int64(steps) {
		switch bit := int64(1) << back; {
		case there&bit == 0:
		case closed <= back:
			r.bad = true
		case idle&bit != 0:
			put(ring, closed-back, 0)
		default:
			below := r.number(uint64(highest))
			put(ring, closed-back, rateOf(uint64(highest-below)))
		}
	}
}
