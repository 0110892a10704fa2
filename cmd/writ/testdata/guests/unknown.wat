;; A module that asks for what no host offers.
(module
  (import "env" "open_file" (func (param i32) (result i32)))
  (import "writ_v1" "shell" (func (param i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func (export "writ_execute") (param i32 i32) (result i64) (unreachable)))
