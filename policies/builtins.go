package policies

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// allowed lists the builtins policies may use: pure functions of their
// arguments, the decision's recorded time and its seed, whose work is bounded by
// the size of those arguments or by a guard of guards.go. A builtin that OPA
// adds later is not there until it was reviewed and written into one of the two
// lists; a test compares them with OPA's own.
const allowed = `
abs all and any array.concat array.flatten array.reverse array.slice assign base64.decode base64.encode base64.is_valid
base64url.decode base64url.encode base64url.encode_no_pad bits.and bits.lsh bits.negate bits.or bits.rsh bits.xor
cast_array cast_boolean cast_null cast_object cast_set cast_string ceil concat contains count
crypto.hmac.equal crypto.hmac.sha256 crypto.hmac.sha512 crypto.sha256 div endswith eq equal floor format_int
glob.match glob.quote_meta graph.reachable gt gte hex.decode hex.encode indexof indexof_n
internal.member_2 internal.member_3 internal.print internal.template_string internal.test_case intersection
is_array is_boolean is_null is_number is_object is_set is_string json.filter json.is_valid json.marshal
json.patch json.remove json.unmarshal lower lt lte max min minus mul neq
net.cidr_contains net.cidr_intersects net.cidr_is_valid net.cidr_merge net.cidr_overlap numbers.range numbers.range_step
object.filter object.get object.keys object.remove object.subset object.union object.union_n or plus print product
rand.intn regex.find_all_string_submatch_n regex.find_n regex.is_valid regex.match regex.replace regex.split re_match
rego.metadata.chain rego.metadata.rule rem replace round semver.compare semver.is_valid set_diff sort split sprintf
startswith strings.any_prefix_match strings.any_suffix_match strings.count strings.replace_n strings.reverse
strings.split_n substring sum time.now_ns time.parse_duration_ns time.parse_rfc3339_ns to_number trace trim trim_left trim_prefix trim_right trim_space
trim_suffix type_name union units.parse units.parse_bytes upper uri.is_valid uri.parse urlquery.decode
urlquery.decode_object urlquery.encode urlquery.encode_object uuid.parse uuid.rfc4122 walk yaml.is_valid yaml.marshal yaml.unmarshal
`

// refused lists the builtins policies may not use, each with its reason.
var refused = map[string]string{
	"http.send": "reaches the network", "net.lookup_ip_addr": "reaches the network", "net.cidr_contains_matches": "work grows with the product of its arguments",
	"net.cidr_expand": "result grows beyond its arguments", "opa.runtime": "reads the process", "providers.aws.sign_req": "signs with secrets",
	"io.jwt.encode_sign": "signs with secrets", "io.jwt.encode_sign_raw": "signs with secrets", "io.jwt.decode_verify": "reads a clock",
	"crypto.x509.parse_and_verify_certificates":              "verifies against the clock",
	"crypto.x509.parse_and_verify_certificates_with_options": "verifies against the clock",
	"json.match_schema": "may fetch a remote schema", "json.verify_schema": "may fetch a remote schema",
	"graph.reachable_paths":   "result grows exponentially",
	"strings.render_template": "work is not bounded by its arguments", "rego.parse_module": "depends on OPA's version",
	"json.marshal_with_options": "depends on OPA's version", "regex.globs_match": "work is not bounded by its arguments",
	"regex.template_match": "work is not bounded by its arguments",
	"time.add_date":        zones, "time.clock": zones, "time.date": zones, "time.diff": zones, "time.format": zones,
	"time.parse_ns": zones, "time.weekday": zones,
}

const zones = "reads the machine's time zone database"

// refusedFamilies are refused by prefix: none has been reviewed.
var refusedFamilies = []string{"io.jwt.", "crypto.x509.", "crypto.parse_private_keys", "crypto.md5", "crypto.sha1", "crypto.hmac.md5", "crypto.hmac.sha1", "graphql."}

func allowedBuiltins() []string {
	names := strings.Fields(allowed)
	slices.Sort(names)
	return names
}

// capabilities is what policies are compiled against.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	names := allowedBuiltins()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		_, ok := slices.BinarySearch(names, b.Name)
		return !ok
	})
	c.AllowNet = []string{}
	return c
}

// Reviewed reports which of the lists a builtin stands in.
func Reviewed(name string) (isAllowed, isRefused bool) {
	_, byName := refused[name]
	byFamily := slices.ContainsFunc(refusedFamilies, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	return slices.Contains(strings.Fields(allowed), name), byName || byFamily
}
