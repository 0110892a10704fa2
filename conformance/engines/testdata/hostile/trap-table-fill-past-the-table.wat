;; table.fill past the end of a table.
;; stop: invalid_table_access execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (table 2 funcref)
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (table.fill 0 (i32.const 1) (ref.null func) (i32.const 2))
    (i64.const 0x2000000002)))
