-- Tasks: mr.run drives coroutines that await events and streams.
--
-- A task waits by polling: in each of its turns, its coroutine queries the device at the script's own line, and yields
-- if the answer is no. So the checker, the explorer and traces see ordinary calls of the script, and need not know of
-- tasks. If no task can go on, time goes by. If time alone does not help (choosers other than "timed"), the first
-- waiting task must synchronize, and the others with it.
--
-- mr.explore tries both answers. A round in which all are told no changes nothing there, so it is left out. A task that
-- was told no does not ask again before some task has gone on. The last of them that asks is told yes
-- (src/explore/polls.c).
--
-- Easiest to break: the current stream. It belongs to the machine, so each turn begins by putting that of the task in
-- place, and mr.run ends by putting back the caller's.
local mr = require "millrace"
local unexplored = require "millrace.unexplored"

local create, resume, yield, close = coroutine.create, coroutine.resume, coroutine.yield, coroutine.close
local running, status, isyieldable = coroutine.running, coroutine.status, coroutine.isyieldable

local WAIT = {} -- the value with which a task is resumed that must synchronize
local LEAST_MS, SHARE = 0.001, 0.1 -- time passes in steps, each a share of the time passed so far

local errors = io and io.stderr -- a sandbox may have none

local function tell(text)
  if errors then errors:write("millrace: ", text, "\n") end
end

return function(tools)
  local tasks = {}

  -- coroutine = its task: { n =, coroutine =, place =, where = the line at which it waits, wake = when it has slept,
  -- has_begun =, has_moved = in its last turn, is_over =, result = }. It also has its `family`, `inner` (the tasks of
  -- its own mr.run) and `told_no` (the step of the family at which it was).
  --
  -- A family is all tasks of an mr.run and of those inside of it: { list =, is_explored =, step = how often one has
  -- gone on }.
  local task_of = setmetatable({}, { __mode = "k" })
  local threads = setmetatable({ n = 0 }, { __mode = "v" }) -- for reports, which name the variables of other tasks
  tools.keep(threads)

  local function add_threads(list)
    local n = 0
    for i = 1, threads.n do
      local thread = threads[i]
      threads[i] = nil
      if thread and coroutine.status(thread) ~= "dead" then
        n = n + 1
        threads[n] = thread
      end
    end
    for _, task in ipairs(list) do
      n = n + 1
      threads[n] = task.coroutine
    end
    threads.n = n
  end


  -- ---------------------------------------------------------------- the current stream

  local function place()
    local now = { device = mr.current_device(), epoch = tools.epoch() }
    for i = 0, mr.device_count() - 1 do now[i + 1] = mr.current_stream(i) end
    return now
  end

  -- After mr.reset the default streams stay; they are also current where a stream was closed.
  local function put_back(was)
    if was.epoch ~= tools.epoch() then return end
    for i, stream in ipairs(was) do
      if stream.closed then stream = mr.default_stream(i - 1) end
      if stream ~= mr.current_stream(i - 1) then mr.set_stream(stream) end
    end
    mr.set_device(was.device)
  end

  -- ---------------------------------------------------------------- in a task

  local function check_yieldable(name)
    if isyieldable() then return end
    tools.misuse(name .. ": a task cannot wait in a function that C code calls, as that of mr.no_grad, mr.timeline " ..
      "or table.sort: wait outside it")
  end

  -- Calls visit(task) for each task that is not over, and has no tasks of its own.
  local function each_leaf(list, visit)
    for _, task in ipairs(list) do
      if task.inner then each_leaf(task.inner, visit) elseif not task.is_over then visit(task) end
    end
  end

  -- Whether all tasks but this one (nil: all) have been told no, since the last time that one has gone on.
  local function are_told_no(family, but)
    local are = true
    each_leaf(family.list, function(task) are = are and (task == but or task.told_no == family.step) end)
    return are
  end

  -- Some task yields, and may do so for ever.
  local function is_yielding(family, but)
    local is = false
    each_leaf(family.list, function(task) is = is or (task ~= but and task.has_begun and not task.where) end)
    return is
  end

  -- Whether the work that the task waits for is complete.
  local function ask(task, what)
    local family = task.family
    if not family.is_explored then return what:query() end
    if task.told_no == family.step then return false end
    local is_over = tools.ask(task.n, not is_yielding(family, task), are_told_no(family, task), what.query, what)
    if is_over then family.step = family.step + 1 else task.told_no = family.step end
    return is_over
  end

  -- Lets other tasks go on until is_done(); wait() makes it so.
  local function let_others(task, is_done, wait)
    task.where = tools.where()
    repeat
      if yield() == WAIT then
        wait()
        break
      end
    until is_done()
    task.where, task.wake, task.has_moved = nil, nil, true
  end

  -- `what`: an event or a stream.
  function tasks.await(what)
    local task = task_of[running()]
    if not task then return what:synchronize() end
    check_yieldable("await")
    if ask(task, what) then return end
    let_others(task, function() return ask(task, what) end, function() what:synchronize() end)
  end

  local function pass_until(time)
    repeat
      local left = time - tools.clock()
      if left > 0 then tools.pass(left) end
    until left <= 0
  end

  function tasks.sleep(ms)
    if type(ms) ~= "number" or not (ms >= 0 and ms <= 1e12) then
      tools.misuse("sleep: expected milliseconds from 0 to 1e12, got " .. tostring(ms))
    end
    local task, is_explored = task_of[running()], tools.time_passes() == "explored"
    if task then check_yieldable("sleep") end
    if is_explored then
      if task and ms > 0 then unexplored.note "sleep" end
      if task then yield() end
      return
    end
    local time = tools.clock() + ms
    if not task then return pass_until(time) end
    task.wake = time
    let_others(task, function() return tools.clock() >= time end, function() pass_until(time) end)
  end

  -- ---------------------------------------------------------------- driving

  -- The error of a task that failed, with its number; if nothing can go on, with the lines of the others.
  local function named(list, task, problem)
    local others, is_deadlock = {}, type(problem) == "table" and rawget(problem, "code") == "deadlock"
    for _, other in ipairs(is_deadlock and list or {}) do
      local waits = other ~= task and other.where
      if waits then others[#others + 1] = ("task %d waits at %s"):format(other.n, other.where) end
    end
    local rest = #others > 0 and "; " .. table.concat(others, ", ") or ""
    if type(problem) == "string" then return ("task %d: %s%s"):format(task.n, problem, rest) end
    if type(problem) == "table" then
      rawset(problem, "task", task.n)
      local message = rawget(problem, "message")
      if type(message) == "string" then rawset(problem, "message", message .. rest) end
    end
    return problem
  end

  -- A turn of a task: until it waits, yields or ends. One that fails is closed with its own stream current; an error of
  -- its __close takes the place of the first.
  local function go_on(list, task, order)
    local family = task.family
    if not task.where or order == WAIT then family.step = family.step + 1 end
    task.has_begun, task.has_moved = true, false
    put_back(task.place)
    local done, result = resume(task.coroutine, order)
    if not done then result = select(2, close(task.coroutine)) end
    task.place = place()
    if not done then
      task.is_over = true
      error(named(list, task, result), 0)
    end
    if status(task.coroutine) == "dead" then task.is_over, task.result, task.has_moved = true, result, true end
  end

  -- For how long at most time may go by, as some task sleeps; nil: none does.
  local function least_sleep(list)
    local first
    for _, task in ipairs(list) do
      if not task.is_over and task.wake and not (first and first <= task.wake) then first = task.wake end
    end
    return first and math.max(first - tools.clock(), 0)
  end

  -- No task that waits can go on. `first`: the first of them; `waited`: for how long time has gone by. Returns how long
  -- it has now.
  local function let_time_pass(list, first, waited)
    local outer = task_of[running()]
    if outer and isyieldable() then -- mr.run in a task: the tasks around it go on
      outer.where = outer.where or first.where
      if yield() ~= WAIT then return waited end
    end
    local passes = tools.time_passes()
    local sleep = passes == "timed" and least_sleep(list)
    if passes == "real" then
      tools.pass(LEAST_MS)
    elseif passes == "explored" and not are_told_no(first.family) then
      return waited -- some have not been asked, or only yield
    elseif passes == "timed" and (sleep or tools.is_moving()) then
      local step = math.max(LEAST_MS, SHARE * waited)
      if sleep then step = tools.is_moving() and math.min(step, sleep) or sleep end
      tools.pass(step)
      return waited + step
    else
      go_on(list, first, WAIT)
    end
    return waited
  end

  -- One turn for each task. Returns four values: some tasks have not ended; the first task that waits; one has ended or
  -- its wait has ended; one has only yielded.
  local function round(list)
    local goes_on, first, has_moved, has_yielded
    for _, task in ipairs(list) do
      if not task.is_over then
        go_on(list, task)
        has_moved = has_moved or task.has_moved
        goes_on = goes_on or not task.is_over
        if not task.is_over then
          if task.where then first = first or task else has_yielded = true end
        end
      end
    end
    return goes_on, first, has_moved, has_yielded
  end

  local function drive(list)
    local outer, waited, yielded_before = task_of[running()], 0, false
    while true do
      local goes_on, first, has_moved, has_yielded = round(list)
      if not goes_on then break end
      -- A task that yields has one more turn before time goes by: it may yield until another task has waited.
      local is_stuck = first and not has_moved and (yielded_before or not has_yielded)
      yielded_before = has_yielded and not has_moved
      if is_stuck then waited = let_time_pass(list, first, waited) else waited = 0 end
      if outer and has_moved then outer.has_moved = true end
    end
    if outer then outer.where, outer.has_moved = nil, true end
  end

  -- Ends those that another one's error has left, each with its own stream current. That error is the one to raise, so
  -- an error here, such as in a __close that waits, is only reported.
  local function finish(list, home)
    for _, task in ipairs(list) do
      if status(task.coroutine) == "suspended" then
        put_back(task.place)
        local is_fine, problem = close(task.coroutine)
        if not is_fine then tell(("task %d was closed, and then: %s"):format(task.n, problem)) end
      end
    end
    put_back(home)
  end

  function tasks.run(...)
    local list, home = table.pack(...), place()
    if list.n == 0 then tools.misuse("run: expected at least one function") end
    for n = 1, list.n do
      if type(list[n]) ~= "function" then
        tools.misuse(("run: expected a function as argument %d, got %s"):format(n, type(list[n])))
      end
    end
    local outer, is_explored = task_of[running()], tools.time_passes() == "explored"
    local family = outer and outer.family
    if not family or family.is_explored ~= is_explored then
      family = { list = list, is_explored = is_explored, step = 0 }
      outer = nil
    end
    for n = 1, list.n do
      list[n] = { n = n, coroutine = create(list[n]), place = home, family = family }
      task_of[list[n].coroutine] = list[n]
    end
    add_threads(list)
    if outer then outer.inner = list end
    do
      local _ <close> = setmetatable({}, { __close = function()
        if outer then outer.inner = nil end
        finish(list, home)
      end })
      drive(list)
    end
    local results = {}
    for n, task in ipairs(list) do results[n] = task.result end
    return table.unpack(results, 1, list.n)
  end

  return tasks
end
