package apply

import "ballast/planner/observed/fixture"

var start = fixture.Start
