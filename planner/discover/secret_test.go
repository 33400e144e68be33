package discover

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseShardReadsAsArgoCDDoes(t *testing.T) {
	tests := map[string]ShardValue{
		"0": {State: ShardValid}, "7": valid(7), "999999": valid(999_999), "+1": valid(1), "007": valid(7), "-0": {State: ShardValid},
		"": {State: ShardInvalid}, " 1": {State: ShardInvalid}, "1 ": {State: ShardInvalid}, "1\n": {State: ShardInvalid},
		"0x1": {State: ShardInvalid}, "1.0": {State: ShardInvalid}, "1_0": {State: ShardInvalid}, "abc": {State: ShardInvalid},
		"99999999999999999999": {State: ShardInvalid},
		"-1":                   {State: ShardNegative}, "-99999999": {State: ShardNegative},
		"1000000": {State: ShardTooLarge}, "4294967296": {State: ShardTooLarge},
	}
	for raw, want := range tests {
		t.Run(raw, func(t *testing.T) {
			if diff := cmp.Diff(want, ParseShard([]byte(raw))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(ShardValue{}, ParseShard(nil)); diff != "" {
		t.Errorf("no data.shard (-want +got):\n%s", diff)
	}
}

func FuzzParseShard(f *testing.F) {
	for _, seed := range []string{"0", "-1", " 1", "0x1", "4294967296", "999999", "1000000", "eyJhbGciOi"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := ParseShard(raw)
		n, err := strconv.Atoi(string(raw))
		if (got.State == ShardValid) != (raw != nil && err == nil && n >= 0 && n <= maxShard) {
			t.Errorf("%q is %q", raw, got.State)
		}
		if got.State == ShardValid && got.N != n || got.State != ShardValid && got.N != 0 {
			t.Errorf("%q is %d", raw, got.N)
		}
	})
}
