// Package plural says how many of a thing there are, for people.
package plural

import "fmt"

// Of is a number with its noun: 1 cluster, 2 clusters.
func Of(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
