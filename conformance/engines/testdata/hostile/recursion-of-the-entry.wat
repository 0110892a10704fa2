;; The entry calls itself, with a host call in each frame.
;; stop: stack_overflow execute writ_execute
(module
  (import "writ_v1" "clock_now" (func $clock (result i64)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (drop (call $clock))
    (drop (call $execute (i32.const 0) (i32.const 0)))
    (i64.const 0x2000000002)))
