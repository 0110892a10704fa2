;; Log lines of a page each, past the budget for text.
;; limits: log_bytes=1000001 host_calls=2000
;; stop: host_calls_exhausted execute log
(module
  (import "writ_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (loop $l (drop (call $log (i32.const 0) (i32.const 0) (i32.const 65536))) (br $l))
    (i64.const 0x2000000002)))
