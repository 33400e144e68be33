package steer

import (
	"testing"
)

func TestEditsAreWrittenOnlyIfSomethingDiffers(t *testing.T) {
	a, b := "1", "2"
	stands := map[string]string{"a": "1", "empty": ""}
	empty := ""
	for name, test := range map[string]struct {
		change Edits
		want   bool
	}{
		"no change":                    {nil, false},
		"what stands":                  {Edits{"a": &a}, false},
		"another value":                {Edits{"a": &b}, true},
		"one that is not there":        {Edits{"b": &a}, true},
		"one to take away":             {Edits{"a": nil}, true},
		"one that is gone":             {Edits{"b": nil}, false},
		"an empty one as it stands":    {Edits{"empty": &empty}, false},
		"an empty one that is new":     {Edits{"b": &empty}, true},
		"an empty one, taken away":     {Edits{"empty": nil}, true},
		"one of several, and that one": {Edits{"a": &a, "b": &b}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.change.differ(stands); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
