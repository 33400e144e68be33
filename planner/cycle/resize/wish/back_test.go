package wish

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Whatever is gone back to, no request is above its limit or the cap, no memory limit below what is in use, and nothing is named
// that the rules do not name.
func TestWhatIsGoneBackToIsASize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.Map(rapid.Int64Range(1, 64), func(n int64) string {
			return quantity.Text(size.Memory, *resource.NewQuantity(n<<28, resource.BinarySI))
		})
		draw := func(name string) plan.Resources {
			r := plan.Resources{Requests: map[string]string{}, Limits: map[string]string{}}
			for _, list := range []map[string]string{r.Requests, r.Limits} {
				for _, kind := range []string{size.CPU, size.Memory} {
					if rapid.Bool().Draw(t, name) {
						list[kind] = drawn.Draw(t, name)
					}
				}
			}
			return r
		}
		then, wanted := draw("then"), draw("wanted")
		used := rapid.Int64Range(0, 32<<30).Draw(t, "used")
		most := *resource.NewQuantity(rapid.Int64Range(1, 64).Draw(t, "most")<<28, resource.BinarySI)
		got := backTo(quantity.Of(&then), quantity.Of(&wanted), used, map[string]resource.Quantity{size.Memory: most})
		for name, request := range got.Requests {
			limit, limited := got.Limits[name]
			if limited && request.Cmp(limit) > 0 {
				t.Fatalf("%s: request %s, limit %s", name, request.String(), limit.String())
			}
			if _, named := wanted.Requests[name]; !named || name == size.Memory && request.Cmp(most) > 0 {
				t.Fatalf("%s requests %s, cap %s", name, request.String(), most.String())
			}
		}
		for name, limit := range got.Limits {
			enough := used
			if beyond := used - most.Value(); beyond > 0 && beyond < size.FloorStep { // the cap may have been rounded down by as much
				enough = most.Value()
			}
			if _, named := wanted.Limits[name]; !named || name == size.Memory && limit.CmpInt64(enough) < 0 {
				t.Fatalf("%s: limit %s, in use %d", name, limit.String(), used)
			}
		}
	})
}
