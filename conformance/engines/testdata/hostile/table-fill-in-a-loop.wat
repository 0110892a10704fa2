;; Filling a large table again and again.
;; limits: fuel=100000000
;; stop: fuel_exhausted execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (table $t 131072 funcref)
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (loop $l (table.fill $t (i32.const 0) (ref.null func) (i32.const 131072)) (br $l))
    (i64.const 0x2000000002)))
