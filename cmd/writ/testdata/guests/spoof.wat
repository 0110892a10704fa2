;; An executor whose claim would clear a terminal and reorder a line.
(module
  (memory (export "memory") 1)
  (data (i32.const 8192) "{\"claims\":[{\"claim_id\":\"lines\",\"statement\":\"\\u001b[2J\\u202edenied\",\"value\":3,\"evidence\":[]}],\"evidence\":[],\"artifacts\":[]}")
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "writ_free") (param i32 i32))
  (func (export "writ_execute") (param i32 i32) (result i64)
    (i64.or (i64.shl (i64.const 8192) (i64.const 32)) (i64.const 122))))
