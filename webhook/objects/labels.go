package objects

import "ballast/webhook/rawjson"

// Labels are an object's labels as a selector reads them.
type Labels rawjson.Node

// maxLabel is the length of the longest value of a label.
const maxLabel = 63

// Has reports whether there is a label.
func (l Labels) Has(label string) bool { return !rawjson.Node(l).Field(label).Absent() }

// Get is a label's value, empty where there is none.
func (l Labels) Get(label string) string { return rawjson.Node(l).Field(label).Text(maxLabel) }

// Lookup is both.
func (l Labels) Lookup(label string) (value string, exists bool) { return l.Get(label), l.Has(label) }
