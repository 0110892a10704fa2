package prepare

import "strings"

// Value types by their byte in the binary format. unknown is the type of an
// operand of unreachable code and matches every other.
const (
	i32       byte = 0x7f
	i64       byte = 0x7e
	f32       byte = 0x7d
	f64       byte = 0x7c
	v128      byte = 0x7b
	funcref   byte = 0x70
	externref byte = 0x6f
	unknown   byte = 0
)

func typeName(t byte) string {
	switch t {
	case i32:
		return "i32"
	case i64:
		return "i64"
	case f32:
		return "f32"
	case f64:
		return "f64"
	case v128:
		return "v128"
	case funcref:
		return "funcref"
	case externref:
		return "externref"
	}
	return "any"
}

func isReference(t byte) bool { return t == funcref || t == externref }

// funcType is a function type. Both slices alias the module's bytes: a value
// type is one byte there too.
type funcType struct{ params, results []byte }

func (t funcType) equal(o funcType) bool {
	return string(t.params) == string(o.params) && string(t.results) == string(o.results)
}

// String writes the type as "(i32, i32) -> i64"; no results are "()".
func (t funcType) String() string {
	results := typeNames(t.results)
	if len(t.results) != 1 {
		results = "(" + results + ")"
	}
	return "(" + typeNames(t.params) + ") -> " + results
}

func typeNames(types []byte) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = typeName(t)
	}
	return strings.Join(names, ", ")
}

// valueType reads a value type. Types of later proposals are refused by name;
// externref is noted and then treated as the type it is, so that the search for
// faults goes on.
func (m *module) valueType(r *reader) byte {
	at := r.pos
	b := r.byte()
	switch b {
	case i32, i64, f32, f64, funcref:
	case v128:
		m.features.add(featureSIMD)
	case externref:
		if !m.rules.anySize {
			m.refuseFeature(at, codeExternref)
		}
	default:
		if r.fault == nil {
			r.fail(at, typeCode(b), "0x%02x is not a value type of the allowed features", b)
		}
	}
	return b
}

// refuseFeature adds a fault for a feature once: one is enough to act on.
func (m *module) refuseFeature(at int, code string) {
	if m.refused[code] {
		return
	}
	m.refused[code] = true
	m.faults.add(at, code, "", "the module uses a feature that is not admitted")
}

func typeCode(b byte) string {
	switch b {
	case 0x63, 0x64:
		return codeTypedReferences
	case 0x69, 0x74:
		return codeExceptions
	case 0x65, 0x66, 0x67, 0x68, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73, 0x4e, 0x4f, 0x50, 0x5e, 0x5f:
		return codeGC
	}
	return codeMalformed
}
