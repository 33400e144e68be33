package probing

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWhatAWebhookPutBackIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := PutBack{Webhook: "w", Since: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), Others: rapid.IntRange(0, 9).Draw(t, "others")}
		all := p.Others
		for i := range rapid.IntRange(0, 2*MostUsers).Draw(t, "users") {
			u := UserWrites{User: fmt.Sprint("u", i), PutBack: rapid.IntRange(0, 9).Draw(t, "put back"), Refused: rapid.IntRange(0, 9).Draw(t, "refused"), Last: p.Since}
			p.Users, all = append(p.Users, u), all+u.PutBack+u.Refused
		}
		got, ok := ParsePutBack(p.Encode())
		if !ok || len(got.Users) != min(len(p.Users), MostUsers) {
			t.Fatalf("%t, %d users of %d", ok, len(got.Users), len(p.Users))
		}
		sum := got.Others
		for i, u := range got.Users {
			sum += u.PutBack + u.Refused
			if i > 0 && got.Users[i-1].PutBack+got.Users[i-1].Refused < u.PutBack+u.Refused {
				t.Fatalf("%v is not sorted", got.Users)
			}
		}
		if sum != all {
			t.Fatalf("%d writes of %d", sum, all)
		}
	})
}

// The longest names, of characters that JSON writes as six bytes each, are read as they were written.
func TestTheLongestNamesOfUsersAreRead(t *testing.T) {
	last := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	p := PutBack{Webhook: strings.Repeat("<", maxNonce), Since: last, Others: math.MaxInt32}
	for i := range MostUsers {
		name := fmt.Sprintf("%02d", i) + strings.Repeat("<", MaxUser-2)
		p.Users = append(p.Users, UserWrites{User: name, PutBack: math.MaxInt32, Refused: math.MaxInt32, Last: last})
	}
	got, ok := ParsePutBack(p.Encode())
	if diff := cmp.Diff(p, got); !ok || diff != "" {
		t.Errorf("of %d bytes %t (-want +got):\n%s", len(p.Encode()), ok, diff)
	}
	if _, ok := ParsePutBack(p.Encode() + strings.Repeat(" ", maxPutBack)); ok {
		t.Error("an answer without end is read")
	}
}

func FuzzParsePutBack(f *testing.F) {
	f.Add(PutBack{Webhook: "w", Users: []UserWrites{{User: "alice", PutBack: 3}}}.Encode())
	for _, s := range []string{"", "{", `{"webhook":""}`, `{"webhook":"w","others":-1}`, `{"webhook":"w","users":[{"user":"a","putBack":-1}]}`, "asked", "null"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := ParsePutBack(text)
		if !ok {
			return
		}
		again, ok := ParsePutBack(p.Encode())
		SortUsers(p.Users)
		if diff := cmp.Diff(p.Users, again.Users); ok && diff != "" {
			t.Errorf("(-once +again):\n%s", diff)
		}
	})
}
