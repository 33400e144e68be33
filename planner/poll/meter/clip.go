package meter

// MaxString bounds one string of an answer, in bytes; of what a label may name, a pod with a URL is the longest: 253
// and 512.
const MaxString = 2 << 10

// TooLong stands for a string of an answer that is longer than MaxString: nothing is made of it, and it is never
// printed.
const TooLong = "a string of more than 2 KiB"

// weight is what the bytes of a JSON text may take once they are decoded: each is held up to five times, an object is
// a map of eight places of 32 bytes, half a string is its half of a header, an allocation and, where a map grows, a
// place in it. What stands inside of strings counts as if it were structure.
func weight(text []byte) int64 {
	sum := int64(len(text)) * 5
	for _, b := range text {
		switch b {
		case '{':
			sum += 400
		case '"':
			sum += 28
		case ',':
			sum += 20
		}
	}
	return sum
}

// clipping takes an answer's text part by part and keeps it, with TooLong for its longest strings. They take no memory,
// so that a few labels of a megabyte, which whoever may create a cluster Secret brings about, do not take the room of
// the others.
type clipping struct {
	kept    []byte
	start   int  // in kept, of the string that goes on
	within  bool // a string
	escaped bool // the next byte is
	passing bool // the string is too long, and passed over
}

// add keeps of a part what is to be kept, and says by how much the weight of all that is kept changes.
func (c *clipping) add(part []byte) (change int64) {
	from := len(c.kept)
	for _, b := range part {
		if !c.passing || c.ends(b) {
			c.kept = append(c.kept, b)
		}
		switch {
		case !c.within:
			c.within, c.start = b == '"', len(c.kept)
		case c.ends(b):
			c.within, c.passing = false, false
		default:
			c.escaped = !c.escaped && b == '\\'
			if !c.passing && len(c.kept)-c.start > MaxString {
				change -= weight(c.kept[c.start:max(from, c.start)])
				c.kept = append(c.kept[:c.start], TooLong...)
				c.passing, from = true, min(from, c.start)
			}
		}
	}
	return change + weight(c.kept[from:])
}

// ends reports whether a byte ends the string that goes on.
func (c *clipping) ends(b byte) bool { return c.within && !c.escaped && b == '"' }

// addWhole keeps all of a part: of an answer in words, people are shown the beginning.
func (c *clipping) addWhole(part []byte) (change int64) {
	c.kept = append(c.kept, part...)
	return weight(part)
}
