;; A log line of 64 MiB, which the guest does not have.
;; output: 2
(module
  (import "writ_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (if (i32.ge_s (call $log (i32.const 0) (i32.const 0) (i32.const 67108864)) (i32.const 0)) (then (unreachable)))
    (i64.const 0x2000000002)))
