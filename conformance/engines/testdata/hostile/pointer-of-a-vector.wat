;; A vector of buffers lies past memory.
;; stop: bad_pointer execute fd_write
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (drop (call $write (i32.const 1) (i32.const 65532) (i32.const 1) (i32.const 0)))
    (i64.const 0x2000000002)))
