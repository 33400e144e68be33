package webhook

import (
	"ballast/webhook/inforce"
	"ballast/webhook/rawjson"
)

// leavesOut reports whether an object is none of the Secrets that the planner takes for clusters.
func leavesOut(s *inforce.State, object rawjson.Node) bool {
	return s != nil && s.Selector != nil && !object.Absent() && !s.Selector.Matches(labelsOf(object.Field("metadata").Field("labels")))
}

// groupsOf are the plan's groups that an object's labels put it in.
func groupsOf(s *inforce.State, object rawjson.Node) []string {
	if s == nil || s.Arrivals == nil || object.Absent() {
		return nil
	}
	return s.Arrivals.Groups(labelsOf(object.Field("metadata").Field("labels")))
}

// labelsOf are an object's labels as a selector reads them.
type labelsOf rawjson.Node

// maxLabel is the length of the longest value of a label.
const maxLabel = 63

// Has reports whether there is a label.
func (l labelsOf) Has(label string) bool { return !rawjson.Node(l).Field(label).Absent() }

// Get is a label's value, empty where there is none.
func (l labelsOf) Get(label string) string { return rawjson.Node(l).Field(label).Text(maxLabel) }

// Lookup is both.
func (l labelsOf) Lookup(label string) (value string, exists bool) { return l.Get(label), l.Has(label) }
