;; An unknown function, an unknown module, and a right name with a wrong type.
;; refused: import_unknown import_unknown import_type foreign_abi
(module
  (import "env" "abort" (func))
  (import "writ_v1" "open_socket" (func (param i32) (result i32)))
  (import "writ_v1" "clock_now" (func (result i32)))
  (memory (export "memory") 1)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func (export "writ_execute") (param i32 i32) (result i64) (i64.const 0)))
