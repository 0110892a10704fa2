;; table.init from a segment that only declares functions, which is dropped when the instance is made.
;; stop: invalid_table_access execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (table 2 funcref)
  (elem $e declare func $execute)
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (table.init 0 $e (i32.const 0) (i32.const 0) (i32.const 1))
    (i64.const 0x2000000002)))
