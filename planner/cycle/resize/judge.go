package resize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/cycle/resize/wish"
	"ballast/planner/discover"
	"ballast/planner/size"
)

// judge holds each wish against the gates and the rules of change. Its Memory is what is remembered of it.
type judge struct {
	question.Question
	wish.View
	wanted   size.Result
	byPerson map[int]bool // ordinals for whose size nothing is waited
	unfit    map[int]memory.Unfit
	beyond   map[int]size.Resources
	before   map[string]time.Time // what was blocked by the last cycle, and since when
	due      map[string]bool      // what was decided by then, and waits for no other decision
	changed  []string             // in words
	out      *Sizing
}

// decide judges each resource of each replica, and answers the sizes that hold from now on.
func (j *judge) decide() map[int]size.Resources {
	histories := map[int]map[string]change.Past{}
	j.before, j.Memory.Blocked = j.Memory.Blocked, map[string]time.Time{}
	j.due, j.Memory.Due = j.Memory.Due, nil
	next := map[int]size.Resources{}
	for _, replica := range j.mostUrgent(j.Ordinals()) {
		next[replica], histories[replica] = j.heldOnly(replica), map[string]change.Past{}
		changed := map[int]bool{} // by what is remembered of a growth, and of a shrinking: each direction has its own rate
		for _, name := range question.Sized() {
			m, by := j.one(replica, name, next[replica])
			if changed[by] = true; by != 0 && grew(j.Current[replica], next[replica]) {
				j.grewFor(replica)
			}
			m.keep(histories[replica], name)
			j.stale(replica, name, quantity.Over(j.Current[replica], next[replica]))
		}
		j.resized(changed[1], changed[-1])
	}
	j.Memory.Changes = histories
	if j.decides() && j.gate(true) == nil {
		j.Memory.Decided = j.Now
	}
	j.left()
	j.beyondNodes()
	return next
}

// resized counts a replica that grows or shrinks, or does both.
func (j *judge) resized(grows, shrinks bool) {
	if grows || shrinks {
		j.out.Resized++
	}
	of := j.Rules(size.CPU)
	if grows {
		j.Memory.Resizes = j.Memory.Resizes.Changed(j.Now, 1, of.Up, of.Down)
	}
	if shrinks {
		j.Memory.Resizes = j.Memory.Resizes.Changed(j.Now, -1, of.Up, of.Down)
	}
}

// mostUrgent are the ordinals in the order in which they get what a rate has room for: who grows at once, who carries
// more than it may, growth before shrinking, and whom the rate has held back for longest.
func (j *judge) mostUrgent(all []int) []int {
	since := j.ratedSince()
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(discover.FalseFirst(j.Urgent[a] == "", j.Urgent[b] == ""),
			discover.FalseFirst(!j.overloaded(a), !j.overloaded(b)),
			discover.FalseFirst(!j.toGrow(a), !j.toGrow(b)), since(a).Compare(since(b)))
	})
	return all
}

// toGrow reports whether an ordinal is to have more of anything.
func (j *judge) toGrow(ordinal int) bool {
	now, want := j.Current[ordinal], j.wanted.Sizes[ordinal]
	for _, name := range question.Sized() {
		lead, stands, wanted := quantity.Leading(now, want, name)
		if wanted && lead.Cmp(stands) > 0 {
			return true
		}
	}
	return false
}

// ratedSince is since when a rate has held an ordinal back; now where none does.
func (j *judge) ratedSince() func(ordinal int) time.Time {
	since := map[string]time.Time{}
	for key, at := range j.before {
		replica, of, _ := strings.Cut(key, "/")
		if earliest, known := since[replica]; strings.HasSuffix(of, "/"+string(change.RateLimit)) && (!known || at.Before(earliest)) {
			since[replica] = at
		}
	}
	return func(ordinal int) time.Time {
		if at, held := since[strconv.Itoa(j.Shown(ordinal))]; held {
			return at
		}
		return j.Now
	}
}

// grew reports whether a size has more memory than what stands: a higher limit, and without one a higher request.
func grew(now, next size.Resources) bool {
	was, is := now.Limits[size.Memory], next.Limits[size.Memory]
	if is.IsZero() {
		was, is = now.Requests[size.Memory], next.Requests[size.Memory]
	}
	return is.Cmp(was) > 0
}

// grewFor remembers the kills that a growth of a size's memory answers.
func (j *judge) grewFor(replica int) {
	for killed, at := range j.Kills {
		if j.Of(killed) == replica {
			j.Memory.Killed[killed] = at.Unix()
		}
	}
}

// heldOnly is what of a replica ballast holds now and its rules still make, also while one of them has not seen its
// input yet. Under a freeze, and whatever else lets nothing shrink, it is all of that.
func (j *judge) heldOnly(replica int) size.Resources {
	out := size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	held, wanted := quantity.Of(j.Held(j.Plan, replica)), j.wanted.Sizes[replica]
	keeps, named := j.Shut.Down != "", j.NamedResources()
	for _, name := range question.Sized() {
		if !named[name] && !keeps {
			continue
		}
		request, limit := wish.Unknown(j.wanted.Rows, replica, name)
		for _, list := range []struct {
			from, want, to map[string]resource.Quantity
			unknown        bool
		}{{held.Requests, wanted.Requests, out.Requests, request}, {held.Limits, wanted.Limits, out.Limits, limit}} {
			_, still := list.want[name]
			if q, is := list.from[name]; is && (still || list.unknown || keeps) {
				list.to[name] = q
			}
		}
	}
	return out
}

// one decides one resource of one replica, in place in next. It answers what is remembered of it, and whether it grows
// (1), shrinks (-1) or stays (0).
func (j *judge) one(replica int, name string, next size.Resources) (m remembered, by int) {
	now, want := j.Current[replica], j.wanted.Sizes[replica]
	if j.Urgent[replica] != "" {
		want = quantity.LimitAlone(now, want, name)
	}
	if !j.byPerson[replica] {
		want = quantity.LimitAhead(now, want, name, j.Rules(name))
	}
	m = j.remembered(replica, name)
	lead, stands, wanted := quantity.Leading(now, want, name)
	if nothing := lead.Sign() <= 0; !wanted || nothing { // there is nothing to hold a container at
		return m, 0
	}
	rules := j.Rules(name)
	m = m.wish(j.Now, now, want, name, rules)
	if quantity.Text(name, lead) == quantity.Text(name, stands) {
		if !quantity.Same(next, want, name) && j.gate(true) == nil {
			quantity.Take(next, want, name)
		}
		return m, 0
	}
	ask := change.Ask{Now: j.Now, Current: stands.MilliValue(), Wanted: lead.MilliValue(),
		OOMKilled:    j.Urgent[replica] != "",
		OverCapacity: j.overloaded(replica), Of: j.Replicas}
	judged := rules
	if j.byPerson[replica] {
		judged = rules.Asked()
	}
	grows := ask.Wanted > ask.Current
	v := j.atThisTime(replica, name, judged.Resources(ask, m.leading(quantity.RequestLeads(now, want, name)),
		j.Memory.Resizes), ask.Current)
	j.block(replica, name, v, stands, lead)
	if v.Value == ask.Current {
		return m, 0
	}
	got := *resource.NewMilliQuantity(v.Value, lead.Format)
	size := quantity.Composed(now, want, name, got, grows)
	if grows && got.Cmp(lead) != 0 {
		size = m.stableLimit(j.Now, now, size, name, rules.Up.Stabilization)
	}
	j.withUnseenLimit(replica, size, name)
	quantity.Take(next, size, name)
	j.changed = append(j.changed, fmt.Sprintf("%s %s %s instead of %s", j.Named(replica), name,
		quantity.Text(name, got), quantity.Text(name, stands)))
	if by = -1; grows {
		by = 1
	}
	m.request = m.request.Changed(j.Now, by, rules.Up, rules.Down)
	return m, by
}

// withUnseenLimit adds to a size what stands of a limit whose rule has not seen its input yet, where the request is
// above that: it is as large then.
func (j *judge) withUnseenLimit(replica int, got size.Resources, name string) {
	_, unseen := wish.Unknown(j.wanted.Rows, replica, name)
	request, stands := got.Requests[name], j.Current[replica].Limits[name]
	above := stands.Sign() > 0 && request.Cmp(stands) > 0
	if _, limited := got.Limits[name]; unseen && !limited && above {
		got.Limits[name] = request
	}
}

// atThisTime is a verdict by the time of decisions and by the gates. What a decision made and a rate, a window or a
// gate holds back is due once that lets it, and waits for no other decision.
func (j *judge) atThisTime(replica int, name string, v change.Verdict, current int64) change.Verdict {
	key := fmt.Sprintf("%d/%s/%s", replica, name, v.Direction)
	until := j.undecided(replica, name, key)
	if v.Value != current && !until.IsZero() {
		v.Value, v.Blocks = current, []change.Block{{Reason: change.StabilizationWindow, Until: until,
			Why: fmt.Sprintf("sizes are decided every %s (size.interval)", time.Duration(j.Size.Interval))}}
	}
	if shut := j.gate(v.Direction == change.Up); shut != nil {
		v.Value, v.Blocks = current, append([]change.Block{*shut}, v.Blocks...)
	}
	held := slices.ContainsFunc(v.Blocks, func(b change.Block) bool {
		return b.Reason != change.StabilizationWindow && b.Reason != change.TooSmall
	})
	if j.Size.Interval > 0 && until.IsZero() && held {
		if j.Memory.Due == nil {
			j.Memory.Due = map[string]bool{}
		}
		j.Memory.Due[key] = true
	}
	return v
}

// decides reports whether this cycle is one in which sizes are decided. Where a gate is shut none is, and the next one
// does.
func (j *judge) decides() bool {
	since := j.Now.Sub(j.Memory.Decided)
	return j.Size.Interval > 0 && (since < 0 || since >= time.Duration(j.Size.Interval))
}

// undecided is when an ordinal's size is decided next; zero: now. Who grows at once, what a person went back to, what
// is due, and what has no size yet waits for none.
func (j *judge) undecided(ordinal int, name, key string) time.Time {
	held := quantity.Of(j.Held(j.Plan, ordinal))
	_, requests := held.Requests[name]
	_, limits := held.Limits[name]
	sized, decided := requests || limits, j.byPerson[ordinal] || j.due[key]
	waits := j.Urgent[ordinal] == "" && sized && !decided
	if j.Size.Interval == 0 || j.decides() || !waits {
		return time.Time{}
	}
	return j.Memory.Decided.Add(time.Duration(j.Size.Interval))
}

// overloaded reports whether an ordinal carries more than it may.
func (j *judge) overloaded(replica int) bool {
	return j.Over[replica] || j.Uniform() && len(j.Over) > 0
}

// gate is what lets no size change that way, beside the rules of change; nil: nothing.
func (j *judge) gate(grows bool) *change.Block {
	why := j.Shut.Down
	switch {
	case j.InTemplate():
		why = j.Shut.Restart
	case grows:
		why = j.Shut.Up
	}
	if why != "" {
		reason := change.UpdatePolicy
		if j.Plan.Rollout != nil {
			reason = change.RolloutInProgress
		}
		return &change.Block{Reason: reason, Why: why}
	}
	if again := j.Shut.RestartAgain; j.InTemplate() && !again.IsZero() {
		return &change.Block{Reason: change.RateLimit, Until: again,
			Why: "every replica restarts for it, and did so less than change.restarts.every ago"}
	}
	return nil
}

// block says what keeps a change from happening, and since when. Each cycle says it anew.
func (j *judge) block(replica int, name string, v change.Verdict, from, to resource.Quantity) {
	if len(v.Blocks) == 0 {
		return
	}
	b := v.Blocks[0]
	if b.Reason == change.TooSmall { // package change counts thousandths
		least := resource.NewMilliQuantity(j.Rules(name).Of(v.Direction).MinChange.Threshold(from.MilliValue()),
			from.Format)
		b.Why = "it is less than a change of " + quantity.Text(name, quantity.Rounded(name, *least))
	}
	j.blocked(Blocked{Replica: j.Shown(replica), Resource: name, Direction: v.Direction, Reason: b.Reason,
		Until: b.Until, Why: b.Why,
		From: quantity.Text(name, from), To: quantity.Text(name, quantity.Rounded(name, to))})
}

func (j *judge) blocked(b Blocked) {
	if b.Since.IsZero() {
		b.Since = j.noticed(b)
	}
	j.Memory.Blocked[b.Key()] = b.Since
	j.out.Blocked = append(j.out.Blocked, b)
}

// noticed is since when cycles have found that.
func (j *judge) noticed(b Blocked) time.Time {
	if since, known := j.before[b.Key()]; known {
		return since
	}
	return j.Now
}

// stale says of a resource whose rules read inputs that are not known in this cycle that it waits for them: it stays as
// it stands by what was decided of them, since the first of them was known last, or since it was noticed where none
// ever was. Which way it would change is not known; what is lost is growth.
func (j *judge) stale(replica int, name string, stands size.Resources) {
	b := Blocked{Replica: j.Shown(replica), Resource: name, Direction: change.Up, Reason: change.StaleInput}
	noticed := j.noticed(b)
	var inputs []string
	for _, row := range j.wanted.Rows {
		mine := row.Replica == replica || row.Replica == size.All
		away := !row.Known || !row.Last.IsZero()
		if !mine || !away || row.Rule.Resource != name {
			continue
		}
		inputs = append(inputs, row.Rule.Input)
		last := row.Last
		if last.IsZero() {
			last = noticed
		}
		if b.Since.IsZero() || last.Before(b.Since) {
			b.Since = last
		}
	}
	if len(inputs) == 0 {
		return
	}
	slices.Sort(inputs)
	b.Why = "nothing is known of " + strings.Join(slices.Compact(inputs), ", ")
	held, requested := stands.Requests[name]
	if !requested {
		held = stands.Limits[name]
	}
	if held.Sign() > 0 {
		b.From, b.To = quantity.Text(name, held), quantity.Text(name, held)
	}
	j.blocked(b)
}

// left shows what of their sizes pods are not asked for while they run: each gets it when it is made anew.
func (j *judge) left() {
	for _, u := range j.Unmet {
		stands, want := quantity.Of(&u.Stands), quantity.Of(&u.Left)
		for _, name := range question.Sized() {
			from, to := stands.Requests[name], want.Requests[name]
			_, differs := want.Requests[name]
			if !differs {
				from, to = stands.Limits[name], want.Limits[name]
				_, differs = want.Limits[name]
			}
			if !differs || u.Replica < 0 {
				continue
			}
			direction := change.Up
			if to.Cmp(from) < 0 {
				direction = change.Down
			}
			j.blocked(Blocked{Replica: j.Shown(u.Replica), Resource: name, Direction: direction,
				Reason: change.UpdatePolicy,
				From:   quantity.Text(name, from), To: quantity.Text(name, to),
				Why: fmt.Sprintf("pod %q, %s: %s", u.Pod, u.State, u.Words)})
		}
	}
}

// beyondNodes shows what replicas are not given for their nodes' sake.
func (j *judge) beyondNodes() {
	for _, replica := range slices.Sorted(maps.Keys(j.beyond)) {
		for _, name := range question.Sized() {
			from, to := j.wanted.Sizes[replica].Requests[name], j.beyond[replica].Requests[name]
			if from.Cmp(to) == 0 {
				continue
			}
			j.blocked(Blocked{Replica: replica, Resource: name, Direction: change.Up, Reason: change.UpdatePolicy,
				Until: j.unfit[replica].Stays.Add(wish.UnfitFor),
				From:  quantity.Text(name, from), To: quantity.Text(name, quantity.Rounded(name, to)),
				Why: "its node never had room for it, and it is tried again then"})
		}
	}
}

// remembered is the history of one resource of one replica. Changes are the resource's, and stand with the wishes for
// its request; the wishes for its limit stand apart: where one of the two is at rest the other must not take its wishes
// for its own.
type remembered struct {
	request, limit change.Past
}

// remembered is what the memory has of a resource, with what it does not know of: a size that another leader gave the
// replica since counts as a change that was made just now, and as what was wanted.
func (j *judge) remembered(replica int, name string) remembered {
	all, rules := j.Memory.Changes[replica], j.Rules(name)
	m := remembered{all[name], all[memory.LimitOf(name)]}
	if !j.Overtaken[replica][name] {
		return m
	}
	m = m.wish(j.Now, j.Current[replica], j.Current[replica], name, rules)
	m.request = m.request.Changed(j.Now, 1, rules.Up, rules.Down)
	return m
}

// wish remembers what is wanted of request and limit. What stands was wanted until now where nothing is remembered.
func (m remembered) wish(at time.Time, now, want size.Resources, name string, rules change.Rules) remembered {
	for _, list := range []struct {
		h         *change.Past
		has, asks map[string]resource.Quantity
	}{{&m.request, now.Requests, want.Requests}, {&m.limit, now.Limits, want.Limits}} {
		q, wanted := list.asks[name]
		if !wanted {
			continue
		}
		stands := list.has[name]
		if len(list.h.Wishes) == 0 {
			*list.h = list.h.Wish(at, stands.MilliValue(), rules.Up, rules.Down)
		}
		*list.h = list.h.Wish(at, q.MilliValue(), rules.Up, rules.Down)
	}
	return m
}

// leading is the history by which a change is judged: that of the quantity that leads, with the resource's changes.
func (m remembered) leading(request bool) change.Past {
	h := m.request
	if !request {
		h.Wishes = m.limit.Wishes
	}
	return h
}

// stableLimit is a size whose limit grows no further than what was wanted of it within the window, where its request
// does not grow as far as it is to.
func (m remembered) stableLimit(at time.Time, now, got size.Resources, name string, window time.Duration) size.Resources {
	limit, limited := got.Limits[name]
	was, had := now.Limits[name]
	if !limited || !had || limit.Cmp(was) <= 0 {
		return got
	}
	stable := max(change.Stabilize(was.MilliValue(), limit.MilliValue(), m.limit.Wishes, window, 0, at),
		was.MilliValue())
	q := *resource.NewMilliQuantity(stable, limit.Format)
	if request, ruled := got.Requests[name]; ruled && q.Cmp(request) < 0 {
		q = request
	}
	got.Limits[name] = q
	return got
}

// keep puts the history back where there is any.
func (m remembered) keep(all map[string]change.Past, name string) {
	for key, h := range map[string]change.Past{name: m.request, memory.LimitOf(name): m.limit} {
		if h.Last != 0 || len(h.Wishes)+len(h.Events) > 0 {
			all[key] = h
		}
	}
}
