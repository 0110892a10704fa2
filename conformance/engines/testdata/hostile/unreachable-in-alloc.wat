;; An unreachable in the allocator.
;; stop: unreachable alloc writ_alloc
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (unreachable))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0x2000000002)))
