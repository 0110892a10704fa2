;; A truncation of a NaN.
;; stop: invalid_conversion execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (drop (i64.trunc_f64_s (f64.div (f64.const 0) (f64.const 0))))
    (i64.const 0x2000000002)))
