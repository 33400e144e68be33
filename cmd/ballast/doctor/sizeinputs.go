package doctor

import (
	"fmt"
	"slices"

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/look"
	"ballast/planner/config"
	"ballast/planner/cycle/problem"
)

// ofSizeInputs reports whether a problem is of what size rules read.
func ofSizeInputs(p problem.Problem) bool {
	return slices.Contains([]string{"SizeInputMissing", "NodeCapUnknown"}, p.Kind)
}

// checkSizeInputs tells which inputs of size rules are not known, as a cycle by this person's rights finds them.
func checkSizeInputs(s *look.Seen) (all []finding.Finding) {
	named := s.In.Config.Size.SizeInputs()
	if s.In.Config.Size.NodeCap.FromNodes != nil {
		named = append(named, "size.nodeCap")
	}
	if len(named) == 0 {
		return finding.Well("no size rule has one")
	}
	for _, p := range s.Out.Problems {
		if !ofSizeInputs(p) {
			continue
		}
		mend := "see docs/sizing.md for what it needs"
		if p.Kind == "NodeCapUnknown" || config.SourceOf(p.Subject) == config.FromNodesInput {
			mend = "install component size-nodes, by which the planner may list nodes"
		}
		all = append(all, finding.Warning.With(fmt.Sprintf("%s: %s", p.Kind, p.Message), mend)...)
	}
	if len(all) == 0 {
		return finding.Well("%s: nothing that they are read from is missing", joined(named))
	}
	return all
}
