;; Growing to the end and writing every page.
;; limits: memory_bytes=67108864 fuel=1000000000
;; output: 2
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (block $full
      (loop $l
        (br_if $full (i32.eq (memory.grow (i32.const 1)) (i32.const -1)))
        (memory.fill (i32.shl (i32.sub (memory.size) (i32.const 1)) (i32.const 16)) (i32.const 0xa5) (i32.const 65536))
        (br $l)))
    (i64.const 0x2000000002)))
