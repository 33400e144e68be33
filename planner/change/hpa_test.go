package change

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"
	"time"
)

// hpaVector is one of testdata/hpa_behavior.json.gz: functions of Kubernetes v1.32.3, pkg/controller/podautoscaler, as executed.
type hpaVector struct {
	ID  string                            `json:"id"`
	Fn  string                            `json:"fn"`
	In  hpaIn                             `json:"in"`
	Out struct{ Limit, Stabilized int64 } `json:"out"`
}

type hpaIn struct {
	Current, Desired int64
	Policies         []struct {
		PeriodSeconds int
		Type          string
		Value         int
	}
	SelectPolicy              Select
	DownWindow                int `json:"scaleDown.stabilizationWindowSeconds"`
	UpWindow                  int `json:"scaleUp.stabilizationWindowSeconds"`
	Up, Down, Recommendations [][2]int64
}

// UnmarshalJSON also reads the names with a comma, which no tag can have.
func (in *hpaIn) UnmarshalJSON(data []byte) error {
	type plain hpaIn
	var lists map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, (*plain)(in)), json.Unmarshal(data, &lists)); err != nil {
		return err
	}
	for name, list := range map[string]*[][2]int64{"scaleUpEvents[ageSeconds,change]": &in.Up, "scaleDownEvents[ageSeconds,change]": &in.Down,
		"recommendations[ageSeconds,replicas]": &in.Recommendations} {
		if text, given := lists[name]; given {
			if err := json.Unmarshal(text, list); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestTheVectorsOfHPA(t *testing.T) {
	f, err := os.Open("testdata/hpa_behavior.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []hpaVector }
	if err := json.NewDecoder(unpacked).Decode(&file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Vectors {
		t.Run(v.ID, func(t *testing.T) {
			now := at(0)
			var paces []Pace
			for _, p := range v.In.Policies {
				pace := Pace{Period: time.Duration(p.PeriodSeconds) * time.Second}
				if p.Type == "Percent" {
					pace.Percent = p.Value
				} else {
					pace.Count = p.Value
				}
				paces = append(paces, pace)
			}
			var events []Event
			for _, e := range v.In.Up {
				events = append(events, Event{now.Unix() - e[0], int(e[1])})
			}
			for _, e := range v.In.Down {
				events = append(events, Event{now.Unix() - e[0], -int(e[1])})
			}
			switch v.Fn {
			case "calculateScaleUpLimitWithScalingRules":
				if got := MostOut(int(v.In.Current), paces, v.In.SelectPolicy, events, now); int64(got) != v.Out.Limit {
					t.Errorf("at most %d, want %d", got, v.Out.Limit)
				}
			case "calculateScaleDownLimitWithBehaviors":
				if got := LeastIn(int(v.In.Current), paces, v.In.SelectPolicy, events, now); int64(got) != v.Out.Limit {
					t.Errorf("at least %d, want %d", got, v.Out.Limit)
				}
			case "stabilizeRecommendationWithBehaviors":
				var wishes []Wish
				for _, r := range v.In.Recommendations {
					wishes = append(wishes, Wish{now.Unix() - r[0], r[1], r[1]})
				}
				up, down := time.Duration(v.In.UpWindow)*time.Second, time.Duration(v.In.DownWindow)*time.Second
				if got := Stabilize(v.In.Current, v.In.Desired, wishes, up, down, now); got != v.Out.Stabilized {
					t.Errorf("%d, want %d", got, v.Out.Stabilized)
				}
			default:
				t.Errorf("nothing of ours answers %s", v.Fn)
			}
		})
	}
}

func TestWithoutPacesNothingIsBounded(t *testing.T) {
	if out, in := MostOut(3, nil, "", nil, at(0)), LeastIn(3, nil, "", nil, at(0)); out != math.MaxInt || in != 0 {
		t.Errorf("between %d and %d", in, out)
	}
}
