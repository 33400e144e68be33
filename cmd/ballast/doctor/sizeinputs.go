package doctor

import (
	"fmt"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/problem"
)

// ofSizeInputs reports whether a problem is of what size rules read.
func ofSizeInputs(p problem.Problem) bool {
	return slices.Contains([]string{"SizeInputMissing", "NodeCapUnknown"}, p.Kind)
}

// checkSizeInputs tells which inputs of size rules are not known, as a cycle by this person's rights finds them.
func (s *seen) checkSizeInputs() (all []Finding) {
	named := s.in.Config.Size.SizeInputs()
	if s.in.Config.Size.NodeCap.FromNodes != nil {
		named = append(named, "size.nodeCap")
	}
	if len(named) == 0 {
		return ok("no size rule has one")
	}
	for _, p := range s.out.Problems {
		if !ofSizeInputs(p) {
			continue
		}
		mend := "see docs/sizing.md for what it needs"
		if p.Kind == "NodeCapUnknown" || config.SourceOf(p.Subject) == config.FromNodesInput {
			mend = "install component size-nodes, by which the planner may list nodes"
		}
		all = append(all, Finding{Result: Warning, Message: fmt.Sprintf("%s: %s", p.Kind, p.Message), Mend: mend})
	}
	if len(all) == 0 {
		return ok("%s: nothing that they are read from is missing", joined(named))
	}
	return all
}
