;; A result that has 4 GiB.
;; limits: output_bytes=1024
;; stop: output_too_large execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0x20ffffffff)))
