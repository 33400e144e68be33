package size

import (
	"cmp"
	"slices"
)

// Merge is the union of the policies' rules. Of those with one field and name the one of the highest priority holds, of
// equal priorities the later one. The order is that of priorities, then of listing; a replaced rule keeps its place.
func Merge(policies []Policy) []Rule {
	policies = slices.Clone(policies)
	slices.SortStableFunc(policies, func(a, b Policy) int { return cmp.Compare(a.Priority, b.Priority) })
	type key struct {
		field Field
		name  string
	}
	at := map[key]int{}
	var out []Rule
	for _, p := range policies {
		for _, r := range p.Rules {
			k := key{r.Field(), r.Name}
			if i, known := at[k]; known {
				out[i] = r
				continue
			}
			at[k] = len(out)
			out = append(out, r)
		}
	}
	return out
}
