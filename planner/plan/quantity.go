package plan

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// longQuantity is more than anybody writes: what the API server stores is shorter.
const longQuantity = 40

var errLongQuantity = errors.New("is longer than a quantity is, or has an exponent beyond 99")

// ReadQuantity reads what anybody may have written. The library takes any exponent, by which twelve letters are a number of two
// billion digits: comparing it takes minutes, and a gigabyte.
func ReadQuantity(text string) (resource.Quantity, error) {
	if len(text) > longQuantity {
		return resource.Quantity{}, errLongQuantity
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 2 {
		return resource.Quantity{}, errLongQuantity
	}
	return resource.ParseQuantity(text)
}
