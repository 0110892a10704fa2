;; An import of the function by which fuel is given.
;; refused: reserved_name
(module
  (import "writ_det" "refill" (func))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param i32 i32) (result i64) (i64.const 0)))
