package plan

import "time"

// StopHeld is how long a stage that stops every replica holds them at 0. The planner gives up a stop after 5 minutes,
// and each stage has a since of its own, so that one which lasts longer has hardly a planner that ends it (but for
// Assigning under a longer rollout.stageTimeout): whoever keeps the planners from leading must not keep a fleet
// stopped, nor an administrator from bringing it back.
const StopHeld = 15 * time.Minute

// StopLapsed reports whether what has been stopped since a time is held at 0 no longer. A time in the future counts as
// now.
func StopLapsed(since, now time.Time) bool { return now.Sub(since) > StopHeld }
