package sim

import (
	"testing"
	"time"
)

// TestWhatAPodSaysOfItself: a silent one is ready and says nothing of its clusters, and one on a node whose clock is ahead dates by it.
func TestWhatAPodSaysOfItself(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*Fleet)
		answered bool
		servers  int
		dated    time.Duration // after the kill
	}{
		"as usual":                        {func(*Fleet) {}, true, 2, 0},
		"silent":                          {func(f *Fleet) { f.Silent[1] = true }, false, 0, 0},
		"a node's clock is ahead":         {func(f *Fleet) { f.Ahead[1] = 3 * time.Hour }, true, 2, 3 * time.Hour},
		"another node's, another's words": {func(f *Fleet) { f.Ahead[0], f.Silent[0] = time.Hour, true }, true, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet(1, Usual(), []string{"a", "b", "c"})
			f.Replicas, f.Env, f.Shards = 2, "2", map[string]int{"a": 1, "b": 1, "c": 0}
			f.Populate(Epoch)
			f.Crash(1, true, Epoch)
			now := Epoch.Add(time.Minute)
			f.Own(now)
			test.change(f)
			r := f.Reports(now)[1]
			if r.Answered() != test.answered || len(r.Servers) != test.servers || !r.Ready {
				t.Errorf("answered %t, %d clusters, ready %t; want %t, %d and true",
					r.Answered(), len(r.Servers), r.Ready, test.answered, test.servers)
			}
			if at := Epoch.Add(test.dated); !r.KilledAt.Equal(at) || !r.RestartedAt.Equal(at) || !r.Started.Equal(at) {
				t.Errorf("killed at %s, restarted at %s, started at %s; want %s", r.KilledAt, r.RestartedAt, r.Started, at)
			}
		})
	}
}
