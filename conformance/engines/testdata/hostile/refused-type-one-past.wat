;; A call_indirect by a type one past the end.
;; refused: index_out_of_range
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (table 1 funcref)
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (call_indirect (type 3) (i32.const 0))
    (i64.const 0x2000000002)))
