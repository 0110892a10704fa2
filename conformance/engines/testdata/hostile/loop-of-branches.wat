;; Two loops that jump into one another through a br_table.
;; limits: fuel=2500000
;; stop: fuel_exhausted execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (loop $a
      (loop $b
        (local.set $len (i32.xor (local.get $len) (i32.const 1)))
        (br_table $a $b (local.get $len))))
    (i64.const 0x2000000002)))
