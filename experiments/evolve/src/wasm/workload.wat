;; The module of the fixed workload. Each mode covers one kind of computation in which two WebAssembly interpreters could
;; differ; the first gene chooses the mode. `cargo test -p evoxo-generate` writes workload.wasm.
;;
;; Genes: the mode (an integer), then four real numbers. Answers: an objective, a constraint and two measures.
(module
  (memory (export "memory") 1 3)
  (table 3 funcref)
  (elem (i32.const 0) $add $other)
  (type $binary (func (param f64 f64) (result f64)))
  (type $unary (func (param f64) (result f64)))
  (global $kept (mut i32) (i32.const 0))
  (data (i32.const 512) "\01\02\03\04\05\06\07\08")

  (func $add (type $binary) (f64.add (local.get 0) (local.get 1)))
  (func $other (type $unary) (f64.neg (local.get 0)))
  (func $deep (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))
  (func $sum (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (i32.add (local.get $n) (call $sum (i32.sub (local.get $n) (i32.const 1)))))
      (else (i32.const 0))))
  ;; The bits of a number, as two numbers that can be compared even if the number is a NaN.
  (func $bits (param $at i32) (param $x f64)
    (f64.store (local.get $at) (f64.convert_i64_u (i64.shr_u (i64.reinterpret_f64 (local.get $x)) (i64.const 32))))
    (f64.store offset=8 (local.get $at)
      (f64.convert_i64_u (i64.and (i64.reinterpret_f64 (local.get $x)) (i64.const 0xffffffff)))))
  (func $bits32 (param $at i32) (param $x f32)
    (f64.store (local.get $at) (f64.convert_i32_u (i32.reinterpret_f32 (local.get $x)))))

  ;; Every candidate must start with fresh globals. If one kept this global set, the next would get 0 here: no room.
  (func (export "evoxo_buffer") (param i32) (result i32)
    (if (global.get $kept) (then (return (i32.const 0))))
    (global.set $kept (i32.const 1))
    (i32.const 1024))

  (func (export "evoxo_evaluate") (param $at i32) (param $bytes i32) (param $seed i64) (result i32)
    (local $a f64) (local $b f64) (local $c f64) (local $d f64) (local $mode i32)
    (local.set $mode (i32.wrap_i64 (i64.load (local.get $at))))
    (local.set $a (f64.load offset=8 (local.get $at)))
    (local.set $b (f64.load offset=16 (local.get $at)))
    (local.set $c (f64.load offset=24 (local.get $at)))
    (local.set $d (f64.load offset=32 (local.get $at)))
    (block $m15 (block $m14 (block $m13 (block $m12 (block $m11 (block $m10 (block $m9 (block $m8
    (block $m7 (block $m6 (block $m5 (block $m4 (block $m3 (block $m2 (block $m1 (block $m0
      (br_table $m0 $m1 $m2 $m3 $m4 $m5 $m6 $m7 $m8 $m9 $m10 $m11 $m12 $m13 $m14 $m15 (local.get $mode)))
      ;; 0: double precision.
      (f64.store (local.get $at) (f64.div (f64.mul (local.get $a) (local.get $b)) (f64.add (local.get $c) (local.get $d))))
      (f64.store offset=8 (local.get $at) (f64.sqrt (f64.abs (local.get $a))))
      (f64.store offset=16 (local.get $at) (f64.min (f64.floor (local.get $b)) (f64.ceil (local.get $c))))
      (f64.store offset=24 (local.get $at)
        (f64.max (f64.nearest (local.get $d)) (f64.copysign (f64.trunc (local.get $a)) (local.get $b))))
      (return (i32.const 4)))
      ;; 1: single precision.
      (f64.store (local.get $at)
        (f64.promote_f32 (f32.div (f32.demote_f64 (local.get $a)) (f32.mul (f32.demote_f64 (local.get $b)) (f32.const 3)))))
      (f64.store offset=8 (local.get $at) (f64.promote_f32 (f32.sqrt (f32.abs (f32.demote_f64 (local.get $c))))))
      (f64.store offset=16 (local.get $at) (f64.promote_f32 (f32.nearest (f32.demote_f64 (local.get $d)))))
      (f64.store offset=24 (local.get $at)
        (f64.promote_f32 (f32.sub (f32.demote_f64 (local.get $a)) (f32.demote_f64 (local.get $b)))))
      (return (i32.const 4)))
      ;; 2: the bits of a NaN.
      (call $bits (local.get $at) (f64.div (f64.const 0) (f64.sub (local.get $a) (local.get $a))))
      (call $bits (i32.add (local.get $at) (i32.const 16))
        (f64.add (f64.reinterpret_i64 (i64.const 0xfff4000000001234)) (local.get $a)))
      (return (i32.const 4)))
      ;; 3: the bits of a NaN, with other operations and widths.
      (call $bits32 (local.get $at) (f32.demote_f64 (f64.reinterpret_i64 (i64.const 0xfff8000000001234))))
      (call $bits32 (i32.add (local.get $at) (i32.const 8))
        (f32.max (f32.reinterpret_i32 (i32.const 0xff812345)) (f32.demote_f64 (local.get $a))))
      (call $bits (i32.add (local.get $at) (i32.const 16)) (f64.sqrt (f64.const -1)))
      (return (i32.const 4)))
      ;; 4: integers, and the seed.
      (f64.store (local.get $at) (f64.convert_i64_s (i64.mul (local.get $seed) (i64.const 0x5851f42d4c957f2d))))
      (f64.store offset=8 (local.get $at) (f64.convert_i64_u (i64.rotl (local.get $seed) (i64.const 23))))
      (f64.store offset=16 (local.get $at)
        (f64.convert_i32_s (i32.rem_s (i32.wrap_i64 (local.get $seed)) (i32.const 1000003))))
      (f64.store offset=24 (local.get $at)
        (f64.convert_i64_s (i64.add (i64.clz (local.get $seed)) (i64.popcnt (local.get $seed)))))
      (return (i32.const 4)))
      ;; 5: saturating conversions and sign extension.
      (f64.store (local.get $at) (f64.convert_i32_s (i32.trunc_sat_f64_s (f64.mul (local.get $a) (f64.const 1e12)))))
      (f64.store offset=8 (local.get $at) (f64.convert_i64_u (i64.trunc_sat_f64_u (local.get $b))))
      (f64.store offset=16 (local.get $at) (f64.convert_i32_s (i32.extend8_s (i32.wrap_i64 (local.get $seed)))))
      (f64.store offset=24 (local.get $at) (f64.convert_i64_s (i64.extend16_s (local.get $seed))))
      (return (i32.const 4)))
      ;; 6: filling, copying and growing memory, up to the maximum that the module declares.
      (memory.fill (i32.const 600) (i32.const 7) (i32.const 9))
      (memory.copy (i32.const 604) (i32.const 510) (i32.const 9))
      (f64.store (local.get $at) (f64.convert_i64_u (i64.load (i32.const 601))))
      (f64.store offset=8 (local.get $at) (f64.convert_i64_u (i64.load (i32.const 605))))
      (f64.store offset=16 (local.get $at) (f64.convert_i32_s (memory.grow (i32.const 2))))
      (f64.store offset=24 (local.get $at) (f64.convert_i32_s (memory.grow (i32.const 1))))
      (return (i32.const 4)))
      ;; 7: calls, direct and through the table.
      (f64.store (local.get $at) (call_indirect (type $binary) (local.get $a) (local.get $b) (i32.const 0)))
      (f64.store offset=8 (local.get $at) (call_indirect (type $unary) (local.get $c) (i32.const 1)))
      (f64.store offset=16 (local.get $at) (f64.convert_i32_s (call $sum (i32.const 500))))
      (f64.store offset=24 (local.get $at)
        (select (local.get $a) (local.get $b) (f64.lt (local.get $a) (local.get $b))))
      (return (i32.const 4)))
      ;; 8: an endless loop, which uses up the fuel.
      (loop $forever (br $forever)))
      ;; 9: endless recursion.
      (return (call $deep (i32.const 1))))
      ;; 10: an access outside the memory.
      (return (i32.load (i32.const 0x10000000))))
      ;; 11: an indirect call of a function of the wrong type.
      (f64.store (local.get $at) (call_indirect (type $binary) (local.get $a) (local.get $b) (i32.const 1)))
      (return (i32.const 4)))
      ;; 12: a division by zero.
      (return (i32.div_s (i32.const 1) (i32.eqz (local.get $mode)))))
      ;; 13: converting a NaN to an integer.
      (return (i32.trunc_f64_s (f64.sqrt (f64.const -1)))))
      ;; 14: an infinite number as an answer.
      (f64.store offset=16 (local.get $at) (f64.div (f64.const 1) (f64.const 0)))
      (return (i32.const 4)))
    ;; 15: no answer: an error code.
    (i32.const -7))
)
