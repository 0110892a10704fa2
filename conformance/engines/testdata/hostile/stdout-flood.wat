;; 1 GiB to standard output, cut inside a character, in calls of 1 MiB.
;; limits: log_bytes=100001 memory_bytes=16777216
;; output: 2
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (local $at i32) (local $n i32)
    (drop (memory.grow (i32.const 17)))
    (local.set $at (i32.const 65536))
    (loop $fill
      (i32.store (local.get $at) (i32.const 0x00ac82e2))
      (local.set $at (i32.add (local.get $at) (i32.const 3)))
      (br_if $fill (i32.lt_u (local.get $at) (i32.const 1114112))))
    (i32.store (i32.const 256) (i32.const 65536))
    (i32.store (i32.const 260) (i32.const 1048576))
    (local.set $n (i32.const 1024))
    (loop $l
      (drop (call $write (i32.const 1) (i32.const 256) (i32.const 1) (i32.const 264)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i64.const 0x2000000002)))
