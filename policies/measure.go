package policies

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// measure takes the values in v from left and checks their numbers.
func measure(v ast.Value, left *int) error {
	if *left--; *left < 0 {
		return fmt.Errorf("an argument of more than %d values", ValuesMax)
	}
	if n, ok := v.(ast.Number); ok {
		return checkNumber(string(n))
	}
	var err error
	each(v, func(t *ast.Term) {
		if err == nil {
			err = measure(t.Value, left)
		}
	})
	return err
}

// each visits the elements of a composite, and the keys of an object before
// their values.
func each(v ast.Value, visit func(*ast.Term)) {
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(visit)
	case ast.Set:
		v.Foreach(visit)
	case ast.Object:
		v.Foreach(func(k, e *ast.Term) {
			visit(k)
			visit(e)
		})
	}
}

// checkNumber refuses a number that has more than DigitsMax digits when it is
// written without exponent.
func checkNumber(n string) error {
	digits := len(n)
	if at := strings.IndexAny(n, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(n[at+1:])
		if err != nil || exponent > DigitsMax || exponent < -DigitsMax {
			return fmt.Errorf("the number %.40s has more than %d digits", n, DigitsMax)
		}
		digits += max(exponent, -exponent)
	}
	if digits > DigitsMax {
		return fmt.Errorf("the number %.40s has more than %d digits", n, DigitsMax)
	}
	return nil
}

// textBytes is about how long a value is as text.
func textBytes(v ast.Value) (int, error) {
	left := ValuesMax
	if err := measure(v, &left); err != nil {
		return 0, err
	}
	total := 0
	var add func(v ast.Value)
	add = func(v ast.Value) {
		switch s := v.(type) {
		case ast.String:
			total += len(s) + 2
		case ast.Number:
			total += len(s) + 2
		default:
			total += 8
			each(v, func(t *ast.Term) { add(t.Value) })
		}
	}
	add(v)
	return total, nil
}

const termBytes = 64 // of memory, of an element of a composite

// shallowBytes is about how much memory a result has of its own.
func shallowBytes(v ast.Value) int {
	switch v := v.(type) {
	case ast.String:
		return len(v)
	case ast.Number:
		return len(v)
	case *ast.Array:
		return v.Len() * termBytes
	case ast.Set:
		return v.Len() * 2 * termBytes
	case ast.Object:
		return v.Len() * 3 * termBytes
	}
	return 0
}
