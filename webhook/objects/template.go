package objects

import (
	"encoding/binary"
	"hash/maphash"

	"ballast/planner/plan"
	"ballast/webhook/rawjson"
)

// SameTemplate reports whether two workloads' pod templates are the same, whatever they say of
// ARGOCD_CONTROLLER_REPLICAS and, where that is asked, of resources. Neither the order of keys nor white space makes
// them differ.
//
// It goes by sums of 64 bits, which nobody can aim at: their seed is another one each time. Two templates that differ
// are taken for the same once in 2^64 times, and then the env waits for the next change.
func SameTemplate(a, b Workload, withoutResources bool) bool {
	t := templates{seed: maphash.MakeSeed(), withoutResources: withoutResources}
	return t.template(a.template) == t.template(b.template)
}

// deepest is how deep a template is read, well below any field of a pod: what is deeper is compared byte by byte, in
// the order and with the white space that it has. Each level costs a pass over the bytes, of which whoever reaches the
// port may send 27 MiB.
const deepest = 16

// templates sum up pod templates. Equal values have equal sums.
type templates struct {
	seed             maphash.Seed
	withoutResources bool
}

// piece is the sum of a kind of value, of text and of the sum of what it is made of.
func (t templates) piece(kind byte, text []byte, of uint64) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	var head [9]byte
	head[0] = kind
	binary.BigEndian.PutUint64(head[1:], of)
	h.Write(head[:])
	h.Write(text)
	return h.Sum64()
}

// value is the sum of whatever there is.
func (t templates) value(n rawjson.Node, depth int) uint64 {
	switch {
	case depth == 0:
	case n.Kind() == '{':
		var all uint64
		for key, v := range n.Members {
			all += t.piece('m', key, t.value(v, depth-1)) // in whatever order they come
		}
		return t.piece('o', nil, all)
	case n.Kind() == '[':
		var all uint64
		for _, v := range n.Members {
			all = t.piece('l', nil, all+t.value(v, depth-1))
		}
		return t.piece('a', nil, all)
	}
	return t.piece('v', n, 0)
}

func (t templates) template(n rawjson.Node) uint64 {
	if n.Kind() != '{' {
		return t.value(n, deepest)
	}
	var all uint64
	for key, v := range n.Members {
		if key.Is("spec") && v.Kind() == '{' {
			all += t.piece('m', key, t.spec(v))
			continue
		}
		all += t.piece('m', key, t.value(v, deepest))
	}
	return all
}

func (t templates) spec(n rawjson.Node) (all uint64) {
	for key, v := range n.Members {
		if !key.Is("containers") || v.Kind() != '[' {
			all += t.piece('m', key, t.value(v, deepest))
			continue
		}
		var list uint64
		for _, container := range v.Members {
			list = t.piece('l', nil, list+t.container(container))
		}
		all += t.piece('m', key, t.piece('a', nil, list))
	}
	return t.piece('o', nil, all)
}

func (t templates) container(n rawjson.Node) (all uint64) {
	if n.Kind() != '{' {
		return t.value(n, deepest)
	}
	for key, v := range n.Members {
		switch {
		case key.Is("resources") && t.withoutResources:
		case key.Is("env") && v.Kind() == '[':
			all += t.env(key, v)
		default:
			all += t.piece('m', key, t.value(v, deepest))
		}
	}
	return t.piece('o', nil, all)
}

// env leaves out the one entry; one that has nothing else counts for nothing, since ballast may have made it.
func (t templates) env(key, list rawjson.Node) (all uint64) {
	others := false
	for _, entry := range list.Members {
		if !entry.Field("name").Is(plan.EnvReplicas) {
			all, others = t.piece('l', nil, all+t.value(entry, deepest)), true
		}
	}
	if !others {
		return 0
	}
	return t.piece('m', key, t.piece('a', nil, all))
}
