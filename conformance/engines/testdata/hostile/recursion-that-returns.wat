;; 1,500 frames deep and back, a thousand times: what was given back is there again.
;; output: 2
(module
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (data (i32.const 32) "{}")
  (func $down (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
    (i32.add (i32.const 1) (call $down (i32.sub (local.get 0) (i32.const 1)))))
  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
    (local $i i32)
    (local.set $i (i32.const 1000))
    (loop $l
      (if (i32.ne (call $down (i32.const 1500)) (i32.const 1500)) (then (unreachable)))
      (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (i64.const 0x2000000002)))
