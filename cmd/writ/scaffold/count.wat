;; An executor: counts the lines of the dataset "notes" and claims their number,
;; with the dataset as evidence. Written by hand to show how little a guest needs.
(module
  (import "writ_v1" "dataset_size" (func $dataset_size (param i32 i32) (result i64)))
  (import "writ_v1" "dataset_read" (func $dataset_read (param i32 i32 i64 i32 i32) (result i64)))

  (data (i32.const 0) "notes")
  (data (i32.const 16) "{\"claims\":[{\"claim_id\":\"lines\",\"statement\":\"notes has ")
  (data (i32.const 70) " lines\",\"subject\":\"notes\",\"predicate\":\"lines\",\"value\":")
  (data (i32.const 124) ",\"evidence\":[\"notes\"]}],\"evidence\":[{\"evidence_id\":\"notes\",\"kind\":\"dataset\",\"path\":\"notes\",\"digest\":\"")
  (data (i32.const 225) "\"}],\"artifacts\":[],\"output\":{\"lines\":")
  (data (i32.const 262) "}}")
  (data (i32.const 264) "sha256:")
  (data (i32.const 271) "{\"error\":{\"code\":\"unreadable\",\"message\":\"the dataset notes cannot be read; is it granted to this step?\",\"retryable\":false}}")

  ;; --- memory: strings below 4096, a read buffer at 4096, the answer from 8192 on,
  ;; what the host places from 65536 on.
  (memory (export "memory") 2)
  (global $top (mut i32) (i32.const 65536))
  (global $out (mut i32) (i32.const 8192))

  (func (export "writ_alloc") (param $size i32) (result i32)
    (local $at i32)
    (local $short i32)
    (local.set $at (global.get $top))
    (global.set $top (i32.and (i32.add (i32.add (local.get $at) (local.get $size)) (i32.const 7)) (i32.const -8)))
    (local.set $short
      (i32.sub
        (i32.shr_u (i32.add (global.get $top) (i32.const 65535)) (i32.const 16))
        (memory.size)))
    (if (i32.gt_s (local.get $short) (i32.const 0))
      (then
        (if (i32.eq (memory.grow (local.get $short)) (i32.const -1))
          (then (unreachable)))))
    (local.get $at))

  ;; An instance answers one message and is thrown away, so nothing is reused.
  (func (export "writ_free") (param i32 i32))

  ;; --- text
  (func $put (param $at i32) (param $size i32)
    (memory.copy (global.get $out) (local.get $at) (local.get $size))
    (global.set $out (i32.add (global.get $out) (local.get $size))))

  (func $put_number (param $n i64)
    (if (i64.ge_u (local.get $n) (i64.const 10))
      (then (call $put_number (i64.div_u (local.get $n) (i64.const 10)))))
    (i32.store8 (global.get $out)
      (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10)))))
    (global.set $out (i32.add (global.get $out) (i32.const 1))))

  ;; The answer: its place in the high, its length in the low 32 bits.
  (func $answer (result i64)
    (i64.or
      (i64.shl (i64.const 8192) (i64.const 32))
      (i64.extend_i32_u (i32.sub (global.get $out) (i32.const 8192)))))

  ;; Where text (at $what) first occurs in the message at $in, or 0.
  (func $find (param $in i32) (param $size i32) (param $what i32) (param $what_size i32) (result i32)
    (local $end i32)
    (local $i i32)
    (local.set $end (i32.sub (i32.add (local.get $in) (local.get $size)) (local.get $what_size)))
    (block $none
      (loop $next
        (br_if $none (i32.gt_s (local.get $in) (local.get $end)))
        (local.set $i (i32.const 0))
        (block $differs
          (loop $same
            (if (i32.eq (local.get $i) (local.get $what_size))
              (then (return (local.get $in))))
            (br_if $differs
              (i32.ne
                (i32.load8_u (i32.add (local.get $in) (local.get $i)))
                (i32.load8_u (i32.add (local.get $what) (local.get $i)))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $same)))
        (local.set $in (i32.add (local.get $in) (i32.const 1)))
        (br $next)))
    (i32.const 0))

  ;; --- lines of the dataset "notes", or a code below zero
  (func $count_lines (result i64)
    (local $size i64)
    (local $at i64)
    (local $got i64)
    (local $lines i64)
    (local $i i32)
    (local $last i32)
    (local.set $size (call $dataset_size (i32.const 0) (i32.const 5)))
    (if (i64.lt_s (local.get $size) (i64.const 0))
      (then (return (local.get $size))))
    (local.set $last (i32.const 10))
    (block $done
      (loop $chunk
        (br_if $done (i64.ge_u (local.get $at) (local.get $size)))
        (local.set $got
          (call $dataset_read (i32.const 0) (i32.const 5) (local.get $at) (i32.const 4096) (i32.const 4096)))
        (if (i64.lt_s (local.get $got) (i64.const 0))
          (then (return (local.get $got))))
        (br_if $done (i64.eqz (local.get $got)))
        (local.set $i (i32.const 0))
        (loop $byte
          (local.set $last (i32.load8_u (i32.add (i32.const 4096) (local.get $i))))
          (if (i32.eq (local.get $last) (i32.const 10))
            (then (local.set $lines (i64.add (local.get $lines) (i64.const 1)))))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $byte (i32.lt_u (local.get $i) (i32.wrap_i64 (local.get $got)))))
        (local.set $at (i64.add (local.get $at) (local.get $got)))
        (br $chunk)))
    ;; A last line without its line end is a line.
    (if (i32.ne (local.get $last) (i32.const 10))
      (then (local.set $lines (i64.add (local.get $lines) (i64.const 1)))))
    (local.get $lines))

  ;; --- the message: {"datasets":[{"id":"notes","digest":"sha256:..."}], ...}
  (func (export "writ_execute") (param $in i32) (param $size i32) (result i64)
    (local $lines i64)
    (local $digest i32)
    (local.set $lines (call $count_lines))
    (local.set $digest (call $find (local.get $in) (local.get $size) (i32.const 264) (i32.const 7)))
    (if (i32.or (i64.lt_s (local.get $lines) (i64.const 0)) (i32.eqz (local.get $digest)))
      (then
        (call $put (i32.const 271) (i32.const 123))
        (return (call $answer))))
    (call $put (i32.const 16) (i32.const 54))
    (call $put_number (local.get $lines))
    (call $put (i32.const 70) (i32.const 54))
    (call $put_number (local.get $lines))
    (call $put (i32.const 124) (i32.const 101))
    (call $put (local.get $digest) (i32.const 71))
    (call $put (i32.const 225) (i32.const 37))
    (call $put_number (local.get $lines))
    (call $put (i32.const 262) (i32.const 2))
    (call $answer)))
