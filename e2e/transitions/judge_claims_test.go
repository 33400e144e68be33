package transitions

import "testing"

// TestAJudgeSeesWhatMustNotBe: pods 0 and 1 run; what is wrong is said, and what may be is not.
func TestAJudgeSeesWhatMustNotBe(t *testing.T) {
	told := func(pod0, pod1 int) map[int][]int { return map[int][]int{0: {pod0}, 1: {pod1}} }
	for name, tc := range map[string]struct {
		claim  claim
		owners []int
		want   string
	}{
		"one owner, as all were told":          {claim{told(1, 1), true, []int{1}}, []int{1}, ""},
		"nobody while its pod starts again":    {claim{map[int][]int{0: {1}}, true, nil}, nil, ""},
		"on its way, nobody":                   {claim{told(1, 0), false, nil}, nil, ""},
		"on its way, both":                     {claim{told(0, 1), false, nil}, []int{0, 1}, ""},
		"twins on their way, either":           {claim{map[int][]int{0: {0, 1}, 1: {0, 1}}, false, nil}, []int{0}, ""},
		"its owner dropped it":                 {claim{told(1, 1), true, []int{1}}, nil, "pod 1 does not own it, and was told that it does"},
		"another one took it besides":          {claim{told(1, 1), true, []int{1}}, []int{0, 1}, "pod 0 owns it, and was told that [1] does"},
		"another one took it on its way":       {claim{told(1, 2), false, nil}, []int{0}, "pod 0 owns it, and was told that [1] does"},
		"one that does not run":                {claim{map[int][]int{0: {1}}, true, nil}, []int{1}, "pod 1 owns it and does not run"},
		"its owner is gone and is to be there": {claim{map[int][]int{0: {1}}, true, []int{1}}, nil, "every pod was told the same, and [] own it instead of [1]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.claim.judge(tc.owners); got != tc.want {
				t.Errorf("the judge says %q, want %q", got, tc.want)
			}
		})
	}
}
