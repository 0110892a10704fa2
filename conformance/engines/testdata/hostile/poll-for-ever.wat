;; A wait for the end of time, and one for more events than there can be.
;; output: 2
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (i32.store offset=16 (i32.const 4096) (i32.const 0))
    (i64.store offset=24 (i32.const 4096) (i64.const -1))
    (drop (call $poll (i32.const 4096) (i32.const 8192) (i32.const 1) (i32.const 12288)))
    (drop (call $poll (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 12288)))
    (i64.const 0x2000000002)))
