package track

import "time"

// Spare is the highest replica, and for how long all that it has was seen to fit on the others.
type Spare struct {
	Replica int           `json:"replica,omitempty"`
	At      time.Time     `json:"at,omitzero"`
	For     time.Duration `json:"for,omitempty"`
}

// Next is with a look at that replica, which counts for no longer than longest.
func (s Spare) Next(replica int, now time.Time, longest time.Duration) Spare {
	if s.At.IsZero() || s.Replica != replica {
		return Spare{Replica: replica, At: now}
	}
	return Spare{Replica: replica, At: now, For: s.For + min(max(now.Sub(s.At), 0), longest)}
}
