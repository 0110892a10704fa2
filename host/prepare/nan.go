package prepare

// laneShape is the type whose NaNs an instruction makes: f32, f64, or one of
// the two ways in which a v128 holds floats.
type laneShape uint8

const (
	shapeNone laneShape = iota
	shapeF32
	shapeF64
	shapeF32x4
	shapeF64x2
	shapes
)

// source tells where an operand comes from, as far as its NaN bits go: a
// positive source is one more than the index of a site.
type source int32

const (
	sourceExact source = 0  // its NaN bits, if any, are given by the program
	sourceClean source = -1 // it is never a NaN
)

// nanSite is a place where a value with engine-given NaN bits may arise: after an
// instruction that makes one, or where a local that may hold one is read.
//
// NaN bits need not be made canonical where they arise. They must be where they
// can be observed: before they reach memory, a global, a call, a branch, or an
// instruction that copies or reads bits. Arithmetic, comparisons and conversions
// to integers look at no NaN's bits. Each operand is used once, so the only use
// of a site's value decides.
type nanSite struct {
	shape    laneShape
	local    int32  // that is read here, or noLocal after an instruction
	into     int32  // the local the value is assigned to, or noLocal
	next     int32  // the next site that reads the same local, or noSite
	weight   uint32 // how often the place runs, by the loops around it
	observed bool
	active   bool // the value is made canonical here
}

const (
	noLocal = -1
	noSite  = -1

	nanBranchesMax = 500 // of one body
)

// floats decides where one body makes NaNs canonical. A float local that is
// only assigned values made in the body may hold any NaN, raw; it is then made
// canonical where it is read and observed. All other locals are exact.
type floats struct {
	sites  []nanSite
	active int     // sites where a scalar is made canonical, set by settle
	exact  []bool  // of each local
	reads  []int32 // of each local: the first site that reads it, or noSite
}

// start begins a body of which the first params locals are parameters.
func (f *floats) start(locals []byte, params int) {
	f.sites, f.exact, f.reads = f.sites[:0], f.exact[:0], f.reads[:0]
	for i, t := range locals {
		f.exact = append(f.exact, i < params || t != f32 && t != f64)
		f.reads = append(f.reads, noSite)
	}
}

// makes notes an instruction that makes a NaN.
func (f *floats) makes(shape laneShape, depth int) source {
	return f.add(nanSite{shape: shape, local: noLocal, weight: weightAt(depth)})
}

// read notes that a local is read, or written and left on the stack.
func (f *floats) read(local uint32, typ byte, depth int) source {
	if f.exact[local] {
		return sourceExact
	}
	shape := shapeF32
	if typ == f64 {
		shape = shapeF64
	}
	s := f.add(nanSite{shape: shape, local: int32(local), next: f.reads[local], weight: weightAt(depth)})
	f.reads[local] = int32(s) - 1
	return s
}

func (f *floats) add(s nanSite) source {
	s.into = noLocal
	f.sites = append(f.sites, s)
	return source(len(f.sites))
}

// observe notes that the NaN bits of s can be seen.
func (f *floats) observe(s source) {
	if s > 0 {
		f.sites[s-1].observed = true
	}
}

// use notes that s is used by an instruction that looks at no bits of NaNs of
// the given shape.
func (f *floats) use(s source, shape laneShape) {
	if s > 0 && f.sites[s-1].shape != shape {
		f.observe(s)
	}
}

// assign notes that s is the new value of a local.
func (f *floats) assign(s source, local uint32) {
	switch {
	case s == sourceExact:
		f.exact[local] = true
	case s > 0:
		f.sites[s-1].into = int32(local)
	}
}

// weightAt estimates how often code with that many loops around it runs.
func weightAt(depth int) uint32 { return 1 << (3 * min(depth, 6)) }

// settle decides at which sites NaNs are made canonical.
func (f *floats) settle() {
	f.active = 0
	f.spread(func(local int) bool { return f.exact[local] })
	set, seen := f.costs()
	f.spread(func(local int) bool { return f.exact[local] || seen[local] > set[local] })
	for i := range f.sites {
		s := &f.sites[i]
		s.active = s.observed || s.into != noLocal && f.exact[s.into]
		if s.local != noLocal && f.exact[s.local] {
			s.active = false
		}
		if s.active && s.shape < shapeF32x4 {
			f.active++
		}
	}
}

// spread makes the locals for which start holds exact, and all that are assigned
// a value of one that is.
func (f *floats) spread(start func(local int) bool) {
	var work []int
	for local := range f.exact {
		if start(local) {
			f.exact[local] = true
			work = append(work, local)
		}
	}
	for len(work) > 0 {
		local := work[len(work)-1]
		work = work[:len(work)-1]
		for i := f.reads[local]; i != noSite; i = f.sites[i].next {
			if into := f.sites[i].into; into != noLocal && !f.exact[into] {
				f.exact[into] = true
				work = append(work, int(into))
			}
		}
	}
}

// costs estimates for each local what it costs to make it canonical where it is
// assigned, and where it is observed.
func (f *floats) costs() (set, seen []uint64) {
	set, seen = make([]uint64, len(f.exact)), make([]uint64, len(f.exact))
	for _, s := range f.sites {
		if s.into != noLocal {
			set[s.into] += uint64(s.weight)
		}
		if s.local != noLocal && (s.observed || s.into != noLocal && f.exact[s.into]) {
			seen[s.local] += uint64(s.weight)
		}
	}
	return set, seen
}

// The positive canonical NaNs, as constants.
var canonicalNaN = [shapes][]byte{
	shapeF32:   {opF32Const, 0, 0, 0xc0, 0x7f},
	shapeF64:   {opF64Const, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f},
	shapeF32x4: {opPrefixSIMD, simdConst, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f},
	shapeF64x2: {opPrefixSIMD, simdConst, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f},
}

// isNumber compares a scalar with itself.
var isNumber = [shapes]byte{shapeF32: opF32Eq, shapeF64: opF64Eq}

// isNaN compares a value with itself: a scalar by ne, a vector by eq.
var isNaN = [shapes][]byte{
	shapeF32:   {opF32Ne},
	shapeF64:   {opF64Ne},
	shapeF32x4: {opPrefixSIMD, simdF32x4Eq},
	shapeF64x2: {opPrefixSIMD, simdF64x2Eq},
}

// canonical appends code that makes the operand on top canonical. It needs the
// operand in a local: the one it was read from, or a spare one. For a scalar that
// is a branch that is not taken, which runs faster than a select; a NaN in a local
// read from is then canonical from there on, which is as good as raw. Branches are
// dear to compile, so where there are many it is a select after all.
func (b *body) canonical(dst []byte, s *nanSite) []byte {
	if !s.active {
		return dst
	}
	if s.shape >= shapeF32x4 {
		local := b.spare[s.shape]
		dst = append(appendU32(append(dst, opLocalTee), local), canonicalNaN[s.shape]...)
		dst = appendU32(append(dst, opLocalGet), local)
		dst = appendU32(append(dst, opLocalGet), local)
		return append(append(dst, isNaN[s.shape]...), opPrefixSIMD, simdBitselect)
	}
	local := uint32(s.local)
	if s.local == noLocal {
		local = b.spare[s.shape]
		dst = appendU32(append(dst, opLocalTee), local)
	}
	if b.floats.active > nanBranchesMax {
		dst = append(dst, canonicalNaN[s.shape]...)
		dst = appendU32(append(dst, opLocalGet), local)
		dst = appendU32(append(dst, opLocalGet), local)
		return append(append(dst, isNumber[s.shape]), opSelect)
	}
	dst = appendU32(append(dst, opLocalGet), local)
	dst = append(append(dst, isNaN[s.shape]...), opIf, 0x40)
	dst = append(dst, canonicalNaN[s.shape]...)
	dst = append(appendU32(append(dst, opLocalSet), local), opEnd)
	return appendU32(append(dst, opLocalGet), local)
}

// numericFloats tells of a numeric opcode what it does with NaNs: the shape
// whose NaN bits it does not look at, and the one whose NaN it may make.
func numericFloats(op byte) (blind, made laneShape) {
	switch {
	case op >= opF32Eq && op <= 0x60, op >= 0xa8 && op <= 0xa9, op >= 0xae && op <= 0xaf:
		return shapeF32, shapeNone // comparisons and truncations
	case op >= opF64Eq && op <= 0x66, op >= 0xaa && op <= 0xab, op >= 0xb0 && op <= 0xb1:
		return shapeF64, shapeNone
	case op >= 0x8d && op <= 0x97: // ceil to max, without abs, neg and copysign
		return shapeF32, shapeF32
	case op >= 0x9b && op <= 0xa5:
		return shapeF64, shapeF64
	case op == 0xb6: // demote
		return shapeF64, shapeF32
	case op == 0xbb: // promote
		return shapeF32, shapeF64
	}
	return shapeNone, shapeNone
}

// convertsToFloat reports whether a numeric opcode makes a float of an integer.
func convertsToFloat(op byte) bool {
	return op >= 0xb2 && op <= 0xba && op != 0xb6
}

// simdFloats is numericFloats for the second opcode of a SIMD instruction. abs,
// neg, pmin and pmax copy bits.
func simdFloats(sub uint32) (blind, made laneShape) {
	switch {
	case sub >= simdF32x4Eq && sub <= 0x46, sub >= 0xf8 && sub <= 0xf9:
		return shapeF32x4, shapeNone // comparisons, trunc_sat
	case sub >= simdF64x2Eq && sub <= 0x4c, sub >= 0xfc && sub <= 0xfd:
		return shapeF64x2, shapeNone
	case sub >= 0x67 && sub <= 0x6a, sub >= 0xe3 && sub <= 0xe9: // ceil, floor, trunc, nearest; sqrt to max
		return shapeF32x4, shapeF32x4
	case sub == 0x74, sub == 0x75, sub == 0x7a, sub == 0x94, sub >= 0xef && sub <= 0xf5:
		return shapeF64x2, shapeF64x2
	case sub == 0x5e: // demote_f64x2_zero
		return shapeF64x2, shapeF32x4
	case sub == 0x5f: // promote_low_f32x4
		return shapeF32x4, shapeF64x2
	}
	return shapeNone, shapeNone
}

// isNaN32 and isNaN64 look at constants.
func isNaN32(b []byte) bool {
	return len(b) == 4 && b[3]&0x7f == 0x7f && b[2]&0x80 != 0 && b[2]&0x7f|b[1]|b[0] != 0
}

func isNaN64(b []byte) bool {
	return len(b) == 8 && b[7]&0x7f == 0x7f && b[6]&0xf0 == 0xf0 && b[6]&0x0f|b[5]|b[4]|b[3]|b[2]|b[1]|b[0] != 0
}
