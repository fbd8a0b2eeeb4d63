-- The results of torch.result_type. Written by make.py: change that. Rows: the first input, which has
-- dimensions; columns: the second, in the order of `dtypes`.
return {
  dtypes = { "bool", "u8", "i32", "i64", "f32", "f64", "f16", "bf16" },
  -- The second has dimensions, too. The same holds if neither has.
  with_dimensions = {
    bool = "bool u8   i32  i64  f32  f64  f16  bf16",
    u8   = "u8   u8   i32  i64  f32  f64  f16  bf16",
    i32  = "i32  i32  i32  i64  f32  f64  f16  bf16",
    i64  = "i64  i64  i64  i64  f32  f64  f16  bf16",
    f32  = "f32  f32  f32  f32  f32  f64  f32  f32",
    f64  = "f64  f64  f64  f64  f64  f64  f64  f64",
    f16  = "f16  f16  f16  f16  f32  f64  f16  f32",
    bf16 = "bf16 bf16 bf16 bf16 f32  f64  f32  bf16",
  },
  -- The second has none.
  without_dimensions = {
    bool = "bool u8   i32  i64  f32  f64  f16  bf16",
    u8   = "u8   u8   u8   u8   f32  f64  f16  bf16",
    i32  = "i32  i32  i32  i32  f32  f64  f16  bf16",
    i64  = "i64  i64  i64  i64  f32  f64  f16  bf16",
    f32  = "f32  f32  f32  f32  f32  f32  f32  f32",
    f64  = "f64  f64  f64  f64  f64  f64  f64  f64",
    f16  = "f16  f16  f16  f16  f16  f16  f16  f16",
    bf16 = "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16",
  },
  -- The second is a number: true, 1, 1.5. The first may have dimensions or not.
  beside_numbers = {
    bool = "bool i64  f32",
    u8   = "u8   u8   f32",
    i32  = "i32  i32  f32",
    i64  = "i64  i64  f32",
    f32  = "f32  f32  f32",
    f64  = "f64  f64  f64",
    f16  = "f16  f16  f16",
    bf16 = "bf16 bf16 bf16",
  },
}
