package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"ballast/planner/gz"
	"ballast/planner/plan"
)

// maxRecord bounds what a plan's record unpacks to: a plan of 900 KiB whose every line break is escaped.
const maxRecord = 2 << 20

// Encode writes it as binary data of a ConfigMap. The same history gives the same bytes.
func (c Content) Encode() (map[string][]byte, Dropped, error) {
	data := make(map[string][]byte, len(c.Plans)+len(c.Parts))
	for key, part := range c.Parts {
		if _, isPlan := planRevision(key); isPlan || len(validation.IsConfigMapKey(key)) > 0 {
			return nil, Dropped{}, fmt.Errorf("packing part %q of the history: no part may have that name", key)
		}
		data[key] = part
	}
	for _, r := range c.Plans {
		content, err := json.Marshal(r)
		if err != nil {
			return nil, Dropped{}, fmt.Errorf("packing plan revision %d: %w", r.Revision, err)
		}
		if data[planKey(r.Revision)], err = gz.Pack(content); err != nil {
			return nil, Dropped{}, err
		}
	}
	return data, fit(c, data), nil
}

// fit takes out what has no room, in the order of leaving, until the rest has; then it puts back, from the last one on,
// what has room all the same: a part of 400 KiB must not take a plan of four along. The newest plan stays: it fits its
// own ConfigMap.
func fit(c Content, data map[string][]byte) Dropped {
	total := 0
	for key, content := range data {
		total += len(key) + len(content)
	}
	var out []string
	for _, key := range c.leaving() {
		if total > maxHistory {
			total -= len(key) + len(data[key])
			out = append(out, key)
		}
	}
	var dropped Dropped
	for _, key := range slices.Backward(out) {
		if size := len(key) + len(data[key]); total+size <= maxHistory {
			total += size
			continue
		}
		delete(data, key)
		if revision, isPlan := planRevision(key); isPlan {
			dropped.Plans = append(dropped.Plans, revision)
		} else {
			dropped.Parts = append(dropped.Parts, key)
		}
	}
	slices.Reverse(dropped.Plans)
	slices.Reverse(dropped.Parts)
	return dropped
}

// leaving are the keys in the order in which they go from a history that is full: plans that newer ones push out from
// the oldest on, what the planner works out again by itself, the plans that stay and at last the one that a person
// asked for, and the other parts. Of the last three kinds the largest goes first: one that is small makes no room.
func (c Content) leaving() []string {
	plans := slices.Clone(c.Plans[min(1, len(c.Plans)):])
	stay := c.staying(c.Plans)
	rank := func(r Record) int {
		switch {
		case r.Revision == c.Asked:
			return 2
		case slices.Contains(stay, r.Revision):
			return 1
		}
		return 0
	}
	slices.SortFunc(plans, func(a, b Record) int {
		larger := 0
		if rank(a) > 0 {
			larger = cmp.Compare(len(b.Text), len(a.Text))
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), larger, cmp.Compare(a.Revision, b.Revision))
	})
	var pushed, staying, anew, others []string
	for _, r := range plans {
		if rank(r) > 0 {
			staying = append(staying, planKey(r.Revision))
		} else {
			pushed = append(pushed, planKey(r.Revision))
		}
	}
	names := slices.SortedFunc(maps.Keys(c.Parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(c.Parts[b]), len(c.Parts[a])), cmp.Compare(a, b))
	})
	for _, name := range names {
		if slices.Contains(c.Anew, name) {
			anew = append(anew, name)
		} else {
			others = append(others, name)
		}
	}
	return slices.Concat(pushed, anew, staying, others)
}

// Decode reads what Encode wrote. It never fails as a whole: what cannot be read is named. Of plans only
// the newest ten are unpacked at all.
func Decode(data map[string][]byte) (Content, []string) {
	var c Content
	var problems []string
	var revisions []int64
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if revision, isPlan := planRevision(key); isPlan {
			revisions = append(revisions, revision)
			continue
		}
		if c.Parts == nil {
			c.Parts = map[string][]byte{}
		}
		c.Parts[key] = data[key]
	}
	slices.SortFunc(revisions, func(a, b int64) int { return cmp.Compare(b, a) })
	if len(revisions) > 0 {
		c.floor = revisions[0]
	}
	for _, revision := range revisions[:min(len(revisions), keptPlans)] {
		r, err := unpackRecord(data[planKey(revision)], revision)
		if err != nil {
			problems = append(problems, fmt.Sprintf("plan revision %d: %v", revision, err))
			continue
		}
		c.Plans = append(c.Plans, r)
	}
	return c, problems
}

func unpackRecord(packed []byte, revision int64) (Record, error) {
	data, err := gz.Unpack(packed, maxRecord)
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("unpacking: %w", err)
	}
	if r.Revision != revision {
		return Record{}, errors.New("it is another revision's")
	}
	return r, nil
}

func planKey(revision int64) string {
	return planPrefix + strconv.FormatInt(revision, 10) + planSuffix
}

// planRevision reads a plan's key; any other key is a part's, and so is one with a revision that no plan may have.
func planRevision(key string) (int64, bool) {
	digits, isPlan := strings.CutPrefix(key, planPrefix)
	digits, packed := strings.CutSuffix(digits, planSuffix)
	revision, err := strconv.ParseInt(digits, 10, 64)
	return revision, isPlan && packed && err == nil && revision > 0 && revision <= plan.MaxRevision &&
		planKey(revision) == key
}
