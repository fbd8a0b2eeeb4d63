-- Commands of the prompt: the session that docs/stepping.md shows, and each command by itself.
local lu = require "luaunit"
local command = require "host.support.command"
local transcript = require "host.support.transcript"

local VIRTUAL = "--device virtual --chooser manual"

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
  return lines
end

-- What the host answers to these lines, without prompts.
local function answer(input, arguments, environment)
  local out = transcript.play(lines_of(input), arguments or VIRTUAL, environment)
  out = out:sub(out:find("mr:1>", 1, true), -1) -- behind the banner
  return (out:gsub("mr:%d+[^\n>|]*> ", ""))
end

-- Two streams; one waits for the other.
local PROGRAM = [[
p, c = mr.stream{name = "p"}, mr.stream{name = "c"}
x = mr.zeros(4000, {name = "x"})
mr.synchronize()
p:run(function() x:fill_(1) end)
c:wait_event(p:record_event(mr.event{name = "done"}))
sum = c:run(function() return x:sum() end)
]]

TestPage = {}

function TestPage.test_the_session_of_the_page_is_what_the_prompt_says()
  local page = command.read("docs/stepping.md")
  local arguments, shown = page:match("%$ millrace ([^\n]*)\n(.-)\n```")
  local typed = transcript.typed(shown)
  lu.assertTrue(#typed > 15)
  local said = transcript.weave(transcript.play(typed, arguments), typed)
  if os.getenv("UPDATE_PAGES") and said ~= shown then -- for who changes what the prompt says
    local from, to = page:find(shown, 1, true)
    command.write("docs/stepping.md", page:sub(1, from - 1) .. said .. page:sub(to + 1))
  end
  lu.assertEquals(said, shown, "UPDATE_PAGES=1 writes it to docs/stepping.md")
end

TestSteps = {}

function TestSteps.test_steps_and_the_way_back()
  local out = answer(PROGRAM .. ":s c\n:s p 2\nx:peek():sum():item()\n:b\nx:peek():sum():item()\n:b 5\n:run\n" ..
    "sum:peek():item()\n:back 3\n:b 0\n:s p c\n:s q\n:s 0")
  lu.assertStrContains(out, "no step: wait_event of event `done` on stream `c` at mr:5:1 (#8) waits for event " ..
    "`done`, recorded on\n    stream `p` at mr:5:1 (#7)\n")
  lu.assertStrContains(out, "part 1 of 15\n")
  lu.assertStrContains(out, "part 2 of 15\n533.0\n1 step undone; 1 more can be\n266.0\n")
  lu.assertStrContains(out, "1 step undone; 0 more can be\nthere are no earlier steps\n")
  lu.assertStrContains(out, "16 steps; nothing is pending\n4000.0\n3 steps undone; 13 more can be\n")
  lu.assertStrContains(out, "expected a number of steps from 1 on, got 0")
  lu.assertStrContains(out, "expected one stream and a number of steps, got `c` as well")
  lu.assertStrContains(out, "`q` is no stream: the streams are c, p\n")
end

function TestSteps.test_what_ends_the_history()
  local out = answer(PROGRAM .. ":s p\np:synchronize()\n:b\n")
  lu.assertStrContains(out, "no step was undone: the history begins after `synchronize` at mr:7:1: " ..
    "a step can be undone, a call of the host cannot\n")
end

function TestSteps.test_settings()
  local out = answer(":chooser\n:chooser timed\n:chooser clever\n:model\n:device\n:device 1\n:pass 2\n:pass\n" ..
    ":pass -1\n", "--device virtual:2 --chooser manual")
  lu.assertStrContains(out, "chooser: manual\nchooser: timed\nthere is no chooser `clever`")
  lu.assertStrContains(out, "model: h200\n* device 0: ")
  lu.assertStrContains(out, "* device 1: ")
  lu.assertStrContains(out, "the host's clock is at 2")
  lu.assertStrContains(out, ":pass needs a number of milliseconds")
  lu.assertNotStrContains(out, "traceback")
end

TestLooking = {}

function TestLooking.test_queues()
  local out = answer(PROGRAM .. ":s p 3\n:qu\n:run\n:queues\n")
  lu.assertStrContains(out, "stream `p`: 2 pending\n  ▶ fill_ 3/15    mr:4:1  can go on\n  · record_event  mr:5:1\n")
  lu.assertStrContains(out, "  · wait_event    mr:5:1  waits for event `done`, recorded on stream `p` at mr:5:1 (#7)\n")
  lu.assertStrContains(out, "\nnothing is pending; the device is at ")
end

-- In any width, with and without Unicode, no line is wider than the terminal.
function TestLooking.test_lines_fit()
  local long = "s" .. ("tream"):rep(12)
  local program = PROGRAM .. ("e = mr.stream{name = %q}\ne:run(function() mr.op{name = %q, reads = {x}, ms = 1} end)\n")
    :format(long, ("op"):rep(30))
  for _, width in ipairs{ 20, 45, 60, 80, 133 } do
    for _, locale in ipairs{ "LC_ALL=C", "LC_ALL=C.UTF-8" } do
      local out = answer(program .. "MARK = 1\nprint('begin')\n:qu\n:who\n:hazards\n:help\n", VIRTUAL,
        ("%s COLUMNS=%d"):format(locale, width))
      out = out:match("begin\n(.*)$")
      for line in out:gmatch("[^\n]+") do
        local columns = utf8.len(line)
        if columns > math.max(40, width) then
          lu.fail(("%d columns in %d: %s"):format(columns, width, line))
        end
      end
      lu.assertEquals(out:find("[\128-\255]") ~= nil, locale ~= "LC_ALL=C")
      lu.assertNotStrContains(out, "\27")
    end
  end
end

function TestLooking.test_tensors_and_who_may_read_them()
  local out = answer(PROGRAM .. ":who\n:who x\n:who p\nx:free()\n:who x\n:mem\n")
  lu.assertStrMatches(out, ".*\nsum +f32%[%] +4 B +dev 0 +sum at mr:6:1 +c; not host, default, p\n.*")
  lu.assertStrMatches(out, ".*\nx +f32%[4000%] +15.62 KiB +dev 0 +fill_ at mr:4:1 +c, p; not host, default\n.*")
  lu.assertStrContains(out, "`p` is no tensor\n")
  lu.assertStrMatches(out, ".*\nx +freed\n.*")
  lu.assertStrMatches(out, ".*\ndevice 0: .* in %d tensors?.*\nhost: .*")
end

local RACE = PROGRAM:gsub("c:wait_event[^\n]*", "-- no wait")

function TestLooking.test_hazards()
  local out = answer(RACE .. ":hazards\n:hazards 1\n:hazards 7\n:why mr:4 mr:5\n:why mr:4\n:hazards clear\n:hazards\n")
  lu.assertStrMatches(out, ".*\n1 +read%-after%-write +x +fill_ mr:4:1 +sum mr:5:1 +c:wait_stream%(p%)\n.*")
  lu.assertStrContains(out, "\nhazard: read-after-write on `x`")
  lu.assertStrContains(out, "there is no report `7`: there are 1\n")
  lu.assertStrMatches(out, ".*nothing orders `fill_` by stream p at mr:4:1 %(#(%d+)%).-" ..
    "\n#%1 is the number of a call in this session; :why takes it, too\n.*")
  lu.assertStrContains(out, ":why needs two operations")
  lu.assertStrContains(out, "the reports are forgotten\nno hazards so far\n")
end

function TestLooking.test_timeline()
  local out = answer("x = mr.zeros(4000)\nx:fill_(1)\nmr.synchronize()\n1 + 1\n:tl\n:tl 2\n:tl all\n:tl 9\n:tl x\n",
    "--device virtual")
  lu.assertStrContains(out, "entry 4 has asked the device for nothing; :tl all shows all\n")
  lu.assertEquals(select(2, out:gsub("\nNVIDIA H200 %(virtual%) · ", "")), 2)
  lu.assertStrMatches(out, ".*\ndefault stream .*zeros.*fill_.*")
  lu.assertStrContains(out, "there is no entry `9`")
  lu.assertStrContains(out, "there is no entry `x`")
end

function TestLooking.test_a_timeline_forgets_what_was_undone()
  local out = answer(PROGRAM .. ":run\n:back 100\n:tl all\n")
  lu.assertNotStrContains(out:match("steps undone.*$"), "sum  mr:6:1  ")
  lu.assertStrContains(out, "had not run yet")
end

function TestLooking.test_time()
  local out = answer("x = mr.zeros(4000)\n:time x:sum():item()\n:time error('no')\n:time\n", "--device virtual")
  lu.assertStrMatches(out, "0%.0\nhost: [%d%.]+ ms in the call %(virtual%), .*\nall done: [%d%.]+ ms after it began.*")
  lu.assertStrContains(out, ": no\n")
  out = answer("x = mr.zeros(4000)\n:time x:fill_(2)\n:qu")
  lu.assertStrContains(out, "not measured, since under the chooser manual")
  lu.assertStrContains(out, "fill_")
end

TestRegistry = {}

function TestRegistry.test_names()
  local out = answer(":\n:stepp\n:res\n:tim\n:zzzzzz\n:help ste\n:apropos zeros\n:apropos qqqq\n")
  lu.assertStrContains(out, ":step [stream] [n] (:s)")
  lu.assertStrContains(out, "there is no command :stepp: did you mean :step? :help lists all commands")
  lu.assertStrContains(out, "a fresh device; the session begins anew")
  lu.assertStrContains(out, ":tim could be :timeline, :time\n")
  lu.assertStrContains(out, "there is no command :zzzzzz; :help")
  lu.assertStrContains(out, "mr.zeros(sizes: integer...")
  lu.assertStrContains(out, "nothing mentions `qqqq`")
end

function TestRegistry.test_commands_are_functions_too()
  local out = answer(PROGRAM .. "mr.prompt.step('p', 2)\nmr.prompt.back()\npcall(mr.prompt.step, 'q')\n")
  lu.assertStrContains(out, "part 2 of 15\n1 step undone; 1 more can be\n")
  lu.assertStrContains(out, "`q` is no stream")
end

-- The module by itself, as the completion of the prompt asks it.
local function load_commands(variables)
  local tools, modules = {}, {}
  tools.mr = { hazard = {}, prompt = {} }
  tools.nearest = function() return nil end
  tools.getmetatable = function(value) return { __name = "millrace." .. value:kind() } end
  tools.require = function(name)
    if name == "session" then
      return { locals = function() return variables end, has_local = function() return false end, entries = {} }
    end
    modules[name] = modules[name] or assert(loadfile(("lua/millrace/prompt/%s.lua"):format(name)))(name, tools)
    return modules[name]
  end
  return tools.require("commands")
end

function TestRegistry.test_completion()
  local commands = load_commands{}
  local function complete(text)
    local list, from = commands.complete(text)
    return table.concat(list, " "), from
  end
  lu.assertEquals({ complete(":st") }, { "step", 1 })
  lu.assertEquals({ complete(":re") }, { "replay reset", 1 })
  lu.assertEquals({ complete("  :ba") }, { "back", 3 })
  lu.assertEquals({ complete(":chooser ") }, { "timed adversarial random: manual", 9 })
  lu.assertEquals({ complete(":chooser ma") }, { "manual", 9 })
  lu.assertEquals({ complete(":hazards c") }, { "clear", 9 })
  lu.assertEquals({ complete(":zz") }, { "", 1 })
  lu.assertEquals({ complete(":zz a") }, { "", 5 })
  lu.assertEquals({ complete(":pass 1") }, { "", 6 })
end

TestSession = {}

function TestSession.test_an_error_names_the_entry_that_made_the_tensor()
  lu.assertStrContains(answer("x = mr.ones(4)\nx[9] = 1\n"), "mr:2:1: tensor #1 f32[4] made at mr:1:1: index 9")
end

function TestSession.test_one_pending_operation()
  local out = answer("x = mr.zeros(4)\nmr.synchronize()\nx:fill_(1)\n:tl\n")
  lu.assertStrContains(out, "    1 operation had not run yet, or has no times\n")
end

function TestSession.test_the_history_begins_with_the_command_that_was_typed()
  local out = answer("x = mr.ones(4)\nx:add_(1)\n:run\n:replay\n:back 99\n")
  lu.assertStrContains(out, "the history begins after `:replay`: ")
end

function TestSession.test_a_wrong_model_is_named_while_memory_is_in_use()
  lu.assertStrContains(answer("x = mr.ones(4)\n:model nope\n"), "nope")
end

function TestSession.test_commands_check_their_words()
  local out = answer(":why y y\n:pass -1\n")
  lu.assertStrContains(out, ":why: `y` is no operation: expected its line, as in mr:4, or its number, as in #7\n")
  lu.assertStrContains(out, ":pass: expected milliseconds from 0 to 1e12, got -1\n")
end

function TestSession.test_time_after_a_fault_names_no_file_of_millrace()
  local out = answer('k = mr.kernel[[extern "C" __global__ void k(float *x) { x[threadIdx.x] *= 2; }]]\n' ..
    "k[{1, 4}](nil)\n:time 1 + 1\n", "--device virtual")
  lu.assertStrContains(out, "illegal")
  lu.assertNotStrContains(out, "millrace.prompt")
end

function TestSession.test_a_replay_gives_the_same()
  local out = answer("mr.manual_seed(7)\nr = mr.rand(5)\nmr.synchronize()\nr:peek():sum():item()\n" ..
    "local p = mr.stream{name = 'p'}\np:run(function() r:mul_(2) end)\n:s p\nr:peek():sum():item()\n:session\n" ..
    ":replay\n:session\n")
  local first, second = out:match("^([%d%.]+)\nmul_[^\n]*\n([%d%.]+)\n")
  lu.assertEquals(tonumber(second), 2 * tonumber(first))
  local again = out:match("mr:7|.-(mr:1|.*)$")
  lu.assertStrContains(again, "\n" .. first .. "\n")
  lu.assertStrContains(again, "\n" .. second .. "\n")
  local _, lists = out:gsub("      :step p\n", "")
  lu.assertEquals(lists, 2)
end

-- Operations of before the replay had the same lines.
function TestSession.test_why_asks_about_the_session_that_was_replayed()
  local out = answer(RACE .. ":why mr:4 mr:5\n:fix\n:why mr:4 mr:5\n:why mr:4 mr:6\n:replay\nmr.reset()\n" ..
    ":why mr:4 mr:5\n")
  lu.assertNotStrContains(out:match("\nmr:6|.*$"), "nothing orders")
  lu.assertStrContains(out, "no operation at mr:4 among those that are remembered")
end

function TestSession.test_a_fix_is_put_in_and_the_hazard_is_gone()
  local out = answer(RACE .. ":fix\n:hazards\n:run\nsum:peek():item()\n:fix\n:fix 3\n")
  lu.assertStrContains(out, "mr:4| p:run(function() x:fill_(1) end)\nmr:5| c:wait_stream(p)\nmr:6| sum = ")
  lu.assertStrContains(out, "no hazards so far\n")
  lu.assertStrContains(out, "\n4000.0\nthere is no hazard to fix\nthere is no hazard to fix\n")
end

function TestSession.test_a_fix_of_one_of_several_says_what_is_left()
  local out = answer(RACE .. "q = mr.stream{name = \"q\"}\nq:run(function() x:fill_(2) end);\n:fix\n:fix\n:fix\n")
  local left = {}
  for line in out:gmatch "(%d hazards? [^\n]-): " do left[#left + 1] = line end
  lu.assertEquals(left, { "2 hazards are left", "1 hazard is left" })
end

-- mr.reset() ends a program: what came before it is not repaired, and not told again.
function TestSession.test_a_fix_begins_behind_a_reset()
  local race = "local s, t, v = mr.stream(), mr.stream(), mr.zeros(4)\nmr.synchronize()\nn = 0\n" ..
    "s:run(function() v:add_(1) end)\nt:run(function() v:add_(1) end)\n"
  local out = answer(race .. "n = n + 1 print('once')\nmr.reset()\n" .. race .. ":fix\n:hazards\nn\n")
  local replayed = out:match "mr:1 to mr:7, up to mr.reset%(%), ran again unseen\n(.*)$"
  lu.assertStrContains(replayed, "mr:8| local s, t, v")
  lu.assertStrContains(replayed, "mr:11| s:run(function() v:add_(1) end)\nmr:12| t:wait_stream(s)\nmr:13| t:run")
  lu.assertStrContains(replayed, "no hazards so far\n0\n")
  lu.assertNotStrContains(replayed, "hazard:")
  lu.assertNotStrContains(out, "mr:4|")
  out = answer(race .. "mr.reset()\n" .. race .. ":fix 1\nmr.hazard.mode()\n")
  lu.assertStrContains(out, "mr:4| s:run(function() v:add_(1) end)\nmr:5| t:wait_stream(s)\nmr:6| t:run")
  lu.assertStrContains(out, "1 hazard is left")
  out = answer("mr.reset()\n" .. race .. ":fix\nmr.hazard.mode()\n")
  lu.assertStrContains(out, "mr:1, which called mr.reset(), ran again unseen\n")
  lu.assertStrContains(out, "\nwarn\n")
end

function TestSession.test_a_fix_inside_an_entry_of_several_lines()
  local out = answer(RACE:gsub("\n$", "") .. "\ndo\n  p:run(function() x:fill_(2) end)\n" ..
    "  mr.hazard.clear()\n  c:run(function() x:sum() end)\nend\n:fix\n:hazards\n")
  lu.assertStrContains(out, "  mr.hazard.clear()\n        c:wait_stream(p)\n        c:run")
  lu.assertNotStrContains(out:match("mr:1|.*$") or "", "first=mr:6")
end

function TestSession.test_frees_are_not_pending_work()
  local out = transcript.play(lines_of("x = mr.zeros(3)\ny = mr.zeros(3)\ny = nil collectgarbage()\nx = 1\n"), VIRTUAL)
  local counts = {}
  for count in out:gmatch "%[(%d+) pending" do counts[#counts + 1] = tonumber(count) end
  lu.assertEquals(#counts, 4)
  lu.assertEquals(counts[3], counts[2])
end

function TestSession.test_nothing_to_go_back_to_under_manual()
  local out = answer("x = mr.ones(4)\n:back\n")
  lu.assertStrContains(out, "no step has been made since the host's last call, which is not undone")
  lu.assertNotStrContains(out, "steps are kept under the chooser")
end

function TestSession.test_leaving_by_word()
  for _, word in ipairs{ "quit", "exit()", " quit ;", ":quit", ":exit", "mr.prompt.quit()" } do
    local out, status = answer("print(41)\n" .. word .. "\nprint(42)\n")
    lu.assertStrContains(out, "41")
    lu.assertNotStrContains(out, "42", word)
    lu.assertEquals(status or 0, 0)
  end
  lu.assertStrContains(answer("quit = 5\nquit\nprint(42)\n"), "5\n42\n") -- a variable of the user's
end

function TestSession.test_an_edited_entry()
  local out = answer("x = 1\ny = x + 1\ny\n:edit 1\ny\n:edit 9\n", VIRTUAL,
    "LC_ALL=C.UTF-8 COLUMNS=100 VISUAL= EDITOR='sed -i s/1/41/'")
  lu.assertStrContains(out, "2\nmr:1| x = 41\nmr:2| y = x + 1\nmr:3| y\n42\n42\nthere is no entry `9`\n")
end

-- The same numbers come in a replay, and in the saved script.
function TestSession.test_the_seed_is_part_of_it()
  local path = os.tmpname()
  local out = answer(":seed 5\nmr.rand(1):item()\n:seed 5\nmr.rand(1):item()\n:replay\n:save " .. path ..
    "\n:seed\n:seed 1.5\n:seed 1 2\n")
  local saved = command.run{ path }
  os.remove(path)
  local numbers = {}
  for number in (out .. saved.out):gmatch("0%.%d+") do numbers[#numbers + 1] = number end
  lu.assertEquals(#numbers, 6)
  for _, number in ipairs(numbers) do lu.assertEquals(number, numbers[1]) end
  lu.assertEquals(select(2, out:gsub(":seed needs an integer", "")), 3)
end

-- The saved script is run by itself, and shows what the session showed.
-- A stream without a name is known by its variable.
function TestSession.test_queues_name_the_variables_of_streams()
  local out = answer("s = mr.stream()\nlocal u = mr.stream()\nx = mr.zeros(4)\nmr.synchronize()\n" ..
    "s:run(function() x:add_(1) end)\nu:wait_stream(s)\n:queues\n", VIRTUAL)
  lu.assertStrContains(out, "stream `s`: ")
  lu.assertStrContains(out, "stream `u`: 1 pending")
  lu.assertStrContains(out, "recorded on stream `s` at mr:6:1")
  lu.assertNotStrContains(out, "stream #")
end

function TestSession.test_a_saved_session_is_a_script()
  local path = os.tmpname()
  local out = answer(PROGRAM .. "local a <const> = 2\na + 1\nx:nothing()\n_[8] * 2;\n:s p 3\nx:peek():sum():item()\n" ..
    ":b 2\nx:peek():sum():item()\n:run\nreturn sum:peek():item() + _[8]\n:save " .. path .. "\n:save /no/folder\n")
  lu.assertStrContains(out, "wrote " .. path)
  lu.assertStrContains(out, "/no/folder: No such file or directory")
  local text = command.read(path)
  lu.assertStrContains(text, "-- x:nothing()\n-- failed: mr:9:1: a tensor has no `nothing`")
  local result = command.run{ "--device", "virtual", path }
  lu.assertEquals(result.err, "")
  lu.assertEquals(result.out, "3\n800.0\n266.0\n4003.0\n")
  out = answer(":chooser timed\n:load " .. path .. "\na\n:load /no/file\n")
  lu.assertStrContains(out, "4003.0\n2\n/no/file cannot be read: no such file\n")
  os.remove(path)
end

function TestSession.test_no_files_in_a_sandbox()
  local out = answer("1\n:save x\n:tl save f.html\n:load x\n:edit\n", VIRTUAL .. " --sandbox")
  lu.assertStrContains(out, ("there are no files in a sandbox\n"):rep(2) ..
    "x cannot be read: there are no files in a sandbox\n")
end

os.exit(lu.LuaUnit.run())
