package policies

import (
	"bytes"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

func FuzzDocumentsAreReadAsOPADoes(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, ` { "a" : [ 1 , -0.5e3 , true , false , null , "x" ] } `, `{"a": 1, "a": 2}`, `"\u00e9\ud83d\ude00\n\"\\"`, "\"\xff\"", `"\ud800"`,
		`18446744073709551617`, `1e400`, `1e99999999`, `-0`, `[[[[]]]]`, `[1,]`, `{"a"}`, `1 2`, ``, `nul`, `{"":{"":[{}]}}`, "[\"\u2028\"]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := parseValue(doc)
		d := bytes.NewReader(doc)
		want, wantErr := ast.ValueFromReader(d)
		if wantErr != nil || err != nil {
			// OPA's reader stops after the first value.
			if wantErr != nil && err == nil {
				t.Fatalf("%q: read as %v, OPA says %v", doc, got, wantErr)
			}
			return
		}
		if got.Compare(want) != 0 {
			t.Errorf("%q: %v, OPA reads %v", doc, got, want)
		}
	})
}

func TestDocumentsThatAreNoJSON(t *testing.T) {
	cases := []struct {
		doc string
		ok  bool
	}{{`{"a": 1}`, true}, {` 1 `, true}, {``, false}, {`{`, false}, {`{} {}`, false}, {`[1,]`, false}, {`'a'`, false}, {`1e9999999`, false}}
	for _, c := range cases {
		if v, err := parseValue([]byte(c.doc)); (err == nil) != c.ok {
			t.Errorf("%q: %v, %v", c.doc, v, err)
		}
	}
}
