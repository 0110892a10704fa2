;; A maximum below the budget is kept.
;; output: 2
(module
  (memory (export "memory") 1 3)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (if (i32.ne (memory.grow (i32.const 3)) (i32.const -1)) (then (unreachable)))
    (if (i32.ne (memory.grow (i32.const 2)) (i32.const 1)) (then (unreachable)))
    (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1)) (then (unreachable)))
    (i64.const 0x2000000002)))
