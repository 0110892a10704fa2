;; The allocator grows memory each time: the host looks at memory anew.
;; limits: memory_bytes=16777216
;; output: 2
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32)
    (i32.shl (memory.grow (i32.const 100)) (i32.const 16)))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (if (i32.eqz (i32.load8_u (local.get $ptr))) (then (unreachable)))
    (i64.const 0x2000000002)))
