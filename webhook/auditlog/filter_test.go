package auditlog

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestFilterCovers(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 8, 1, 12, minute, 0, 0, time.UTC) }
	w := Write{Time: at(30), User: "system:serviceaccount:a/b:ci", By: "alice", Kind: "secret", Name: "prod-eu.1", Namespace: "argocd", Reason: "Restored"}
	for name, c := range map[string]struct {
		filter Filter
		want   bool
	}{
		"nothing asked":                {Filter{}, true},
		"since then":                   {Filter{Since: at(30)}, true},
		"since later":                  {Filter{Since: at(31)}, false},
		"until later":                  {Filter{Until: at(31)}, true},
		"until then":                   {Filter{Until: at(30)}, false},
		"the user":                     {Filter{Users: NewGlobs("system:serviceaccount:a/b:ci")}, true},
		"who impersonated it":          {Filter{Users: NewGlobs("alice")}, true},
		"part of a name":               {Filter{Users: NewGlobs("ali")}, false},
		"any text":                     {Filter{Users: NewGlobs("system:*:ci")}, true},
		"a character":                  {Filter{Users: NewGlobs("alic?")}, true},
		"one of several":               {Filter{Users: NewGlobs("bob", "alice")}, true},
		"all but the user":             {Filter{Users: NewGlobs("!*:ci")}, false},
		"all but another":              {Filter{Users: NewGlobs("!bob")}, true},
		"one, and not the other":       {Filter{Users: NewGlobs("alice", "!*:ci")}, false},
		"the object":                   {Filter{Objects: NewGlobs("secret/prod-eu.1")}, true},
		"the object's name":            {Filter{Objects: NewGlobs("prod-*")}, true},
		"a dot that is no pattern":     {Filter{Objects: NewGlobs("secret/prod-euX1")}, false},
		"parentheses are no pattern":   {Filter{Objects: NewGlobs("secret/(prod|x)*")}, false},
		"another kind":                 {Filter{Objects: NewGlobs("configmap/*")}, false},
		"the namespace":                {Filter{Namespaces: NewGlobs("argocd")}, true},
		"another namespace":            {Filter{Namespaces: NewGlobs("argo")}, false},
		"the reason":                   {Filter{Reasons: NewGlobs("Restored")}, true},
		"another reason":               {Filter{Reasons: NewGlobs("Pin*")}, false},
		"everything asked, one missed": {Filter{Users: NewGlobs("alice"), Objects: NewGlobs("prod-us")}, false},
	} {
		if got := c.filter.Covers(w); got != c.want {
			t.Errorf("%s: covered is %v, want %v", name, got, c.want)
		}
	}
}

func TestFilterShows(t *testing.T) {
	agreed, kept := Write{Effect: Agreed, Reason: "InPlan"}, Write{Effect: Passed, Reason: "Immutable"}
	for name, c := range map[string]struct {
		filter Filter
		write  Write
		want   bool
	}{
		"agreement":               {Filter{}, agreed, false},
		"agreement, all asked":    {Filter{All: true}, agreed, true},
		"agreement, by reason":    {Filter{Reasons: NewGlobs("InPlan")}, agreed, true},
		"agreement, one excluded": {Filter{Reasons: NewGlobs("!Restored")}, agreed, false},
		"agreement in a panic":    {Filter{}, Write{Effect: Agreed, Panicked: true}, true},
		"an opt-out":              {Filter{}, Write{Effect: Passed, Reason: "Unmanaged"}, false},
		"an immutable Secret":     {Filter{}, kept, true},
		"a rewrite":               {Filter{}, Write{Effect: Rewritten}, true},
		"a refusal":               {Filter{}, Write{Effect: Refused}, true},
		"a fault":                 {Filter{}, Write{Effect: Faulted}, true},
		"an act":                  {Filter{}, Write{Effect: Steered, Reason: "InPlan"}, true},
		"a deletion":              {Filter{}, Write{Effect: Unasked, Reason: NotAsked}, true},
		"a bypass":                {Filter{}, Write{Effect: Bypassed}, true},
		"a strange reason":        {Filter{}, Write{Effect: Unknown}, true},
	} {
		if got := c.filter.Shows(c.write); got != c.want {
			t.Errorf("%s: shown is %v, want %v", name, got, c.want)
		}
	}
}

func FuzzNewGlobs(f *testing.F) {
	f.Add("!*:ci?", "system:ci")
	f.Add(`\Q(`, "")
	f.Add("\xc7", "0")
	f.Fuzz(func(t *testing.T, pattern, value string) {
		g := NewGlobs(pattern)
		// Text without a pattern matches itself, and only itself.
		if value != "" && !strings.ContainsAny(pattern, "*?") && !strings.HasPrefix(pattern, "!") && utf8.ValidString(pattern) && g.match(value) != (pattern == value) {
			t.Errorf("%q matches %q: %v", pattern, value, g.match(value))
		}
	})
}

func TestTotals(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 8, 1, 12, 0, second, 0, time.UTC) }
	person := Account{Kind: Person}
	alice := func(e Effect, change func(*Write)) Write {
		w := Write{Time: at(1), User: "alice", Account: person, Effect: e}
		change(&w)
		return w
	}
	nothing := func(*Write) {}
	var totals Totals
	for _, w := range []Write{
		{Time: at(1), User: "bob", Account: person, Effect: Agreed},
		{Time: at(9), User: "bob", Account: person, Effect: Agreed},
		{Time: at(2), User: "bob", By: "alice", Account: person, Effect: Rewritten},
		alice(Rewritten, nothing), alice(Rewritten, nothing), alice(Agreed, nothing), alice(Passed, nothing), alice(Unknown, nothing),
		alice(Refused, nothing), alice(Faulted, nothing), alice(Bypassed, nothing),
		alice(Refused, func(w *Write) { w.Reason = FailedClosed }),
		alice(Rewritten, func(w *Write) { w.DryRun, w.Time = true, at(5) }), alice(Unasked, func(w *Write) { w.Verb = verbDelete }),
	} {
		totals.Add(w)
	}
	want := []Total{
		{User: "alice", Account: person, Writes: 10, Rewritten: 2, Refused: 1, Acts: 1, Faulted: 1, FailedOpen: 1, FailedClosed: 1, DryRun: 1, Last: at(5)},
		{User: "bob", By: "alice", Account: person, Writes: 1, Rewritten: 1, Last: at(2)},
		{User: "bob", Account: person, Writes: 2, Last: at(9)},
	}
	if diff := cmp.Diff(want, totals.Users()); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

func TestTotalsAreBounded(t *testing.T) {
	var totals Totals
	for i := range maxUsers + 500 {
		totals.Add(Write{User: fmt.Sprintf("u-%05d", i), Account: Account{Kind: Person}, Effect: Agreed})
	}
	got := totals.Users()
	if diff := cmp.Diff(Total{User: Others, Writes: 500}, got[0]); diff != "" {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
	if len(got) != maxUsers+1 {
		t.Errorf("%d users, want %d and the others", len(got), maxUsers)
	}
}
