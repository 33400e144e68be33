package plural

import "testing"

func TestOneIsNotMany(t *testing.T) {
	for n, want := range map[int]string{0: "0 clusters", 1: "1 cluster", 2: "2 clusters", -1: "-1 clusters"} {
		if got := Of(n, "cluster"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
