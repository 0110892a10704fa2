;; Random bytes without end: a host call costs by its bytes.
;; limits: fuel=10000000
;; stop: fuel_exhausted execute random_fill
(module
  (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (loop $l (drop (call $random (i32.const 0) (i32.const 65536))) (br $l))
    (i64.const 0x2000000002)))
