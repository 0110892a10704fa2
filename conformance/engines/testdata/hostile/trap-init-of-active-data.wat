;; memory.init from an active segment, which is dropped when the instance is made.
;; stop: memory_out_of_bounds execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data $d (i32.const 64) "abc")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))
    (i64.const 0x2000000002)))
