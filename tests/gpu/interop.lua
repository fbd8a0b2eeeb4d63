-- Memory, streams and events that are shared with other code on a real GPU. PyTorch in another process uses and records
-- events, and reads and writes memory, in both directions. A C module in this process shares by DLPack and streams.
-- timeout: 240
--
--     millrace --device cuda tests/gpu/interop.lua [ELEMENTS]
--
-- Needs python3 with PyTorch for the first part, and capsules.so beside the program for the second one. Says which part
-- it leaves out, and fails if it can do neither.
-- not replayed: other code uses the tensors
-- not checked: other code orders the accesses
local mr = require "millrace"

if mr.backend ~= "cuda" then
  print "skipped: this is about a real GPU"
  os.exit(77)
end

local checks, parts = 0, 0
local function expect(got, expected, what)
  checks = checks + 1
  if got ~= expected then error(("%s: got %s, expected %s"):format(what, tostring(got), tostring(expected)), 2) end
end
local function refused(text, ...)
  local ok, message = pcall(...)
  checks = checks + 1
  if ok or not tostring(message):find(text, 1, true) then error(tostring(message), 2) end
end
local function hex(text) return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
local function raw(text) return (text:gsub("..", function(byte) return string.char(tonumber(byte, 16)) end)) end
local function collect()
  collectgarbage()
  collectgarbage()
end

local N, LONG = tonumber(arg and arg[1]) or 1 << 20, 200 -- elements; milliseconds

-- ---- another process

-- Reads commands from the file that is its argument (a pipe), and answers on its output. Memory is opened and exported
-- by the driver's own calls, as any program may.
local PYTHON = [==[
import ctypes, sys, torch
commands = open(sys.argv[1])
cu = ctypes.CDLL("libcuda.so.1")
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]
def call(name, *arguments):
    result = getattr(cu, name)(*arguments)
    if result: raise RuntimeError("%s: %d" % (name, result))
def handle_of(text):
    handle = Handle()
    ctypes.memmove(ctypes.byref(handle), bytes.fromhex(text), 64)
    return handle
class Memory:
    def __init__(self, address, count):
        self.__cuda_array_interface__ = dict(shape=(count,), typestr="<f4", data=(address, False), version=2)
def say(*words):
    print(*words, flush=True)
torch.zeros(1, device="cuda")
torch.cuda.synchronize()
stream, opened = torch.cuda.Stream(), {}
N = int(sys.argv[2])
say("ready")
for line in commands:
    command, *words = line.split()
    with torch.cuda.stream(stream):
        if command == "open":                      # NAME HANDLE OFFSET COUNT
            base = ctypes.c_uint64()
            call("cuIpcOpenMemHandle_v2", ctypes.byref(base), handle_of(words[1]), ctypes.c_uint(1))
            opened[words[0]] = torch.as_tensor(Memory(base.value + int(words[2]), int(words[3])), device="cuda")
            opened["base of " + words[0]] = base
            say("opened")
        elif command == "event":                   # NAME HANDLE
            opened[words[0]] = torch.cuda.Event.from_ipc_handle(torch.device("cuda", 0), bytes.fromhex(words[1]))
            say("opened")
        elif command == "wait":
            stream.wait_event(opened[words[0]])
            say("waits")
        elif command == "query":
            say(opened[words[0]].query())
        elif command == "record":
            opened[words[0]].record(stream)
            say("recorded")
        elif command == "new":                     # NAME: an event of this process
            opened[words[0]] = torch.cuda.Event(interprocess=True)
            opened[words[0]].record(stream)
            say(opened[words[0]].ipc_handle().hex())
        elif command == "fill":                    # NAME VALUE: long after the call
            torch.cuda._sleep(400000000)
            opened[words[0]].fill_(float(words[1]))
            say("submitted")
        elif command == "sum":
            say(opened[words[0]].sum(dtype=torch.float64).item())
        elif command == "own":                     # NAME: memory of PyTorch
            memory = torch.zeros(N, device="cuda")
            base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), Handle()
            address = ctypes.c_uint64(memory.data_ptr())
            call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), address)
            call("cuIpcGetMemHandle", ctypes.byref(handle), base)
            opened[words[0]] = memory
            stream.synchronize()
            say(bytes(handle).hex(), address.value - base.value)
        elif command == "close":
            torch.cuda.synchronize()
            del opened[words[0]]
            call("cuIpcCloseMemHandle", opened.pop("base of " + words[0]))
            say("closed")
        elif command == "end":
            say("ended")
            break
]==]

local function with_python(fn)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute(("mkdir %s && mkfifo %s/commands"):format(folder, folder)))
  local file <close> = assert(io.open(folder .. "/peer.py", "w"))
  file:write(PYTHON)
  file:close()
  local answers = assert(io.popen(("python3 %s/peer.py %s/commands %d 2>&1"):format(folder, folder, N)))
  local commands = assert(io.open(folder .. "/commands", "w"))
  local function ask(...)
    commands:write(table.concat({ ... }, " "), "\n")
    commands:flush()
    return (assert(answers:read "l", "python has ended"))
  end
  local ready = answers:read "l"
  local ok, message = pcall(function()
    expect(ready, "ready", "python")
    fn(ask)
    expect(ask "end", "ended", "python")
  end)
  commands:close()
  local rest = answers:read "a"
  answers:close()
  os.execute("rm -rf " .. folder)
  if not ok then error(message .. "\n" .. rest, 0) end
end

local function share_with_torch(ask)
  local s, other = mr.stream{ name = "ours" }, mr.stream{ name = "reader" }
  -- Our memory and our event, to PyTorch.
  local whole = mr.zeros(2 * N, { ipc = true, stream = s })
  local x = whole[{ { N + 1, 2 * N } }]
  local done = mr.event{ interprocess = true }
  local handle, offset = x:ipc_handle()
  expect(offset, 4 * N, "offset")
  refused("CUDA opens one in other processes only", mr.from_ipc_handle, handle, 0, N)
  s:run(function()
    mr.spin{ ms = LONG }
    x:fill_(3)
  end)
  done:record(s)
  expect(ask("open", "x", hex(handle), offset, N), "opened", "our memory")
  expect(ask("event", "done", hex(done:ipc_handle())), "opened", "our event")
  expect(ask("wait", "done"), "waits", "our event")
  expect(tonumber(ask("sum", "x")), 3 * N, "PyTorch reads our memory behind our event")
  expect(done:query(), true, "our event")
  -- PyTorch writes, and records its own event.
  expect(ask("fill", "x", 5), "submitted", "a write by PyTorch")
  local event = ask("new", "theirs")
  local theirs = mr.event{ ipc = raw(event), name = "theirs" }
  other:wait_event(theirs)
  expect(other:run(function() return x:sum():item() end), 5.0 * N, "we read behind their event")
  expect(theirs:query(), true, "their event")
  theirs:synchronize()
  -- PyTorch records our event, and we record theirs.
  expect(ask("fill", "x", 7), "submitted", "a write by PyTorch")
  expect(ask("record", "done"), "recorded", "our event, by PyTorch")
  done:wait(other)
  expect(other:run(function() return x:sum():item() end), 7.0 * N, "we read behind our event, which they recorded")
  s:wait_stream(other)
  s:run(function()
    mr.spin{ ms = LONG }
    x:fill_(2)
  end)
  theirs:record(s)
  expect(ask("wait", "theirs"), "waits", "their event")
  expect(tonumber(ask("sum", "x")), 2 * N, "PyTorch reads behind its event, which we recorded")
  -- Memory of PyTorch.
  local memory, at = ask("own", "z"):match "(%x+) (%d+)"
  local z = mr.from_ipc_handle(raw(memory), math.tointeger(tonumber(at)), N, { name = "z", stream = s })
  s:run(function() z:fill_(9) end)
  theirs:record(s)
  expect(ask("wait", "theirs"), "waits", "their event")
  expect(tonumber(ask("sum", "z")), 9 * N, "PyTorch reads its memory, which we wrote")
  local again = mr.from_ipc_handle(raw(memory), math.tointeger(tonumber(at)), N)
  expect(again:sum():item(), 9.0 * N, "memory that is opened twice")
  again, z = nil, nil -- luacheck: ignore
  collect()
  mr.synchronize()
  mr.memory.empty_cache()
  expect(ask("close", "x"), "closed", "our memory")
  theirs:close()
end

if os.execute "python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null" then
  with_python(share_with_torch)
  print(("with PyTorch in another process: %d checks"):format(checks))
  parts = parts + 1
else
  print "left out: there is no python3 with PyTorch"
end

-- ---- a C module in this process

-- Sets bytes, and adds them up on the host: the driver of the tests runs no kernels.
local function set(x, byte) mr.memset_async(x, byte) end
local function total(x) return x:cpu():to("i64"):sum():item() end

local function use_module(capsules)
  collect() -- what the other part has left
  local before = mr.memory.allocated()
  -- A stream of others, and our streams there.
  local handle = capsules.stream()
  local s = mr.stream{ handle = handle, name = "theirs" }
  expect(s.handle, handle, "handle")
  expect(s.nonblocking, true, "flags")
  expect(mr.stream{ handle = handle }, s, "the same stream")
  expect(mr.default_stream().handle, 0, "the default stream")
  expect(mr.stream{ handle = 2 }, mr.per_thread_stream(), "the per-thread stream")
  refused("there is nothing at that address", mr.stream, { handle = 4096 })
  -- Lent device memory, filled by the consumer on that stream behind our work.
  local x = mr.empty(N, { dtype = "u8" })
  mr.spin{ ms = LONG }
  set(x, 1)
  local t = capsules.take(x:dlpack{ stream = s })
  local f = t:facts()
  expect(f.type, 2, "device type")
  expect(f.data, x.data_ptr, "address")
  capsules.fill(f.data, 2, N, handle)
  s:synchronize()
  expect(total(x), 2 * N, "the consumer's values, behind ours")
  x:free()
  x = nil -- luacheck: ignore
  collect()
  expect(mr.memory.allocated(), before + N, "lent memory that was freed")
  capsules.fill(f.data, 3, N, handle)
  t:give_back_elsewhere()
  mr.ones(1, { device = "cpu" }):dlpack()
  collect()
  expect(mr.memory.allocated(), before, "the loan has ended")
  -- Borrowed device memory.
  local address = capsules.alloc(N)
  local c, id = capsules.make{ type = 2, data = address, code = 1, bits = 8, shape = { N } }
  local y = mr.from_dlpack(c)
  set(y, 3)
  expect(total(y), 3 * N, "borrowed memory")
  mr.spin{ ms = LONG }
  set(y, 4)
  y = nil -- luacheck: ignore
  collect()
  expect(capsules.deletions(id), 0, "deletions while work is pending")
  mr.synchronize()
  collect()
  expect(capsules.deletions(id), 1, "deletions")
  capsules.free(address)
  refused("knows no memory of a device", mr.from_dlpack, (capsules.make{ type = 2, shape = { 2 } }))
  -- Pinned memory.
  local p = mr.full({ 4 }, 2, { pinned = true, dtype = "f32" })
  local q = capsules.take(p:dlpack())
  expect(q:facts().type, 3, "device type of pinned memory")
  expect(q:get(3), 2.0, "pinned memory")
  q:give_back()
  capsules.forget_context()
  local z = mr.empty(8, { dtype = "u8" })
  set(z, 1)
  expect(total(z), 8, "after other code has changed the context")
  s:close()
  capsules.close_stream(handle)
end

local folder = (os.getenv "MILLRACE" or "build/millrace"):match "^(.*)/"
local open = package.loadlib(folder .. "/capsules.so", "luaopen_capsules")
if open then
  local capsules = open()
  mr.synchronize()
  capsules.driver(os.getenv "MILLRACE_LIBCUDA" or "libcuda.so.1")
  use_module(capsules)
  print(("with a C module in this process: %d checks in all"):format(checks))
  parts = parts + 1
else
  print "left out: there is no capsules.so beside the program"
end
assert(parts > 0, "nothing was checked")
