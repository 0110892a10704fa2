;; Two functions that call each other through a table.
;; stop: stack_overflow execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (type $v (func))
  (table 2 2 funcref)
  (elem (i32.const 0) $a $b)
  (func $a (call_indirect (type $v) (i32.const 1)))
  (func $b (call_indirect (type $v) (i32.const 0)))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (call_indirect (type $v) (i32.const 0))
    (i64.const 0x2000000002)))
