package doctor

// unlisted tells which Applications the planner does not find, as the leader says it: it alone lists them with the planner's rights.
func (s *seen) unlisted() (all []Finding) {
	for _, p := range s.said.Problems {
		if p.Kind == "ApplicationsUnseen" {
			all = append(all, Finding{Result: Warning, Message: p.Kind + ": " + p.Message,
				Mend: "docs/rollouts.md, Applications in other namespaces"})
		}
	}
	return all
}
