package hosttest

import (
	"strconv"
	"strings"
)

// Allocator is the text of the exports every guest needs: a memory of one page
// that grows, and an allocator that never frees.
const Allocator = `
  (memory (export "memory") 1)
  (global $heap (mut i32) (i32.const 8192))
  (func (export "writ_alloc") (param $size i32) (result i32)
    (local $at i32) (local $short i32)
    (local.set $at (global.get $heap))
    (global.set $heap (i32.and (i32.add (i32.add (global.get $heap) (local.get $size)) (i32.const 15)) (i32.const -16)))
    (local.set $short (i32.sub (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
    (if (i32.gt_s (local.get $short) (i32.const 0))
      (then (if (i32.eq (memory.grow (i32.add (i32.div_u (local.get $short) (i32.const 65536)) (i32.const 1))) (i32.const -1))
        (then (return (i32.const 0))))))
    (local.get $at))
  (func (export "writ_free") (param i32 i32))
`

// Module wraps imports and definitions into a module with [Allocator]. Data may
// use the bytes below 8192.
func Module(imports, body string) string {
	return "(module\n" + imports + Allocator + body + "\n)"
}

// Returning is an executor and rule that runs body and returns message. The
// body may use the locals $a and $b (i32) and $c (i64), and the imports given.
func Returning(imports, body, message string) string {
	return Module(imports, `
  (data (i32.const 16) "`+escape(message)+`")
  (func $answer (export "writ_execute") (export "writ_verify") (param $ptr i32) (param $len i32) (result i64)
    (local $a i32) (local $b i32) (local $c i64)
`+body+`
    (i64.or (i64.shl (i64.const 16) (i64.const 32)) (i64.const `+strconv.Itoa(len(message))+`)))`)
}

// Echo is an executor that returns its request.
func Echo() string {
	return Module("", `
  (func (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $ptr)) (i64.const 32)) (i64.extend_i32_u (local.get $len))))`)
}

func escape(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) }

// With adds definitions to the end of a module's text.
func With(module, definitions string) string {
	return strings.TrimSuffix(module, ")") + definitions + ")"
}

// Only is a module whose allocator is the body given, and whose entry traps.
func Only(allocator string) string {
	return `(module (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) ` + allocator + `)
  (func (export "writ_free") (param i32 i32))
  (func (export "writ_execute") (param i32 i32) (result i64) unreachable))`
}
