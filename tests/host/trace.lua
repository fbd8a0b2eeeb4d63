-- --trace: the whole script is traced and saved, however it ends.
-- not replayed: the scripts run in processes of their own
local lu = require "luaunit"
local command = require "host.support.command"

local path

local function read()
  local file = io.open(path)
  if not file then return nil end
  local text = file:read("a")
  file:close()
  return text
end

local function run(code, options)
  local arguments = options or {}
  for _, word in ipairs { "--device", "virtual", "--trace", path, "-e", code } do
    table.insert(arguments, word)
  end
  return command.run(arguments)
end

TestTrace = {}

function TestTrace.setUp()
  path = os.tmpname() .. ".csv"
end

function TestTrace.tearDown()
  os.remove(path)
  os.remove((path:gsub("%.csv$", "")))
end

function TestTrace.test_has_what_the_script_did_and_did_not_wait_for()
  local result = run("mr.spin{ms = 3} mr.op{name = 'mine', ms = 1}")
  lu.assertEquals(result, { status = 0, out = "", err = "" })
  local row = read():match("[^\n]*mine[^\n]*")
  lu.assertNotNil(row)
  lu.assertStrContains(row, "3.0") -- where it begins
end

function TestTrace.test_is_saved_when_the_script_fails()
  local result = run("mr.spin{ms = 3} error('oops')")
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "oops")
  lu.assertStrContains(read(), "spin")
end

function TestTrace.test_is_saved_by_os_exit()
  lu.assertEquals(run("mr.spin{ms = 3} os.exit(7)").status, 7)
  lu.assertStrContains(read(), "spin")
  os.remove(path)
  lu.assertEquals(run("mr.spin{ms = 3, stream = mr.stream()} " ..
    "mr.current_stream():host_func(function() os.exit(5) end) mr.synchronize()").status, 5)
  lu.assertStrContains(read(), "spin")
end

function TestTrace.test_is_saved_after_ctrl_c()
  local result = run("mr.spin{ms = 3} print('ready') io.stdout:flush() while true do end", { interrupts = 1 })
  lu.assertEquals(result.status, 130)
  lu.assertStrContains(read(), "spin")
end

function TestTrace.test_of_several_streams_says_that_races_are_not_marked_without_the_checker()
  local code = "mr.spin{ms = 1} mr.stream():run(function() mr.spin{ms = 1} end)"
  lu.assertStrContains(run(code).err, "--trace: races are not marked; with --check they are\n")
  lu.assertNotStrContains(run(code, { "--check" }).err, "not marked")
  lu.assertNotStrContains(run("mr.stream() mr.stream()", { "--check" }).err, "not marked")
end

function TestTrace.test_is_saved_when_the_device_is_lost()
  local result = run("mr.machine.fault('illegal-address') mr.synchronize()")
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(read(), "fault")
end

function TestTrace.test_works_in_a_sandbox_in_which_scripts_cannot_write()
  local result = run("mr.spin{ms = 3} print(pcall(function() " ..
    "mr.timeline(function() end):save('" .. path .. "') end))", { "--sandbox" })
  lu.assertStrContains(result.out, "false")
  lu.assertStrContains(read(), "spin")
end

function TestTrace.test_a_wrong_ending_is_told_before_anything_runs()
  local result = command.run { "--trace", "/tmp/x.txt", "-e", "print(1)" }
  lu.assertEquals(result.status, 2)
  lu.assertEquals(result.out, "")
  lu.assertStrContains(result.err, "--trace: a trace cannot be saved as `/tmp/x.txt`")
  lu.assertStrContains(result.err, ".csv, .png")
end

function TestTrace.test_a_missing_folder_is_told_before_anything_runs()
  local result = command.run { "--trace", "/nowhere/at/all.csv", "-e", "print(1)" }
  lu.assertEquals(result.status, 2)
  lu.assertEquals(result.out, "")
  lu.assertStrContains(result.err, "--trace: cannot create `/nowhere/at/all.csv`: No such file or directory")
end

function TestTrace.test_a_file_that_cannot_be_written_is_a_failure()
  local folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir " .. folder)
  path = folder .. "/all.csv"
  local result = run(("mr.spin{ms = 3} os.execute 'rmdir %s'"):format(folder))
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, path)
end

-- The host's lane: calls as dense as they are, and the host's own work on memory.
local LANE = [[
  local mr = require "millrace"
  local d, h = mr.zeros(9), mr.zeros({ 1 << 20 }, { device = "cpu" })
  mr.synchronize()
  mr.timeline(function() for i = 1, 400 do d:add_(1) end end):print{ width = 100, ascii = true, color = false }
  mr.timeline(function() h:pin_memory() mr.synchronize() end):print{ width = 100, ascii = true, color = false }]]

TestHostLane = {}

function TestHostLane.test_calls_and_work()
  local result = command.run{ "--device", "virtual", "-e", LANE }
  lu.assertEquals(result.err, "")
  local lanes = {}
  for lane in result.out:gmatch("\n(host[^\n]*)") do lanes[#lanes + 1] = lane end
  lu.assertStrMatches(lanes[1], "host +[+:]+ +1?[09]%d %%") -- launches, one after the other
  lu.assertStrMatches(lanes[2], "host +%%+ copy_ %%+.* +1?[09]%d %%")
end

TestRaces = {}

local RACE = [[local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(1024)
  mr.synchronize() mr.hazard.mode("collect")
  local function run(waits) return function()
    a:run(function() mr.spin{ms = 1} x:fill_(1) end)
    if waits then b:wait_stream(a) end
    b:run(function() mr.spin{ms = %g} x:sum() end)
    mr.synchronize()
  end end
  mr.timeline(run(%s)):print{width = 90, ascii = %s, color = %s}]]

-- Both accesses are marked, and the edge that is missing has its number; also where the second one begins earlier.
function TestRaces.test_a_race_on_a_terminal()
  for _, case in ipairs { { 0.001, "v%.+!1%.+\nb +" }, { 3, "%.+!1%.+v\nb +" } } do
    local out = command.run { "-e", RACE:format(case[1], "false", "true", "false") }.out
    lu.assertStrMatches(out, ".*\na [^\n]*!.*")
    lu.assertStrMatches(out, ".*" .. case[2] .. "[^\n]*!.*")
    lu.assertStrContains(out, "! takes part in a race")
    lu.assertStrContains(out, ":v the edge that is missing")
    lu.assertStrContains(out, " !1 read-after-write: fill_ (line 4) and sum (line 6); missing: b:wait_stream(a)")
  end
  lu.assertStrContains(command.run { "-e", RACE:format(3, "false", "false", "false") }.out, "╌!1╌")
  lu.assertStrContains(command.run { "-e", RACE:format(3, "false", "false", "true") }.out, "\27[")
  lu.assertNotStrContains(command.run { "-e", RACE:format(3, "true", "true", "false") }.out, "!")
end

TestPng = {}

-- `rsvg-convert` as a script: what it is called with, and what it does.
local function with_converter(script, fn)
  local pipe <close> = io.popen("mktemp -d")
  local folder = pipe:read("l")
  command.write(folder .. "/rsvg-convert", "#!/bin/sh\n" .. script)
  os.execute("chmod +x " .. folder .. "/rsvg-convert")
  local ok, message = pcall(fn, folder, function(picture)
    return command.run { "-e", ("mr.timeline(function() mr.spin{ms = 1} end):save(%q)"):format(picture),
                         environment = "export PATH=" .. folder .. ":/usr/bin:/bin" }
  end)
  os.execute("rm -r " .. command.quote(folder))
  assert(ok, message)
end

-- The converter gets the .svg, and what it makes becomes the file. Its failure is told, and the old file stays.
function TestPng.test_a_converter_makes_it()
  with_converter([[test "$1" = -o && { echo PNG; cat "$3"; } > "$2"]], function(folder, save)
    local picture = folder .. "/a picture.PNG"
    lu.assertEquals(save(picture), { status = 0, out = "", err = "" })
    local file <close> = assert(io.open(picture, "rb"))
    local text = file:read("a")
    lu.assertStrContains(text, "PNG\n<svg ")
    lu.assertStrContains(text, "spin</text>")
    lu.assertStrContains(save(folder .. "/none/x.png").err, "none/x.png")
  end)
  with_converter("echo no room for it; exit 1", function(folder, save)
    command.write(folder .. "/old.png", "old")
    lu.assertStrContains(save(folder .. "/old.png").err, "rsvg-convert could not make a picture: no room for it")
    local file <close> = assert(io.open(folder .. "/old.png", "rb"))
    lu.assertEquals(file:read("a"), "old")
  end)
  local none = command.run { "-e", "mr.timeline(function() end):save('x.png')",
                             environment = "export PATH=/nonexistent" }
  lu.assertStrContains(none.err, "needs one of rsvg-convert, inkscape and magick, and none is in PATH")
  lu.assertEquals(none.status, 1)
end

-- The absence of a converter is said before the script runs.
function TestPng.test_of_a_whole_script()
  local code = "mr.zeros(4):add_(1) print('ran')"
  with_converter([[cat "$3" > "$2"]], function(folder)
    local picture, environment = folder .. "/whole.png", "export PATH=" .. folder .. ":/usr/bin:/bin"
    local found = command.run { "--trace", picture, "-e", code, environment = environment }
    lu.assertEquals(found, { status = 0, out = "ran\n", err = "" })
    lu.assertStrContains(command.read(picture), "add_</text>")
    environment = "export PATH=/nonexistent"
    local none = command.run { "--trace", folder .. "/none.png", "-e", code, environment = environment }
    lu.assertEquals({ none.status, none.out }, { 2, "" })
    lu.assertStrContains(none.err, "--trace: `" .. folder .. "/none.png` needs one of rsvg-convert, inkscape")
    lu.assertNil(io.open(folder .. "/none.png"))
  end)
end

-- A page has the same in a twentieth of the bytes.
function TestTrace.test_the_size_of_a_large_file_is_told()
  local code = "local x = mr.zeros(1) for _ = 1, 36000 do x:add_(1) end"
  for ending, is_told in pairs { json = true, html = false } do
    local name = os.tmpname()
    local result = command.run { "--trace", name .. "." .. ending, "-e", code }
    os.remove(name .. "." .. ending)
    os.remove(name)
    lu.assertEquals(result.status, 0)
    local told = result.err:match " has (%d+) MB, for 360%d+ spans: an .html of them is smaller, and mr.timeline%(fn%)"
    lu.assertEquals(told ~= nil, is_told)
    lu.assertTrue(not is_told or tonumber(told) >= 16)
  end
end

os.exit(lu.LuaUnit.run())
