package labeltext

import (
	"slices"
	"testing"
)

func FuzzLabels(f *testing.F) {
	f.Add("team", "payments", "tier", "hub")
	f.Add("a,b", "c=d", "", "")
	f.Add("a", "b,c=d", "a", "x")
	f.Fuzz(func(t *testing.T, key, value, other, text string) {
		all := map[string]string{key: value, other: text}
		l := Of(all, []string{key})
		for k, v := range l.Set() {
			if k != key || v != all[key] {
				t.Fatalf("%q has %q=%q, which nobody asked for", l, k, v)
			}
		}
		if !slices.Equal([]Labels{l}, []Labels{l.Only([]string{key})}) || l.Only(nil) != "" {
			t.Fatalf("%q asked for again is %q", l, l.Only([]string{key}))
		}
	})
}
