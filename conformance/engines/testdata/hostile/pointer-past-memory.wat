;; A host call is given a buffer that ends past memory.
;; stop: bad_pointer execute random_fill
(module
  (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (drop (call $random (i32.const 65530) (i32.const 7)))
    (i64.const 0x2000000002)))
