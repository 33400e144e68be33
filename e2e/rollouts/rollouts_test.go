package rollouts

import (
	"slices"
	"testing"
)

// TestRollouts goes through the modes on one installation, told by nothing but ballast's configuration. The steps build on
// each other. Live comes last: it sets the env to 16 for good, and before that the other modes have to change it with the
// replicas. A soak is everything, on twice the clusters, with that many rounds of live.
func TestRollouts(t *testing.T) {
	rounds := count(t, "BALLAST_SOAK_ROLLOUTS", 0)
	full, clusters, perWave := rounds > 0, 12, 12
	if full {
		clusters, perWave = 24, 5
		for _, algorithm := range []string{"legacy", "round-robin", "consistent-hashing"} {
			t.Run("adoption from "+algorithm, func(t *testing.T) { adoptFrom(t, algorithm, clusters) })
		}
	}
	w := start(t, "round-robin", clusters)
	w.perWave = perWave
	t.Cleanup(func() { t.Log(table(w.figures)) })
	programme := slice()
	if full {
		programme = append(whole(), slices.Repeat(liveWhole(), rounds)...)
	}
	for _, s := range programme {
		if !t.Run(s.name, func(t *testing.T) { s.run(t, w) }) {
			t.FailNow()
		}
	}
}

type step struct {
	name string
	run  func(*testing.T, *world)
}

func slice() []step {
	return []step{
		{"installing changes nothing", install},
		{"x0y grows", func(t *testing.T, w *world) { w.scale(t, x0y, 4).single(t) }},
		{"x0y shrinks", func(t *testing.T, w *world) { w.scale(t, x0y, 3).single(t) }},
		{"default grows", func(t *testing.T, w *world) { w.scale(t, defaults, 4).owned(t) }},
		{"default shrinks", func(t *testing.T, w *world) { w.scale(t, defaults, 2).owned(t) }},
		{"live sets the env", func(t *testing.T, w *world) { w.prepare(t, 2) }},
		{"live grows", func(t *testing.T, w *world) { w.scale(t, live, 4).quiet(t).picture(t, "grow") }},
		{"live levels", func(t *testing.T, w *world) { w.level(t, live, 4).quiet(t) }},
		{"live shrinks", func(t *testing.T, w *world) { w.scale(t, live, 3).quiet(t).picture(t, "shrink") }},
		{"live loses a replica that comes back", func(t *testing.T, w *world) { w.kill(t, live, 3) }},
	}
}

func whole() []step {
	return []step{
		{"installing changes nothing", install},
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
		{"live sets the env", func(t *testing.T, w *world) { w.prepare(t, 3) }},
	}
}

func liveWhole() []step {
	return []step{
		{"live shrinks to two", func(t *testing.T, w *world) { w.scale(t, live, 2).quiet(t) }},
		{"live grows", func(t *testing.T, w *world) { w.scale(t, live, 4).quiet(t).picture(t, "grow") }},
		{"live levels", func(t *testing.T, w *world) { w.level(t, live, 4).quiet(t) }},
		{"live shrinks", func(t *testing.T, w *world) { w.scale(t, live, 3).quiet(t).picture(t, "shrink") }},
		{"live loses a replica that comes back", func(t *testing.T, w *world) { w.kill(t, live, 3) }},
		{"live loses a replica that stays away", failover},
	}
}
