-- mr.save and mr.load: files that NumPy and an independent writer made (tests/data/files/make.py), files that we wrote,
-- and files that are damaged.
local lu = require "luaunit"
local mr = require "millrace"

local DATA = "tests/data/files/"
local TENSORS = dofile(DATA .. "expected.lua")

local folder -- of this run

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read("a")
end

local function write(path, bytes)
  local f <close> = assert(io.open(path, "wb"))
  f:write(bytes)
end

local function path(name) return folder .. "/" .. name end

local function list_folder()
  local pipe <close> = io.popen("ls -A " .. folder)
  return pipe:read("a")
end

-- The message; nothing is enqueued, kept or left in the folder.
local function refused(pieces, f, ...)
  collectgarbage()
  collectgarbage()
  mr.synchronize()
  local before, names = mr.memory.stats(), list_folder()
  local ok, message = pcall(f, ...)
  lu.assertFalse(ok)
  message = tostring(message)
  collectgarbage()
  collectgarbage()
  local after = mr.memory.stats()
  lu.assertEquals({ after.live, after.host.live }, { before.live, before.host.live }, message)
  lu.assertTrue(mr.current_stream():query())
  lu.assertEquals(list_folder(), names)
  lu.assertNil(message:find("\n"), message)
  for _, piece in ipairs(type(pieces) == "table" and pieces or { pieces }) do lu.assertStrContains(message, piece) end
end

TestFiles = {}

function TestFiles.setUp()
  local pipe <close> = io.popen("mktemp -d")
  folder = pipe:read("l")
end

function TestFiles.tearDown() os.execute("rm -rf '" .. folder .. "'") end

-- ---------------------------------------------------------------- reading

function TestFiles.test_npy_files_of_numpy()
  for _, case in ipairs(TENSORS) do
    local name, dtype, shape, values = table.unpack(case)
    for _, where in ipairs{ "cpu", mr.current_device() } do
      local t = mr.load(DATA .. name, { device = where })
      lu.assertEquals({ t.dtype, t.shape }, { dtype, shape }, name)
      lu.assertEquals(t:totable(), values, name)
      lu.assertEquals(tostring(t.device), tostring(where), name)
    end
  end
end

function TestFiles.test_fortran_order_is_a_transposed_view()
  local t = mr.load(DATA .. "fortran_f4.npy")
  lu.assertEquals(t.stride, { 1, 2, 6 })
  lu.assertFalse(t.contiguous)
end

function TestFiles.test_pinned()
  local t = mr.load(DATA .. "c_f4.npy", { pinned = true })
  lu.assertTrue(t.pinned)
  lu.assertTrue(mr.load(DATA .. "mixed.safetensors", { pinned = true }).half.pinned)
end

function TestFiles.test_loading_to_a_device_waits_for_the_copies()
  local s = mr.stream()
  mr.with(s, function()
    local t = mr.load(DATA .. "vector.npy", { device = mr.current_device() })
    lu.assertTrue(s:query())
    lu.assertEquals(t:totable(), { 3, 1, 2 })
  end)
end

function TestFiles.test_safetensors()
  for _, where in ipairs{ "cpu", mr.current_device() } do
    local t, metadata = mr.load(DATA .. "mixed.safetensors", { device = where })
    lu.assertEquals(metadata, { format = "pt", note = 'a "text"' })
    local found = {}
    for name, tensor in pairs(t) do
      found[name] = { tensor.dtype, tensor.shape, tensor:totable() }
    end
    lu.assertEquals(found, {
      ["layer.weight"] = { "f32", { 2, 2 }, { { 1, 2 }, { 3, 4.5 } } },
      half = { "f16", { 3 }, { 1, 0.5, -2 } },
      brain = { "bf16", { 3 }, { 1, -2.5, 3.140625 } },
      ["café \"\\\n😀"] = { "i64", { 1 }, { -7 } },
      flags = { "bool", { 2 }, { true, false } },
      nothing = { "f64", { 0, 4 }, {} },
      single = { "i32", {}, 5 },
      bytes = { "u8", { 2, 1 }, { { 1 }, { 255 } } },
    })
  end
  lu.assertEquals({ mr.load(DATA .. "none.safetensors") }, { {}, {} })
end

-- ---------------------------------------------------------------- what NumPy has and a tensor has not

function TestFiles.test_dtypes_that_tensors_do_not_have()
  local cases = {
    i2 = { "<i2", "int64" }, u4 = { "<u4", "int64" }, f16 = { "float64" }, c8 = { "<c8", "a.real" },
    object = { "Python objects" }, text = { "texts" }, date = { "dates" }, record = { "records" },
  }
  for name, pieces in pairs(cases) do
    refused({ "load: `" .. DATA .. "refused_" .. name .. ".npy`", table.unpack(pieces) }, mr.load,
      DATA .. "refused_" .. name .. ".npy")
  end
  refused("tensor `x` has the dtype I16, which tensors do not have", mr.load, DATA .. "refused_i16.safetensors")
end

-- ---------------------------------------------------------------- damaged files

local function npy(header, data, version)
  return "\x93NUMPY" .. (version or "\1\0") .. string.pack("<s2", header) .. (data or "")
end

function TestFiles.test_damaged_npy_files()
  local good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
  write(path("x.npy"), npy(good, ("\0"):rep(8)))
  lu.assertEquals(mr.load(path("x.npy")):totable(), { 0, 0 })
  local cases = {
    { "", "too short" }, { "PK\3\4 and more", "\\x93NUMPY" }, { "\x93NUMPY", "middle of the header" },
    { npy(good, "", "\4\0"), "version 4.0" }, { npy(good, "", "\1\1"), "version 1.1" },
    { "\x93NUMPY\1\0\255\255{", "middle of the header" }, { "\x93NUMPY\2\0\255\255\255\255{", "4294967295 bytes" },
    { npy(""), "no dict" }, { npy("[]"), "no dict" }, { npy("{}"), "lacks `descr`" },
    { npy("{'descr': '<f4', 'shape': (2,)}"), "lacks `fortran_order`" },
    { npy("{'descr': '<f4', 'fortran_order': False}"), "lacks `shape`" },
    { npy(good .. "x"), "continues after" }, { npy((good:gsub("False", "None"))), "`fortran_order`" },
    { npy((good:gsub("shape", "sharp"))), "unknown key `sharp`" },
    { npy("{'descr': '<f4', 'descr': '<f4'}"), "twice" }, { npy("{'descr': '<f4' 'shape': ()}"), "comma" },
    { npy((good:gsub("<f4", "float"))), "no dtype of NumPy" }, { npy((good:gsub("<f4", "<f-4"))), "no dtype of NumPy" },
    { npy((good:gsub("<f4", ""))), "no dtype of NumPy" }, { npy((good:gsub("<f4", "<f\\x34"))), "no dtype of NumPy" },
    { npy((good:gsub("<f4", "<f4294967300"))), "<f4294967300" },
    { npy((good:gsub("%(2,%)", "(-1,)"))), "no whole number" }, { npy((good:gsub("%(2,%)", "2"))), "no tuple" },
    { npy((good:gsub("%(2,%)", "(2"))), "no whole number" }, { npy((good:gsub("%(2,%)", "(2 2)"))), "no tuple" },
    { npy((good:gsub("%(2,%)", "(9223372036854775808,)"))), "2^63 - 1" },
    { npy((good:gsub("%(2,%)", "(4294967296, 4294967296)"))), "too many elements" },
    { npy((good:gsub("%(2,%)", "(4611686018427387904,)"))), "too many elements" },
    { npy((good:gsub("%(2,%)", "(" .. ("1,"):rep(100) .. ")"))), "dims" },
    { npy(good, "\0\0\0\0\0\0\0"), "needs 8 bytes, and there are 7" },
    { npy((good:gsub("%(2,%)", "(281474976710656,)")), "\0"), "middle of the elements" },
  }
  for _, case in ipairs(cases) do
    write(path("x.npy"), case[1])
    refused({ "load: `", "x.npy`: ", case[2] }, mr.load, path("x.npy"))
    refused({ "load: `", "x.npy`: ", case[2] }, mr.load, path("x.npy"), { device = mr.current_device() })
  end
end

local function safetensors(header, data) return string.pack("<s8", header) .. (data or "") end

function TestFiles.test_damaged_safetensors_files()
  local one = '"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
  local data = ("\0"):rep(8)
  write(path("x.safetensors"), safetensors("{" .. one .. "}  ", data))
  lu.assertEquals(mr.load(path("x.safetensors")).x:totable(), { 0, 0 })
  local function with(from, to) return safetensors("{" .. one:gsub(from, to) .. "}", data) end
  local cases = {
    { "", "middle of the header" }, { "\1\0\0\0\0\0\0", "middle of the header" },
    { ("\255"):rep(8), "18446744073709551615 bytes" }, { "\0\1\0\0\0\0\0\0{}", "middle of the header" },
    { safetensors(""), "expected {" }, { safetensors(" {}"), "expected {" }, { safetensors("[]"), "expected {" },
    { safetensors("{"), "expected a name" }, { safetensors("{}x"), "only blanks" },
    { safetensors("{" .. one .. "," .. one .. "}", data), "the name `x` is there twice" },
    { safetensors("{" .. one .. ",}", data), "expected a name" },
    { safetensors("{" .. one .. one .. "}", data), "expected a comma or }" },
    { safetensors('{"x":1}'), "an object for each tensor" }, { safetensors('{"x":{}}'), "lacks `dtype`" },
    { with('"shape":%[2%],', ""), "lacks `shape`" }, { with('"shape"', '"dtype":"F32","shape"'), "has `dtype` twice" },
    { with("F32", "F31"), "dtype F31" }, { with('"F32"', "32"), "a string for `dtype`" },
    { with("%[2%]", "[2.0]"), "a size from 0" }, { with("%[2%]", "[-2]"), "a size from 0" },
    { with("%[2%]", "[02]"), "a size from 0" }, { with("%[2%]", "[2e0]"), "a size from 0" },
    { with("%[2%]", "[9223372036854775808]"), "a size from 0" }, { with("%[2%]", "{}"), "a list for `shape`" },
    { with("%[2%]", "[4294967296,4294967296]"), "too many elements" },
    { with("%[2%]", "[1" .. (",1"):rep(99) .. "]"), "dims" },
    { with("%[2%]", "[3]"), "has 8 bytes, but its shape and dtype need 12" },
    { with("%[0,8%]", "[8,0]"), "before its begin" }, { with("%[0,8%]", "[0,8,9]"), "[begin, end]" },
    { with("%[0,8%]", "[4,12]"), "middle of tensor `x`" },
    { safetensors("{" .. one .. "}", data .. "\0"), "1 bytes at the end" },
    { safetensors("{" .. one .. "}", "\0"), "middle of tensor `x`" },
    { safetensors('{"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', "\0\0"), "1 bytes before tensor `x`" },
    { safetensors("{" .. one .. ',"y":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}}', data .. "\0\0"),
      "tensors `x` and `y` overlap" },
    { safetensors('{"__metadata__":{"a":1}}'), "only strings" }, { safetensors('{"__metadata__":[]}'), "an object" },
    { safetensors('{"__metadata__":{"a":"1","a":"2"}}'), "`a` twice" },
    { safetensors('{"__metadata__":{},"__metadata__":{}}'), "twice" },
    { safetensors('{"\\u0000":{}}'), "a name" }, { safetensors('{"\\ud800":{}}'), "a name" },
    { safetensors('{"\255":{}}'), "a name" }, { safetensors('{"\1":{}}'), "a name" },
    { safetensors('{"x":{"more":' .. ("["):rep(100000) .. "}}"), "expected a value" },
    { safetensors('{"\\u001b[2J":{}}'), "\\x1b[2J" },
  }
  for _, case in ipairs(cases) do
    write(path("x.safetensors"), case[1])
    refused({ "load: `", "x.safetensors`: ", case[2] }, mr.load, path("x.safetensors"),
      { device = mr.current_device() })
  end
end

function TestFiles.test_unknown_fields_are_skipped()
  write(path("x.safetensors"),
    safetensors('{"x":{"more":[1,-2.5e3,{"a":[null,true,"\\ud83d\\ude00"]}],"dtype":"U8",' ..
    '"shape":[1],"data_offsets":[0,1]}}', "\7"))
  lu.assertEquals(mr.load(path("x.safetensors")).x:totable(), { 7 })
end

function TestFiles.test_bools_are_0_or_1_whatever_the_file_says()
  write(path("x.npy"), npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\2\255"))
  local t = mr.load(path("x.npy"))
  lu.assertEquals(t:totable(), { false, true, true })
  lu.assertEquals(t:sum():item(), 2)
end

-- ---------------------------------------------------------------- writing

function TestFiles.test_what_is_saved_is_loaded()
  mr.manual_seed(1)
  for _, dtype in ipairs{ "bool", "u8", "i32", "i64", "f16", "f32", "f64" } do
    for _, device in ipairs{ "cpu", mr.current_device() } do
      local t = mr.randint(0, 100, { 3, 5 }):to(dtype):to(device)
      for _, view in ipairs{ t, t:t(), t:narrow(2, 2, 3), t[2], t:narrow(1, 1, 0), t[{ 1, 1 }] } do
        mr.save(path("t.npy"), view)
        local back = mr.load(path("t.npy"), { device = device })
        lu.assertEquals({ back.dtype, back.shape }, { view.dtype, view.shape })
        lu.assertTrue(mr.equal(back, view))
      end
    end
  end
  local t = mr.tensor({ 1, -2.5 }, { dtype = "bf16" })
  mr.save(path("all.safetensors"), { t = t, view = mr.rand(4, 4):t() })
  lu.assertEquals(mr.load(path("all.safetensors")).t:totable(), { 1, -2.5 })
end

-- The files that `make.py --check` compares with NumPy are those that are compared with these bytes.
function TestFiles.test_bytes_of_npy()
  mr.save(path("t.npy"), mr.tensor({ { 1, 2, 3 } }, { dtype = "i32", device = "cpu" }))
  local header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 3), }"
  lu.assertEquals(read(path("t.npy")),
    npy(header .. (" "):rep(128 - 10 - #header - 1) .. "\n", string.pack("<i4i4i4", 1, 2, 3)))
  mr.save(path("t.npy"), mr.load(DATA .. "vector.npy"))
  lu.assertEquals(#read(path("t.npy")), #read(DATA .. "vector.npy"))
end

function TestFiles.test_bytes_of_safetensors()
  local t = { b = mr.tensor({ true }), a = mr.tensor({ 1, 2 }), c = mr.tensor({ 0.5 }) }
  mr.save(path("t.safetensors"), t, { metadata = { z = "1", y = "ü" } })
  local header = '{"__metadata__":{"y":"ü","z":"1"},"a":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},' ..
    '"c":{"dtype":"F32","shape":[1],"data_offsets":[16,20]},"b":{"dtype":"BOOL","shape":[1],"data_offsets":[20,21]}}'
  lu.assertEquals(read(path("t.safetensors")), safetensors(header .. (" "):rep(-#header % 8),
    string.pack("<i8i8fB", 1, 2, 0.5, 1)))
end

function TestFiles.test_an_old_file_survives_what_fails()
  mr.save(path("t.npy"), mr.tensor({ 1 }))
  local old, t = read(path("t.npy")), mr.ones(1)
  local freed = mr.ones(4)
  freed:free()
  refused("freed", mr.save, path("t.npy"), freed)
  lu.assertEquals(read(path("t.npy")), old)
  refused("cannot create", mr.save, path("nowhere/t.npy"), t)
  os.execute("mkdir " .. path("d.npy"))
  refused("is a folder", mr.save, path("d.npy"), t)
end

function TestFiles.test_a_full_disk()
  local f = io.open("/dev/full", "wb")
  if not f then return end -- other systems
  f:close()
  os.execute("ln -s /dev/full " .. path("full.npy"))
  refused("cannot write", mr.save, path("full.npy"), mr.ones(100000))
end

function TestFiles.test_wrong_calls()
  local t = mr.ones(2)
  refused("expected a name that ends with .npy or .safetensors", mr.save, path("t.pt"), t)
  refused("expected a name that ends with .npy or .safetensors", mr.load, path("t.pt"))
  refused("cannot open", mr.load, path("missing.npy"))
  os.execute("mkdir " .. path("d.npy"))
  refused("a regular file", mr.load, path("d.npy"))
  refused("goes into a .safetensors file", mr.save, path("t.npy"), { t = t })
  refused("save {name = t}", mr.save, path("t.safetensors"), t)
  refused("found a number as a key", mr.save, path("t.safetensors"), { t })
  refused("`a` is a table, expected a tensor", mr.save, path("t.safetensors"), { a = { t } })
  refused("cannot be the name", mr.save, path("t.safetensors"), { __metadata__ = t })
  refused("no UTF-8", mr.save, path("t.safetensors"), { ["\255"] = t })
  refused("NUL", mr.save, path("t.safetensors"), { ["a\0b"] = t })
  refused("`epoch` is a number, expected a string", mr.save, path("t.safetensors"), { a = t },
    { metadata = { epoch = 3 } })
  refused("no metadata", mr.save, path("t.npy"), t, { metadata = {} })
  refused("expected a tensor or a table of tensors", mr.save, path("t.npy"), 3)
  refused("expected the path of a file", mr.save, t, t)
  refused("NUL", mr.load, "a\0.npy")
  refused('save t:to("f32")', mr.save, path("t.npy"), mr.ones(1, { dtype = "bf16" }))
end

function TestFiles.test_loading_a_pipe_does_not_hang()
  os.execute("mkfifo " .. path("pipe.npy"))
  refused("a regular file", mr.load, path("pipe.npy"))
end

os.exit(lu.LuaUnit.run())
