package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Load is a load index in fixed point, so that sums do not depend on their order and the same input gives the same plan
// on every machine. One unit of load is LoadUnit; a whole int64 therefore carries about 9.2e9 units with nine decimals,
// which leaves the smallest of 100,000 alike clusters (load 0.00001) four digits.
type Load int64

// LoadUnit is the Load of an index of 1.
const LoadUnit Load = 1_000_000_000

// maxLoad keeps one load at a 1/8 of int64; sums are checked by SumLoads.
const maxLoad = float64(math.MaxInt64/8) / float64(LoadUnit)

// NewLoad converts a load index; NaN, infinities, negatives and indexes too large for fixed point are refused.
func NewLoad(index float64) (Load, error) {
	if math.IsNaN(index) || math.IsInf(index, 0) || index < 0 || index > maxLoad {
		return 0, fmt.Errorf("load index %v is not a number between 0 and %.4g: normalize its metrics or give them smaller weights", index, maxLoad)
	}
	return Load(math.Round(index * float64(LoadUnit))), nil
}

// SumLoads adds up loads; a sum beyond int64 is an error instead of a wrong plan.
func SumLoads(loads ...Load) (Load, error) {
	var sum Load
	for _, l := range loads {
		if l > math.MaxInt64-sum {
			return 0, fmt.Errorf("the loads add up to more than %.4g: normalize the metrics or give them smaller weights", float64(math.MaxInt64)/float64(LoadUnit))
		}
		sum += l
	}
	return sum, nil
}

// Float is the index as a float64, for metrics and display only.
func (l Load) Float() float64 { return float64(l) / float64(LoadUnit) }

// Display rounds to three significant digits, as a plan's rows show it: "1.82", "0.000213", "5120".
func (l Load) Display() string {
	f := l.Float()
	if f == 0 {
		return "0"
	}
	digits := max(2-int(math.Floor(math.Log10(math.Abs(f)))), 0)
	s := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// String is the exact decimal.
func (l Load) String() string {
	s := fmt.Sprintf("%d.%09d", int64(l)/int64(LoadUnit), abs(int64(l)%int64(LoadUnit)))
	if l < 0 && l > -LoadUnit {
		s = "-" + s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// MarshalText writes the exact decimal.
func (l Load) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText and Display write.
func (l *Load) UnmarshalText(text []byte) error {
	whole, fraction, _ := strings.Cut(string(text), ".")
	if whole == "" || strings.Trim(whole, "0123456789") != "" || strings.Trim(fraction, "0123456789") != "" {
		return fmt.Errorf("load %q is not a decimal number", text)
	}
	const decimals = 9
	fraction = (fraction + strings.Repeat("0", decimals))[:decimals]
	n, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil {
		return fmt.Errorf("load %q is too large", text)
	}
	*l = Load(n)
	return nil
}

// LoadOf reads a row's load; what is no number weighs nothing.
func LoadOf(text string) Load {
	var l Load
	_ = l.UnmarshalText([]byte(text))
	return l
}

// Plus is the sum of two loads, or the heaviest that there is: rows that nobody vouches for may say anything.
func (l Load) Plus(other Load) Load {
	if other > 0 && l > math.MaxInt64-other {
		return math.MaxInt64
	}
	return l + other
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
