;; Endless recursion with 64 operands waiting for each call.
;; stop: stack_overflow execute writ_execute
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $wide (param f64) (result f64)
    (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (f64.add (local.get 0) (call $wide (f64.const 2)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (drop (call $wide (f64.const 1)))
    (i64.const 0x2000000002)))
