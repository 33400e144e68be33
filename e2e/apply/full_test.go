package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"ballast/planner/apply"
	"ballast/planner/diff"
)

// knowsAFullSecret: who fills one to the brim of what etcd stores of an object, without a shard, has every write of it refused.
func knowsAFullSecret(t *testing.T, w *world) {
	s := w.secret("a", "", nil)
	for i := range 2400 {
		s.Labels[fmt.Sprintf("l%061d", i)] = strings.Repeat("v", 63)
	}
	s.Data["filler"] = []byte(strings.Repeat("x", 1<<20-300))
	fits := func(note int) bool {
		s.Annotations = map[string]string{"note": strings.Repeat("x", note)}
		s.ResourceVersion, s.ManagedFields = "", nil
		return w.client.Update(w.ctx, s) == nil
	}
	least, most := 150<<10, 250<<10
	for least+1 < most {
		if middle := (least + most) / 2; fits(middle) {
			least = middle
		} else {
			most = middle
		}
	}
	w.equal(true, fits(least))
	result := apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 3}}).Results[0]
	why, refused := apply.Refusal(result.Err)
	w.equal([]any{apply.Failed, true, "RequestEntityTooLarge; what else the API server said is left out, since it may quote the object"}, []any{result.Outcome, refused, why})
	s.Annotations, s.ResourceVersion = nil, ""
	w.must(w.client.Update(w.ctx, s))
	w.equal([]apply.Outcome{apply.Applied}, w.outcomes(apply.New(w.options).Apply(w.ctx, w.target, []diff.Step{diff.PatchShard{Secret: "a", Shard: 3}})))
}
