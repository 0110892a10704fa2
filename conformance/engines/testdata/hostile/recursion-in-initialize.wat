;; Endless recursion in _initialize.
;; stop: stack_overflow initialize _initialize
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $deep (export "_initialize") (call $deep))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0x2000000002)))
