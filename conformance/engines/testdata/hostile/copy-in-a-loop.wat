;; Copying within memory again and again.
;; limits: fuel=100000000
;; stop: fuel_exhausted execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (loop $l (memory.copy (i32.const 1) (i32.const 0) (i32.const 65535)) (br $l))
    (i64.const 0x2000000002)))
