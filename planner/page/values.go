package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/measure"
	"ballast/planner/page/wording"
	"ballast/planner/plan"
)

// mostMetrics bounds how many values a cluster says: whoever may write the history may put any number of metrics there.
const mostMetrics = 12

// valuesOf answers what a cluster's metrics are: the last value of each that was believed, and when the oldest of them
// was sampled; empty where there is none.
func valuesOf(l measure.LastGood) func(id string) string {
	columns := l.Columns[:min(len(l.Columns), mostMetrics)]
	called := make([]string, len(columns))
	for i, c := range columns {
		called[i] = wording.Name(c.ID)
	}
	more := len(l.Columns) - len(columns)
	return func(id string) string {
		row, known := slices.BinarySearch(l.IDs, id)
		if !known {
			return ""
		}
		var list []string
		var oldest int64
		for i, c := range columns {
			if row >= len(c.Values) || row >= len(c.At) || c.At[row] == 0 {
				continue
			}
			list = append(list, called[i]+" "+figure(c.Values[row]))
			if oldest == 0 || c.At[row] < oldest {
				oldest = c.At[row]
			}
		}
		if len(list) == 0 {
			return ""
		}
		if more > 0 {
			list = append(list, fmt.Sprintf("%d more", more))
		}
		return "; " + strings.Join(list, ", ") + ", as of " + wording.Moment(time.Unix(oldest, 0))
	}
}

// figure is a value with four significant digits, and no exponent.
func figure(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64) // it printed a number
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// percent is a share of a whole with one decimal.
func percent(part, whole plan.Load) string {
	if whole <= 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + "%"
}
