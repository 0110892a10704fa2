;; 1 GiB to standard output in one call: 1,024 buffers that are the same megabyte.
;; limits: log_bytes=100001 memory_bytes=16777216
;; output: 2
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (local $at i32)
    (drop (memory.grow (i32.const 31)))
    (local.set $at (i32.const 8192))
    (loop $fill
      (i32.store (local.get $at) (i32.const 1048576))
      (i32.store offset=4 (local.get $at) (i32.const 1048576))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $fill (i32.lt_u (local.get $at) (i32.const 16384))))
    (drop (call $write (i32.const 1) (i32.const 8192) (i32.const 1024) (i32.const 264)))
    (i64.const 0x2000000002)))
