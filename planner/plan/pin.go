package plan

import (
	"strconv"
)

// ParsePin reads a pin as it is written in one way only, so that "03", "+3" and "3.0" are none. It may be below 0 or
// too large: BadPin says so.
func ParsePin(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		return 0, false
	}
	return n, true
}
