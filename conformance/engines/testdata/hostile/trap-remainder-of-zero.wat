;; A remainder of a division by zero.
;; stop: integer_divide_by_zero execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (drop (i32.rem_s (i32.const 1) (i32.sub (local.get $len) (local.get $len))))
    (i64.const 0x2000000002)))
