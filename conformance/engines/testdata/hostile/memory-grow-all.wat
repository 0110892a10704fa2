;; memory.grow by 65,535 pages without a declared maximum, then by one page to the end.
;; limits: memory_bytes=16777216
;; output: 2
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (if (i32.ne (memory.grow (i32.const 65535)) (i32.const -1)) (then (unreachable)))
    (block $full (loop $l (br_if $full (i32.eq (memory.grow (i32.const 1)) (i32.const -1))) (br $l)))
    (if (i32.ne (memory.size) (i32.const 256)) (then (unreachable)))
    (i64.const 0x2000000002)))
