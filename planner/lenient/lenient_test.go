package lenient

import (
	"encoding/json"
	"testing"
)

// TestAFieldOfAnotherTypeIsAbsent, and keeps no other from being read.
func TestAFieldOfAnotherTypeIsAbsent(t *testing.T) {
	for text, want := range map[string]int{
		`{"count":3,"name":"a"}`:          3,
		`{"count":0,"name":"a"}`:          0,
		`{"count":"3","name":"a"}`:        -1,
		`{"count":{"of":[3]},"name":"a"}`: -1,
		`{"count":1e30,"name":"a"}`:       -1,
		`{"name":"a"}`:                    -1,
	} {
		var got struct {
			Count Field[int]    `json:"count"`
			Name  Field[string] `json:"name"`
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Count.Or(-1) != want || got.Name.Or("") != "a" {
			t.Errorf("%s: count %d, want %d; name %q, %v", text, got.Count.Or(-1), want, got.Name.Or(""), err)
		}
	}
}
