-- Tensors to and from a plain C module by DLPack: values, who owns what, and capsules that are wrong. Host memory here,
-- on every backend; device memory of a GPU is in tests/cuda/interop.lua and tests/gpu/interop.lua.
-- not replayed: other code uses the tensors
local lu = require "luaunit"
local mr = require "millrace"
local capsules = require "lua.support.capsules"
local unchecked = require "lua.support.unchecked"

local HOST = { device = "cpu" }
local INT, UINT, FLOAT, BFLOAT, BOOL = 0, 1, 2, 4, 6

local function collect()
  collectgarbage()
  collectgarbage()
end

local function host(values) return mr.tensor(values, { device = "cpu", dtype = "f32" }) end

local function refused(text, ...) lu.assertErrorMsgContains(text, ...) end

-- Bytes of host tensors.
local function live() return mr.memory.stats().host.live end

TestExport = {}

function TestExport.test_facts_of_a_tensor()
  local t = capsules.take(host { { 1, 2, 3 }, { 4, 5, 6 } }:dlpack())
  local f = t:facts()
  lu.assertEquals({ f.type, f.id, f.ndim, f.code, f.bits, f.lanes, f.offset, f.major, f.flags },
                  { 1, 0, 2, FLOAT, 32, 1, 0, 1, 0 })
  lu.assertEquals(f.shape, { 2, 3 })
  lu.assertEquals(f.strides, { 3, 1 })
  for i = 0, 5 do lu.assertEquals(t:get(i), i + 1) end
  t:give_back()
end

function TestExport.test_each_dtype()
  local kinds = { f32 = { FLOAT, 32 }, f64 = { FLOAT, 64 }, f16 = { FLOAT, 16 }, bf16 = { BFLOAT, 16 },
    i32 = { INT, 32 }, i64 = { INT, 64 }, u8 = { UINT, 8 }, bool = { BOOL, 8 } }
  for dtype, kind in pairs(kinds) do
    local x = mr.ones(3, { device = "cpu", dtype = dtype })
    local t = capsules.take(x:dlpack())
    local f = t:facts()
    lu.assertEquals({ f.code, f.bits, f.lanes }, { kind[1], kind[2], 1 }, dtype)
    t:give_back()
    lu.assertEquals(mr.from_dlpack(x:dlpack()).dtype, dtype)
  end
end

function TestExport.test_views_have_their_strides_and_their_first_element()
  local x = mr.arange(12, { device = "cpu", dtype = "f32" }):view(3, 4)
  local whole, part = capsules.take(x:dlpack()), capsules.take(x:t()[2]:dlpack())
  local f = part:facts()
  lu.assertEquals(f.shape, { 3 })
  lu.assertEquals(f.strides, { 4 })
  lu.assertEquals(f.data - whole:facts().data, 4)
  lu.assertEquals({ part:get(0), part:get(4), part:get(8) }, { 1, 5, 9 })
  whole:give_back()
  part:give_back()
end

function TestExport.test_no_dims_and_no_elements()
  local one = capsules.take(host { 7 }[1]:dlpack())
  lu.assertEquals({ one:facts().ndim, one:get(0) }, { 0, 7 })
  local none = capsules.take(mr.zeros(0, 3, HOST):dlpack())
  local f = none:facts()
  lu.assertEquals({ f.shape, f.data }, { { 0, 3 }, 0 })
  one:give_back()
  none:give_back()
end

function TestExport.test_the_older_structure()
  local t = capsules.take(host { 1, 2 }:dlpack { versioned = false })
  lu.assertEquals({ t:facts().major, t:facts().flags, t:get(1) }, { 0, -1, 2 })
  t:give_back()
end

function TestExport.test_what_the_consumer_writes_is_in_the_tensor()
  local x = host { 1, 2 }
  local t = capsules.take(x:dlpack())
  t:set(1, 5)
  lu.assertEquals(x:totable(), { 1, 5 })
  x:fill_(3)
  lu.assertEquals(t:get(0), 3)
  t:give_back()
end

function TestExport.test_pinned_memory()
  local x = mr.full({ 4 }, 2, { pinned = true, dtype = "f32" })
  local t = capsules.take(x:dlpack { stream = mr.current_stream() })
  lu.assertEquals({ t:facts().type, t:get(3) }, { mr.backend == "cuda" and 3 or 1, 2 })
  t:give_back()
end

function TestExport.test_what_cannot_be_exported()
  refused("requires gradients", function() host { 1 }:requires_grad_():dlpack() end)
  refused("was freed", function()
    local x = host { 1 }
    x:free()
    x:dlpack()
  end)
  refused("versioned", function() host { 1 }:dlpack { version = 1 } end)
  refused("a stream", function() host { 1 }:dlpack { stream = "s" } end)
  if mr.backend == "virtual" then
    refused("not on the virtual GPU: its device memory holds the values of a simulation",
            function() mr.zeros(3):dlpack() end)
  end
end

TestLifetime = {}

function TestLifetime:setUp()
  collect()
  mr.from_dlpack(host { 1 }:dlpack()) -- takes back what was given back before
  collect()
  self.before = live()
end

function TestLifetime.test_memory_stays_past_free_and_the_collector()
  local x = host { 1, 2, 3 }
  local t = capsules.take(x:dlpack())
  x:free()
  refused("was freed", function() x:sum() end)
  lu.assertEquals(t:get(2), 3)
  x = nil -- luacheck: ignore
  collect()
  lu.assertEquals(t:get(2), 3)
  t:give_back()
end

function TestLifetime:test_it_goes_when_it_was_given_back_on_any_thread()
  local t = capsules.take(mr.ones(1000, HOST):dlpack())
  collect()
  lu.assertEquals(live(), self.before + 4000)
  t:give_back_elsewhere()
  mr.ones(1, HOST):dlpack()
  collect()
  lu.assertEquals(live(), self.before)
end

function TestLifetime:test_a_capsule_that_nobody_takes_is_given_back()
  mr.ones(1000, HOST):dlpack()
  mr.ones(1000, HOST):dlpack { versioned = false }
  collect()
  lu.assertEquals(live(), self.before)
end

function TestLifetime.test_the_deleter_is_called_once_when_nothing_uses_the_memory()
  local c, id = capsules.make { 1, 2, 3 }
  local x = mr.from_dlpack(c)
  local part = x[{ { 2, 3 } }]
  collect()
  lu.assertEquals(capsules.deletions(id), 0)
  x = nil -- luacheck: ignore
  collect()
  lu.assertEquals(part:totable(), { 2, 3 })
  lu.assertEquals(capsules.deletions(id), 0)
  part = nil -- luacheck: ignore
  c = nil -- luacheck: ignore
  collect()
  lu.assertEquals(capsules.deletions(id), 1)
end

function TestLifetime.test_a_foreign_capsule_that_nobody_takes_is_deleted()
  for _, name in ipairs { "dltensor", "dltensor_versioned" } do
    local id = select(2, capsules.make { 1, name = name })
    collect()
    lu.assertEquals(capsules.deletions(id), 1)
  end
end

function TestLifetime.test_a_pending_copy_keeps_borrowed_memory()
  local c, id = capsules.make { 4, 5, 6 }
  local x = mr.from_dlpack(c)
  local y = mr.zeros(3, { dtype = "f64" })
  mr.synchronize()
  y:copy_(x, { non_blocking = true })
  x = nil -- luacheck: ignore
  collect()
  lu.assertEquals(y:cpu():totable(), { 4, 5, 6 })
  mr.synchronize()
  collect()
  lu.assertEquals(capsules.deletions(id), 1)
end

function TestLifetime.test_freed_borrowed_memory_is_given_back_with_its_last_tensor()
  local c, id = capsules.make { 4, 5 }
  local x = mr.from_dlpack(c)
  x:free()
  refused("was freed", function() x:sum() end)
  x = nil -- luacheck: ignore
  collect()
  lu.assertEquals(capsules.deletions(id), 1)
end

TestImport = {}

function TestImport.test_values_and_writes()
  local c, id = capsules.make { 1, 2, 3, 4, 5, 6, shape = { 2, 3 } }
  local x = mr.from_dlpack(c, { name = "x" })
  lu.assertEquals({ x.dtype, x.shape, x.stride, x.device, x:name() }, { "f64", { 2, 3 }, { 3, 1 }, "cpu", "x" })
  lu.assertEquals(x:totable(), { { 1, 2, 3 }, { 4, 5, 6 } })
  x:add_(10)
  lu.assertEquals(capsules.value(id, 6), 16)
end

function TestImport.test_strides_and_offset()
  local x = mr.from_dlpack((capsules.make { 1, 2, 3, 4, 5, 6, shape = { 3, 2 }, strides = { 1, 3 } }))
  lu.assertEquals(x:totable(), { { 1, 4 }, { 2, 5 }, { 3, 6 } })
  lu.assertEquals(mr.from_dlpack((capsules.make { 1, 2, 3, shape = { 2 }, offset = 8 })):totable(), { 2, 3 })
  local spread = mr.from_dlpack((capsules.make { 7, shape = { 4 }, strides = { 0 } }))
  lu.assertEquals(spread:totable(), { 7, 7, 7, 7 })
  refused("", function() spread:fill_(1) end)
end

function TestImport.test_no_dims_and_no_elements()
  lu.assertEquals(mr.from_dlpack((capsules.make { 9, shape = {} })):item(), 9)
  local c, id = capsules.make { shape = { 3, 0 }, data = 0 }
  local none = mr.from_dlpack(c)
  lu.assertEquals({ none.shape, none.numel }, { { 3, 0 }, 0 })
  none = nil -- luacheck: ignore
  collect()
  lu.assertEquals(capsules.deletions(id), 1)
end

function TestImport.test_the_older_structure_and_no_deleter()
  local c, id = capsules.make { 1, 2, name = "dltensor" }
  local x = mr.from_dlpack(c)
  lu.assertEquals(x:totable(), { 1, 2 })
  x = nil -- luacheck: ignore
  collect()
  lu.assertEquals(capsules.deletions(id), 1)
  for _, name in ipairs { "dltensor", "dltensor_versioned" } do
    lu.assertEquals(mr.from_dlpack((capsules.make { 3, name = name, deleter = 0 })):item(), 3)
    collect()
  end
end

function TestImport.test_there_and_back_is_a_view()
  local x = host { 1, 2, 3 }
  for _, versioned in ipairs { true, false } do
    local y = mr.from_dlpack(x[{ { 2, 3 } }]:dlpack { versioned = versioned })
    lu.assertEquals({ y.storage_id, y:totable() }, { x.storage_id, { 2, 3 } })
  end
  refused("was freed", function()
    local z = host { 1 }
    local c = z:dlpack()
    z:free()
    mr.from_dlpack(c)
  end)
end

function TestImport.test_read_only_memory_is_copied()
  local c, id = capsules.make { 1, 2, flags = 1 }
  refused("{copy=true}", mr.from_dlpack, c)
  local x = mr.from_dlpack(c, { copy = true })
  collect()
  lu.assertEquals(capsules.deletions(id), 1)
  x:fill_(5)
  lu.assertEquals({ x:totable(), capsules.value(id, 1) }, { { 5, 5 }, 1 })
end

function TestImport.test_a_capsule_is_taken_once()
  local c, id = capsules.make { 1 }
  local x = mr.from_dlpack(c)
  refused("was taken before", mr.from_dlpack, c)
  local own = x:dlpack()
  capsules.take(own):give_back()
  refused("was taken before", mr.from_dlpack, own)
  x, c = nil, nil -- luacheck: ignore
  mr.ones(1, HOST):dlpack()
  collect()
  lu.assertEquals(capsules.deletions(id), 1)
end

-- Each of them stays as it was, and is deleted once.
function TestImport.test_capsules_that_are_wrong()
  local wrong = {
    { "version 1", { 1, major = 2 } },
    { "complex128 bits", { 1, code = 5, bits = 128 } },
    { "float64 bits, several in each", { 1, lanes = 2 } },
    { "int7 bits", { 1, code = 0, bits = 7 } },
    { "type code 200", { 1, code = 200 } },
    { "DLPack's type 10", { 1, type = 10 } },
    { "DLPack's type -1", { 1, type = -1 } },
    { "12 dims: expected 0 to 8", { 1, shape = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } } },
    { "-1 dims", { 1, ndim = -1 } },
    { "has no shape", { 1, no_shape = 1 } },
    { "stride -1", { 1, 2, shape = { 2 }, strides = { -1 } } },
    { "", { 1, shape = { -3 } } },
    { "", { 1, shape = { math.maxinteger, math.maxinteger } } },
    { "beyond any memory", { 1, shape = { 2, 2 }, strides = { math.maxinteger, math.maxinteger } } },
    { "beyond any memory", { 1, shape = { 2 }, strides = { 1 << 50 } } },
    { "beyond any memory", { 1, offset = -8 } },
    { "no multiple of the 8 bytes", { 1, 2, shape = { 1 }, offset = 3 } },
    { "elements and no data", { 1, data = 0 } },
  }
  if mr.backend == "virtual" then
    table.insert(wrong, { "on a real GPU", { 1, type = 2 } })
  else
    table.insert(wrong, { "device 77", { 1, type = 2, id = 77 } })
    table.insert(wrong, { "knows no memory of a device", { 1, type = 2 } })
    table.insert(wrong, { "does not know it as such", { 1, type = 3 } })
  end
  for i, case in ipairs(wrong) do
    for _, name in ipairs { "dltensor_versioned", "dltensor" } do
      if not (case[2].major and name == "dltensor") then
        case[2].name = name
        local c, id = capsules.make(case[2])
        local ok, message = pcall(mr.from_dlpack, c)
        lu.assertFalse(ok, ("case %d"):format(i))
        lu.assertStrContains(tostring(message), case[1])
        lu.assertEquals(capsules.deletions(id), 0)
        c = nil -- luacheck: ignore
        collect()
        lu.assertEquals(capsules.deletions(id), 1)
      end
    end
  end
end

function TestImport.test_what_is_no_capsule()
  for _, value in ipairs { 1, "x", {}, print, host { 1 }, capsules.handle(8), io.stdout,
    capsules.userdata "dltensor", capsules.userdata "dltensor_versioned" } do
    refused("from_dlpack", mr.from_dlpack, value)
  end
  refused("a capsule of DLPack", mr.from_dlpack)
  refused("copy", mr.from_dlpack, host { 1 }:dlpack(), { copy = 1 })
end

TestClaims = {}

-- The verdict of what fn does.
local function verdict(fn)
  local _, totals = mr.hazard.check(fn)
  return totals.claim, totals.shared_outside
end

function TestClaims.test_a_call_that_shares_forbids_the_claim()
  lu.assertEquals({ verdict(function() host { 1 }:dlpack() end) }, { "none", 1 })
  lu.assertEquals({ verdict(function() mr.zeros(2):add_(1) end) }, { "every-legal-schedule", 0 })
end

function TestClaims.test_what_was_shared_before_forbids_it_too()
  local x = host { 1, 2 }
  local t = capsules.take(x:dlpack())
  local claim, count = verdict(function() x:fill_(2) end)
  lu.assertEquals(claim, "none")
  lu.assertTrue(count >= 1)
  t:give_back()
  local y = mr.from_dlpack((capsules.make { 1, 2 }))
  lu.assertEquals({ verdict(function() y:fill_(2) end) }, { "none", 1 })
  lu.assertEquals({ verdict(function() mr.zeros(2):add_(1) end) }, { "every-legal-schedule", 0 })
end

-- A read by the consumer, which no wait has made safe.
function TestClaims.test_host_memory_that_the_device_still_writes()
  local reports = mr.hazard.check(function()
    local x, y = mr.ones(4), mr.zeros(4, { pinned = true })
    y:copy_(x, { non_blocking = true })
    y:dlpack()
    mr.synchronize()
  end)
  lu.assertEquals(#reports, 1)
  lu.assertEquals(reports[1].second.op, "dlpack")
  reports = mr.hazard.check(function()
    local x, y = mr.ones(4), mr.zeros(4, { pinned = true })
    y:copy_(x, { non_blocking = true })
    mr.synchronize()
    y:dlpack()
    mr.empty(3, HOST):dlpack() -- for the consumer to fill
  end)
  lu.assertEquals(#reports, 0)
end

function TestClaims.test_schedules_are_not_explored()
  if mr.backend ~= "virtual" then return end
  local x = host { 1 }
  for _, fn in ipairs { function() x:dlpack() end, function() mr.from_dlpack((capsules.make { 1 })) end } do
    refused("sees one order only", mr.explore, fn)
  end
end

-- What needs a real GPU, with the reason.
TestVirtual = {}

if mr.backend == "virtual" then
  function TestVirtual.test_streams_events_and_device_memory_are_not_shared()
    local s = mr.stream()
    local why = { "its streams exist inside this process only", "its events are records of a simulation",
      "its memory is this process's own" }
    refused(why[1], function() return s.handle end)
    refused(why[1], mr.stream, { handle = 0 })
    refused(why[2], mr.event, { interprocess = true })
    refused(why[2], mr.event, { ipc = ("x"):rep(64) })
    refused(why[2], function() mr.event():ipc_handle() end)
    refused(why[3], mr.empty, 4, { ipc = true })
    refused(why[3], mr.zeros, 4, { ipc = true })
    refused(why[3], function() mr.zeros(4):ipc_handle() end)
    refused(why[3], mr.from_ipc_handle, ("x"):rep(64), 0, 4)
  end
end

function TestVirtual.test_options_that_are_wrong()
  refused("is for new streams", mr.stream, { handle = 0, pool = true })
  refused("option `handle`", mr.stream, { handle = {} })
  refused("a string of 64 bytes, got a table", mr.from_ipc_handle, {}, 0, 4)
  refused("options of memory on a device", mr.from_ipc_handle, ("x"):rep(64), 0, 4, { pinned = true })
  refused("host memory", mr.empty, 4, { ipc = true, device = "cpu" })
  refused("ipc", mr.empty, 4, { ipc = 1 })
  refused("leave out timing=true", mr.event, { interprocess = true, timing = true })
  refused("option `device` is for `ipc`", mr.event, { device = 0 })
end

unchecked(TestClaims, "these race, or explore schedules", "test_schedules_are_not_explored",
          "test_host_memory_that_the_device_still_writes")

os.exit(lu.LuaUnit.run())
