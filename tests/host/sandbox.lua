-- timeout: 120
-- --sandbox: limits of an untrusted script: files, resources, and the sandbox itself.
local lu = require "luaunit"
local command = require "host.support.command"

-- Runs code with little time; more options may follow.
local function run(code, ...)
  return command.eval(code, "--sandbox", "--time", "0.5", ...)
end

local function assert_prints(code, expected)
  local result = run(code)
  lu.assertEquals(result.err, "", code)
  lu.assertEquals(result.out, expected .. "\n", code)
end

-- Ends with status 1 and that text, and the script printed nothing.
local function assert_stopped(code, text, ...)
  local result = run(code, ...)
  lu.assertStrContains(result.err, text, false, false, code)
  lu.assertEquals(result.status, 1, code)
  lu.assertEquals(result.out, "", code)
end

local TIME = "--sandbox allows a script 0.5 s (--time SECONDS raises the limit)\n"
local MEMORY = "--sandbox allows a script 16 MB of memory for Lua (--memory MB raises the limit)\n"
local INSTRUCTIONS = "--sandbox allows a script 1000000 instructions (--instructions N raises the limit)\n"

-- ---------------------------------------------------------------- what it sees

TestReach = {}

function TestReach.test_globals_are_these()
  assert_prints([[
    local names = {}
    for name in pairs(_G) do names[#names + 1] = name end
    table.sort(names)
    print(table.concat(names, " "))]],
    "_G _VERSION arg assert collectgarbage coroutine error getmetatable ipairs load math mr next os pairs pcall " ..
    "print rawequal rawget rawlen rawset require select setmetatable string table tonumber tostring type utf8 xpcall")
  assert_prints([[
    local names = {}
    for name in pairs(os) do names[#names + 1] = name end
    table.sort(names)
    print(table.concat(names, " "), string.dump)]], "clock date difftime time\tnil")
end

function TestReach.test_nothing_of_files_processes_or_native_code()
  assert_prints("print(io, debug, package, dofile, loadfile, loadlib, os.execute, os.exit, os.getenv, os.remove, " ..
    "os.rename, os.tmpname, warn)", ("nil\t"):rep(12) .. "nil")
  for _, name in ipairs{ "io", "debug", "package", "lfs", "socket", "./x", "luaunit" } do
    assert_prints(("print(pcall(require, %q))"):format(name),
      ("false\trequire: module '%s' is not available under --sandbox"):format(name))
  end
  assert_prints("print(require 'string' == string, require 'os' == os, require 'millrace' == mr)", "true\ttrue\ttrue")
end

-- The documentation of a function that reaches files says so; under the sandbox there is none of them.
function TestReach.test_no_function_of_the_module_takes_a_path()
  assert_prints([[
    local takes_names_only = {["mr.machine.model"] = true, ["mr.hazard.ignore"] = true, ["mr.hazard.why"] = true}
    for _, name in ipairs{ "kernel", "module" } do -- these read no file here
      assert(select(2, pcall(mr[name], {path = "/etc/passwd"})):find("%-%-sandbox reads no files"))
      takes_names_only["mr." .. name] = true
    end
    assert(not pcall(function() return mr.timeline(function() end).save end))
    assert(not pcall(function() return mr.graph(function() end).save end))
    takes_names_only["graph.save"] = true
    takes_names_only["trace.save"], takes_names_only["trace.critical_path"] = true, true
    takes_names_only["trace.facts"] = true -- it tells the name of the script
    local found = 0
    for _, entry in ipairs((mr.docs())) do
      local text = ((entry.usage or "") .. entry.text):lower()
      if text:find("path") or text:find("%f[%a]files?%f[%A]") then
        local name = entry.owner .. "." .. entry.name
        local value = _G
        for key in name:gmatch("[^.]+") do value = value and rawget(value, key) end
        assert(value == nil and name:find("^mr%.") or takes_names_only[name], name)
        found = found + 1
      end
    end
    print(found > 0, rawget(mr, "save"), rawget(mr, "load"))
    print((select(2, pcall(function() return mr.save end)):gsub("^.*there", "there")))]],
    "true\tnil\tnil\nthere is no `mr.save`: --sandbox has no files")
end

-- A chunk can call itself what it likes: the checker's fix for it must tell nothing about a file of that name.
function TestReach.test_the_checker_reads_no_file()
  local code = ([[
    local x, a, b = mr.zeros(4), mr.stream(), mr.stream()
    mr.synchronize()
    load("local x, a, b = ...\nmr.with(a, function() x:fill_(1) end)\nmr.with(b, function() x:add_(1) end)", "@%s")(
      x, a, b)
  ]])
  local function reports_with(text, ...)
    local options = { "--device", "virtual", "--check", ... }
    return command.with_file(text, function(path)
      options[#options + 1] = "-e"
      options[#options + 1] = code:format(path)
      return (command.run(options).err:gsub(path:gsub("%p", "%%%0"), "FILE"))
    end)
  end
  local plain, odd = "a = 1\nb = 2\nc = 3\n", "x = {\n1,\n2}"
  lu.assertStrContains(reports_with(plain, "--sandbox"), "first=FILE:2 second=FILE:3")
  lu.assertEquals(reports_with(plain, "--sandbox"), reports_with(odd, "--sandbox"))
  lu.assertEquals(reports_with(plain), reports_with(odd)) -- and only those that were run
end

function TestReach.test_device_models_by_name_only()
  for _, path in ipairs{ "./x", "/etc/passwd", "../h200.model", "h200\\0/x" } do
    local result = run(("mr.machine.model('%s')"):format(path))
    lu.assertStrContains(result.err, "takes the name of a model, not a path")
    lu.assertEquals(result.status, 1)
  end
  assert_prints("mr.machine.model('a100') print(mr.machine.model())", "a100")
end

function TestReach.test_no_bytecode()
  local bytecode = "'\\27Lua\\x54\\0\\x19\\x93\\r\\n\\x1a\\n'"
  local refused = "nil\tattempt to load a binary chunk (mode is 't')"
  assert_prints("print(load(" .. bytecode .. "))", refused)
  assert_prints("print(load(" .. bytecode .. ", 'x', 'b'))", refused)
  assert_prints("print(load(" .. bytecode .. ", 'x', 'bt', {}))", refused)
  assert_prints("local t = {" .. bytecode .. "} print(load(function() return table.remove(t) end, 'x', 'b'))", refused)
  assert_prints("print(load('return 1, ...', 'x', 'b')(2))", "1\t2")
  assert_prints("print(load('return y', 'x', 't', {y = 3})(), load('return _ENV', 'x', 't', nil)())", "3\tnil")
  command.with_file("\27Lua", function(path)
    lu.assertStrContains(command.run{ "--sandbox", path }.err, "attempt to load a binary chunk")
  end)
end

function TestReach.test_metatables_are_locked()
  assert_prints("print(getmetatable(''))", "locked")
  assert_prints("print(pcall(setmetatable, '', {}))",
    "false\tbad argument #1 to 'setmetatable' (table expected, got string)")
  assert_prints("string.len = nil print(('x'):upper())", "X")
  assert_prints([[
    for _, object in ipairs{mr.stream(), mr.event(), mr.zeros(1), mr.device(0), mr.machine, mr.memory} do
      assert(type(getmetatable(object)) ~= "table", tostring(object))
    end
    print("locked")]], "locked")
  assert_prints("print(pcall(setmetatable, mr.stream(), {}))",
    "false\tbad argument #1 to 'setmetatable' (table expected, got millrace.stream)")
end

function TestReach.test_no_finalizers()
  assert_prints("print(pcall(setmetatable, {}, {__gc = print}))",
    "false\tsetmetatable: __gc is not available under --sandbox")
  assert_prints("local m = {} local t = setmetatable({}, m) m.__gc = function() print('ran') end t = nil " ..
    "collectgarbage() print('quiet')", "quiet")
  assert_prints("local m = setmetatable({}, {__index = {__gc = function() print('ran') end}}) " ..
    "setmetatable({}, m) collectgarbage() print('quiet')", "quiet")
end

function TestReach.test_the_collector_is_not_for_tuning()
  assert_prints("print(collectgarbage('count') > 0, collectgarbage(), collectgarbage('collect'))", "true\t0\t0")
  for _, option in ipairs{ "stop", "restart", "setpause", "setstepmul", "generational", "incremental", "step" } do
    lu.assertStrContains(run(("collectgarbage('%s')"):format(option)).err, "invalid option '" .. option .. "'")
  end
end

-- A stranger's script may not see anything that the process had in memory before.
function TestReach.test_new_host_memory_is_zero()
  assert_prints([[
local found = 0
for i = 1, 40 do
  local strings = {}
  for j = 1, 100 do strings[j] = ("abcdefgh"):rep(64 + i) .. j end
  strings = nil
  collectgarbage()
  for _, pinned in ipairs{false, true} do
    local t = mr.empty(64 + i, {device = "cpu", dtype = "i64", pinned = pinned})
    for _, value in ipairs(t:totable()) do if value ~= 0 then found = found + 1 end end
  end
end
print(found)]], "0")
end

function TestReach.test_the_testing_module_works()
  assert_prints([[
    local T = require "millrace.testing"
    T.equal(T.expect_deterministic(function() return mr.ones(1):item() end), 1.0, "one")
    T.expect_clean(function() mr.ones(3):add_(1) end)
    print(select(2, pcall(T.equal, 1, 2, "number")):match("number.*"), pcall(T.skip, "no GPU"))]],
    "number: got 1, expected 2\tfalse\tskipped: no GPU")
end

function TestReach.test_the_module_works()
  assert_prints("local s = mr.stream() mr.with(s, function() x = mr.ones(3):add(1) end) print(x:sum():item())", "6.0")
end

-- A FIFO that nobody writes to would stop whoever opens it.
function TestReach.test_a_kernel_asks_for_no_file()
  local folder = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir %s && mkfifo %s/fifo && echo '#error hidden' >%s/file"):format(folder, folder, folder))
  local code = ([=[
    local function says(text, options)
      local ok, message = pcall(mr.kernel, text .. "\n__global__ void f() {}", options)
      if not ok and message.code == "not-supported" then print "no compiler" os = nil error() end
      return tostring(ok) .. tostring(message)
    end
    for _, text in ipairs{'#include "@"', '#if HI("@")\n#error there\n#endif',
      '#if __has_include("@")\n#error there\n#endif'} do
      local said = {}
      for _, name in ipairs{"file", "none", "fifo"} do
        local path = "%s/" .. name
        said[name] = says(text:gsub("@", path), {options = {"-DHI=__has_include"}}):gsub(path, "@")
      end
      assert(said.file == said.none or #said.file == #said.none, said.file)
      assert(said.fifo == said.none, said.fifo)
      assert(not said.file:find "hidden" and not said.file:find "there")
    end
    print "no file"]=]):format(folder)
  local function judge(result)
    if result.out == "no compiler\n" then return false end
    lu.assertEquals(result.out, "no file\n", result.err)
    return true
  end
  local compiles = judge(command.eval(code, "--sandbox", "--time", "0"))
  -- The kernel of the system says the same: each call with such a path is refused before it is carried out.
  if compiles and os.execute("strace -f -o /dev/null true 2>/dev/null") then
    local log = folder .. "/log"
    -- The search for leaks traces the process, too, and two tracers cannot.
    os.execute(("ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 " ..
      "strace -f -o %s %s --sandbox --device virtual -e %s >%s/out 2>&1")
      :format(log, command.quote(command.host), command.quote(code), folder))
    lu.assertEquals(command.read(folder .. "/out"), "no file\n")
    local asked, refused, pending = 0, 0, {}
    for line in io.lines(log) do
      local thread, call = line:match("^(%d+) +(.*)$")
      if pending[thread] and call:find("--- SIGSYS", 1, true) then refused, pending[thread] = refused + 1, nil end
      if call:find(folder .. "/f", 1, true) and call:find("^%l") and not call:find("^write%(") and
        not call:find("^read%(") and not call:find("^sendto%(") and not call:find("^recvfrom%(") and
        not call:find("^execve%(") then
        asked, pending[thread] = asked + 1, true
      end
    end
    lu.assertTrue(asked > 0)
    lu.assertEquals(refused, asked)
  end
  os.execute("rm -r " .. folder)
end

-- ---------------------------------------------------------------- instructions

TestInstructions = {}

function TestInstructions.test_loops_end()
  for _, code in ipairs{
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "local function f() while true do end end while true do xpcall(f, f) end",
    "xpcall(error, function() while true do end end)",
    "coroutine.wrap(function() while true do pcall(function() while true do end end) end end)()",
    "while true do local c = coroutine.create(function() for i = 1, 300 do end end) coroutine.resume(c) end",
    "local function f() local c = coroutine.wrap(f) coroutine.wrap(type)(1) c() end while true do pcall(f) end",
    "while true do local x <close> = setmetatable({}, {__close = function() while true do end end}) end",
    "local m = {__close = function() while true do end end} local co = coroutine.create(function() " ..
      "local x <close> = setmetatable({}, m) coroutine.yield() end) coroutine.resume(co) coroutine.close(co)",
    "error(setmetatable({}, {__tostring = function() while true do end end}))",
    "print(setmetatable({}, {__tostring = function() while true do end end}))",
    "table.sort({1, 2, 3}, function() while true do end end)",
    "load(function() while true do end end)",
    "setmetatable(_G, {__index = function() while true do end end}) x = y",
    "mr.default_stream():host_func(function() while true do end end) mr.synchronize()",
    "while true do mr.default_stream():host_func(function() while true do end end) pcall(mr.synchronize) end",
  } do
    assert_stopped(code, INSTRUCTIONS, "--instructions", "1000000", "--time", "20")
  end
end

function TestInstructions.test_a_script_below_the_limit_ends_well()
  local result = run("for i = 1, 300000 do end print('done')", "--instructions", "1000000")
  lu.assertEquals(result, { status = 0, out = "done\n", err = "" })
end

function TestInstructions.test_no_limit()
  local result = run("for i = 1, 3e6 do end print('done')", "--instructions", "0")
  lu.assertEquals(result.out, "done\n")
end

-- ---------------------------------------------------------------- time

TestTime = {}

function TestTime.test_loops_end()
  for _, code in ipairs{
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "coroutine.wrap(function() while true do pcall(coroutine.wrap(function() while true do end end)) end end)()",
    "while true do pcall(string.rep, 'x', 1e9) end",
  } do
    assert_stopped(code, TIME, "--instructions", "0")
  end
end

function TestTime.test_waits_end()
  local work = "local t = mr.zeros(4096, 4096) for _ = 1, 1000 do t:add_(1) end "
  assert_stopped(work .. "mr.synchronize()", TIME)
  assert_stopped(work .. "while true do pcall(mr.synchronize) end", TIME)
end

function TestTime.test_functions_of_the_libraries_end()
  for _, code in ipairs{
    "table.move({}, 1, 1 << 62, 2)",
    "string.find(('a'):rep(30000), ('.-'):rep(3) .. 'b')",
    "pcall(pcall, table.move, {}, 1, 1 << 62, 2)",
  } do
    assert_stopped(code, TIME)
  end
end

-- ---------------------------------------------------------------- memory

TestMemory = {}

function TestMemory.test_bombs_end()
  for _, code in ipairs{
    "string.rep('x', 1e9)",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} for i = 1, 1e9 do t[i] = i end",
    "local t = {} while true do t = {t} end",
    "local t = {} while true do t[#t + 1] = coroutine.create(print) end",
    "coroutine.wrap(function() local t = {} for i = 1, 1e9 do t[i] = {} end end)()",
    "local function f() return f() + 1 end f()",
    "string.gsub(('x'):rep(1e6), '', ('y'):rep(100))",
    "local t = {} for i = 1, 100 do t[i] = ('x'):rep(1e6) end string.format(('%s'):rep(100), table.unpack(t))",
    "assert(load(function() return 'x = 1 ' end))",
    "table.concat(setmetatable({}, {__len = function() return 10^8 // 1 | 0 end, " ..
      "__index = function() return ('x'):rep(100) end}))",
    "local t = {} while true do t[#t + 1] = mr.stream() end",
    "local t = {} while true do t[#t + 1] = mr.event() end",
  } do
    assert_stopped(code, MEMORY, "--memory", "16", "--time", "20")
  end
end

function TestMemory.test_a_script_may_catch_it()
  local result = run("print(pcall(string.rep, 'x', 1e9)) print(#string.rep('x', 1e6))", "--memory", "16")
  lu.assertEquals(result.out, "false\tnot enough memory\n1000000\n")
end

function TestMemory.test_tensors_end()
  for _, code in ipairs{
    "mr.zeros(1024, 1024, 64)",
    "local t = {} while true do t[#t + 1] = mr.zeros(1024, 1024) end",
    "mr.zeros(1024, 1024, 64, {device = 'cpu'})",
    "mr.empty(1 << 40)",
  } do
    assert_stopped(code, "--device-memory MB raises it", "--device-memory", "64", "--time", "20")
  end
end

-- Rules of the checker are kept outside of Lua's memory: the process as a whole is watched too.
function TestMemory.test_memory_of_the_process_ends()
  local code = "local x = ('x'):rep(190) local i = 0 while true do i = i + 1 mr.hazard.ignore{tensor = x .. i} end"
  assert_stopped(code, ": the script needs more memory than --sandbox allows", "--memory", "16",
    "--device-memory", "16", "--instructions", "0", "--time", "100")
end

-- The most that a run has resident, in bytes.
local function peak(...)
  local seen = os.tmpname()
  command.run{ "--device", "virtual", "--sandbox", "--memory", "16", "--device-memory", "16", "--instructions", "0",
    "--time", "30", "-e", ...,
    -- AddressSanitizer would keep what was freed.
    environment = ("export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=16; " ..
      "(while grep VmHWM /proc/$$/status; do sleep 0.05; done >%s 2>/dev/null) &"):format(seen) }
  local most = 0
  for kilobytes in command.read(seen):gmatch("(%d+) kB") do most = math.max(most, tonumber(kilobytes)) end
  os.remove(seen)
  return most * 1024
end

function TestMemory.test_the_process_stays_near_what_was_asked()
  local processors = io.popen("getconf _NPROCESSORS_ONLN")
  local bound = (16 + 16 + 64 + 8 * processors:read("n")) << 20
  processors:close()
  local names = 4 * bound // 190 -- if they were all kept, they would take four times the bound
  local slack = peak("for i = 1, 1e6 do end") + (32 << 20) -- grown between two looks
  for _, code in ipairs{
    ("local x = ('x'):rep(190) for i = 1, %d do mr.event{name = x .. i}:close() end"):format(names),
    "local t = {} while true do t[#t + 1] = mr.stream() end",
    "local t = {} while true do t[#t + 1] = mr.zeros(1000) end",
    "local a, b = mr.stream(), mr.stream() for i = 1, 300 do mr.with(i % 2 == 0 and a or b, " ..
      "function() mr.zeros(i * 10000):add_(1) end) end",
  } do
    lu.assertTrue(peak(code) < bound + slack, code)
  end
end

function TestMemory.test_garbage_does_not_count()
  -- AddressSanitizer would keep what was freed; without it the line has no effect.
  local result = command.run{ environment = "export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=16",
    "--sandbox", "--memory", "16", "--device-memory", "64", "--time", "20", "-e",
    "for i = 1, 100 do local t = mr.zeros(1024, 1024) local s = ('x'):rep(1e6) end print('done')" }
  lu.assertEquals(result, { status = 0, out = "done\n", err = "" })
end

function TestMemory.test_too_little_to_start()
  local result = run("print(1)", "--memory", "1")
  lu.assertTrue(result.status == 0 or result.err:find("not enough memory") ~= nil)
end

-- ---------------------------------------------------------------- the prompt

TestSandboxedPrompt = {}

function TestSandboxedPrompt.test_each_line_has_the_limits_to_itself()
  local result = command.run{ "--sandbox", "--instructions", "1000000", "-i", input = [[
while true do end
for i = 1, 300000 do end
for i = 1, 300000 do end
print(io, "alive")
]] }
  lu.assertStrContains(result.out, "nil\talive\n")
  lu.assertStrContains(result.err, INSTRUCTIONS)
  lu.assertEquals(result.status, 0)
end

os.exit(lu.LuaUnit.run())
