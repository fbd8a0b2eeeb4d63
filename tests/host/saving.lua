-- timeout: 120
-- Files are there whole or not at all, whatever ends the process; what replaces a file keeps its owner, its
-- permissions and the links to it.
local lu = require "luaunit"
local command = require "host.support.command"

local function pipe(line)
  local out = io.popen(line)
  local text = out:read("a")
  out:close()
  return text
end

local folder

-- Runs a shell line in an empty folder, where HOST stands for the program; returns what is printed.
local function shell(line)
  local host = command.quote(command.host) .. " --device virtual"
  local script = ("cd %s && { %s; } 2>&1"):format(folder, (line:gsub("HOST", (host:gsub("%%", "%%%%")))))
  return pipe(("timeout -k 5 %d sh -c %s"):format(command.wall_limit, command.quote(script)))
end

local function save(name)
  return ("HOST -e 'print(pcall(mr.save, \"%s\", mr.ones(1000)))'"):format(name)
end

-- The sizes of the .npy files that are complete (128 bytes of header and 4000 of data), by `ls`.
local WHOLE = 4128

TestSaving = {}

function TestSaving:setUp()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder .. " && chmod 755 " .. folder))
end

function TestSaving:tearDown()
  os.execute("rm -rf " .. folder)
end

local function facts(name) return shell("stat -c '%a %u %s %F' " .. name) end

function TestSaving.test_permissions_stay()
  lu.assertEquals(shell("touch a.npy; chmod 640 a.npy; " .. save("a.npy")), "true\n")
  lu.assertStrMatches(facts("a.npy"), "640 %d+ " .. WHOLE .. " regular file\n")
  lu.assertEquals(shell("umask 027; " .. save("new.npy")), "true\n")
  lu.assertStrMatches(facts("new.npy"), "640 %d+ " .. WHOLE .. " regular file\n")
end

function TestSaving.test_a_file_that_is_read_only_is_not_replaced()
  local said = shell("echo old >a.npy; chmod 444 a.npy; " .. save("a.npy") .. "; cat a.npy")
  lu.assertStrMatches(said, "false\t.*save: cannot write `a.npy`: the file is read%-only %(mode 444%)\nold\n")
end

function TestSaving.test_links()
  lu.assertEquals(shell("mkdir sub; ln -s sub/target.npy a.npy; " .. save("a.npy")), "true\n") -- it leads nowhere yet
  lu.assertStrMatches(facts("a.npy"), ".* symbolic link\n")
  lu.assertStrMatches(facts("sub/target.npy"), ".* " .. WHOLE .. " regular file\n")
  lu.assertEquals(shell("ln -s ../a.npy sub/b.npy; : >sub/target.npy; " .. save("sub/b.npy")), "true\n") -- of a link
  lu.assertStrMatches(facts("sub/target.npy"), ".* " .. WHOLE .. " regular file\n")
  lu.assertEquals(shell("touch one.npy; ln one.npy two.npy; " .. save("one.npy") .. "; cmp one.npy two.npy"), "true\n")
  lu.assertStrContains(shell("ln -s loop.npy loop.npy; " .. save("loop.npy")), "Too many levels of symbolic links")
end

function TestSaving.test_the_longest_names()
  lu.assertEquals(shell(save(("n"):rep(251) .. ".npy")), "true\n")
  lu.assertStrContains(shell(save(("n"):rep(252) .. ".npy")), "File name too long")
end

-- As somebody who owns neither the file nor the folder, where the test is root.
local function as_another(line)
  if pipe("id -u") ~= "0\n" then return nil end
  local other = "setpriv --reuid=65534 --regid=65534 --clear-groups "
  if shell(other .. command.quote(command.host) .. " --version >/dev/null && echo can") ~= "can\n" then return nil end
  return shell((line:gsub("HOST", other .. "HOST")))
end

function TestSaving.test_the_owner_stays_and_a_folder_need_not_be_ours()
  shell("touch a.npy b.npy; chmod 666 a.npy; chmod 600 b.npy")
  local said = as_another(save("a.npy"))
  if not said then return lu.skip("only root can be somebody else") end
  lu.assertEquals(said, "true\n")
  lu.assertEquals(facts("a.npy"), "666 0 " .. WHOLE .. " regular file\n")
  lu.assertStrContains(as_another(save("b.npy")), "cannot write `b.npy`: Permission denied")
  lu.assertStrContains(as_another(save("c.npy")), "cannot create `c.npy`: Permission denied")
  shell("touch theirs.npy; chown 65534:65534 theirs.npy; " .. save("theirs.npy"))
  lu.assertEquals(facts("theirs.npy"), "644 65534 " .. WHOLE .. " regular file\n")
end

function TestSaving.test_a_limit_on_the_size_of_files()
  local large = "HOST -e 'print(pcall(mr.save, \"%s\", mr.ones(100000)))'"
  local said = shell("echo old >a.npy; (ulimit -f 8; " .. large:format("a.npy") .. "); cat a.npy; ls -A")
  lu.assertStrMatches(said, "false\t.*save: cannot write `a.npy`: File too large\nold\na.npy\n")
  said = shell("touch b.npy; ln b.npy c.npy; (ulimit -f 8; " .. large:format("b.npy") .. "); stat -c %s c.npy; ls -A")
  lu.assertStrMatches(said, "false\t.*save: cannot write `b.npy`: File too large\n0\na.npy\nb.npy\nc.npy\n")
  said = shell("(ulimit -f 8; HOST -e 'print(io.open(\"d\", \"w\"):write((\"x\"):rep(1e6)))')")
  lu.assertStrMatches(said, "nil\tFile too large\t%d+\n")
end

function TestSaving.test_a_pipe_whose_reader_has_gone()
  local said = shell("mkfifo p.npy; (head -c 10 p.npy >/dev/null &) ; " ..
    "HOST -e 'print(pcall(mr.save, \"p.npy\", mr.ones(1000000)))'; ls -A")
  lu.assertStrMatches(said, "false\t.*save: cannot write `p.npy`: Broken pipe\np.npy\n")
end

-- A signal that the saving thread holds back must not end the process through another of its threads: all but one of
-- them block SIGTERM.
function TestSaving.test_other_threads_leave_signals_to_the_one_that_saves()
  -- From outside while the process reads: starting a command blocks all signals for a moment.
  local said = shell("mkfifo ready go; MILLRACE_THREADS=3 HOST -e 'mr.ones(1 << 22, {device = \"cpu\"}):mul_(2) " ..
    "io.open(\"ready\", \"w\"):close() io.open(\"go\"):read()' & " ..
    "cat ready; grep -h SigBlk /proc/$!/task/*/status; echo >go; wait")
  local TERM, threads, open_to_it = 1 << 14, 0, 0
  for blocked in said:gmatch("SigBlk:%s*(%x+)") do
    threads = threads + 1
    if tonumber(blocked, 16) & TERM == 0 then open_to_it = open_to_it + 1 end
  end
  lu.assertTrue(threads > 1, said)
  lu.assertEquals(open_to_it, 1, said)
end

-- A process that saves without an end is ended at some moment, many times.
function TestSaving.test_a_signal_leaves_no_other_file_and_no_half_one()
  command.write(folder .. "/loop.lua", [[
    local mr = require "millrace"
    local t, value = mr.empty(1 << 18, {device = "cpu"}), 0
    while true do
      value = value + 1
      mr.save("a.npy", t:fill_(value))
    end]])
  local binaries = command.host:match("^(.*)/[^/]*$") or "."
  local programs = {"HOST"}
  if io.open(binaries .. "/millrace.so") then -- not under sanitizers
    programs[2] = ("env LUA_CPATH=%s lua5.4"):format(command.quote(binaries .. "/?.so"))
  end
  for _, program in ipairs(programs) do
    for _, signal in ipairs{ "TERM", "HUP" } do
      for _ = 1, 3 do
        local line = "%s loop.lua & p=$!; until [ -e a.npy ] || ! kill -0 $p; do sleep 0.01; done; " ..
          "sleep 0.%02d; kill -%s $p; wait $p"
        shell(line:format(program, math.random(0, 9), signal))
        lu.assertEquals(shell("ls -A"), "a.npy\nloop.lua\n")
        lu.assertEquals(shell("HOST -e 't = mr.load(\"a.npy\") print(#t, t:max():item() == t:min():item())'; rm a.npy"),
          "262144\ttrue\n")
      end
    end
  end
end

-- ---------------------------------------------------------------- the end of the process

TestEnd = { setUp = TestSaving.setUp, tearDown = TestSaving.tearDown }

local RACE = [[
local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(4, {name = "x"})
mr.synchronize()
mr.with(a, function() x:fill_(1) end)
mr.with(b, function() x:add_(1) end)
io.open("ready", "w"):close()
%s]]

-- Sends the signal as soon as the script is ready; returns what was said, and the status.
local function ended_by(signal, options, rest)
  command.write(folder .. "/race.lua", RACE:format(rest))
  return shell(("rm -f ready; HOST %s race.lua & p=$!; until [ -e ready ]; do sleep 0.01; done; sleep 0.05; " ..
    "kill -%s $p; wait $p; echo status $?"):format(options, signal))
end

function TestEnd.test_the_trace_and_the_verdict_come_after_a_signal()
  for signal, status in pairs{ TERM = 143, HUP = 129 } do
    local said = ended_by(signal, "--check --trace t.json", "while true do end")
    lu.assertStrContains(said, "millrace: ended by SIG" .. signal .. " at race.lua:6\n")
    lu.assertStrContains(said, "kind=read-after-write")
    lu.assertStrContains(said, "1 hazard")
    lu.assertStrContains(said, "status " .. status)
    lu.assertStrContains(shell("cat t.json"), "add_")
    shell("rm t.json")
  end
end

function TestEnd.test_no_pcall_and_no_wait_holds_it()
  for _, rest in ipairs{
    "while true do pcall(function() while true do end end) end",
    "coroutine.wrap(function() while true do end end)()",
    "mr.spin{ms = 1e9} mr.synchronize() while true do end",
  } do
    lu.assertStrContains(ended_by("TERM", "", rest), "status 143")
  end
end

function TestEnd.test_a_second_signal_ends_at_once()
  command.write(folder .. "/stuck.lua", [[
    setmetatable({}, {__gc = function() io.open("ready", "w"):close() while true do end end})
    collectgarbage()]])
  local said = shell("HOST stuck.lua & p=$!; until [ -e ready ]; do sleep 0.01; done; kill -TERM $p; sleep 0.4; " ..
    "kill -TERM $p; wait $p; echo status $?")
  lu.assertEquals(said, "status 143\n")
end

-- As a call of the driver that waits for a GPU which does not answer.
function TestEnd.test_one_signal_ends_a_call_that_does_not_return()
  command.write(folder .. "/stuck.lua", [[
    io.open("ready", "w"):close()
    os.execute("exec sleep 20 >/dev/null 2>&1")]])
  local said = shell("rm -f ready; HOST --check stuck.lua & p=$!; until [ -e ready ]; do sleep 0.01; done; " ..
    "sleep 0.1; kill -TERM $p; wait $p; echo status $?")
  lu.assertEquals(said, "millrace: asked to end while a call did not return; ended, without a verdict and a trace\n" ..
    "status 143\n")
end

function TestEnd.test_the_prompt()
  for signal, status in pairs{ TERM = 143, HUP = 129 } do
    local said = shell(("mkfifo in; " ..
      "(HOST --trace t.json -i <in >out 2>&1 & echo $! >pid; wait $!; echo status $? >>out) & " ..
      "exec 3>in; echo 'x = mr.ones(3)' >&3; echo 'io.open(\"ready\", \"w\"):close()' >&3; " ..
      "until [ -e ready ]; do sleep 0.01; done; sleep 0.2; kill -%s $(cat pid); " ..
      "wait; cat out; rm in ready; ls"):format(signal))
    lu.assertStrContains(said, "status " .. status)
    lu.assertStrContains(said, "t.json")
    shell("rm t.json out")
  end
end

os.exit(lu.LuaUnit.run())
