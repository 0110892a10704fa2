;; A memory that begins above the budget.
;; limits: memory_bytes=67108864
;; refused: above_limit
(module
  (memory (export "memory") 1025)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0x2000000002)))
