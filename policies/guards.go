package policies

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Limits of one call of a builtin. Together with BuiltinBytesMax they keep what
// an evaluation makes within its memory, since a builtin does not stop at the
// evaluation's deadline.
const (
	StringBytesMax   = 8 << 20 // a string that a builtin makes
	DocumentBytesMax = 1 << 20 // a string that is parsed, split or searched by pattern
	ElementsMax      = 100_000 // elements of a range
	ValuesMax        = 1 << 19 // values in a composite argument, counted as often as they can be reached
	ShiftBitsMax     = 1 << 16 // of bits.lsh
	DigitsMax        = 10_000  // of a number, written without exponent
	WidthMax         = 1000    // of a verb of sprintf
)

// guard refuses arguments that would make a builtin do too much.
type guard func(args []*ast.Term) error

// guards returns the guard of every builtin that can make more than it was
// given, or whose work does not stop at a deadline.
func guards() map[string]guard {
	all := map[string]guard{
		"bits.lsh":                 guardShift,
		"numbers.range":            guardRange,
		"numbers.range_step":       guardRange,
		"concat":                   guardConcat,
		"sprintf":                  guardSprintf,
		"replace":                  guardReplace,
		"strings.replace_n":        guardReplaceN,
		"regex.replace":            both(documents, guardRegexReplace),
		"internal.template_string": guardTemplate,
	}
	for names, check := range map[string]guard{
		`abs ceil div floor format_int minus mul plus rem round bits.and bits.negate bits.or bits.rsh bits.xor product sum max min
		sort equal neq lt lte gt gte json.marshal yaml.marshal json.filter json.patch json.remove object.union object.union_n
		object.filter object.remove object.subset array.flatten and or union intersection set_diff cast_set
		internal.member_2 internal.member_3 urlquery.encode_object graph.reachable`: values,
		`json.unmarshal yaml.unmarshal json.is_valid yaml.is_valid to_number units.parse units.parse_bytes split strings.split_n
		regex.split regex.find_n regex.find_all_string_submatch_n regex.match regex.is_valid re_match glob.match indexof_n
		urlquery.decode_object uri.parse semver.compare`: documents,
	} {
		for _, name := range strings.Fields(names) {
			all[name] = check
		}
	}
	return all
}

func both(a, b guard) guard {
	return func(args []*ast.Term) error {
		if err := a(args); err != nil {
			return err
		}
		return b(args)
	}
}

func guardShift(args []*ast.Term) error {
	if err := values(args); err != nil {
		return err
	}
	if shift, ok := args[1].Value.(ast.Number); ok {
		if n, ok := shift.Int(); !ok || n > ShiftBitsMax {
			return fmt.Errorf("a shift by %.40s bits is more than the %d allowed", string(shift), ShiftBitsMax)
		}
	}
	return nil
}

func guardRange(args []*ast.Term) error {
	if err := values(args); err != nil {
		return err
	}
	var bound [3]*big.Int
	bound[2] = big.NewInt(1)
	for i, a := range args[:min(len(args), 3)] {
		n, ok := a.Value.(ast.Number)
		if !ok {
			return nil // OPA says what is wrong with it
		}
		if bound[i], ok = new(big.Int).SetString(string(n), 10); !ok {
			return nil
		}
	}
	if bound[2].Sign() <= 0 {
		return nil
	}
	n := new(big.Int).Sub(bound[1], bound[0])
	n.Quo(n.Abs(n), bound[2])
	if n.Cmp(big.NewInt(ElementsMax)) >= 0 {
		return fmt.Errorf("a range of more than %d numbers", ElementsMax)
	}
	return nil
}

func guardConcat(args []*ast.Term) error {
	separator, ok := args[0].Value.(ast.String)
	if !ok {
		return nil
	}
	total := 0
	each(args[1].Value, func(t *ast.Term) {
		s, _ := t.Value.(ast.String)
		total += len(s) + len(separator)
	})
	return makes(total)
}

func guardReplace(args []*ast.Term) error {
	s, ok1 := args[0].Value.(ast.String)
	from, ok2 := args[1].Value.(ast.String)
	to, ok3 := args[2].Value.(ast.String)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	return makes(len(s) + strings.Count(string(s), string(from))*len(to))
}

func guardReplaceN(args []*ast.Term) error {
	patterns, ok1 := args[0].Value.(ast.Object)
	s, ok2 := args[1].Value.(ast.String)
	if !ok1 || !ok2 {
		return nil
	}
	if patterns.Len() > 0 && len(s) > DocumentBytesMax*16/patterns.Len() {
		return fmt.Errorf("%d patterns over %d bytes", patterns.Len(), len(s))
	}
	total := len(s)
	patterns.Foreach(func(from, to *ast.Term) {
		f, _ := from.Value.(ast.String)
		t, _ := to.Value.(ast.String)
		total += strings.Count(string(s), string(f)) * len(t)
	})
	return makes(total)
}

func guardRegexReplace(args []*ast.Term) error {
	s, ok1 := args[0].Value.(ast.String)
	to, ok2 := args[2].Value.(ast.String)
	if !ok1 || !ok2 {
		return nil
	}
	// The matches together are no longer than s, and there are at most len(s)+1.
	return makes(len(s)*(1+strings.Count(string(to), "$")) + (len(s)+1)*len(to))
}

func guardTemplate(args []*ast.Term) error {
	n, err := textBytes(args[0].Value)
	if err != nil {
		return err
	}
	return makes(n)
}

// guardSprintf estimates the result from above: each verb prints at most its
// argument, or the longest one where the format chooses, times what escaping
// can add.
func guardSprintf(args []*ast.Term) error {
	format, ok1 := args[0].Value.(ast.String)
	operands, ok2 := args[1].Value.(*ast.Array)
	if !ok1 || !ok2 {
		return nil
	}
	f, err := scanFormat(string(format))
	if err != nil {
		return err
	}
	sum, longest := 0, 0
	for i := range operands.Len() {
		n, err := textBytes(operands.Elem(i).Value)
		if err != nil {
			return err
		}
		n += argumentBytes
		sum, longest = sum+n, max(longest, n)
	}
	return makes(f.estimate(len(format), sum, longest))
}

const (
	escapedBytesMax = 12  // what one byte of an argument can become under %q or %x
	argumentBytes   = 32  // what is said of an argument that no verb asks for
	verbBytes       = 512 // what a verb prints beside a string: a float, %!d(...)
)

type format struct {
	verbs, padding   int
	chooses, escapes bool
}

// estimate is the most a format prints over arguments of sum bytes.
func (f format) estimate(text, sum, longest int) int {
	if f.chooses {
		sum = f.verbs * longest
	}
	if f.escapes {
		sum *= escapedBytesMax
	}
	return text + f.padding + f.verbs*verbBytes + sum
}

func scanFormat(text string) (format, error) {
	var f format
	for {
		at := strings.IndexByte(text, '%')
		if at < 0 {
			return f, nil
		}
		text = text[at+1:]
		f.verbs++
		end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("+-# 0123456789.[]*", r) })
		if end < 0 {
			end = len(text)
		}
		flags := text[:end]
		if strings.Contains(flags, "*") {
			return f, fmt.Errorf("a format whose width is an argument (%%*)")
		}
		f.chooses = f.chooses || strings.Contains(flags, "[")
		for _, digits := range strings.FieldsFunc(flags, func(r rune) bool { return r < '0' || r > '9' }) {
			width, err := strconv.Atoi(digits)
			if err != nil || width > WidthMax {
				return f, fmt.Errorf("a width of %.20s in a format; at most %d is allowed", digits, WidthMax)
			}
			f.padding += width
		}
		f.escapes = f.escapes || end < len(text) && !strings.ContainsRune("svdtfge%", rune(text[end]))
		text = text[min(end+1, len(text)):]
	}
}

func makes(bytes int) error {
	if bytes > StringBytesMax || bytes < 0 {
		return fmt.Errorf("the result could have more than %d bytes", StringBytesMax)
	}
	return nil
}

// documents refuses long strings.
func documents(args []*ast.Term) error {
	for _, a := range args {
		if s, ok := a.Value.(ast.String); ok && len(s) > DocumentBytesMax {
			return fmt.Errorf("a string of %d bytes; at most %d are allowed here", len(s), DocumentBytesMax)
		}
	}
	return values(args)
}

// values refuses composite arguments that are too large to go through, and
// numbers that take long to compute with. A value that is held in many places
// counts in each.
func values(args []*ast.Term) error {
	for _, a := range args {
		switch v := a.Value.(type) {
		case ast.String, ast.Boolean, ast.Null:
		case ast.Number:
			if err := checkNumber(string(v)); err != nil {
				return err
			}
		default:
			return measureAll(args)
		}
	}
	return nil
}

func measureAll(args []*ast.Term) error {
	left := ValuesMax
	for _, a := range args {
		if err := measure(a.Value, &left); err != nil {
			return err
		}
	}
	return nil
}
