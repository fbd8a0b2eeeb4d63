-- Sharing with other code on a GPU, on the tests' own driver: capsules of DLPack over device memory, streams of others,
-- and memory and events of two processes.
local lu = require "luaunit"
local command = require "host.support.command"
local fake = require "cuda.support.fake"

local BEGIN = [[
local mr = require "millrace"
local capsules = require "lua.support.capsules"
capsules.driver(os.getenv "MILLRACE_LIBCUDA")
local function collect() collectgarbage() collectgarbage() end
local function expect(value, expected)
  if value ~= expected then error(("%s instead of %s"):format(value, expected), 2) end
end
local function refused(text, ...)
  local ok, message = pcall(...)
  if ok or not tostring(message):find(text, 1, true) then error(tostring(message), 2) end
end
local function bytes(x) return x:cpu():totable() end
local function new(n) return mr.empty(n or 4, { dtype = "u8" }) end
]]

-- The script must end well, and leave nothing behind.
local function run(text, variables)
  local output, status = command.with_file(BEGIN .. text, function(path)
    return fake.run{ limit = 60, variables = variables, "--device", "cuda", path }
  end)
  lu.assertEquals(output, "")
  lu.assertEquals(status, 0)
end

TestDlpack = {}

function TestDlpack.test_device_memory_is_lent()
  run [[
    local x = new()
    mr.memset(x, 7)
    local t = capsules.take(x:dlpack())
    local f = t:facts()
    expect(f.type, 2)
    expect(f.data, x.data_ptr)
    capsules.fill(f.data, 9, 2, mr.current_stream().handle)
    expect(table.concat(bytes(x), " "), "9 9 7 7")
    t:give_back() ]]
end

-- The fill of the consumer would come first, and be overwritten.
function TestDlpack.test_the_consumers_stream_comes_after_what_was_submitted()
  run([[
    local x, s = new(), mr.stream()
    mr.spin { ms = 1 }
    mr.memset_async(x, 7)
    local t = capsules.take(x:dlpack { stream = s })
    capsules.fill(t:facts().data, 9, 4, s.handle)
    s:synchronize()
    expect(table.concat(bytes(x), " "), "9 9 9 9")
    t:give_back() ]], "FAKE_CUDA_KERNEL_MS=100")
end

function TestDlpack.test_lent_memory_stays_past_free_and_goes_with_the_last_loan()
  run [[
    local before = mr.memory.allocated()
    local x = new(4096)
    local first, second = capsules.take(x:dlpack()), capsules.take(x[{ { 5, 8 } }]:dlpack())
    local data = x.data_ptr
    x:free()
    refused("was freed", x.sum, x)
    refused("was freed", x.free, x)
    x = nil
    collect()
    expect(mr.memory.allocated(), before + 4096)
    expect(new(4096).data_ptr == data, false)
    capsules.fill(data, 9, 4096, mr.current_stream().handle)
    first:give_back()
    collect()
    new():dlpack()
    collect()
    expect(mr.memory.allocated(), before + 4096)
    second:give_back_elsewhere()
    new():dlpack()
    collect()
    expect(mr.memory.allocated(), before) ]]
end

function TestDlpack.test_device_memory_is_borrowed_until_its_work_is_done()
  run([[
    local address = capsules.alloc(1024)
    local c, id = capsules.make { type = 2, code = 1, bits = 8, data = address, shape = { 1024 } }
    local x = mr.from_dlpack(c)
    expect(x.device, mr.device(0))
    expect(x.data_ptr, address)
    mr.memset(x, 3)
    expect(bytes(x)[1024], 3)
    mr.spin { ms = 1 }
    mr.memset_async(x, 4)
    x = nil
    collect()
    expect(capsules.deletions(id), 0)
    mr.synchronize()
    collect()
    expect(capsules.deletions(id), 1)
    capsules.free(address) ]], "FAKE_CUDA_KERNEL_MS=100")
end

function TestDlpack.test_a_capsule_of_the_wrong_device()
  run([[
    local address = capsules.alloc(16)
    refused("it is on device 0", mr.from_dlpack, (capsules.make { type = 2, id = 1, data = address, shape = { 2 } }))
    refused("the stream on device 1", mr.from_dlpack, (capsules.make { type = 2, data = address, shape = { 2 } }),
            { stream = mr.stream { device = 1 } })
    capsules.free(address) ]], "FAKE_CUDA_DEVICES=2")
end

function TestDlpack.test_a_reset_does_not_take_what_is_lent()
  run [[
    local x = new():name "x"
    local t = capsules.take(x:dlpack())
    refused("code outside of millrace uses memory of a device (`x` by dlpack)", mr.reset)
    t:give_back()
    mr.reset()
    local y = capsules.take(mr.tensor({ 1 }, { device = "cpu" }):dlpack())
    mr.reset()
    y:give_back() ]]
end

function TestDlpack.test_memory_of_a_graph_is_not_lent()
  run [[
    local y
    local g = mr.graph(function() y = mr.empty(4, { dtype = "u8" }) mr.memset_async(y, 1) end)
    g:launch()
    refused("belongs to a graph", y.dlpack, y) ]]
end

function TestDlpack.test_other_code_may_change_the_current_context()
  run [[
    local x = new()
    capsules.take(x:dlpack()):give_back()
    capsules.forget_context()
    mr.memset(x, 5)
    expect(bytes(x)[4], 5) ]]
end

-- After the script has ended its values are read and written, by a function of atexit.
function TestDlpack.test_a_consumer_that_outlives_the_script()
  run [[
    local x = mr.tensor({ 1, 2 }, { device = "cpu" })
    capsules.keep(capsules.take(x:dlpack()))
    capsules.keep(capsules.take(mr.ones(4, { pinned = true }):dlpack())) ]]
end

TestStreams = {}

function TestStreams.test_a_stream_of_other_code()
  run [[
    local handle, blocking = capsules.stream(), capsules.stream(true)
    local s <const> = mr.stream { handle = handle, name = "theirs" }
    expect(s.handle, handle)
    expect(s.nonblocking, true)
    expect(s.priority, -1)
    expect(s.device, mr.device(0))
    expect(mr.stream { handle = handle }, s)
    expect(mr.stream { handle = capsules.handle(handle) }, s)
    expect(mr.stream { handle = blocking }.nonblocking, false)
    local x = s:run(new)
    s:run(function() mr.memset_async(x, 3) end)
    capsules.fill(x.data_ptr, 4, 2, handle)
    s:synchronize()
    expect(table.concat(bytes(x), " "), "4 4 3 3")
    s:close()
    s:close()
    refused("is closed", function() return s.handle end)
    expect(capsules.done(handle), true)
    mr.synchronize()
    capsules.close_stream(handle)
    refused("the driver does not know it", mr.stream, { handle = handle }) ]]
end

function TestStreams.test_handles_of_our_own_streams()
  run [[
    local s = mr.stream()
    expect(mr.default_stream().handle, 0)
    expect(mr.per_thread_stream().handle, 2)
    expect(mr.stream { handle = 0 }, mr.default_stream())
    expect(mr.stream { handle = 1 }, mr.default_stream())
    expect(mr.stream { handle = 2 }, mr.per_thread_stream())
    expect(mr.stream { handle = s.handle }, s)
    local x = new()
    capsules.fill(x.data_ptr, 6, 4, s.handle)
    s:synchronize()
    expect(bytes(x)[4], 6) ]]
end

function TestStreams.test_what_is_no_stream()
  run [[
    local memory = mr.tensor({ 1, 2 }, { device = "cpu" })
    for _, handle in ipairs { 3, 8, 4096, -8, 1 << 47, math.mininteger } do
      refused("there is nothing at that address", mr.stream, { handle = handle })
    end
    refused("the driver does not know it", mr.stream, { handle = memory.data_ptr })
    refused("option `handle`", mr.stream, { handle = "0x10" })
    refused("option `priority` is for new streams", mr.stream, { handle = 0, priority = -1 })
    refused("option `pool` is for new streams", mr.stream, { handle = 0, pool = true }) ]]
end

function TestStreams.test_a_reset_ends_our_use_and_no_more()
  run [[
    local handle = capsules.stream()
    local s = mr.stream { handle = handle }
    local x = s:run(new)
    mr.memset(x, 1)
    mr.reset()
    refused("before mr.reset()", s.synchronize, s) ]]
end

function TestStreams.test_the_verdict_says_so()
  run [[
    local handle = capsules.stream()
    local s, own = mr.stream { handle = handle }, mr.stream()
    local x, y = s:run(new), own:run(new)
    mr.synchronize()
    local function verdict(stream, tensor)
      local _, totals = mr.hazard.check(function()
        stream:run(function() mr.memset_async(tensor, 3) end)
        stream:synchronize()
      end)
      return totals.claim .. " " .. totals.shared_outside
    end
    expect(verdict(own, y), "every-legal-schedule 0")
    expect(verdict(s, x), "none 2")
    print_nothing = own.handle
    expect(verdict(own, y), "none 2") ]]
end

TestProcesses = {}

-- Says what it finds; `signal` is a file whose appearance lets it go on.
local OTHER = [[
local memory, offset, event, own, signal = ...
local function raw(hex) return (hex:gsub("..", function(byte) return string.char(tonumber(byte, 16)) end)) end
local function hex(text) return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local function wait_for_signal(stream)
  for _ = 1, 400 do
    local file <close> = io.open(signal)
    if file then return end
    stream:query() -- this driver moves when it is asked
    os.execute "sleep 0.05"
  end
  error "no signal"
end
local x = mr.from_ipc_handle(raw(memory), tonumber(offset), 8, { dtype = "u8", name = "theirs" })
local e = mr.event { ipc = raw(event), name = "theirs" }
local s = mr.stream()
s:wait_event(e)
s:run(function() io.write(table.concat(bytes(x), " "), "\n") end)
local f = mr.event { interprocess = true }
s:run(function()
  mr.spin { ms = 1 }
  mr.memset_async(x[{ { 1, 4 } }], 9)
end)
local z = mr.empty(3, { ipc = true, dtype = "u8", stream = s })
s:run(function() mr.memset_async(z, 5) end)
f:record(s)
local handle, at = z[{ { 2, 3 } }]:ipc_handle()
refused("pass on the handle", x.ipc_handle, x)
refused("pass on the handle", e.ipc_handle, e)
io.write(hex(f:ipc_handle()), " ", hex(handle), " ", at, "\n")
io.stdout:flush()
wait_for_signal(s)
e:synchronize()
io.write(table.concat(bytes(z), " "), "\n")
x:free()
mr.memory.empty_cache()
]]

local ONE = [[
local other, signal = ...
local function raw(hex) return (hex:gsub("..", function(byte) return string.char(tonumber(byte, 16)) end)) end
local function hex(text) return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local s = mr.stream()
local x = mr.empty(16, { ipc = true, dtype = "u8" })
local part = x[{ { 5, 12 } }]
local e = mr.event { interprocess = true }
local handle, offset = part:ipc_handle()
expect(#handle, 64)
expect(offset, 4)
refused("CUDA opens one in other processes only", mr.from_ipc_handle, handle, 0, 4)
s:run(function() mr.spin { ms = 1 } mr.memset_async(x, 7) end)
e:record(s)
local program = ("'%s' --device cuda '%s' %s %d %s x '%s'"):format(os.getenv "MILLRACE", other, hex(handle), offset,
                                                                   hex(e:ipc_handle()), signal)
local pipe = io.popen(program)
while not s:query() do os.execute "sleep 0.05" end -- this driver moves when it is asked
expect(pipe:read "l", "7 7 7 7 7 7 7 7")
local event, memory, at = pipe:read("l"):match "(%x+) (%x+) (%d+)"
local f = mr.event { ipc = raw(event) }
f:wait(s)
expect(table.concat(s:run(bytes, x), " "), "7 7 7 7 9 9 9 9 7 7 7 7 7 7 7 7")
expect(f:query(), true)
local z = mr.from_ipc_handle(raw(memory), math.tointeger(at), 2, { dtype = "u8" })
refused("are wanted, and the memory has 3", mr.from_ipc_handle, raw(memory), 1, 3, { dtype = "u8" })
s:run(function() mr.memset_async(z, 4) end)
e:record(s)
s:synchronize()
io.open(signal, "w"):close()
expect(pipe:read "l", "5 4 4")
expect(pipe:close(), true)
local address = x.data_ptr
x, part = nil, nil
collect()
mr.synchronize()
collect()
expect(mr.empty(15, { ipc = true, dtype = "u8" }).data_ptr, address)
]]

function TestProcesses.test_memory_and_events_in_both_directions()
  local signal = os.tmpname()
  os.remove(signal)
  command.with_file(BEGIN .. OTHER, function(other)
    command.with_file(BEGIN .. ONE, function(one)
      local output, status = fake.run{ limit = 20, variables = "FAKE_CUDA_KERNEL_MS=500",
        "--device", "cuda", one, other, signal }
      os.remove(signal)
      lu.assertEquals(output, "")
      lu.assertEquals(status, 0)
    end)
  end)
end

function TestProcesses.test_what_cannot_be_shared()
  run [[
    refused("make it with ipc=true", function() new():ipc_handle() end)
    refused("host memory", function() mr.ones(2, { device = "cpu" }):ipc_handle() end)
    refused("host memory", mr.empty, 2, { ipc = true, pinned = true })
    refused("make it with mr.event{interprocess=true}", function() mr.event():ipc_handle() end)
    refused("leave out timing=true", mr.event, { interprocess = true, timing = true })
    refused("expected ipc, device and name", mr.event, { ipc = ("x"):rep(64), interprocess = true })
    refused("a string of 64 bytes, got a string of another length", mr.event, { ipc = "x" })
    refused("a string of 64 bytes, got a number", mr.from_ipc_handle, 3, 0, 4)
    refused("the driver does not open it", mr.from_ipc_handle, ("x"):rep(64), 0, 4)
    refused("the driver does not open the handle", mr.event, { ipc = ("x"):rep(64) })
    refused("expected a multiple of the 4 bytes", mr.from_ipc_handle, ("x"):rep(64), 2, 4)
    refused("option `device` is for `ipc`", mr.event, { device = 0 }) ]]
end

function TestProcesses.test_a_shared_event_alone()
  run [[
    local e = mr.event { interprocess = true, name = "e" }
    expect(tostring(e), "event `e` (never recorded)")
    expect(e:query(), true)
    e:ipc_handle()
    expect(tostring(e), "event `e`")
    expect(e.device, mr.device(0))
    expect(e:query(), true)
    e:synchronize()
    e:wait()
    e:record()
    e:synchronize()
    mr.event { interprocess = true, blocking = true }:record():synchronize() ]]
end

-- The part of it that needs no other process with PyTorch.
function TestStreams.test_the_script_for_a_gpu()
  local output, status = fake.run{ limit = 40, variables = "FAKE_CUDA_KERNEL_MS=100", "--device", "cuda",
    "tests/gpu/interop.lua", "64" }
  lu.assertStrContains(output, "with a C module in this process")
  lu.assertEquals(status, 0)
end

os.exit(lu.LuaUnit.run())
