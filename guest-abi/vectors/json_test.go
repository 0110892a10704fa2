package vectors_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

const accepted = -1 // in place of an offset

type jsonVector struct {
	Name   string `json:"name"`
	Text   []byte `json:"text_base64"`
	Depth  int    `json:"depth_max"`
	Accept bool   `json:"accept"`
	Offset *int   `json:"offset,omitempty"` // of the first fault
}

// jsonCases states by hand what every reader must do.
var jsonCases = []struct {
	name, text string
	offset     int
}{
	{"null", `null`, accepted},
	{"true", `true`, accepted},
	{"false", `false`, accepted},
	{"space around", " \t\r\n1 \n", accepted},
	{"empty text", ``, 0},
	{"only space", `  `, 2},
	{"byte order mark", "\ufeff1", 0},
	{"form feed as space", "\f1", 0},
	{"word cut", `tru`, 3},
	{"word misspelt", `nulL`, 3},
	{"word with a tail", `truex`, 4},
	{"NaN", `NaN`, 0},
	{"nan in an array", `[1,nan]`, 4},
	{"Infinity", `Infinity`, 0},
	{"minus Infinity", `-Infinity`, 1},
	{"comment", `1 // one`, 2},
	{"single quotes", `'a'`, 0},
	{"two values", `1 2`, 2},
	{"trailing comma after text", `{},`, 2},
	{"trailing NUL", "1\x00", 1},

	{"zero", `0`, accepted},
	{"minus zero", `-0`, accepted},
	{"fraction", `1.5`, accepted},
	{"exponent", `1e5`, accepted},
	{"signed exponent", `-2.5E-3`, accepted},
	{"largest integer", `9007199254740991`, accepted},
	{"smallest integer", `-9007199254740991`, accepted},
	{"2^53", `9007199254740992`, 0},
	{"2^53+1", `9007199254740993`, 0},
	{"-2^53", `[-9007199254740992]`, 1},
	{"integer of 400 digits", strings.Repeat("9", 400), 0},
	{"integer too large as a string", `"9007199254740993"`, accepted},
	{"large with exponent", `1e300`, accepted},
	{"beyond float64", `1e400`, 0},
	{"minus beyond float64", `{"a":-1e999}`, 5},
	{"underflow to zero", `1e-999`, accepted},
	{"leading zero", `01`, 0},
	{"leading zero after minus", `-01`, 0},
	{"leading plus", `+1`, 0},
	{"no digit after minus", `-`, 1},
	{"no digit before point", `.5`, 0},
	{"no digit after point", `1.`, 2},
	{"no digit in exponent", `1e`, 2},
	{"hexadecimal", `0x10`, 1},
	{"underscore", `1_000`, 1},

	{"empty string", `""`, accepted},
	{"every short escape", `"\"\\\/\b\f\n\r\t"`, accepted},
	{"unicode escape", `"\u0000\u00e9\uFFFF"`, accepted},
	{"surrogate pair", `"\ud83d\ude00"`, accepted},
	{"raw UTF-8", `"é😀"`, accepted},
	{"U+2028 raw", "\"\u2028\"", accepted},
	{"DEL raw", "\"\x7f\"", accepted},
	{"lone high surrogate", `"a\ud83d"`, 2},
	{"lone low surrogate", `"\ude00"`, 1},
	{"high surrogate before another", `"\ud83d\ud83d"`, 1},
	{"high surrogate before text", `"\ud83dx"`, 1},
	{"high surrogate before an escape", `"\ud83d\n"`, 1},
	{"surrogates swapped", `"\ude00\ud83d"`, 1},
	{"unknown escape", `"\x41"`, 1},
	{"escaped single quote", `"\'"`, 1},
	{"three hex digits", `"\u00e"`, 1},
	{"not hex", `"\u00eg"`, 1},
	{"raw newline", "\"a\nb\"", 2},
	{"raw tab", "\"\t\"", 1},
	{"raw NUL", "\"\x00\"", 1},
	{"string cut", `"abc`, 4},
	{"string cut in an escape", `"abc\`, 4},
	{"0xFF", "\"a\xff\"", 2},
	{"UTF-8 cut", "\"\xc3\"", 1},
	{"overlong UTF-8", "\"\xc0\xaf\"", 1},
	{"surrogate in UTF-8", "\"\xed\xa0\x80\"", 1},
	{"beyond U+10FFFF", "\"\xf4\x90\x80\x80\"", 1},
	{"bytes outside strings", "[\xff]", 1},

	{"empty array", `[]`, accepted},
	{"array with spaces", `[ 1 , [ ] , { } ]`, accepted},
	{"array cut", `[1`, 2},
	{"array cut after comma", `[1,`, 3},
	{"trailing comma in an array", `[1,]`, 3},
	{"leading comma in an array", `[,1]`, 1},
	{"array closed by brace", `[1}`, 2},
	{"array element missing comma", `[1 2]`, 3},
	{"closed twice", `[]]`, 2},

	{"empty object", `{}`, accepted},
	{"nested objects", `{"a":{"a":[{"a":1}]},"b":2}`, accepted},
	{"same key in siblings", `[{"a":1},{"a":1}]`, accepted},
	{"keys differing in case", `{"a":1,"A":2}`, accepted},
	{"keys differing in normal form", "{\"\u00e9\":1,\"e\u0301\":2}", accepted},
	{"empty key", `{"":1}`, accepted},
	{"object cut", `{"a":1`, 6},
	{"object cut after key", `{"a"`, 4},
	{"object cut after colon", `{"a":`, 5},
	{"trailing comma in an object", `{"a":1,}`, 7},
	{"key without quotes", `{a:1}`, 1},
	{"key is a number", `{1:1}`, 1},
	{"no colon", `{"a" 1}`, 5},
	{"no value", `{"a":}`, 5},
	{"object closed by bracket", `{"a":1]`, 6},
	{"duplicate key", `{"a":1,"a":2}`, 7},
	{"duplicate key written with an escape", `{"a":1,"\u0061":2}`, 7},
	{"duplicate key around a nested object", `{"a":{"b":1},"b":2,"a":3}`, 19},
	{"duplicate empty key", `{"":1,"":1}`, 6},
	{"duplicate key after many", manyKeys(40) + `,"k3":0}`, len(manyKeys(40)) + 1},
	{"many keys", manyKeys(40) + `}`, accepted},
	{"lone surrogate in a key", `{"\ud800":1}`, 2},

	{"depth 8", strings.Repeat("[", 8) + strings.Repeat("]", 8), accepted},
	{"depth 9", strings.Repeat("[", 9) + strings.Repeat("]", 9), 8},
	{"depth 9 of objects", strings.Repeat(`{"a":`, 9) + "1", 40},
	{"depth 100000", strings.Repeat("[", 100_000), 8},
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = `"k` + string(rune('0'+i%10)) + strings.Repeat("x", i/10) + `":0`
	}
	return "{" + strings.Join(keys, ",")
}

func TestJSON(t *testing.T) {
	const depthMax = 8
	var want []jsonVector
	for _, c := range jsonCases {
		v := jsonVector{Name: c.name, Text: []byte(c.text), Depth: depthMax, Accept: c.offset == accepted}
		if !v.Accept {
			v.Offset = &c.offset
		}
		if len(c.text) < 1000 { // the rest is for this test only
			want = append(want, v)
		}
		t.Run(c.name, func(t *testing.T) {
			err := abi.CheckJSON([]byte(c.text), depthMax)
			var fault *abi.JSONError
			switch {
			case c.offset == accepted && err != nil:
				t.Errorf("refused: %v", err)
			case c.offset != accepted && !errors.As(err, &fault):
				t.Errorf("accepted; want a fault at byte %d", c.offset)
			case c.offset != accepted && fault.Offset != c.offset:
				t.Errorf("fault at byte %d, want %d: %v", fault.Offset, c.offset, err)
			}
		})
	}
	settle(t, "json.json", want)
}
