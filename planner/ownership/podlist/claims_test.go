package podlist

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
)

func TestClaimsAreReadAsArgoCDWritesThem(t *testing.T) {
	beat := time.Date(2026, 3, 1, 11, 59, 55, 0, time.UTC)
	for name, test := range map[string]struct {
		text string
		want []Claim
		err  string
	}{
		"not written yet": {"", nil, ""},
		"no slots":        {"[]", nil, ""},
		"nothing":         {"null", nil, ""},
		"as Argo CD writes it": {
			`[{"ShardNumber":0,"ControllerName":"ac-5d9f7-abcde","HeartbeatTime":"2026-03-01T11:59:55Z"},{"ShardNumber":1,"ControllerName":"","HeartbeatTime":null}]`,
			[]Claim{{Shard: 0, Controller: "ac-5d9f7-abcde", Heartbeat: beat}, {Shard: 1}}, "",
		},
		"another time zone":    {`[{"ShardNumber":2,"ControllerName":"a","HeartbeatTime":"2026-03-01T13:59:55+02:00"}]`, []Claim{{Shard: 2, Controller: "a", Heartbeat: beat}}, ""},
		"a field more":         {`[{"ShardNumber":2,"ControllerName":"a","HeartbeatTime":"2026-03-01T11:59:55Z","Zone":"b"}]`, []Claim{{Shard: 2, Controller: "a", Heartbeat: beat}}, ""},
		"a time that is none":  {`[{"ShardNumber":2,"ControllerName":"a","HeartbeatTime":"0001-01-01T00:00:00Z"}]`, []Claim{{Shard: 2, Controller: "a"}}, ""},
		"no list":              {`{"ShardNumber":0}`, nil, "reading shardControllerMapping: json: cannot unmarshal object"},
		"cut off":              {`[{"ShardNumber":0},`, nil, "reading shardControllerMapping: unexpected end"},
		"more behind it":       {`[] []`, nil, "invalid character"},
		"one entry is null":    {`[{"ShardNumber":0,"ControllerName":"a"}, null ]`, []Claim{{Shard: 0, Controller: "a"}}, "entry 1: it is null"},
		"one shard is a word":  {`[{"ShardNumber":"0"},{"ShardNumber":1,"ControllerName":"b"}]`, []Claim{{Shard: 1, Controller: "b"}}, "entry 0: json: cannot unmarshal string"},
		"one shard is halved":  {`[{"ShardNumber":1.5},{"ShardNumber":1}]`, []Claim{{Shard: 1}}, "entry 0: json: cannot unmarshal number 1.5"},
		"a shard is missing":   {`[{"ControllerName":"a"},{"ShardNumber":1}]`, []Claim{{Shard: 1}}, "entry 0: ShardNumber is not a replica's number"},
		"a shard below 0":      {`[{"ShardNumber":-1,"ControllerName":"a"},{"ShardNumber":1}]`, []Claim{{Shard: 1}}, "entry 0: ShardNumber is not a replica's number"},
		"a shard out of reach": {`[{"ShardNumber":10000},{"ShardNumber":9999}]`, []Claim{{Shard: 9999}}, "entry 0: ShardNumber is not a replica's number"},
		"a time in words":      {`[{"ShardNumber":0,"HeartbeatTime":"now"},{"ShardNumber":1}]`, []Claim{{Shard: 1}}, "entry 0: parsing time"},
		"a shard twice":        {`[{"ShardNumber":0,"ControllerName":"a"},{"ShardNumber":0,"ControllerName":"b"}]`, []Claim{{Controller: "a"}, {Controller: "b"}}, "entry 1: shard 0 is listed twice"},
		"more than replicas":   {"[" + strings.Repeat("0,", maxClaims) + "0]", nil, "it has 10001 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseClaims(test.text)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got the error %v, want one that says %q", err, test.err)
			}
		})
	}
}

func TestOnlyTheFirstBadClaimsAreNamed(t *testing.T) {
	claims, err := ParseClaims("[" + strings.Repeat(`{"ShardNumber":-1},`, 100) + `{"ShardNumber":4}]`)
	if diff := cmp.Diff([]Claim{{Shard: 4}}, claims); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := make([]string, 5)
	for i := range want {
		want[i] = fmt.Sprintf("reading shardControllerMapping: entry %d: ShardNumber is not a replica's number", i)
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzClaims holds: what is read is within bounds, and reads the same once it is written as Argo CD writes it.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[]", "[null]", `[{"ShardNumber":0,"ControllerName":"a","HeartbeatTime":"2026-03-01T11:59:55Z"},{"ShardNumber":1,"ControllerName":"","HeartbeatTime":null}]`,
		`[{"ShardNumber":-1}]`, `[{"shardnumber":3,"HEARTBEATTIME":"2026-03-01T11:59:55.5+02:00"}]`, `[{"ShardNumber":1e3}]`, `[{"ShardNumber":0},{"ShardNumber":0}]`, `[[]]`, `{"a":1}`,
		`[{"ShardNumber":0,"HeartbeatTime":"9999-12-31T23:59:59Z"}]`, `[{"ShardNumber":0,"HeartbeatTime":"9999-12-31T23:59:59-12:00"}]`, `[{"ShardNumber":0,"HeartbeatTime":"1969-12-31T23:59:59Z"}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		claims, err := ParseClaims(text)
		type entry struct {
			ShardNumber    int
			ControllerName string
			HeartbeatTime  *time.Time
		}
		written := make([]entry, len(claims))
		twice := map[int]bool{}
		for i, c := range claims {
			if c.Shard < 0 || c.Shard >= maxClaims || twice[c.Shard] && err == nil {
				t.Fatalf("shard %d was read from %q with the error %v", c.Shard, text, err)
			}
			twice[c.Shard] = true
			written[i] = entry{c.Shard, c.Controller, nil}
			if !c.Heartbeat.IsZero() {
				written[i].HeartbeatTime = &c.Heartbeat
			}
		}
		again, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		if read, _ := ParseClaims(string(again)); len(claims) > 0 && !cmp.Equal(claims, read) {
			t.Errorf("%q reads as %v, and written again as %v", text, claims, read)
		}
	})
}

// TestNoProbeMakesAControllerSilentForDays, whatever the pod template says.
func TestNoProbeMakesAControllerSilentForDays(t *testing.T) {
	for probe, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, 10 * time.Second: 30 * time.Second, time.Minute: 3 * time.Minute, 5 * time.Minute: 15 * time.Minute,
		time.Hour: 15 * time.Minute, math.MaxInt32 * time.Second: 15 * time.Minute,
	} {
		p := Patience{Heartbeat: defaultHeartbeat, Probe: probe}
		if got := p.Silence(); got != want {
			t.Errorf("a probe every %s: %s of silence, want %s", probe, got, want)
		}
		if claim := (Claim{Heartbeat: noon()}); claim.fresh(p, noon().Add(15*time.Minute)) {
			t.Errorf("a probe every %s: fresh after 15 minutes", probe)
		}
	}
}

func TestASlotStandsAsItsControllerDoes(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon().Add(-d) }
	c := Controllers{
		Dynamic:  true,
		Patience: Patience{Heartbeat: 10 * time.Second, Probe: 15 * time.Second},
		Claims: []Claim{
			{Shard: 3, Controller: "d", Heartbeat: ago(46 * time.Second)},
			{Shard: 0, Controller: "a", Heartbeat: ago(44 * time.Second)},
			{Shard: 2, Controller: "never", Heartbeat: time.Time{}},
			{Shard: 1, Controller: "left", Heartbeat: ago(time.Second)},
			{Shard: 5, Controller: "ahead", Heartbeat: ago(-2 * time.Second)},
			{Shard: 6, Controller: "far", Heartbeat: ago(-time.Hour)},
			{Shard: 7},
		},
	}
	for _, name := range []string{"a", "d", "never", "ahead", "far"} {
		c.Pods = append(c.Pods, running(name))
	}
	got := c.Slots(5, noon())
	want := []observed.Slot{
		{Shard: 0, State: observed.SlotHeld, Controller: "a", Silence: 44 * time.Second},
		{Shard: 1, State: observed.SlotGone, Controller: "left", Silence: time.Second},
		{Shard: 2, State: observed.SlotSilent, Controller: "never"},
		{Shard: 3, State: observed.SlotSilent, Controller: "d", Silence: 46 * time.Second},
		{Shard: 4, State: observed.SlotFree},
		{Shard: 5, State: observed.SlotHeld, Controller: "ahead"},
		{Shard: 6, State: observed.SlotSilent, Controller: "far"},
		{Shard: 7, State: observed.SlotFree},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := Healthy(got); n != 2 {
		t.Errorf("%d slots are held, want 2", n)
	}
}

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func running(name string) observed.Controller {
	return observed.Controller{Pod: observed.Pod{Name: name, Ready: true}, Running: true}
}
