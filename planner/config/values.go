package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Duration is a length of time in whole milliseconds, written like 90s, 1h30m, 24h or 7d.
type Duration time.Duration

// String writes hours, minutes and seconds, and leaves out what is zero: 1h30m, 24h.
func (d Duration) String() string {
	if d < Duration(time.Millisecond) {
		return time.Duration(d).String()
	}
	var b strings.Builder
	rest := time.Duration(d)
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := rest / u.unit; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			rest -= n * u.unit
		}
	}
	return b.String()
}

// MarshalText writes what String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads Prometheus's durations: whole numbers with y, w, d, h, m, s or ms, the largest unit first.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := model.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("is not a length of time: write it like 90s, 1h30m or 7d")
	}
	*d = Duration(parsed)
	return nil
}

// Percent is a whole number of hundredths, written like 50%.
type Percent int

// Share is the percentage as a number from 0 to 1.
func (p Percent) Share() float64 { return float64(p) / 100 }

// String writes the number and the sign.
func (p Percent) String() string { return strconv.Itoa(int(p)) + "%" }

// MarshalText writes what String does.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String writes.
func (p *Percent) UnmarshalText(text []byte) error {
	number, signed := strings.CutSuffix(string(text), "%")
	n, err := strconv.Atoi(number)
	if !signed || err != nil || strconv.Itoa(n) != number {
		return fmt.Errorf("is not a percentage: write a whole number and the sign, like 50%%")
	}
	*p = Percent(n)
	return nil
}

// Decimal is a decimal number as it was written, without an exponent: what people read back is what they wrote.
type Decimal string

// decimalPattern bounds the digits so that every Decimal is finite and exact enough in a float64.
const decimalPattern = `^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?$`

// Float is the number; 0 for the empty Decimal.
func (d Decimal) Float() float64 {
	f, err := strconv.ParseFloat(string(d), 64)
	if err != nil {
		return 0
	}
	return f
}

// UnmarshalText reads a decimal number.
func (d *Decimal) UnmarshalText(text []byte) error {
	if !regexp.MustCompile(decimalPattern).Match(text) {
		return fmt.Errorf(`is not a decimal number: write it like "0.9", with at most 15 digits before the point and 12 behind`)
	}
	*d = Decimal(text)
	return nil
}

// Replicas says who chooses the number of replicas where the partition does not: a fixed number, or the workload, whose
// spec.replicas then is people's or an autoscaler's.
type Replicas struct {
	Fixed    int // 0 when Workload
	Workload bool
}

// workloadWord is how the workload is named in the file.
const workloadWord = "workload"

// MarshalJSON writes the number or "workload".
func (r Replicas) MarshalJSON() ([]byte, error) {
	if r.Workload {
		return json.Marshal(workloadWord)
	}
	return json.Marshal(r.Fixed)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Replicas) UnmarshalJSON(data []byte) error {
	return r.UnmarshalText([]byte(strings.Trim(string(data), `"`)))
}

// UnmarshalText reads the number or the word.
func (r *Replicas) UnmarshalText(data []byte) error {
	text := string(data)
	if text == workloadWord {
		*r = Replicas{Workload: true}
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		return fmt.Errorf("is neither a number of replicas, nor %s, nor null", workloadWord)
	}
	*r = Replicas{Fixed: n}
	return nil
}

// Quantity is a Kubernetes quantity as it was written, like 250m or 512Mi.
type Quantity string

// quantityPattern bounds the digits, and leaves out signs and exponents, which no size has.
const quantityPattern = `^(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`

// Parsed is the quantity; the empty one is 0.
func (q Quantity) Parsed() resource.Quantity {
	parsed, err := resource.ParseQuantity(string(q))
	if err != nil {
		return resource.Quantity{}
	}
	return parsed
}

// UnmarshalText reads a quantity.
func (q *Quantity) UnmarshalText(text []byte) error {
	if !regexp.MustCompile(quantityPattern).Match(text) {
		return fmt.Errorf("is not a quantity of 0 or more: write it like 250m, 2 or 512Mi")
	}
	*q = Quantity(text)
	return nil
}
