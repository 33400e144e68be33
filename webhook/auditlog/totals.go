package auditlog

import (
	"cmp"
	"slices"
	"time"
)

// maxUsers bounds the users that are told apart: names can be made up faster than they can be read.
const maxUsers = 10_000

// Others is the user under which those beyond the bound are counted.
const Others = "(others)"

// Total is what one user tried. Dry runs count there only; the rest are attempts, whatever became of them.
type Total struct {
	User, By                                                                    string
	Account                                                                     Account
	Writes, Rewritten, Refused, Acts, Faulted, FailedOpen, FailedClosed, DryRun int64 // Acts: Steered and Unasked
	Last                                                                        time.Time
}

// Totals adds up writes by user. The zero value is ready.
type Totals struct{ users map[totalKey]*Total }

type totalKey struct{ user, by string }

// Add counts a write.
func (t *Totals) Add(w Write) {
	key := totalKey{w.User, w.By}
	total := t.users[key]
	if total == nil && len(t.users) >= maxUsers {
		w.User, w.By, w.Account = Others, "", Account{}
		key = totalKey{Others, ""}
		total = t.users[key]
	}
	if total == nil {
		if t.users == nil {
			t.users = map[totalKey]*Total{}
		}
		total = &Total{User: w.User, By: w.By, Account: w.Account}
		t.users[key] = total
	}
	total.add(w)
}

func (t *Total) add(w Write) {
	if w.Time.After(t.Last) {
		t.Last = w.Time
	}
	if w.DryRun {
		t.DryRun++
		return
	}
	t.Writes++
	switch {
	case w.Effect == Rewritten:
		t.Rewritten++
	case w.Effect == Steered, w.Effect == Unasked:
		t.Acts++
	case w.Effect == Faulted:
		t.Faulted++
	case w.Effect == Bypassed:
		t.FailedOpen++
	case w.Reason == FailedClosed:
		t.FailedClosed++
	case w.Effect == Refused:
		t.Refused++
	}
}

// Users lists the totals: who was corrected or steered most stands first.
func (t *Totals) Users() []Total {
	var list []Total
	for _, total := range t.users {
		list = append(list, *total)
	}
	slices.SortFunc(list, func(a, b Total) int {
		return cmp.Or(cmp.Compare(b.Rewritten+b.Refused+b.Acts, a.Rewritten+a.Refused+a.Acts),
			cmp.Compare(b.Writes, a.Writes), cmp.Compare(a.User, b.User), cmp.Compare(a.By, b.By))
	})
	return list
}
