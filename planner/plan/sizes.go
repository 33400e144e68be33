package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/printable"
)

// Resources are the requests and limits a container is held at; a nil *Resources is not ballast's.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// Same reports whether two sizes hold the same.
func (r Resources) Same(o Resources) bool {
	return maps.Equal(r.Requests, o.Requests) && maps.Equal(r.Limits, o.Limits)
}

// Empty reports whether it names no resource.
func (r Resources) Empty() bool { return len(r.Requests) == 0 && len(r.Limits) == 0 }

func (r Resources) clone() Resources {
	return Resources{Requests: maps.Clone(r.Requests), Limits: maps.Clone(r.Limits)}
}

// With is a container's resources with those of a size in their places. Others stay.
func (r Resources) With(size Resources) Resources {
	return Resources{Requests: overlaid(r.Requests, size.Requests), Limits: overlaid(r.Limits, size.Limits)}
}

func overlaid(values, over map[string]string) map[string]string {
	all := make(map[string]string, len(values)+len(over))
	maps.Copy(all, values)
	maps.Copy(all, over)
	return all
}

// Fitting is what of a size a container that asks for this can be given, and the resources whose request would be above
// their limit: Kubernetes refuses the whole write for one of them. Webhook and planner both ask here what of the plan a
// pod template can hold.
func (r Resources) Fitting(size Resources) (fits Resources, above []string) {
	sized, fits := r.With(size), size.clone()
	for _, name := range slices.Sorted(maps.Keys(overlaid(size.Requests, size.Limits))) {
		request, err := ReadQuantity(sized.Requests[name])
		if err != nil {
			continue
		}
		limit, err := ReadQuantity(sized.Limits[name])
		if err != nil || request.Cmp(limit) <= 0 {
			continue
		}
		delete(fits.Requests, name)
		delete(fits.Limits, name)
		above = append(above, name)
	}
	return fits, above
}

// Sizes are what the controller's container of each replica is held at in its pods, without the pod template
// (size.apply: inPlace); a nil *Sizes is not ballast's. The document has them by replica, each with its whole size, and
// as `default` that of a replica without one. Only the resources that a size names are held.
type Sizes struct {
	Default  Resources         // of a replica without one of its own, and of every pod of a Deployment
	Replicas map[int]Resources // by ordinal; StatefulSet only
}

func (s *Sizes) clone() *Sizes {
	if s == nil {
		return nil
	}
	c := &Sizes{Default: s.Default.clone(), Replicas: maps.Clone(s.Replicas)}
	for ordinal, size := range c.Replicas {
		c.Replicas[ordinal] = size.clone()
	}
	return c
}

// Same reports whether two plans' sizes hold the same.
func (s *Sizes) Same(o *Sizes) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Default.Same(o.Default) && maps.EqualFunc(s.Replicas, o.Replicas, Resources.Same)
}

// DefaultSize is the key of the size of replicas without one of their own.
const DefaultSize = "default"

// wire is the sizes as the document has them.
func (s *Sizes) wire() map[string]Resources {
	if s == nil {
		return nil
	}
	w := make(map[string]Resources, len(s.Replicas)+1)
	if !s.Default.Empty() {
		w[DefaultSize] = s.Default
	}
	for ordinal, size := range s.Replicas {
		w[strconv.Itoa(ordinal)] = size
	}
	return w
}

// sizesOf reads the sizes of a document. An ordinal is written in one way only.
func sizesOf(w map[string]Resources) (*Sizes, error) {
	if w == nil {
		return nil, nil
	}
	s := &Sizes{}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if key == DefaultSize {
			s.Default = w[key]
			continue
		}
		ordinal, ok := ParsePin(key)
		if !ok {
			return nil, fmt.Errorf("sizes[%s]: it is neither a replica nor %q", printable.Short(key), DefaultSize)
		}
		if s.Replicas == nil {
			s.Replicas = map[int]Resources{}
		}
		s.Replicas[ordinal] = w[key]
	}
	return s, nil
}

// validateSize bounds a container's size: what Kubernetes can change in a running pod, and no request above its limit.
func (r Resources) validateSize(of string, bad func(format string, args ...any)) {
	read := func(list string, values map[string]string) map[string]resource.Quantity {
		quantities := make(map[string]resource.Quantity, len(values))
		for _, name := range slices.Sorted(maps.Keys(values)) {
			q, err := ParseSize(name, values[name])
			if err != nil {
				bad("%s.%s: %v", of, list, err)
				continue
			}
			quantities[name] = q
		}
		return quantities
	}
	if n := len(r.Requests) + len(r.Limits); n > 2*len(mostSize) {
		bad("%s: it names %d resources, and only cpu and memory change in place", of, n)
		return
	}
	requests, limits := read("requests", r.Requests), read("limits", r.Limits)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		limit, limited := limits[name]
		if request := requests[name]; limited && request.Cmp(limit) > 0 {
			bad("%s: the request of %s is %s, above the limit %s", of, name, request.String(), limit.String())
		}
	}
}

// mostSize is the most of each resource that changes in a running pod: cores, and bytes.
var mostSize = map[string]int64{"cpu": 1_000_000, "memory": 1 << 50}

// sizeLetters bounds a quantity's text: the digits of an int64, and a suffix.
const sizeLetters = 20

// ParseSize reads how much of a resource a container may be held at: cpu in whole thousandths of a core, memory in
// whole bytes, each above 0, and written as Kubernetes itself writes it, so that the same size has the same text.
func ParseSize(name, text string) (resource.Quantity, error) {
	most, ok := mostSize[name]
	switch {
	case !ok:
		return resource.Quantity{}, fmt.Errorf("%s does not change in place: only cpu and memory do",
			printable.Short(name))
	case !plainQuantity(text):
		return resource.Quantity{}, fmt.Errorf("%s: %q is no quantity that is written like 1500m or 2Gi", name,
			printable.Short(text))
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return resource.Quantity{}, fmt.Errorf("%s: %q is no quantity", name, printable.Short(text))
	case q.String() != text:
		return resource.Quantity{}, fmt.Errorf("%s: %s is written %s", name, text, q.String())
	case q.Sign() <= 0 || q.CmpInt64(most) > 0:
		return resource.Quantity{}, fmt.Errorf("%s: %s is not above 0, and at most %d", name, text, most)
	case name != "cpu" && strings.HasSuffix(text, "m"):
		return resource.Quantity{}, fmt.Errorf("%s: %s is no whole number of bytes", name, text)
	}
	return q, nil
}

// plainQuantity bounds what the library is given to read: an exponent would make a number of any length.
func plainQuantity(text string) bool {
	digits := strings.TrimLeft(text, "0123456789")
	switch digits {
	case "", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi":
		return len(text) > len(digits) && len(text) <= sizeLetters
	}
	return false
}

// longQuantity is more than anybody writes: what the API server stores is shorter.
const longQuantity = 40

var errLongQuantity = errors.New("is longer than a quantity is, or has an exponent beyond 99")

// ReadQuantity reads what anybody may have written. The library takes any exponent, by which twelve letters are a
// number of two billion digits: comparing it takes minutes, and a gigabyte.
func ReadQuantity(text string) (resource.Quantity, error) {
	if len(text) > longQuantity {
		return resource.Quantity{}, errLongQuantity
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 2 {
		return resource.Quantity{}, errLongQuantity
	}
	return resource.ParseQuantity(text)
}
