package policies

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown/builtins"
)

// Seed is what the randomness of a decision follows from. It is kept with the
// record and never shown to the policy.
type Seed [32]byte

// MarshalText writes the seed in hexadecimal.
func (s Seed) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Seed) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(s) {
		return fmt.Errorf("read a seed: %.80q is not %d bytes in hexadecimal", text, len(s))
	}
	copy(s[:], b)
	return nil
}

// PolicySeed is the seed of a run's policy decisions. It is drawn apart from the
// streams of the lanes, so that a policy tells nothing of what guests were given.
func PolicySeed(run [32]byte) Seed { return Seed(draw(run[:], "writ/policy/1", nil, 0)) }

type seedKey struct{}

// WithSeed returns a context under which decisions take their randomness from
// seed. Without it the seed is all zeros; either way it stands in the record.
func WithSeed(ctx context.Context, seed Seed) context.Context {
	return context.WithValue(ctx, seedKey{}, seed)
}

func seedOf(ctx context.Context) Seed {
	seed, _ := ctx.Value(seedKey{}).(Seed)
	return seed
}

// ownBuiltins returns the builtins that are not OPA's: those whose answer would
// come from the machine, and arithmetic that would round.
func ownBuiltins() map[string]builtin {
	calls := map[string]builtin{
		"time.now_ns":  nowNS,
		"rand.intn":    randIntn,
		"uuid.rfc4122": uuidRFC4122,
	}
	for name, exact := range map[string]func(z, x, y *big.Rat) *big.Rat{"plus": (*big.Rat).Add, "minus": (*big.Rat).Sub, "mul": (*big.Rat).Mul} {
		calls[name] = exactly(original(name), exact)
	}
	return calls
}

// errNoCall keeps a call that was given neither time nor seed from being
// answered by the machine.
var errNoCall = errors.New("this evaluation was given no recorded time and seed")

func nowNS(bctx rego.BuiltinContext, _ []*ast.Term) (*ast.Term, error) {
	c := callOf(bctx.Context)
	if c == nil {
		return nil, errNoCall
	}
	return ast.NumberTerm(json.Number(strconv.FormatInt(c.now, 10))), nil
}

// randIntn returns a number from 0 up to but not including n, always the same
// for the same name and n. The sign of n has no effect and 0 gives 0, as OPA
// documents it.
func randIntn(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
	c := callOf(bctx.Context)
	if c == nil {
		return nil, errNoCall
	}
	name, err := builtins.StringOperand(args[0].Value, 1)
	if err != nil {
		return nil, err
	}
	n, err := builtins.IntOperand(args[1].Value, 2)
	if err != nil {
		return nil, err
	}
	if n == math.MinInt {
		return nil, fmt.Errorf("operand 2 is less than %d", -math.MaxInt)
	}
	bound := uint64(max(n, -n))
	if bound == 0 {
		return ast.InternedTerm(0), nil
	}
	key := binary.BigEndian.AppendUint64([]byte(name), bound)
	// Numbers at the end of the range that would favour small results are drawn
	// again; at worst every second draw is.
	for i := uint64(0); ; i++ {
		block := draw(c.seed[:], "rand.intn", key, i)
		drawn := binary.BigEndian.Uint64(block[:])
		if drawn <= math.MaxUint64-(math.MaxUint64%bound+1)%bound {
			return ast.InternedTerm(int(drawn % bound)), nil
		}
	}
}

// uuidRFC4122 returns a version 4 UUID, always the same for the same name.
func uuidRFC4122(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
	c := callOf(bctx.Context)
	if c == nil {
		return nil, errNoCall
	}
	name, err := builtins.StringOperand(args[0].Value, 1)
	if err != nil {
		return nil, err
	}
	u := draw(c.seed[:], "uuid.rfc4122", []byte(name), 0)
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return ast.StringTerm(fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])), nil
}

// draw returns block i of the stream that belongs to a builtin and its
// arguments: HMAC-SHA-256 of the three, each led by its length.
func draw(seed []byte, name string, key []byte, i uint64) [sha256.Size]byte {
	mac := hmac.New(sha256.New, seed)
	for _, part := range [][]byte{[]byte(name), key} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write(part)
	}
	mac.Write(binary.BigEndian.AppendUint64(nil, i))
	return [sha256.Size]byte(mac.Sum(nil))
}

// exactly computes with decimal fractions as they are written. OPA rounds them
// to 64 bits; whole numbers it holds exactly, and sets are its own affair.
func exactly(opa builtin, exact func(z, x, y *big.Rat) *big.Rat) builtin {
	return func(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		x, okX := args[0].Value.(ast.Number)
		y, okY := args[1].Value.(ast.Number)
		if !okX || !okY || isWhole(x) && isWhole(y) {
			return opa(bctx, args)
		}
		a, okX := new(big.Rat).SetString(string(x))
		b, okY := new(big.Rat).SetString(string(y))
		if !okX || !okY {
			return opa(bctx, args)
		}
		return ast.NewTerm(decimal(exact(new(big.Rat), a, b))), nil
	}
}

// isWhole reports whether a number is written without fraction and exponent.
func isWhole(n ast.Number) bool {
	for i := range len(n) {
		if b := n[i]; b != '-' && (b < '0' || b > '9') {
			return false
		}
	}
	return true
}

// decimal writes a number whose denominator has no prime factors but 2 and 5.
func decimal(r *big.Rat) ast.Number {
	if r.IsInt() {
		return ast.Number(r.Num().String())
	}
	digits, _ := r.FloatPrec()
	return ast.Number(r.FloatString(digits))
}
