package decision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
	"ballast/webhook/steering"
)

func TestAMistypedAnnotationIsAnsweredWithTheRightOne(t *testing.T) {
	const (
		secret    = "ballast: annotation ballast.argoproj.io/"
		readAsOn  = ` is read as on; write "off" to open the break-glass`
		notPaused = ` is read as not paused; write "true" to freeze`
		optOut    = ` is passed over; write "true" to opt out`
	)
	for name, tc := range map[string]struct {
		on         func() steering.Surface
		key, value string
		want       string
	}{
		"break-glass":                   {steering.OnPlan, "enforcement", "off", ""},
		"break-glass, switched back":    {steering.OnPlan, "enforcement", "on", ""},
		"break-glass, emptied":          {steering.OnPlan, "enforcement", "", ""},
		"break-glass, Off":              {steering.OnPlan, "enforcement", "Off", secret + `enforcement: "Off"` + readAsOn},
		"break-glass, OFF":              {steering.OnPlan, "enforcement", "OFF", secret + `enforcement: "OFF"` + readAsOn},
		"break-glass, false":            {steering.OnPlan, "enforcement", "false", secret + `enforcement: "false"` + readAsOn},
		"break-glass, disabled":         {steering.OnPlan, "enforcement", "disabled", secret + `enforcement: "disabled"` + readAsOn},
		"break-glass, with a blank":     {steering.OnPlan, "enforcement", "off ", secret + `enforcement: "off "` + readAsOn},
		"break-glass, with an escape":   {steering.OnPlan, "enforcement", "\x1b[2Joff", secret + "enforcement: its value" + readAsOn},
		"break-glass, at length":        {steering.OnPlan, "enforcement", strings.Repeat("ö", 1000), "ballast: annotation ballast.argoproj.io/enforcement: its value" + readAsOn},
		"a freeze":                      {steering.OnPlan, "paused", "true", ""},
		"a freeze, off":                 {steering.OnPlan, "paused", "false", ""},
		"a freeze, yes":                 {steering.OnPlan, "paused", "yes", secret + `paused: "yes"` + notPaused},
		"a freeze, True":                {steering.OnPlan, "paused", "True", secret + `paused: "True"` + notPaused},
		"a freeze, 1":                   {steering.OnPlan, "paused", "1", secret + `paused: "1"` + notPaused},
		"a fleet":                       {steering.OnPlan, "accept-discovery", "12", ""},
		"a fleet as the planner has it": {steering.OnPlan, "accept-discovery", "+12", ""},
		"a fleet in a word":             {steering.OnPlan, "accept-discovery", "twelve", `ballast: accept-discovery: "twelve" is passed over; write the number of clusters, as in "12"`},
		"a fleet below 0":               {steering.OnPlan, "accept-discovery", "-3", secret + `accept-discovery: "-3" is passed over; write the number of clusters, as in "12"`},
		"a cordon":                      {steering.OnPlan, "cordon", "3=2026-11-20T17:00:00Z", ""},
		"a cordon without a time":       {steering.OnPlan, "cordon", "3", secret + `cordon: "3" is not all read; write replica=time: "3=2026-11-20T17:00:00Z"`},
		"a rollback":                    {steering.OnPlan, "rollback-to", "12", ""},
		"a rollback to a word":          {steering.OnPlan, "rollback-to", "last", secret + `rollback-to: "last" is no revision; write a number: ballast rollback lists them`},
		"a reason":                      {steering.OnPlan, "paused-reason", "because", ""},
		"ballast's own":                 {steering.OnPlan, "digest", "because", ""},
		"a name, cut":                   {steering.OnPlan, "pause", "true", secret + "pause is not read here; did you mean paused?"},
		"a name, cut at the hyphen":     {steering.OnPlan, "rollback", "12", secret + "rollback is not read here; did you mean rollback-to?"},
		"a name, misspelt":              {steering.OnPlan, "enforcment", "off", secret + "enforcment is not read here; did you mean enforcement?"},
		"a name in another case":        {steering.OnPlan, "Paused", "true", secret + "Paused is not read here; did you mean paused?"},
		"a name of another object":      {steering.OnPlan, "unmanaged", "true", secret + "unmanaged is not read here; it belongs on a cluster Secret or the workload"},
		"a pin in the wrong place":      {steering.OnPlan, "pin", "3", "ballast: annotation pin belongs on a cluster Secret; on the plan, pins stand in data.pins"},
		"a name that is unknown":        {steering.OnPlan, "mode", "Hold", "ballast: annotation mode: read here are accept-discovery, cordon, enforcement, paused, rebase, rollback-to, tripped"},
		"a name that is none":           {steering.OnPlan, "a\x1b b" + strings.Repeat("c", 60), "x", "ballast: annotation invalid: read here are accept-discovery, cordon, enforcement, paused, rebase, rollback-to, tripped"},
		"a name at length":              {steering.OnPlan, strings.Repeat("c", 60), "x", secret + strings.Repeat("c", 27) + "... is not read here"},
		"an opt-out":                    {steering.OnCluster(16), "unmanaged", "true", ""},
		"an opt-out that is none":       {steering.OnCluster(16), "unmanaged", "false", ""},
		"an opt-out, True":              {steering.OnCluster(16), "unmanaged", "True", secret + `unmanaged: "True"` + optOut},
		"an opt-out, yes":               {steering.OnCluster(16), "unmanaged", "yes", secret + `unmanaged: "yes"` + optOut},
		"an opt-out, 1":                 {steering.OnWorkload, "unmanaged", "1", secret + `unmanaged: "1"` + optOut},
		"an opt-out, misspelt":          {steering.OnWorkload, "unmanged", "true", secret + "unmanged is not read here; did you mean unmanaged?"},
		"a pin":                         {steering.OnCluster(16), "pin", "3", ""},
		"a pin in a word":               {steering.OnCluster(16), "pin", "three", secret + `pin: "three" is passed over; a pin is a whole number from 0 to 15`},
		"a pin with a blank":            {steering.OnCluster(16), "pin", "3 ", secret + `pin: "3 " is passed over; a pin is a whole number from 0 to 15`},
		"a pin beyond":                  {steering.OnCluster(16), "pin", "16", secret + `pin: "16" is passed over; a pin is a whole number from 0 to 15`},
		"a pin beyond what is unknown":  {steering.OnCluster(0), "pin", "16", ""},
		"a pin in a word, without plan": {steering.OnCluster(0), "pin", "three", secret + `pin: "three" is passed over; a pin is a whole number from 0 up`},
		"pins on a Secret":              {steering.OnCluster(16), "pins", "3", secret + "pins is not read here; did you mean pin?"},
		"a freeze of a Secret":          {steering.OnCluster(16), "paused", "true", secret + "paused is not read here; it belongs on the plan ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			notes := map[string]string{plan.Group + "/" + tc.key: tc.value}
			var v Verdict
			v.warnMistyped(tc.on, notes, nil)
			if got := strings.Join(v.Warnings, "\n"); got != tc.want {
				t.Errorf("warned\n%s\nwant\n%s", got, tc.want)
			}
			stood := Verdict{}
			stood.warnMistyped(tc.on, notes, notes)
			if len(stood.Warnings) > 0 {
				t.Errorf("a write that leaves it as it stands is warned %q", stood.Warnings)
			}
		})
	}
}

func TestOneChangedAnnotationIsToldBesideOneThatStood(t *testing.T) {
	was := map[string]string{plan.AnnotationPaused: "yes", plan.AnnotationEnforcement: "Off"}
	is := map[string]string{plan.AnnotationPaused: "yes", plan.AnnotationEnforcement: "OFF"}
	var v Verdict
	v.warnMistyped(steering.OnPlan, is, was)
	want := []string{`ballast: annotation ballast.argoproj.io/enforcement: "OFF" is read as on; write "off" to open the break-glass`}
	if diff := cmp.Diff(want, v.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
