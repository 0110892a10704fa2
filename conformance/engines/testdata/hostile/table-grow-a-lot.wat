;; table.grow by a hundred million entries, by 4 billion, and then to the end.
;; limits: fuel=100000000000
;; output: 2
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (table $t 1 funcref)
  (elem declare func $execute)
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (if (i32.ne (table.grow $t (ref.null func) (i32.const 100000000)) (i32.const -1)) (then (unreachable)))
    (if (i32.ne (table.grow $t (ref.null func) (i32.const -1)) (i32.const -1)) (then (unreachable)))
    (if (i32.ne (table.grow $t (ref.func $execute) (i32.const 131071)) (i32.const 1)) (then (unreachable)))
    (if (i32.ne (table.grow $t (ref.null func) (i32.const 1)) (i32.const -1)) (then (unreachable)))
    (i64.const 0x2000000002)))
