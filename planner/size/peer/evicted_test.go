package peer

// Evicted is an eviction as an event: the pod has that reason now, and had it not.
func Evicted(before, after string) bool { return after == "Evicted" && before != "Evicted" }
