-- Writes files of tensors to the folder of the first argument; `make.py --check` reads them with NumPy.
-- millrace write.lua DIR && python3 make.py --check DIR
local mr = require "millrace"

local dir = arg[1]
local function save(name, values, dtype) mr.save(dir .. "/" .. name .. ".npy", mr.tensor(values, { dtype = dtype })) end
save("f64", { { 1.5, -2.25, 1e308 }, { 5e-324, math.huge, 0.1 } }, "f64")
save("f32", { { 1.5, -2.25 }, { -math.huge, 0.1 } }, "f32")
save("f16", { 1.5, 65504, 6e-8 }, "f16")
save("i32", { -2^31|0, 2^31-1|0 }, "i32") save("i64", { math.mininteger, math.maxinteger }, "i64")
save("u8", { 0, 255 }, "u8") save("bool", { true, false }, "bool")
mr.save(dir .. "/transposed.npy", mr.arange(6, {dtype="f32"}):view(2, 3):t())
save("scalar", 2.5, "f32") mr.save(dir .. "/empty.npy", mr.zeros(0, 3))
mr.save(dir .. "/deep.npy", mr.arange(24):view(1, 2, 3, 1, 4, 1))
local w = mr.tensor({ { 1.0, 2 }, { 3, 4 } })
mr.save(dir .. "/all.safetensors", { w = w, t = w:t(),
  ["café \"\\\n"] = mr.tensor{ 7 }, flags = mr.tensor{ true, false },
  half = mr.tensor({ 0.5, -2 }, { dtype = "f16" }), brain = mr.tensor({ 1, -2.5 }, { dtype = "bf16" }),
  none = mr.zeros(0, 2, { dtype = "f64" }) }, { metadata = { format = "pt", epoch = "3" } })
