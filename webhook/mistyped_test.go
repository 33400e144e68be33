package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func TestAMistypedAnnotationIsAnsweredWithTheRightOne(t *testing.T) {
	const (
		secret    = "ballast: annotation ballast.argoproj.io/"
		readAsOn  = ` is read as on; write "off" to open the break-glass`
		notPaused = ` is read as not paused; write "true" to freeze`
		optOut    = ` is passed over; write "true" to opt out`
	)
	for name, tc := range map[string]struct {
		on         func() surface
		key, value string
		want       string
	}{
		"break-glass":                   {planSurface, "enforcement", "off", ""},
		"break-glass, switched back":    {planSurface, "enforcement", "on", ""},
		"break-glass, emptied":          {planSurface, "enforcement", "", ""},
		"break-glass, Off":              {planSurface, "enforcement", "Off", secret + `enforcement: "Off"` + readAsOn},
		"break-glass, OFF":              {planSurface, "enforcement", "OFF", secret + `enforcement: "OFF"` + readAsOn},
		"break-glass, false":            {planSurface, "enforcement", "false", secret + `enforcement: "false"` + readAsOn},
		"break-glass, disabled":         {planSurface, "enforcement", "disabled", secret + `enforcement: "disabled"` + readAsOn},
		"break-glass, with a blank":     {planSurface, "enforcement", "off ", secret + `enforcement: "off "` + readAsOn},
		"break-glass, with an escape":   {planSurface, "enforcement", "\x1b[2Joff", secret + `enforcement: "\x1b[2Joff"` + readAsOn},
		"break-glass, at length":        {planSurface, "enforcement", strings.Repeat("ö", 1000), "ballast: annotation ballast.argoproj.io/enforcement: its value" + readAsOn},
		"a freeze":                      {planSurface, "paused", "true", ""},
		"a freeze, off":                 {planSurface, "paused", "false", ""},
		"a freeze, yes":                 {planSurface, "paused", "yes", secret + `paused: "yes"` + notPaused},
		"a freeze, True":                {planSurface, "paused", "True", secret + `paused: "True"` + notPaused},
		"a freeze, 1":                   {planSurface, "paused", "1", secret + `paused: "1"` + notPaused},
		"a fleet":                       {planSurface, "accept-discovery", "12", ""},
		"a fleet as the planner has it": {planSurface, "accept-discovery", "+12", ""},
		"a fleet in a word":             {planSurface, "accept-discovery", "twelve", `ballast: accept-discovery: "twelve" is passed over; write the number of clusters, as in "12"`},
		"a fleet below 0":               {planSurface, "accept-discovery", "-3", secret + `accept-discovery: "-3" is passed over; write the number of clusters, as in "12"`},
		"a cordon":                      {planSurface, "cordon", "3=2026-11-20T17:00:00Z", ""},
		"a cordon without a time":       {planSurface, "cordon", "3", secret + `cordon: "3" is not all read; write replica=time: "3=2026-11-20T17:00:00Z"`},
		"a rollback":                    {planSurface, "rollback-to", "12", ""},
		"a rollback to a word":          {planSurface, "rollback-to", "last", secret + `rollback-to: "last" is no revision; write a number: ballast rollback lists them`},
		"a reason":                      {planSurface, "paused-reason", "because", ""},
		"ballast's own":                 {planSurface, "digest", "because", ""},
		"a name, cut":                   {planSurface, "pause", "true", secret + "pause is not read here; did you mean paused?"},
		"a name, cut at the hyphen":     {planSurface, "rollback", "12", secret + "rollback is not read here; did you mean rollback-to?"},
		"a name, misspelt":              {planSurface, "enforcment", "off", secret + "enforcment is not read here; did you mean enforcement?"},
		"a name in another case":        {planSurface, "Paused", "true", secret + "Paused is not read here; did you mean paused?"},
		"a name of another object":      {planSurface, "unmanaged", "true", secret + "unmanaged is not read here; it belongs on a cluster Secret or the workload"},
		"a pin in the wrong place":      {planSurface, "pin", "3", "ballast: annotation pin belongs on a cluster Secret; on the plan, pins stand in data.pins"},
		"a name that is unknown":        {planSurface, "mode", "Hold", "ballast: annotation mode: read here are accept-discovery, cordon, enforcement, paused, rebase, rollback-to, tripped"},
		"a name that is none":           {planSurface, "a\x1b b" + strings.Repeat("c", 60), "x", secret + "a??b" + strings.Repeat("c", 23) + "... is not read here"},
		"an opt-out":                    {clusterSurface(16), "unmanaged", "true", ""},
		"an opt-out that is none":       {clusterSurface(16), "unmanaged", "false", ""},
		"an opt-out, True":              {clusterSurface(16), "unmanaged", "True", secret + `unmanaged: "True"` + optOut},
		"an opt-out, yes":               {clusterSurface(16), "unmanaged", "yes", secret + `unmanaged: "yes"` + optOut},
		"an opt-out, 1":                 {workloadSurface, "unmanaged", "1", secret + `unmanaged: "1"` + optOut},
		"an opt-out, misspelt":          {workloadSurface, "unmanged", "true", secret + "unmanged is not read here; did you mean unmanaged?"},
		"a pin":                         {clusterSurface(16), "pin", "3", ""},
		"a pin in a word":               {clusterSurface(16), "pin", "three", secret + `pin: "three" is passed over; a pin is a whole number from 0 to 15`},
		"a pin with a blank":            {clusterSurface(16), "pin", "3 ", secret + `pin: "3 " is passed over; a pin is a whole number from 0 to 15`},
		"a pin beyond":                  {clusterSurface(16), "pin", "16", secret + `pin: "16" is passed over; a pin is a whole number from 0 to 15`},
		"a pin beyond what is unknown":  {clusterSurface(0), "pin", "16", ""},
		"a pin in a word, without plan": {clusterSurface(0), "pin", "three", secret + `pin: "three" is passed over; a pin is a whole number from 0 up`},
		"pins on a Secret":              {clusterSurface(16), "pins", "3", secret + "pins is not read here; did you mean pin?"},
		"a freeze of a Secret":          {clusterSurface(16), "paused", "true", secret + "paused is not read here; it belongs on the plan ConfigMap"},
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
	v.warnMistyped(planSurface, is, was)
	want := []string{`ballast: annotation ballast.argoproj.io/enforcement: "OFF" is read as on; write "off" to open the break-glass`}
	if diff := cmp.Diff(want, v.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestAWarningOnAnAnnotationFits: whatever is written, a warning is one line of ASCII, and the shortest form of it is whole.
func TestAWarningOnAnAnnotationFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		on := rapid.SampledFrom([]func() surface{planSurface, clusterSurface(0), clusterSurface(999_999), workloadSurface}).Draw(t, "on")
		name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"enforcement", "paused", "accept-discovery", "cordon", "rollback-to", "tripped", "pin", "unmanaged"})).Draw(t, "name")
		for _, forms := range mistyped(on(), map[string]string{plan.Group + "/" + name: rapid.String().Draw(t, "value")}, nil) {
			if shortest := forms[len(forms)-1]; len(shortest) > MaxWarning {
				t.Errorf("%d bytes: %s", len(shortest), shortest)
			}
			for _, form := range forms {
				if strings.ContainsFunc(form, func(r rune) bool { return r < 0x20 || r > 0x7e }) || !strings.HasPrefix(form, "ballast: ") {
					t.Errorf("not one line of ASCII: %q", form)
				}
			}
		}
	})
}
