package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Sizing is what a cycle found out about sizes.
type Sizing struct {
	Apply    config.SizeApply `json:"apply"`
	Rules    []SizeRow        `json:"rules,omitempty"`
	Replicas []ReplicaSize    `json:"replicas,omitempty"`
	Blocked  []Blocked        `json:"blocked,omitempty"`
	Resized  int              `json:"resized,omitempty"` // replicas that get another size by this cycle
}

// SizeRow is what one rule makes of one replica's input. Replica is size.All where it is one for all.
type SizeRow struct {
	Rule     string  `json:"rule"`
	Replica  int     `json:"replica"`
	Input    float64 `json:"input"`
	Known    bool    `json:"known"`
	Computed string  `json:"computed"`
	Value    string  `json:"value"`
	Held     string  `json:"held,omitempty"` // what holds the computed value back
}

// ReplicaSize is a replica's size: what the rules want, and what holds after this cycle.
type ReplicaSize struct {
	Replica int            `json:"replica"`
	Wanted  plan.Resources `json:"wanted"`
	InForce plan.Resources `json:"inForce"`
}

// Blocked is a change that is wanted and does not happen now. Replica is size.All for all of them.
type Blocked struct {
	Replica   int                `json:"replica"`
	Resource  string             `json:"resource,omitempty"`
	Direction change.Direction   `json:"direction,omitempty"`
	Reason    change.BlockReason `json:"reason"`
	From      string             `json:"from,omitempty"`
	To        string             `json:"to,omitempty"` // what would be otherwise
	Since     time.Time          `json:"since"`
	Until     time.Time          `json:"until,omitzero"` // zero: nobody knows
	Why       string             `json:"why,omitempty"`
}

// String is a line for people.
func (b Blocked) String() string {
	said := fmt.Sprintf("replica %d: %s", b.Replica, b.Resource)
	if b.Replica == size.All {
		said = "every replica: " + b.Resource
	}
	if b.To != "" {
		said += fmt.Sprintf(" %s instead of %s", b.To, cmp.Or(b.From, "none"))
	}
	said += fmt.Sprintf(" waits since %s: %s", b.Since.UTC().Format(time.RFC3339), b.Reason)
	if b.Why != "" {
		said += " (" + b.Why + ")"
	}
	if !b.Until.IsZero() {
		said += ", until " + b.Until.UTC().Format(time.RFC3339)
	}
	return said
}

// sizer works out the sizes of one cycle.
type sizer struct {
	*cycle
	a        *adoption
	verdicts verdicts
	replicas int
	uniform  bool // one size for all
	wanted   size.Result
	now      map[int]size.Resources // in force, by replica
	urgent   map[int]string         // replicas that grow at once, and why
	kills    map[int]time.Time      // OOM kills that nobody grew for yet
	memory   memory.Sizes
	changed  []string // in words
	out      *Sizing
}

// size says how large each replica is to be, by the policies. Without any, sizes are people's.
func (c *cycle) size(a *adoption) {
	conf := c.in.Config.Size
	if len(conf.Policies) == 0 {
		a.next.Sizes, a.next.Resources, c.out.Memory.Sizes = nil, nil, memory.Sizes{}
		return
	}
	if strangers := c.otherContainers(); len(strangers) > 0 {
		c.problem(problem.Problem{Phase: problem.PhaseSize, Kind: "SizePolicyRefused", Message: fmt.Sprintf(
			"size.policies name the containers %s, and the application-controller's is %q: take container out of those rules; sizes stay as they are",
			problem.ClipList(strangers), c.in.Workload.Container)})
		return
	}
	s := &sizer{cycle: c, a: a, verdicts: c.sizeVerdicts(a), replicas: sized(a), memory: c.in.Memory.Sizes, urgent: map[int]string{}, kills: map[int]time.Time{},
		uniform: conf.Apply == config.Template || a.next.Target.Kind == plan.Deployment,
		out:     &Sizing{Apply: cmp.Or(conf.Apply, config.InPlace)}}
	if s.replicas == 0 {
		return
	}
	s.see()
	s.evaluate()
	s.apply(s.decide())
	c.out.Memory.Sizes, c.out.Sizing = s.memory, s.out
}

// otherContainers are those that rules name and that are not the controller's: a configuration that leaves target.container out
// cannot tell.
func (c *cycle) otherContainers() (names []string) {
	for _, p := range c.in.Config.Size.Policies {
		for _, r := range p.Rules {
			if r.Container != "" && r.Container != c.in.Workload.Container {
				names = append(names, r.Container)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sizeVerdicts are those of the gates, with the rollout that this cycle began.
func (c *cycle) sizeVerdicts(a *adoption) verdicts {
	v := verdicts{}
	maps.Copy(v, c.verdicts)
	if a.next.Rollout != nil {
		v.add(everything&^sizeUp, "a rollout is under way")
	}
	if a.next.Unmanaged {
		v.add(everything, "the workload is annotated as unmanaged")
	}
	return v
}

// ordinals are the replicas that have a size of their own: the first stands for all where there is one for all.
func (s *sizer) ordinals() []int {
	if s.uniform {
		return []int{0}
	}
	out := make([]int, s.replicas)
	for r := range out {
		out[r] = r
	}
	return out
}

// see takes in what the workload and the pods show: what stands, peaks of memory, and who was killed for want of it.
func (s *sizer) see() {
	if s.a.next.Resources == nil || s.memory.Found == nil {
		s.memory.Found = s.in.Workload.Resources
	}
	found := quantitiesOf(s.memory.Found)
	s.now = map[int]size.Resources{}
	for _, r := range s.ordinals() {
		s.now[r] = found
		if held := s.held(r); held != nil {
			s.now[r] = over(found, quantitiesOf(held))
		}
	}
	peaks := map[int]memory.Peak{}
	for replica, peak := range s.memory.Peaks {
		if replica < s.replicas {
			peaks[replica] = peak
		}
	}
	for _, p := range s.in.Observed.Pods {
		if p.Replica < 0 || p.Replica >= s.replicas {
			continue
		}
		used := p.Memory
		if p.MemoryLimit > 0 { // no container uses more, whoever says so
			used = min(used, p.MemoryLimit)
		}
		if s.killed(p.Replica, p.OOMKilled, p.KilledAt) {
			used = max(used, s.afterKill(p.MemoryLimit))
			s.urgent[s.of(p.Replica)], s.kills[p.Replica] = "it was OOM-killed since it grew last", p.KilledAt
		}
		peaks[p.Replica] = peaks[p.Replica].Next(used, s.in.Now)
	}
	s.memory.Peaks = peaks
	s.memory.Killed = maps.Clone(s.memory.Killed)
	maps.DeleteFunc(s.memory.Killed, func(replica int, _ int64) bool { return replica >= s.replicas })
	if s.memory.Killed == nil && len(s.kills) > 0 {
		s.memory.Killed = map[int]int64{}
	}
	for replica := range s.receivers(s.a) {
		if s.urgent[s.of(replica)] == "" {
			s.urgent[s.of(replica)] = "clusters are about to move to it"
		}
	}
}

// of is the ordinal that a replica's size stands under.
func (s *sizer) of(replica int) int {
	if s.uniform {
		return 0
	}
	return replica
}

// ahead is how far a node's clock may be before ours.
const ahead = 5 * time.Minute

// killed reports whether a replica was OOM-killed since it grew for a kill: each counts once, by the time that its node says. What
// is longer ago than a day says nothing of today, and what is ahead of every clock is no kill.
func (s *sizer) killed(replica int, oom bool, at time.Time) bool {
	ago := s.in.Now.Sub(at)
	recent := ago < 24*time.Hour && ago > -ahead
	return oom && recent && at.Unix() > s.memory.Killed[replica]
}

// afterKill is what a replica may be taken to use that was killed at that limit: a fifth more, as far as a node has it.
func (s *sizer) afterKill(limit int64) int64 {
	more := limit / 5 * 6
	if most, bounded := s.in.Config.Size.Cap()[size.Memory]; bounded {
		more = min(more, max(most.Value(), limit))
	}
	return more
}

// grewFor remembers the kills that a change of a size's memory answers.
func (s *sizer) grewFor(replica int) {
	for killed, at := range s.kills {
		if s.of(killed) == replica {
			s.memory.Killed[killed] = at.Unix()
		}
	}
}

// mostUrgent are the ordinals, those first that grow at once: what a rate has room for is theirs.
func (s *sizer) mostUrgent() []int {
	all := s.ordinals()
	slices.SortStableFunc(all, func(a, b int) int { return discover.FalseFirst(s.urgent[a] == "", s.urgent[b] == "") })
	return all
}

// limitAlone keeps a request that is to shrink as it stands where its limit must grow: the whole would wait for the shrinking.
func limitAlone(now, want size.Resources, name string) size.Resources {
	limit, limited := want.Limits[name]
	was, had := now.Limits[name]
	request, requested := want.Requests[name]
	stands, stood := now.Requests[name]
	if !limited || !had || limit.Cmp(was) <= 0 {
		return want
	}
	if !requested || !stood || request.Cmp(stands) >= 0 {
		return want
	}
	out := over(want, size.Resources{})
	out.Requests[name] = stands
	return out
}

// held is what ballast holds a replica at; nil: nothing.
func (s *sizer) held(replica int) *plan.Resources {
	if s.out.Apply == config.Template {
		return s.a.next.Resources
	}
	if held, ok := s.a.next.SizeOf(replica); ok {
		return &held
	}
	return nil
}

// evaluate asks the rules. Who grows at once gets what they compute, whatever holds that back.
func (s *sizer) evaluate() {
	conf, of := s.in.Config.Size, s.has(s.a, s.replicas)
	q := size.Question{Rules: conf.Merged(), Inputs: s.readings(s.a, of), Replicas: s.ordinals(), Uniform: s.uniform, InForce: s.now,
		Found: quantitiesOf(s.memory.Found), Headroom: conf.Headrooms(), Peak: s.peaks(), NodeCap: conf.Cap(), Now: s.in.Now}
	s.wanted, s.memory.Rules = size.Evaluate(q, s.memory.Rules)
	if len(s.urgent) > 0 {
		for i := range q.Rules {
			q.Rules[i].DelayUp, q.Rules[i].DelayDown, q.Rules[i].Smoothing = size.Delay{}, size.Delay{}, nil
		}
		q.InForce = nil
		raw, _ := size.Evaluate(q, nil)
		for replica := range s.urgent {
			s.wanted.Sizes[replica] = larger(s.wanted.Sizes[replica], raw.Sizes[replica])
		}
	}
	for _, row := range s.wanted.Rows {
		s.out.Rules = append(s.out.Rules, SizeRow{Rule: ruleName(row.Rule), Replica: row.Replica, Input: row.Input, Known: row.Known,
			Computed: sizeText(row.Rule.Resource, row.Computed), Value: sizeText(row.Rule.Resource, row.Value), Held: row.Held})
	}
	for _, replica := range slices.Sorted(maps.Keys(s.wanted.Capped)) {
		s.problem(problem.Problem{Phase: problem.PhaseSize, Kind: "NodeTooSmall", Message: fmt.Sprintf(
			"replica %d is to request more %s than size.nodeCap: it gets that, and its clusters need more replicas or a larger node",
			replica, strings.Join(s.wanted.Capped[replica], " and "))})
	}
}

// peaks are the most that each replica was seen to use; the highest of all where they have one size.
func (s *sizer) peaks() map[int]float64 {
	out := map[int]float64{}
	for replica, peak := range s.memory.Peaks {
		at := s.of(replica)
		out[at] = max(out[at], float64(peak.Bytes))
	}
	return out
}

// ruleName is how people know a rule.
func ruleName(r size.Rule) string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%s/%s", r.List, r.Resource, r.Name), "/")
}

// decide judges each resource of each replica by the gates and the rules of change, and answers the sizes that hold from now on.
func (s *sizer) decide() map[int]size.Resources {
	histories, before := map[int]map[string]change.History{}, s.memory.Blocked
	s.memory.Blocked = map[string]time.Time{}
	next := map[int]size.Resources{}
	for _, replica := range s.mostUrgent() {
		histories[replica] = map[string]change.History{}
		next[replica] = s.heldOnly(replica)
		changed := false
		for _, name := range []string{size.CPU, size.Memory} {
			h, took := s.one(replica, name, next[replica], before)
			if changed = changed || took; took && name == size.Memory {
				s.grewFor(replica)
			}
			if h.Last != 0 || len(h.Wishes)+len(h.Events) > 0 {
				histories[replica][name] = h
			}
		}
		if changed {
			s.out.Resized++
			s.memory.Resizes = s.memory.Resizes.Changed(s.in.Now, 1, s.rules(size.CPU).Up, s.rules(size.CPU).Down)
		}
	}
	s.memory.Changes = histories
	return next
}

func (s *sizer) rules(resource string) change.Rules { return s.in.Config.Change.SizeRules(resource) }

// heldOnly is what of a replica ballast holds now and its rules still name.
func (s *sizer) heldOnly(replica int) size.Resources {
	out := size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	held, wanted := quantitiesOf(s.held(replica)), s.wanted.Sizes[replica]
	named := map[string]bool{}
	for _, rule := range s.in.Config.Size.Merged() {
		named[rule.Resource] = true
	}
	for name := range named {
		for _, list := range []struct{ from, want, to map[string]resource.Quantity }{
			{held.Requests, wanted.Requests, out.Requests}, {held.Limits, wanted.Limits, out.Limits}} {
			_, still := list.want[name]
			if q, is := list.from[name]; is && (still || len(list.want) == 0) {
				list.to[name] = q
			}
		}
	}
	return out
}

// one decides one resource of one replica, in place in next. It answers what is remembered of it, and whether it changes.
func (s *sizer) one(replica int, name string, next size.Resources, before map[string]time.Time) (change.History, bool) {
	h, rules := s.memory.Changes[replica][name], s.rules(name)
	now, want := s.now[replica], s.wanted.Sizes[replica]
	if s.urgent[replica] != "" {
		want = limitAlone(now, want, name)
	}
	lead, stands, wanted := leading(now, want, name)
	if nothing := lead.Sign() <= 0; !wanted || nothing { // there is nothing to hold a container at
		s.unseen(replica, name, before)
		return h, false
	}
	if h.Last == 0 && len(h.Wishes) == 0 { // what stands was wanted until now
		h = h.Wish(s.in.Now, stands.MilliValue(), rules.Up, rules.Down)
	}
	h = h.Wish(s.in.Now, lead.MilliValue(), rules.Up, rules.Down)
	if sizeText(name, lead) == sizeText(name, stands) {
		if !same(next, want, name) && s.gate(true) == nil {
			take(next, want, name)
		}
		return h, false
	}
	ask := change.Ask{Now: s.in.Now, Current: stands.MilliValue(), Wanted: lead.MilliValue(), OOMKilled: s.urgent[replica] != "",
		OverCapacity: s.over(replica), Of: s.replicas}
	v, grows := rules.Resources(ask, h, s.memory.Resizes), ask.Wanted > ask.Current
	if shut := s.gate(grows); shut != nil {
		v.Value, v.Blocks = ask.Current, append([]change.Block{*shut}, v.Blocks...)
	}
	s.block(replica, name, v, stands, lead, before)
	if v.Value == ask.Current {
		return h, false
	}
	got := *resource.NewMilliQuantity(v.Value, lead.Format)
	take(next, composed(now, want, name, got, grows), name)
	s.changed = append(s.changed, fmt.Sprintf("%s %s %s instead of %s", s.named(replica), name, sizeText(name, got), sizeText(name, stands)))
	return h.Changed(s.in.Now, 1, rules.Up, rules.Down), true
}

// leading is the quantity by which a change of a resource is judged, and what stands of it: the request, and where that stays or
// is nobody's the limit.
func leading(now, want size.Resources, name string) (lead, stands resource.Quantity, wanted bool) {
	request, ruled := want.Requests[name]
	limit, limited := want.Limits[name]
	if stands = now.Requests[name]; ruled && (request.Cmp(stands) != 0 || !limited) {
		return request, stands, true
	}
	return limit, now.Limits[name], limited
}

// composed is one resource of a size whose leading quantity is got. The limit does not shrink where that grows, nor where it
// shrinks less far than is wanted, and is never below the request.
func composed(now, want size.Resources, name string, got resource.Quantity, grows bool) size.Resources {
	out := size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	request, ruled := want.Requests[name]
	limit, limited := want.Limits[name]
	wanted, _, _ := leading(now, want, name)
	switch {
	case ruled && request.Cmp(now.Requests[name]) != 0, !limited:
		request = got
	default:
		limit = got
	}
	was, had := now.Limits[name]
	if whole := got.Cmp(wanted) == 0; had && was.Cmp(limit) > 0 && (grows || !whole) {
		limit = was
	}
	if ruled {
		out.Requests[name] = request
	}
	if limited {
		if ruled && limit.Cmp(request) < 0 {
			limit = request
		}
		out.Limits[name] = limit
	}
	return out
}

// gate is what lets no size change that way, beside the rules of change; nil: nothing.
func (s *sizer) gate(grows bool) *change.Block {
	act := sizeDown
	switch {
	case s.out.Apply == config.Template:
		act = sizeRestart
	case grows:
		act = sizeUp
	}
	if why := s.verdicts[act]; why != "" {
		reason := change.UpdatePolicy
		if s.a.next.Rollout != nil {
			reason = change.RolloutInProgress
		}
		return &change.Block{Reason: reason, Why: why}
	}
	if act != sizeRestart {
		return nil
	}
	if again := snapshotOf(s.cycle.out, s.a).restartAgain(); !again.IsZero() {
		return &change.Block{Reason: change.RateLimit, Until: again, Why: "every replica restarts for it, and did so less than change.restarts.every ago"}
	}
	return nil
}

// over reports whether a replica carries more than a person said that it may.
func (s *sizer) over(replica int) bool {
	most := boundsOf(s.in.Config.Partition, s.in.Workload, s.a).Capacity
	return most > 0 && slices.ContainsFunc(s.cycle.out.Now, func(r plan.Replica) bool {
		return (r.ID == replica || s.uniform) && r.TotalLoad > most
	})
}

// take writes one resource of a size.
func take(next, want size.Resources, name string) {
	for _, list := range []struct{ want, to map[string]resource.Quantity }{{want.Requests, next.Requests}, {want.Limits, next.Limits}} {
		if q, is := list.want[name]; is && q.Sign() > 0 {
			list.to[name] = q
		}
	}
	request := next.Requests[name]
	if limit, limited := next.Limits[name]; limited && limit.Cmp(request) < 0 { // held from before: no rule makes one any more
		next.Limits[name] = request
	}
}

// same reports whether a resource's request and limit are the same in both.
func same(a, b size.Resources, name string) bool {
	equal := func(a, b map[string]resource.Quantity) bool {
		x, xs := a[name]
		y, ys := b[name]
		return xs == ys && x.Cmp(y) == 0
	}
	return equal(a.Requests, b.Requests) && equal(a.Limits, b.Limits)
}

// block says what keeps a change from happening, and since when. Each cycle says it anew.
func (s *sizer) block(replica int, name string, v change.Verdict, from, to resource.Quantity, before map[string]time.Time) {
	if len(v.Blocks) == 0 {
		return
	}
	b := v.Blocks[0]
	s.blocked(Blocked{Replica: s.shown(replica), Resource: name, Direction: v.Direction, Reason: b.Reason, Until: b.Until, Why: b.Why,
		From: sizeText(name, from), To: sizeText(name, to)}, before)
}

func (s *sizer) blocked(b Blocked, before map[string]time.Time) {
	key := fmt.Sprintf("%d/%s/%s/%s", b.Replica, b.Resource, b.Direction, b.Reason)
	since, known := before[key]
	if !known {
		since = s.in.Now
	}
	b.Since, s.memory.Blocked[key] = since, since
	s.out.Blocked = append(s.out.Blocked, b)
}

func (s *sizer) shown(replica int) int {
	if s.uniform {
		return size.All
	}
	return replica
}

// unseen says of a resource that rules name and whose inputs nobody has seen yet that it waits for them.
func (s *sizer) unseen(replica int, name string, before map[string]time.Time) {
	var inputs []string
	for _, row := range s.wanted.Rows {
		mine := row.Replica == replica || row.Replica == size.All
		if mine && !row.Known && row.Rule.Resource == name {
			inputs = append(inputs, row.Rule.Input)
		}
	}
	slices.Sort(inputs)
	if inputs = slices.Compact(inputs); len(inputs) > 0 {
		s.blocked(Blocked{Replica: s.shown(replica), Resource: name, Reason: change.StaleInput,
			Why: "nothing is known of " + strings.Join(inputs, ", ")}, before)
	}
}

// apply writes the sizes into the plan, and says what changes.
func (s *sizer) apply(sizes map[int]size.Resources) {
	before := s.a.next
	if s.out.Apply == config.Template {
		s.a.next.Sizes, s.a.next.Resources = nil, held(sizes[0])
	} else {
		s.a.next.Resources, s.a.next.Sizes = nil, s.rows(sizes)
	}
	if err := sizesFault(s.a.next); err != nil && sizesFault(before) == nil {
		s.a.next.Sizes, s.a.next.Resources, s.out.Resized = before.Sizes, before.Resources, 0
		was := s.in.Memory.Sizes // nothing changed
		s.memory.Changes, s.memory.Resizes, s.memory.Killed = was.Changes, was.Resizes, was.Killed
		s.problem(problem.Problem{Phase: problem.PhaseSize, Kind: "SizePolicyRefused", Message: "sizes stay as they are: " + err.Error()})
	}
	for _, replica := range s.ordinals() {
		shown := ReplicaSize{Replica: s.shown(replica), Wanted: resourcesOf(s.wanted.Sizes[replica])}
		if held := s.held(replica); held != nil {
			shown.InForce = *held
		}
		s.out.Replicas = append(s.out.Replicas, shown)
	}
	s.say()
}

// say notes what this cycle resizes.
func (s *sizer) say() {
	if s.out.Resized == 0 {
		return
	}
	if s.out.Apply == config.Template {
		s.cycle.out.Decided, s.cycle.out.Memory.Changes.Restarted = true, s.in.Now
		s.note("the pod template gets another size, for which every replica restarts: " + problem.ClipList(s.changed))
		return
	}
	s.note("resizes " + problem.Plural(s.out.Resized, "replica") + " in place: " + problem.ClipList(s.changed))
}

// named is a replica, in words.
func (s *sizer) named(replica int) string {
	if s.uniform {
		return "every replica's"
	}
	return fmt.Sprintf("replica %d's", replica)
}

// sizesFault is what a plan may not have beside its rows.
func sizesFault(p plan.Plan) error {
	p.Clusters, p.Groups, p.Rollout = nil, nil, nil
	return p.Validate()
}

// held is a size as the plan has it; nil where it holds nothing.
func held(r size.Resources) *plan.Resources {
	out := resourcesOf(r)
	if len(out.Requests)+len(out.Limits) == 0 {
		return nil
	}
	return &out
}

// rows are the sizes as the plan has them: the one that most replicas have is the default, where none is left as it is. nil where
// they hold nothing.
func (s *sizer) rows(sizes map[int]size.Resources) *plan.Sizes {
	var all []plan.Resources
	for _, replica := range s.ordinals() {
		if h := held(sizes[replica]); h != nil {
			all = append(all, *h)
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := &plan.Sizes{}
	if len(all) == len(s.ordinals()) {
		out.Default = usual(all)
	}
	for _, replica := range s.ordinals() {
		if h := held(sizes[replica]); h != nil && !h.Same(out.Default) {
			if out.Replicas == nil {
				out.Replicas = map[int]plan.Resources{}
			}
			out.Replicas[replica] = *h
		}
	}
	return out
}

// usual is the size that most have; of several the first.
func usual(sizes []plan.Resources) (most plan.Resources) {
	best := 0
	for _, one := range sizes {
		have := 0
		for _, other := range sizes {
			if one.Same(other) {
				have++
			}
		}
		if have > best {
			best, most = have, one
		}
	}
	return most
}

// quantitiesOf reads a size of the plan or the template; what cannot be read is left out.
func quantitiesOf(r *plan.Resources) size.Resources {
	out := size.Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	if r == nil {
		return out
	}
	for _, list := range []struct {
		from map[string]string
		to   map[string]resource.Quantity
	}{{r.Requests, out.Requests}, {r.Limits, out.Limits}} {
		for name, text := range list.from {
			if q, err := size.ParseQuantity(text); err == nil && q.Sign() > 0 {
				list.to[name] = q
			}
		}
	}
	return out
}

// over is one size with what another says instead.
func over(base, top size.Resources) size.Resources {
	out := size.Resources{Requests: maps.Clone(base.Requests), Limits: maps.Clone(base.Limits)}
	maps.Copy(out.Requests, top.Requests)
	maps.Copy(out.Limits, top.Limits)
	return out
}

// larger is of each quantity the larger one.
func larger(a, b size.Resources) size.Resources {
	out := over(b, a)
	for _, list := range []struct{ with, out map[string]resource.Quantity }{{b.Requests, out.Requests}, {b.Limits, out.Limits}} {
		for name, q := range list.with {
			if mine := list.out[name]; q.Cmp(mine) > 0 {
				list.out[name] = q
			}
		}
	}
	return out
}

// The most that a plan may hold a container at.
const (
	mostCores  = 1_000_000
	mostMemory = 1 << 50
)

// resourcesOf is a size as the plan has it, in Kubernetes' own way of writing.
func resourcesOf(r size.Resources) plan.Resources {
	texts := func(list map[string]resource.Quantity) map[string]string {
		var out map[string]string
		for name, q := range list {
			if q.Sign() <= 0 {
				continue
			}
			if out == nil {
				out = map[string]string{}
			}
			out[name] = sizeText(name, q)
		}
		return out
	}
	return plan.Resources{Requests: texts(r.Requests), Limits: texts(r.Limits)}
}

// sizeText writes a quantity: cores in thousandths, memory in bytes.
func sizeText(name string, q resource.Quantity) string {
	if name == size.CPU {
		if q.CmpInt64(mostCores) > 0 {
			return resource.NewQuantity(mostCores, resource.DecimalSI).String()
		}
		return resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI).String()
	}
	if q.CmpInt64(mostMemory) > 0 {
		return resource.NewQuantity(mostMemory, resource.BinarySI).String()
	}
	return resource.NewQuantity(q.Value(), resource.BinarySI).String()
}
