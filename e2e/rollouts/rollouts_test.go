package rollouts

import (
	"context"
	"testing"
)

// The tests go through the modes, told by nothing but ballast's configuration; their steps build on each other. Live has an
// installation of its own: it sets the env to 16 for good, and the other modes have to change it with the replicas. A slice,
// for make test, is two installations of 12 clusters side by side, since most of the time nothing but probes and gauges is
// waited for. A soak has 24 clusters, the default wave, all steps, and the machine for itself.

func TestLive(t *testing.T) {
	rounds := soak(t)
	if rounds == 0 {
		t.Parallel()
		w := start(t, "round-robin", 12)
		w.perWave = 12
		w.follow(t, []step{{"adoption", func(t *testing.T, w *world) { w.adopt(t) }}}, liveSteps(), []step{
			{"live is taken out amid a wave", func(t *testing.T, w *world) { w.uninstall(t, live, 4) }},
		})
		return
	}
	for _, algorithm := range []string{"legacy", "consistent-hashing"} {
		t.Run("adoption from "+algorithm, func(t *testing.T) { start(t, algorithm, 24).adopt(t) })
	}
	w := start(t, "round-robin", 24)
	w.follow(t, []step{{"adoption from round-robin", func(t *testing.T, w *world) { w.adopt(t) }}})
	for range rounds {
		w.follow(t, liveSteps(), []step{
			{"live loses a replica that stays away", func(t *testing.T, w *world) {
				w.failover(t, live, func(context.Context) error { return nil })
			}},
			{"live shrinks to two", func(t *testing.T, w *world) { w.scale(t, live, 2).quiet(t) }},
		})
	}
}

func liveSteps() []step {
	return []step{
		{"live grows", func(t *testing.T, w *world) { w.scale(t, live, 4).quiet(t).picture(t, "grow") }},
		{"live levels", func(t *testing.T, w *world) { w.level(t, live, 4).quiet(t) }},
		{"live shrinks", func(t *testing.T, w *world) { w.scale(t, live, 3).quiet(t).picture(t, "shrink") }},
		{"live loses a replica that comes back", func(t *testing.T, w *world) { w.kill(t, live, 3) }},
	}
}

func TestX0YAndDefault(t *testing.T) {
	if soak(t) == 0 {
		t.Parallel()
		start(t, "round-robin", 12).follow(t, []step{
			{"installing changes nothing", func(t *testing.T, w *world) { w.install(t, x0y) }},
			{"x0y grows", func(t *testing.T, w *world) { w.scale(t, x0y, 3).single(t) }},
			{"x0y shrinks", func(t *testing.T, w *world) { w.scale(t, x0y, 2).single(t) }},
			{"default grows", func(t *testing.T, w *world) { w.scale(t, defaults, 3).owned(t) }},
			{"default shrinks", func(t *testing.T, w *world) { w.scale(t, defaults, 2).owned(t) }},
			{"live waits for the next restart", withNextRollout},
			{"x0y is taken out amid a stop", func(t *testing.T, w *world) { w.uninstall(t, x0y, 3) }},
			{"default goes on with what was kept", func(t *testing.T, w *world) { w.again(t, defaults) }},
			amidRestart(defaults),
			{"what was kept goes, too", func(t *testing.T, w *world) { w.forget(t) }},
		})
		return
	}
	start(t, "round-robin", 24).follow(t, []step{
		{"installing changes nothing", func(t *testing.T, w *world) { w.install(t, x0y) }},
		{"x0y grows", func(t *testing.T, w *world) { w.scale(t, x0y, 4).single(t) }},
		{"a person stops and starts", byHand},
		{"x0y levels", func(t *testing.T, w *world) { w.level(t, x0y, 4).single(t) }},
		{"x0y shrinks", func(t *testing.T, w *world) { w.scale(t, x0y, 3).single(t) }},
		{"x0y loses a replica that comes back", func(t *testing.T, w *world) { w.kill(t, x0y, 3) }},
		{"default shrinks to two", func(t *testing.T, w *world) { w.scale(t, defaults, 2).owned(t) }},
		{"default grows", func(t *testing.T, w *world) { w.scale(t, defaults, 4).owned(t) }},
		{"default levels", func(t *testing.T, w *world) { w.level(t, defaults, 4).owned(t) }},
		{"default shrinks", func(t *testing.T, w *world) { w.scale(t, defaults, 3).owned(t) }},
		{"default loses a replica that comes back", func(t *testing.T, w *world) { w.kill(t, defaults, 3) }},
		{"live follows the other modes", func(t *testing.T, w *world) { w.prepare(t, 3) }},
	})
}

// soak is how many rounds of live there shall be; 0 is a slice.
func soak(t *testing.T) int { return count(t, "BALLAST_SOAK_ROLLOUTS", 0) }

type step struct {
	name string
	run  func(*testing.T, *world)
}

// follow takes the steps up to the first one that fails, and prints what they cost.
func (w *world) follow(t *testing.T, programme ...[]step) {
	t.Helper()
	from := len(w.figures)
	defer func() { t.Log(table(w.figures[from:])) }()
	for _, steps := range programme {
		for _, s := range steps {
			if !t.Run(s.name, func(t *testing.T) { s.run(t, w) }) {
				t.FailNow()
			}
		}
	}
}
