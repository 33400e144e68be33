package page

import (
	"fmt"

	"ballast/planner/page/wording"
	"ballast/planner/plan"
)

// byUser is whose writes the webhooks put back or refused, as far as its pods said it; none: no leader heard them.
func byUser(f Fleet) []Table {
	if f.Status == nil || f.Status.PutBack == nil {
		return nil
	}
	p := f.Status.PutBack
	t := Table{ID: "by-user", Title: "Enforcement by user", Caption: "Whose writes were put back or refused since " + wording.Moment(p.Since),
		Head: []string{"User", "Put back", "Refused", "Last"}}
	if p.Unverified {
		t.Caption += ", as callers say: whoever reaches the webhook's port may name any user (manifests/components/client-auth ends that)"
	}
	for _, u := range p.Users[:min(len(p.Users), plan.MostUsers)] {
		t.Rows = append(t.Rows, []string{wording.Name(u.User), wording.Count(u.PutBack), wording.Count(u.Refused), wording.Since(u.Last, f.Now)})
	}
	if p.Others > 0 {
		t.Rows = append(t.Rows, []string{"others", fmt.Sprintf("%s, put back or refused", wording.Count(p.Others)), "", ""})
	}
	if len(t.Rows) == 0 {
		t.Rows = [][]string{{"nobody", "0", "0", ""}}
	}
	return []Table{t}
}
