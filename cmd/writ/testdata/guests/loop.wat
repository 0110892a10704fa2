;; An executor that never answers.
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func (export "writ_execute") (param i32 i32) (result i64)
    (loop $again (br $again))
    (unreachable)))
