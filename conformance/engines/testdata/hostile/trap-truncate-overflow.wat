;; A truncation of what no integer can hold.
;; stop: integer_overflow execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (drop (i32.trunc_f32_u (f32.const -1)))
    (i64.const 0x2000000002)))
