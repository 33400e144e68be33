package patchable

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestManagersAreForgottenByNumberAndByBytes(t *testing.T) {
	some := func(n, bytes int) (found []metav1.ManagedFieldsEntry) {
		for range n {
			found = append(found, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", bytes))})
		}
		return found
	}
	for name, test := range map[string]struct {
		found   []metav1.ManagedFieldsEntry
		forgets bool
	}{
		"none": {nil, false}, "64": {some(64, 100), false}, "65": {some(65, 0), true}, "without fields": {make([]metav1.ManagedFieldsEntry, 2), false},
		"64 KiB": {some(2, 32<<10), false}, "a byte more": {some(1, 64<<10+1), true}, "ten of 116 KB": {some(10, 116_000), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FewManagers(test.found); (got != nil) != test.forgets || len(got) > 1 {
				t.Errorf("%v, want that they are forgotten: %t", got, test.forgets)
			}
		})
	}
}

// TestATimeThatJSONDoesNotHaveIsForgotten: exactly those that the API server writes and cannot read back.
func TestATimeThatJSONDoesNotHaveIsForgotten(t *testing.T) {
	zone := func(year int, month time.Month, day, hour, offset int) time.Time {
		return time.Date(year, month, day, hour, 0, 0, 0, time.FixedZone("", offset*60*60))
	}
	for name, at := range map[string]time.Time{
		"today": zone(2026, 8, 1, 12, 0), "no time": {}, "the last hour": zone(9999, 12, 31, 23, 0), "its zone's last hour": zone(9999, 12, 31, 23, 1),
		"the last hour, west of it": zone(9999, 12, 31, 23, -12), "300,000": zone(300_000, 1, 1, 0, 0), "the end of all": time.Unix(1<<62, 0),
		"the first hour": zone(0, 1, 1, 0, 0), "the first hour, east of it": zone(0, 1, 1, 0, 12), "before Christ": zone(-44, 3, 15, 12, 0),
	} {
		t.Run(name, func(t *testing.T) {
			written, err := json.Marshal(metav1.NewTime(at))
			if err != nil {
				t.Fatal(err)
			}
			unread := json.Unmarshal(written, &metav1.Time{}) != nil
			got := FewManagers([]metav1.ManagedFieldsEntry{{}, {Time: &metav1.Time{Time: at}}}) != nil
			if within, err := json.Marshal(WithinJSON(at)); err != nil || json.Unmarshal(within, &metav1.Time{}) != nil {
				t.Errorf("within JSON it is %s, %v", within, err)
			}
			if !unread && !WithinJSON(at).Equal(at) {
				t.Errorf("%s became %s", at, WithinJSON(at))
			}
			if got != unread {
				t.Errorf("forgotten: %t, and the API server reads %s: %t", got, written, !unread)
			}
		})
	}
}
