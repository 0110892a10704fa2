;; A rule: counts the lines of the dataset "notes" again and compares with the
;; claim, and with the most that its config allows ("lines_max").
(module
  (import "writ_v1" "dataset_size" (func $dataset_size (param i32 i32) (result i64)))
  (import "writ_v1" "dataset_read" (func $dataset_read (param i32 i32 i64 i32 i32) (result i64)))

  (data (i32.const 0) "notes")
  (data (i32.const 16) "\"value\":")
  (data (i32.const 24) "\"lines_max\":")
  (data (i32.const 36) ",")
  (data (i32.const 37) "{\"status\":\"PASS\",\"violations\":[]}")
  (data (i32.const 70) "{\"status\":\"ESCALATE\",\"violations\":[],\"reason\":\"the notes are empty, so there is nothing to judge\"}")
  (data (i32.const 168) "{\"status\":\"FAIL\",\"violations\":[{\"rule_id\":\"recount\",\"subject\":\"lines\",\"message\":\"the data has ")
  (data (i32.const 262) " lines and the claim says otherwise\"}]}")
  (data (i32.const 301) " lines, more than lines_max allows\"}]}")
  (data (i32.const 339) "{\"error\":{\"code\":\"unreadable\",\"message\":\"the dataset notes cannot be read; is it granted to the target?\",\"retryable\":false}}")

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

  ;; The number at $at, which is followed by something that is no digit.
  (func $number (param $at i32) (result i64)
    (local $n i64)
    (local $digit i32)
    (block $done
      (loop $next
        (local.set $digit (i32.sub (i32.load8_u (local.get $at)) (i32.const 48)))
        (br_if $done (i32.gt_u (local.get $digit) (i32.const 9)))
        (local.set $n (i64.add (i64.mul (local.get $n) (i64.const 10)) (i64.extend_i32_u (local.get $digit))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (local.get $n))

  ;; --- the message: {"claims":[{..., "value":N, ...}], "rule":{"config":{"lines_max":N}}, ...}
  (func (export "writ_verify") (param $in i32) (param $size i32) (result i64)
    (local $lines i64)
    (local $at i32)
    (local.set $lines (call $count_lines))
    (if (i64.lt_s (local.get $lines) (i64.const 0))
      (then
        (call $put (i32.const 339) (i32.const 124))
        (return (call $answer))))
    (if (i64.eqz (local.get $lines))
      (then
        (call $put (i32.const 70) (i32.const 98))
        (return (call $answer))))
    ;; Is the claim's value what was counted?
    (call $put (i32.const 16) (i32.const 8))
    (call $put_number (local.get $lines))
    (call $put (i32.const 36) (i32.const 1))
    (local.set $at
      (call $find (local.get $in) (local.get $size) (i32.const 8192) (i32.sub (global.get $out) (i32.const 8192))))
    (global.set $out (i32.const 8192))
    (if (i32.eqz (local.get $at))
      (then
        (call $put (i32.const 168) (i32.const 94))
        (call $put_number (local.get $lines))
        (call $put (i32.const 262) (i32.const 39))
        (return (call $answer))))
    ;; Is it allowed?
    (local.set $at (call $find (local.get $in) (local.get $size) (i32.const 24) (i32.const 12)))
    (if (local.get $at)
      (then
        (if (i64.gt_u (local.get $lines) (call $number (i32.add (local.get $at) (i32.const 12))))
          (then
            (call $put (i32.const 168) (i32.const 94))
            (call $put_number (local.get $lines))
            (call $put (i32.const 301) (i32.const 38))
            (return (call $answer))))))
    (call $put (i32.const 37) (i32.const 33))
    (call $answer)))
