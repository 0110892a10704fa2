;; The request of an effect of 64 MiB out of a memory of one page.
;; output: 2
(module
  (import "writ_v1" "effect" (func $effect (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (if (i64.ge_s (call $effect (i32.const 0) (i32.const 2) (i32.const 0) (i32.const 67108864)) (i64.const 0)) (then (unreachable)))
    (i64.const 0x2000000002)))
