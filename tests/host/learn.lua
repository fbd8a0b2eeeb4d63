-- timeout: 240
-- own pace: what is graded has limits of time, and each lesson runs as whole programs
-- `millrace learn`: the lessons' own tests, the grader, the dialogue at a terminal, the list, the sheet of a class.
local lu = require "luaunit"
local command = require "host.support.command"
local lessons = require "host.support.lessons"
local svg = require "host.support.svg"
local terminal = require "host.support.terminal"

local LESSONS = lessons.FOLDER
local lines_of, with_folder, learn, lesson_of = lessons.lines_of, lessons.with_folder, lessons.run, lessons.of
local message_for = lessons.message_for

local function first_lesson() return lesson_of("01_asynchronous.lua") end

TestLessons = {}

-- A test for each lesson of the course; `make check` has a third of them.
local paths = lines_of("ls " .. LESSONS .. "/*.lua")
for i = 1, #paths, os.getenv("MILLRACE_SHORT") == "all" and 3 or 1 do
  local path = paths[i]
  TestLessons["test_" .. path:match("(%d+_[%w_]+)%.lua$")] = function()
    local result = command.run { "learn", "--check", path }
    lu.skipIf(result.out:find("^not available: ") ~= nil, result.out)
    local right, wrong = result.out:match("(%d+) right and (%d+) wrong solutions: %d+ tests, 0 failed\n$")
    lu.assertTrue(tonumber(right) >= 2 and tonumber(wrong) >= 10, result.out)
    lu.assertEquals(result.err, "")
    lu.assertEquals(result.status, 0)
  end
end

-- The lesson of the page is as good as those of the course.
function TestLessons.test_the_page_has_a_lesson()
  with_folder(function(folder)
    command.write(folder .. "/01_counter.lua", command.read("docs/teaching.md"):match("```lua\n(.-)```"))
    local result = command.run { "learn", "--check", folder .. "/01_counter.lua" }
    lu.assertStrContains(result.out, "17 tests, 0 failed")
  end)
end

-- The check says of a lesson what is wrong with it.
function TestLessons.test_a_lesson_that_is_wrong_fails()
  with_folder(function(folder)
    -- Without the wrong solutions that take longest.
    local text = command.read(LESSONS .. "/01_asynchronous.lua"):gsub('\n    { "endless", .*$', "\n  },\n}\n")
    local function said(pattern, replacement)
      local changed, count = text:gsub(pattern, replacement)
      lu.assertEquals(count, 1)
      command.write(folder .. "/01_x.lua", changed)
      return command.run { "learn", "--check", folder .. "/01_x.lua" }
    end
    local result = said('outcomes = { "false", "true" }', 'outcomes = { "true" }')
    lu.assertStrContains(result.out, "FAILED question")
    lu.assertEquals(result.status, 1)
    lu.assertStrContains(said('usual = "always true"', 'usual = "false or true"').out, "FAILED usual guess")
    lu.assertStrContains(said('"wait", %[%[', '"hazard", [[').out, "expected: hazard")
    lu.assertStrContains(said("answer = function%(v%) return 6", "answer = function(v) return 5").out, "FAILED right 1")
    lu.assertStrContains(said("%-%- has `s` done all its work%?", ("-"):rep(50)).out, "FAILED program")
    lu.assertStrContains(said("The line has returned", "The line of the program has returned").out, "FAILED title")
    lu.assertStrContains(said("take_home =", "take ="  ).err, "the field `take_home` is missing")
  end)
end

-- A solution may be written as changes of the start; a change that fits nowhere, or twice, is an error.
function TestLessons.test_solutions_as_changes()
  local function read(right, wrong)
    return lessons.read("x.lua", ([[return { title = "t", part = "p", explanation = "e", take_home = "t",
      question = { program = "print(1)", ask = "?" }, hints = { "1", "2", "3" },
      exercise = { task = "t", start = "one() -- first\n  two()\n  two()\nthree()\n",
        given = function() end, answer = function() end },
      right = { "own", %s }, wrong = { { "wrong", %s } } }]]):format(right, wrong))
  end
  local lesson = assert(read('{ "three()", "", "one()", "three()\\n  four()" }', '"two()\\ntwo()", "2()"'))
  lu.assertEquals(lesson.right, { "own", "three()\n  four()\n  two()\n  two()" })
  lu.assertEquals(lesson.wrong, { { "wrong", "one() -- first\n  2()\nthree()" } })
  for right, message in pairs { ['{ "two()", "2()" }'] = "right 2: `two()` is not once in the start",
                                ['{ "nine()", "" }'] = "right 2: `nine()` is not once in the start",
                                ['{ "one()" }'] = "right 2: nothing stands for `one()`",
                                ["{}, 7"] = "right 3: it is no text" } do
    local _, said = read(right, '"whole"')
    lu.assertStrContains(said, message)
  end
end

-- Where all outcomes together stand among the choices is another place in the next lesson.
function TestLessons.test_the_place_of_the_choices_varies()
  local before
  for number = 4, 11 do
    with_folder(function(home)
      local out = command.run { "learn", tostring(number), environment = "export HOME=" .. home, input = "" }.out
      local place, count = nil, 0
      for at, choice in out:gmatch("\n  (%d)  ([^\n]+)") do
        count = count + 1
        place = choice:find(" or ", 1, true) and at or place
      end
      lu.assertTrue(count >= 3)
      lu.assertNotEquals(place, before)
      before = place
    end)
  end
end

-- The mistakes that are made of the right solution are looked at as those of the lesson are.
function TestLessons.test_mistakes_are_checked()
  with_folder(function(folder)
    local function said(lesson, pattern, replacement)
      local changed, count = command.read(LESSONS .. lesson):gsub(pattern, replacement)
      lu.assertEquals(count, 1)
      command.write(folder .. "/01_x.lua", changed)
      return command.run { "learn", "--check", folder .. "/01_x.lua" }.out
    end
    local out = said("/33_graphs.lua", 'serial = "error"', 'serial = "wait"')
    lu.assertStrContains(out, "FAILED serial       error:")
    lu.assertStrContains(out, " 1 failed")
    lu.assertStrContains(said("/01_asynchronous.lua", "changes = 2", "changes = { 2 }"), "ok     input        input:")
    lu.assertNotStrContains(said("/01_asynchronous.lua", "changes = 2", "changes = { 2, 3 }"), "input:")
  end)
end

-- The course is whole: 36 lessons, six parts in their order.
function TestLessons.test_the_course()
  local result = learn("/nonexistent", "--list")
  local parts, count = {}, 0
  for line in result.out:gmatch("[^\n]+") do
    if line:find("^Part") then parts[#parts + 1] = line end
    if line:find("^ *%d+  ") then count = count + 1 end
  end
  lu.assertEquals(parts, { "Part 1: Streams", "Part 2: Events", "Part 3: Memory", "Part 4: The host",
    "Part 5: Overlap", "Part 6: Further" })
  lu.assertEquals(count, 36)
end

-- A lesson stays short enough to be read at once, and the page says how long they are. An explanation takes half of a
-- screen with 24 rows.
function TestLessons.test_the_length_of_a_lesson()
  lu.assertStrContains(command.read("docs/teaching.md"), "A lesson of the course has 65 to 110 lines.")
  for _, name in ipairs(lessons.names()) do
    local _, lines = command.read(LESSONS .. "/" .. name):gsub("\n", "")
    lu.assertTrue(lines >= 65 and lines <= 110, name)
    local _, rows = lesson_of(name).explanation:gsub("\n", "")
    lu.assertTrue(rows <= 12, name)
  end
end

-- A number of a rule that a lesson cites can be looked up, and each lesson cites one.
function TestLessons.test_the_rules_are_in_the_page()
  local page = command.read("docs/semantics.md")
  for _, name in ipairs(lessons.names()) do
    local lesson = lesson_of(name)
    lu.assertStrContains(lesson.rule or "", "R%d", true, name)
    for rule in command.read(LESSONS .. "/" .. name):gmatch("%f[%w]R%d+%f[%W]") do
      lu.assertStrContains(page, "\n**" .. rule .. " · ", false, name)
    end
  end
end

TestSheet = {}

function TestSheet.test_handed_in_files_become_csv()
  with_folder(function(folder)
    local lesson = first_lesson()
    assert(os.execute(("mkdir %s/ada %s/bob"):format(folder, folder)))
    command.write(folder .. "/ada/01_asynchronous.lua", lesson.right[1])
    command.write(folder .. "/bob/01_asynchronous.lua", "print('passed')\nos.exit(0)")
    command.write(folder .. "/bob/notes.txt", "no lesson")
    command.write(folder .. "/01_asynchronous.lua", "while true do end")
    local result = learn(folder, "--grade", folder)
    lu.assertEquals(result.err, "")
    lu.assertEquals(result.status, 0)
    local rows = {}
    for row in result.out:gmatch("[^\n]+") do rows[#rows + 1] = row end
    lu.assertEquals(#rows, 4)
    lu.assertEquals(rows[1], "learner,lesson,result,reason,message")
    lu.assertStrContains(rows[2], ",01_asynchronous,failed,endless,")
    lu.assertStrContains(rows[3], "ada,01_asynchronous,passed,passed,")
    lu.assertStrContains(rows[4], "bob,01_asynchronous,failed,error,")
  end)
end

-- A solution that waits only in the calls whose results are judged, and does nothing in those for speed and waits.
function TestSheet.test_another_thing_in_a_later_call()
  with_folder(function(folder)
    for calls = 1, 4 do
      assert(os.execute(("mkdir %s/l%d"):format(folder, calls)))
      command.write(("%s/l%d/21_read_too_early.lua"):format(folder, calls), ([[local n = 0
return function(s, x, here)
  n = n + 1
  s:run(function() here:copy_(x, {non_blocking = true}) end)
  if n <= %d then mr.synchronize() else return 0 end
  return here:item()
end]]):format(calls))
    end
    local out = learn(folder, "--grade", folder).out
    for row in out:gmatch("\n(l[^\n]*)") do lu.assertNotStrContains(row, ",passed,") end
  end)
end

-- A path that is no regular file is named in one sentence, and nobody waits for it. A formula for a spreadsheet, at the
-- beginning of a cell or behind a separator of cells, gets an apostrophe.
function TestSheet.test_what_is_no_file()
  with_folder(function(folder)
    local name = "01_asynchronous.lua"
    local make =
      [[mkdir -p a/N b c d e f g '=x' '@y;+z' && mkfifo b/N && ln -s /dev/zero c/N && ln -s nowhere d/N &&
        truncate -s 200000 e/N && touch f/N && mkdir '02_where_time_goes.lua']]
    assert(os.execute(("cd %s && %s"):format(folder, make:gsub("N", name))))
    command.write(folder .. "/g/" .. name, "error('x;=1+1', 0)")
    command.write(folder .. "/=x/" .. name, "x x")
    command.write(folder .. "/@y;+z/" .. name, "x x")
    local result = learn(folder, "--grade", folder)
    lu.assertEquals(result.err, "")
    for _, row in ipairs {
      '\na,01_asynchronous,failed,unreadable,"01_asynchronous.lua is a folder, not a file."\n',
      '\nb,01_asynchronous,failed,unreadable,"01_asynchronous.lua is a pipe, not a file."\n',
      '\nc,01_asynchronous,failed,unreadable,"01_asynchronous.lua is a link, which is not followed."\n',
      '\nd,01_asynchronous,failed,unreadable,"01_asynchronous.lua is a link, which is not followed."\n',
      "\ne,01_asynchronous,failed,unreadable,01_asynchronous.lua is too long: it has more than 100000 bytes.\n",
      "\nf,01_asynchronous,failed,nothing,", "x;'=1+1\"\n", "\n\"'=x\",01_", "\n\"'@y;'+z\",01_",
      '\n,02_where_time_goes,failed,unreadable,"02_where_time_goes.lua is a folder, not a file."\n' } do
      lu.assertStrContains(result.out, row)
    end
    assert(os.execute("mkfifo " .. folder .. "/01_pipe.lua"))
    lu.assertStrContains(learn(folder, "--list", folder).err, "01_pipe.lua is a pipe, not a file.")
    lu.assertStrContains(learn(folder, "--check", folder .. "/01_pipe.lua").err, "01_pipe.lua is a pipe, not a file.")
    lu.assertStrContains(learn(folder, "--check", folder .. "/none").err, "none is not there.")
    lu.assertStrContains(learn(folder, "--check", folder .. "/d/" .. name).err, "is a link to a file that is not there")
  end)
end

-- A course of a teacher's own.
function TestSheet.test_a_folder_of_lessons()
  with_folder(function(folder)
    command.write(folder .. "/07_own.lua", command.read(LESSONS .. "/01_asynchronous.lua"))
    local result = learn(folder, "--list", folder)
    lu.assertStrContains(result.out, "  1  " .. first_lesson().title)
    assert(os.execute(("mkdir %s/in"):format(folder)))
    command.write(folder .. "/in/07_own.lua", first_lesson().right[2])
    lu.assertStrContains(learn(folder, "--grade", folder .. "/in", folder).out, ",07_own,passed,")
  end)
end

-- One lesson that cannot be read does not close the course.
function TestSheet.test_a_faulty_lesson_is_left_out()
  with_folder(function(folder)
    local good = command.read(LESSONS .. "/01_asynchronous.lua")
    command.write(folder .. "/01_broken.lua", "return {")
    command.write(folder .. "/02_empty.lua", "return {}")
    local result = learn(folder, "--list", folder)
    lu.assertStrContains(result.err, "no lesson in " .. folder)
    lu.assertEquals(result.status, 1)
    command.write(folder .. "/03_good.lua", good)
    result = learn(folder, "--list", folder)
    lu.assertStrContains(result.out, "  1  " .. first_lesson().title)
    lu.assertStrContains(result.err, "learn: lesson:01_broken.lua:1: unexpected symbol")
    lu.assertStrContains(result.err, "learn: 02_empty.lua: the field `title` is missing")
    local _, count = result.err:gsub("%. This lesson is left out%.\n", "")
    lu.assertEquals(count, 2)
    lu.assertEquals(result.status, 0)
  end)
end

-- What a solution could try so as to be judged by something else than its work.
function TestSheet.test_a_solution_cannot_reach_the_judge()
  local reach = {
    "mr.explore = function() return {outcomes = {}, hazards = {}} end",
    "return function() mr.hazard.mode('off') end",
    "return function(s, flag, value) return getmetatable(mr).__index end",
    "return function(s, flag, value) table.unpack = nil string.format = nil return arg[1] end",
    "return require('millrace.learn.judge')",
    "return function() return debug.getinfo(1) end",
    "return function() return io.open('/etc/passwd') end",
  }
  with_folder(function(folder)
    for i, text in ipairs(reach) do
      assert(os.execute(("mkdir %s/s%d"):format(folder, i)))
      command.write(("%s/s%d/01_asynchronous.lua"):format(folder, i), text)
    end
    local out = learn(folder, "--grade", folder).out
    local _, count = out:gsub(",01_asynchronous,failed,error,", "")
    lu.assertEquals(count, #reach, out)
  end)
end

-- Calls without an effect are named where the result is wrong: a wait of a stream for itself, a graph without nodes.
function TestSheet.test_what_has_no_effect_is_named()
  local out = message_for("04_default_stream.lua", [[return function(s, x)
    local y = x + 1
    s:run(function() s:wait_stream(mr.current_stream()) y:mul_(2) end)
    return y
  end]])
  lu.assertStrContains(out, ",failed,schedule,")
  lu.assertStrContains(out, "In line 3 a stream waits for itself. That does nothing.")
  out = message_for("33_graphs.lua", [[return function(a, b, x, y)
    local g = mr.graph.capture(function() a:run(function() x:add_(1) y:copy_(x) end) end)
    g:launch(a)
    g:launch(a)
    return y
  end]])
  lu.assertStrContains(out, ",failed,wrong,")
  lu.assertStrContains(out, "The graph that line 4 launches is empty: no stream that your function used joined")
end

-- Each call that is without need, or not for an exercise, is told in its own words.
function TestSheet.test_the_words_of_the_grader()
  local start = "return function(s, x) local y = x + 1 s:wait_stream(mr.current_stream()) s:run(y.mul_, y, 2)\n"
  local out = message_for("04_default_stream.lua", start .. "mr.current_stream():wait_stream(s) return y end")
  lu.assertStrContains(out, "line 2 waits without need (wait_stream): the grader waits for the device before it reads")
  out = message_for("04_default_stream.lua", start .. "collectgarbage() return y end")
  lu.assertStrContains(out, "collectgarbage is not for an exercise: end a variable with <close>")
  out = message_for("15_freed_too_early.lua", [[return function(s, x)
    local t = x * 2
    s:wait_stream(mr.current_stream())
    local y = s:run(function() return t + 1 end)
    t:record_stream(s)
    t:free{stream = s}
    return {y, x * 100}
  end]])
  lu.assertStrContains(out, "line 5 does nothing: the free of `t` is ordered already.")
  out = message_for("33_graphs.lua", [[return function(a, b, x, y)
    local g = mr.graph.capture(function() x:add_(1) end, {stream = a})
    g:launch(a)
    a:run(function() x:add_(1) y:copy_(x) end)
    return y
  end]])
  lu.assertStrContains(out, "the task asks for two launches of a graph on `a`: your function has only 1.")
end

-- What a teacher would say: the number in a tensor, the argument by its name, one line for many questions.
function TestSheet.test_what_is_wrong_is_told_in_the_learners_words()
  local out = message_for("01_asynchronous.lua", [[return function(s, flag, value)
    s:run(function() flag:copy_(value) end)
    return flag
  end]])
  lu.assertStrContains(out, ",failed,wrong,")
  lu.assertStrContains(out, "The result is a tensor, and the task asks for the number in it: t:item() returns it.")
  out = message_for("19_in_place.lua", "return function(a, b, x) x:mul_(10) return {x, x} end")
  lu.assertStrContains(out, "Your function changes its argument `x`.")
  out = message_for("14_query.lua", [[return function(s, x, here)
    s:run(function() here:copy_(x, {non_blocking = true}) end)
    for i = 1, 20 do if s:query() then break end end
    return here:item()
  end]])
  lu.assertStrContains(out, "query host 14_query.lua:3 (20 times) read")
  out = message_for("07_it_worked.lua", "return function(s, x) return s:run(function() return (x * 2):sum() end) end")
  lu.assertStrContains(out, "on stream default of device 0, where the caller reads your result")
  lu.assertNotStrContains(out, "command line")
  out = message_for("27_copy_engines.lua", lesson_of("27_copy_engines.lua").exercise.start)
  lu.assertStrContains(out, "work at the same time for 0.000 ms. At least 0.005 ms are possible.")
  out = message_for("32_blocking_streams.lua", [[return function(x)
    local s = mr.stream{name = "s", nonblocking = false}
    s:run(x.add_, x, 1)
    mr.current_stream():wait_stream(s)
    x:mul_(10)
    s:run(x.add_, x, 2)
    return x
  end]])
  lu.assertStrContains(out, "line 4 waits without need (wait_stream): without it, too, `mul_` at line 5 comes after " ..
    "`add_` at line 3, since the default stream is a barrier for blocking streams.\"")
end

-- A solution with few instructions that takes long is ended by the time, and the learner is told so. The grader gives
-- it ten seconds, and then another ten: here the sandbox has one of each, and in `make check-long` all.
function TestSheet.test_a_solution_that_takes_too_long()
  local solution = "return function() local x = ('x'):rep(100000) x:find(('.-'):rep(30) .. 'y') return 6 end"
  local given = {}
  local function run_shorter(code, seconds, instructions)
    given[#given + 1] = seconds
    local result = command.run { "--device", "virtual", "--sandbox", "--instructions", tostring(instructions),
      "--time", "1", "-e", code }
    return result.out .. result.err, false
  end
  local reason, message = dofile("lua/millrace/learn/grader.lua").grade({ run = run_shorter }, first_lesson(), solution,
    "01_asynchronous.lua")
  lu.assertEquals({ reason, message }, { "endless", "Your program takes too long: it has been stopped." })
  lu.assertEquals(given, { 10, 10 })
  if os.getenv("MILLRACE_LONG") then
    lu.assertStrContains(message_for("01_asynchronous.lua", solution), ",failed,endless,Your program takes too long")
  end
end

TestSlides = {}

-- The pictures of all lessons, which take seconds to draw, for both tests.
local slides = lines_of("mktemp -d")[1]
local drawn

local function draw()
  drawn = drawn or learn(slides, "--slides", slides .. "/new/slides")
  return slides .. "/new/slides", drawn
end

-- A picture for each lesson: the two accesses of a race by their names, the missing edge by its number and its line.
function TestSlides.test_each_lesson_has_a_picture()
  local folder, result = draw()
  lu.assertEquals(result.err, "")
  lu.assertEquals(result.status, 0)
  local count = #lines_of("ls " .. folder .. "/*.svg")
  local _, left_out = result.out:gsub(" is left out: ", "")
  lu.assertEquals(count + left_out, 36)
  local picture = command.read(folder .. "/06_any_order.svg")
  lu.assertStrContains(picture, '>6 Two streams: in which order? · ')
  for _, name in ipairs { ">fill_</text>", ">copy_</text>", ">!1</text>", ">!2</text>" } do
    lu.assertStrContains(picture, name)
  end
  lu.assertStrContains(picture, "!1  read-after-write: fill_ (line 4) and copy_ (line 5); missing: b:wait_stream(a)<")
  lu.assertStrContains(picture, "nothing orders the two in frames")
  local ordered = command.read(folder .. "/03_first_in_first_out.svg")
  lu.assertNotStrContains(ordered, "nothing orders")
  lu.assertStrContains(command.read(folder .. "/33_graphs.svg"), "</svg>") -- it ends with an error
end

-- The number of a short edge stands beside it, and does not cover it.
function TestSlides.test_a_short_edge_is_seen()
  local picture = command.read(draw() .. "/17_new_memory.svg")
  local first, last = picture:match('<path d="M(%d+) %d+C%d+ %d+ %d+ %d+ (%d+) %d+"/><title>hazard: use%-before%-alloc')
  local number = tonumber(picture:match('<text x="([%d.]+)" y="[%d.]+" class="n">!1<'))
  lu.assertTrue(math.abs(first - last) < 20)
  lu.assertTrue(number - math.max(first, last) > 10)
end

-- No text is over another one, a cause over a frame, or a number of an edge over a bar; no name of a lane is cut.
function TestSlides.test_no_text_covers_anything()
  for _, path in ipairs(lines_of("ls " .. draw() .. "/*.svg")) do
    local picture = command.read(path)
    lu.assertNil(svg.overlapping(picture), path)
    local frames, bars = svg.frames(picture), svg.bars(picture)
    for _, text in ipairs(svg.texts(picture)) do
      local is_number = text.class == "n" and text.text:find("^!%d+$")
      for _, frame in ipairs(text.class == "d" and frames or {}) do
        lu.assertFalse(svg.is_over(text, frame), path .. text.text)
      end
      for _, bar in ipairs(is_number and bars or {}) do lu.assertFalse(svg.is_over(text, bar), path .. text.text) end
      if text.class == "l" then lu.assertNotStrContains(text.text, "…") end
    end
  end
end

-- A program that ends with an error has its own title, what it did until then, and the error.
function TestSlides.test_an_error_is_told()
  local picture = command.read(draw() .. "/33_graphs.svg")
  lu.assertStrContains(picture, ">33 A graph: what may be recorded? · ")
  lu.assertStrContains(picture, ">error: line 4: graph: stream `b` was forked from stream `a` and not joined again: " ..
    "`copy_` at line 7 (cudaErrorStreamCaptureUnjoined, 904).</text>\n</svg>")
end

-- A race inside one launch is framed, too.
function TestSlides.test_a_race_inside_a_launch()
  local folder, result = draw()
  lu.skipIf(result.out:find(" is left out: ", 1, true) ~= nil, result.out)
  local picture = command.read(folder .. "/36_inside_a_block.svg")
  lu.assertStrContains(picture, "!1  race-in-kernel: threads of reverse (line 10); missing: __syncthreads()")
  lu.assertStrContains(picture, "nothing orders the threads of the launch in the frame")
end

-- The legend explains each mark that the picture has, and a kind of bar is told by lines, too.
function TestSlides.test_the_legend_explains_every_mark()
  local folder = draw()
  local explained = { gap = "the stream waits<", arrow = "from a record to the wait for it<",
    ["copy-in"] = "copy to the device<", ["copy-out"] = "copy to the host<", kernel = "kernel<",
    ["host-wait"] = "the host waits<", ["host-call"] = "a call of the host<",
    ["host-function"] = "host function<" }
  local seen = {}
  for _, path in ipairs(lines_of("ls " .. folder .. "/*.svg")) do
    local picture = command.read(path)
    for mark, text in pairs(explained) do
      local has_mark = picture:find(('class="%s"'):format(mark), 1, true)
      if has_mark and not picture:find(('class="%s" d=""'):format(mark), 1, true) then
        lu.assertStrContains(picture, text)
        seen[mark] = true
      end
    end
    for mark in picture:gmatch("%.([%w-]+){fill:url%(#") do
      lu.assertStrContains(picture, ('<pattern id="%s"'):format(mark))
    end
  end
  for mark in pairs(explained) do lu.assertTrue(seen[mark], mark) end
end

-- Earlier pictures are replaced, which is said; another file is not, and then nothing is written.
function TestSlides.test_other_files_are_not_replaced()
  with_folder(function(folder)
    local course_folder = folder .. "/course"
    assert(os.execute(("mkdir %s %s/slides"):format(course_folder, folder)))
    for _, name in ipairs { "01_a", "02_b" } do
      command.write(("%s/%s.lua"):format(course_folder, name), command.read(LESSONS .. "/01_asynchronous.lua"))
    end
    local function run() return learn(folder, "--slides", folder .. "/slides", course_folder) end
    command.write(folder .. "/slides/02_b.svg", "<svg>mine</svg>\n")
    local result = run()
    lu.assertStrContains(result.err, "02_b.svg is no picture that millrace learn has made: move it away")
    lu.assertEquals(result.status, 1)
    lu.assertEquals(lines_of("ls " .. folder .. "/slides"), { "02_b.svg" })
    os.remove(folder .. "/slides/02_b.svg")
    lu.assertNotStrContains(run().out, "replaced")
    lu.assertStrContains(run().out, "02_b.svg (replaced)")
    lu.assertEquals(run().err, "")
  end)
end

function TestSlides.test_a_folder_that_cannot_be_made()
  lu.assertStrContains(command.run { "learn", "--slides", "/dev/null/slides" }.err, "cannot be made")
end

TestSession = {}

local function open(text) return { "send", text .. "\r" } end

-- A whole lesson, typed at a terminal of 24 x 80: a wrong guess, a hint, a wrong save, a right one.
function TestSession.test_a_lesson_from_its_question_to_its_end()
  with_folder(function(home)
    local lesson, file = first_lesson(), home .. "/millrace-lessons/01_asynchronous.lua"
    local result = terminal.run {
      home = home, arguments = "learn", environment = "LC_ALL=C.UTF-8 XDG_STATE_HOME=",
      { "wait", "your guess, 1 to 3>" }, { "shot" }, open "seven", { "wait", "Type a number" },
      open ":nonsense", { "wait", "no command :nonsense" }, open "2",
      { "wait", "In this one it prints false" }, { "wait", "query  " }, open "", { "wait", "busy" }, { "shot" },
      open ":check", { "wait", ":check is for the exercise" }, open ":show", { "wait", ":show is for the exercise" },
      open "", { "wait", "Rule R10" }, open "",
      { "wait", "exercise>" }, open ":hint", { "wait", "Hint 1 of 3" }, open ":check",
      { "wait", "wrong in 1 of 2 orders" }, { "shot" }, open ":reset", { "wait", "is kept as" },
      open ":quit", { "exit" },
    }
    lu.assertNil(result.failed)
    lu.assertStrContains(result.out, "exit 0\n")
    lu.assertStrContains(result.out, "|  3  false or true\n")
    lu.assertStrContains(result.out, "a call of the host") -- in the legend of the timeline
    lu.assertNotStrContains(result.out, "One right solution")
    lu.assertNotStrContains(result.out, "lesson:01") -- no line of the lesson itself
    lu.assertEquals(command.read(file), lesson.exercise.start)
    lu.assertEquals(command.read(file .. ".1"), lesson.exercise.start)
    lu.assertStrContains(learn(home, "--list").out, lesson.title .. "             begun")
  end)
end

-- Saves the text to the file again and again, as soon as the file is there. One save must be enough, and it must come
-- when the dialogue waits for it. Ends with the folder.
local function keep_saving(home, file, text)
  command.write(home .. "/saved", text)
  os.execute(([[(while [ -e HOME/saved ]; do [ ! -e FILE ] || cp HOME/saved FILE; sleep 0.5; done) >/dev/null 2>&1 &]])
    :gsub("%u%u+", { HOME = home, FILE = file }))
end

-- Saving the file grades it, and what passes is written down.
function TestSession.test_a_saved_file_is_graded()
  with_folder(function(home)
    local lesson, file = first_lesson(), home .. "/millrace-lessons/01_asynchronous.lua"
    local function session(solution, seen)
      keep_saving(home, file, solution)
      local result = terminal.run {
        home = home, arguments = "learn 1", environment = "LC_ALL=C.UTF-8 XDG_STATE_HOME=", term = "dumb",
        { "wait", "your guess" }, open "3", { "wait", "In this one" }, open "", { "wait", "busy" }, open "",
        { "wait", "Rule R10" }, open "",
        { "wait", seen }, open ":quit", { "exit" },
      }
      lu.assertNil(result.failed)
      os.remove(home .. "/saved")
    end
    session(lesson.wrong[1][2], "wrong in 1 of")
    lu.assertStrContains(learn(home, "--list").out, " begun\n")
    session(lesson.right[1], "To take home")
    lu.assertStrContains(learn(home, "--list").out, " passed\n")
  end)
end

-- From the question of a lesson to the next lessons, and out: all that can be typed.
function TestSession.test_a_whole_session()
  with_folder(function(home)
    local lesson, file = first_lesson(), home .. "/millrace-lessons/01_asynchronous.lua"
    local second, third = lesson_of("02_where_time_goes.lua"), lesson_of("03_first_in_first_out.lua")
    keep_saving(home, file, lesson.right[2])
    local result = terminal.run {
      home = home, arguments = "learn", environment = "LC_ALL=C.UTF-8 XDG_STATE_HOME=",
      { "wait", "your guess" }, open ":help", { "wait", ":reset" }, open "1",
      { "wait", "In this one it prints true" }, open "", { "wait", "busy" }, open "",
      { "wait", "Rule R10" }, { "shot" }, open "", { "wait", "To take home" }, { "wait", ":next goes on" }, { "shot" },
      open ":hint", { "wait", "Hint 1 of 3" }, open ":hint", { "wait", "Hint 2 of 3" }, open ":hint",
      { "wait", "Hint 3 of 3" }, open ":hint", { "wait", lesson.hints[3]:sub(1, 40) },
      open ":show", { "wait", "One right solution" }, open "nonsense", { "wait", "Commands begin with a colon" },
      open ":next", { "wait", second.title }, { "wait", "your guess" }, { "shot" }, open ":skip",
      { "wait", third.title }, { "wait", "your guess" }, open ":list", { "wait", "36  " }, open ":quit", { "exit" },
    }
    os.remove(home .. "/saved")
    lu.assertNil(result.failed)
    lu.assertStrContains(result.out, "exit 0\n")
    for line in result.out:gmatch("\n|([^\n]*)") do lu.assertTrue((utf8.len(line) or #line) <= 80, line) end
    local list = learn(home, "--list").out
    lu.assertStrContains(list, lesson.title .. "             passed\n")
    lu.assertStrContains(list, second.title .. (" "):rep(53 - #second.title) .. "skipped\n")
    lu.assertStrContains(list, third.title .. (" "):rep(53 - #third.title) .. "begun\n")
    lu.assertEquals(command.read(file), lesson.right[2])
  end)
end

TestPrompt = {}

local function at_prompt(home, ...)
  return command.run { "-i", environment = ("export HOME=%s; unset XDG_STATE_HOME"):format(home),
    input = table.concat({ ... }, "\n") .. "\n" }
end

-- `:lesson N` opens an exercise; what is typed then is graded as a file is.
function TestPrompt.test_a_lesson_is_solved_with_entries()
  with_folder(function(home)
    local lesson = lesson_of("07_it_worked.lua")
    local wrong = at_prompt(home, "return function() return 'of before' end", ":lesson 7", ":lesson hint", ":lesson",
      lesson.exercise.start:gsub("%s+$", ""), ":lesson")
    lu.assertStrContains(wrong.out, "Lesson 7 of 36: " .. lesson.title)
    lu.assertStrContains(wrong.out, lesson.exercise.task:sub(1, 40))
    lu.assertStrContains(wrong.out, "Hint 1 of 3: " .. lesson.hints[1])
    lu.assertStrContains(wrong.err, "none of your entries returns a function")
    lu.assertStrContains(wrong.out, "The result is wrong in 1 of")
    lu.assertNotStrContains(wrong.out, lesson.right[1])
    lu.assertNotStrContains(learn(home, "--list").out, "passed")

    -- An entry that fails is no part of it; others are, and the last function counts.
    local right = at_prompt(home, ":lesson 7", "local twice = 2", "local function broken(", "error('no part')",
      "function() return 1 end",
      "return function(s, x) local y s:run(function() y = x * twice end) s:record_event():wait() return y:sum() end",
      ":lesson")
    lu.assertStrContains(right.out, "To take home: " .. lesson.take_home:sub(1, 40))
    lu.assertStrContains(learn(home, "--list").out, lesson.title .. (" "):rep(53 - #lesson.title) .. "passed\n")
  end)
end

-- A wait too many is explained with the places of the prompt, and with none of the lesson.
function TestPrompt.test_a_needless_wait()
  with_folder(function(home)
    local said = at_prompt(home, ":lesson 7", "local two = 2", "return function(s, x)", "local y",
      "s:wait_stream(mr.current_stream())", "s:run(function() y = x * two end)", "s:record_event():wait()",
      "return y:sum() end", ":lesson").out
    said = said:gsub("%s+", " ")
    lu.assertStrContains(said, "mr:2:3 waits without need (wait_stream): ")
    lu.assertStrContains(said, "Your arguments are ready when your function begins.")
    lu.assertNotStrContains(said, "lesson:")
    lu.assertNotStrContains(said, "at solution:")
  end)
end

-- A lesson is left, and begun again, as in `millrace learn`.
function TestPrompt.test_next_skip_and_reset()
  with_folder(function(home)
    local lesson, next_one, third = lesson_of("07_it_worked.lua"), lesson_of("08_record_so_far.lua"),
      lesson_of("09_recorded_again.lua")
    local right = lesson.right[1]
    local said = at_prompt(home, ":lesson 7", right, ":lesson reset", ":lesson", right, ":lesson", ":lesson next",
      ":lesson skip")
    lu.assertStrContains(said.out, "The start again:\n\n" .. lesson.exercise.start)
    lu.assertStrContains(said.err, "none of your entries returns a function")
    lu.assertStrContains(said.out, "Lesson done. `:lesson next` goes on.")
    lu.assertStrContains(said.out, "Lesson 8 of 36: " .. next_one.title)
    lu.assertStrContains(said.out, "Lesson 9 of 36: " .. third.title)
    local list = learn(home, "--list").out
    lu.assertStrContains(list, lesson.title .. (" "):rep(53 - #lesson.title) .. "passed\n")
    lu.assertStrContains(list, next_one.title .. (" "):rep(53 - #next_one.title) .. "skipped\n")
    said = at_prompt(home, ":lesson next", ":lesson 36", ":lesson next")
    lu.assertStrContains(said.err, "no lesson is open")
    lu.assertStrContains(said.out, "That was the last lesson.")
  end)
end

function TestPrompt.test_wrong_usage_of_the_command()
  with_folder(function(home)
    local result = at_prompt(home, ":lesson", ":lesson 99", ":lesson nonsense", ":lesson hint")
    lu.assertStrContains(result.err, "no lesson is open")
    lu.assertStrContains(result.err, "there is no lesson 99: the last one is 36")
    lu.assertStrContains(result.err, "`nonsense` is no number of a lesson")
    lu.assertEquals(result.status, 0)
    local sandboxed = command.run { "--sandbox", "-i", input = ":lesson 1\n" }
    lu.assertStrContains(sandboxed.err, ":lesson is not available in a sandbox")
  end)
end

-- Bold text has no width: a line is broken where it is full.
function TestSession.test_bold_has_no_width()
  local text = dofile("lua/millrace/learn/text.lua")
  local words = ("word "):rep(30)
  local plain = text.wrap("To take home: " .. words)
  lu.assertEquals((text.wrap("\27[1mTo take home: \27[0m" .. words):gsub("\27%[%d*m", "")), plain)
  for line in plain:gmatch("[^\n]+") do lu.assertTrue(#line <= 78) end
  lu.assertTrue(#plain:match("[^\n]+") > 70)
  lu.assertEquals(text.widest("\27[1mab\27[0m"), 2)
  lu.assertEquals(text.wrap(("x"):rep(100)), ("x"):rep(100))
end

-- What the dialogue says fits 80 columns, and speaks of no chooser: a learner has not met one.
function TestSession.test_what_is_said_fits_and_is_known()
  with_folder(function(home)
    for _, lesson in ipairs { "1", "4" } do
      local out = command.run { "learn", lesson, environment = "export HOME=" .. home,
        input = "1\n\n\n\n:hint\n:help\n:list\n" }.out
      lu.assertStrContains(out, "all lessons, and their state")
      lu.assertNotStrContains(out, "chooser")
      for line in out:gmatch("[^\n]+") do
        local said = line:gsub("^%a[%a ,%d]*> ", "") -- behind the prompt, since what was typed is not shown here
        lu.assertTrue((utf8.len(said) or #said) < 80, line)
      end
      if lesson == "4" then lu.assertStrContains(out, "ready, but run later in this order") end
    end
  end)
end

-- A report about a program of a question names its variables, also where the line that races is not the current one.
function TestSession.test_the_missing_edge_has_the_names_of_the_program()
  with_folder(function(home)
    for lesson, missing in pairs { ["18"] = "missing:%s+mr.default_stream%(0%):wait_stream%(s%)",
                                   ["23"] = "missing:%s+b:wait_stream%(a%)" } do
      local out = command.run { "learn", lesson, environment = "export HOME=" .. home, input = "1\n\n" }.out
      lu.assertStrMatches(out, ".*" .. missing .. ".*")
    end
  end)
end

-- Without a terminal the same dialogue goes on by lines, and ends with them.
function TestSession.test_the_end_of_the_input_ends_it()
  with_folder(function(home)
    local result = command.run { "learn", "1", environment = "export HOME=" .. home, input = "1\n" }
    lu.assertEquals(result.err, "")
    lu.assertEquals(result.status, 0)
    lu.assertStrContains(result.out, "Look again. It prints false or true.")
    lu.assertNotStrContains(result.out, "\27")
  end)
end

function TestSession.test_wrong_usage()
  for _, arguments in ipairs { { "--nonsense" }, { "--check" }, { "--grade" }, { "--slides" }, { "1", "2" } } do
    local result = command.run { "learn", table.unpack(arguments) }
    lu.assertStrContains(result.err, "usage: millrace learn")
    lu.assertEquals(result.status, 2)
  end
  lu.assertStrContains(command.run { "learn", "99" }.err, "there is no lesson 99")
  lu.assertStrContains(command.run { "learn", "/nonsense" }.err, "there is no folder /nonsense")
  lu.assertStrContains(command.run { "--sandbox", "learn" }.err, "learn takes no options in front of it")
end

local status = lu.LuaUnit.run()
os.execute("rm -r " .. slides)
os.exit(status)
