-- mr.waits: waits before calls that look at how far the device is, and before output. The checker does not follow what
-- these find, so a wait that orders them is not known to be redundant.
-- virtual only: a GPU does not show what is pending
-- not checked: waits are left out
-- not replayed: the device is stepped, and choosers are switched in the middle
local lu = require "luaunit"
local mr = require "millrace"

local function line() return debug.getinfo(2, "l").currentline end

local function at(result, where)
  for _, w in ipairs(result.waits) do
    if w.where:match(":(%d+)$") == tostring(where) then return w end
  end
  error("no wait at line " .. where .. " in\n" .. tostring(result), 2)
end

-- The wait of line `wait`, in front of which there is work.
local function check_unknown(result, wait, because)
  local w = at(result, wait)
  lu.assertEquals({ w.verdict, w.kept, w.needed_rounds }, { "unknown", true, 0 })
  lu.assertStrContains(w.because, "no hazard appears without it, but " .. because)
end

TestLooks = {}

local LOOKS = {
  { "mr.machine.queues", function() mr.machine.queues() end },
  { "mr.machine.chooser", function() mr.machine.chooser(mr.machine.chooser()) end },
  { "mr.machine.settings", function() mr.machine.settings{ copy_chunk = mr.machine.settings().copy_chunk } end },
  { "mr.machine.step", function() mr.machine.step() end },
  { "mr.machine.back", function() mr.machine.back() end },
}

function TestLooks.test_calls_that_act_on_pending_work()
  for _, look in ipairs(LOOKS) do
    local s, wait = mr.stream{ name = "s" }, nil
    local result = mr.waits(function()
      mr.spin{ ms = 1, stream = s }
      s:synchronize() wait = line()
      look[2]()
    end)
    check_unknown(result, wait, ("`%s` at line "):format(look[1]))
    lu.assertStrContains(at(result, wait).because, ("may then come before `spin` at line %d is over"):format(wait - 1))
  end
end

-- It is refused while there is memory in use, or work.
function TestLooks.test_a_model()
  local wait
  local result = mr.waits(function()
    mr.default_stream():host_func(function() end)
    mr.synchronize() wait = line()
    pcall(mr.machine.model, mr.machine.model())
  end)
  lu.assertEquals(at(result, wait).verdict, "unknown")
  local s = mr.stream()
  result = mr.waits(function()
    mr.spin{ ms = 1, stream = s }
    s:synchronize() wait = line()
    pcall(mr.machine.model, mr.machine.model())
  end)
  check_unknown(result, wait, "`mr.machine.model` at line ")
end

-- What only asks for a setting looks at nothing.
function TestLooks.test_questions_are_no_looks()
  local s, wait = mr.stream(), nil
  local result = mr.waits(function()
    mr.spin{ ms = 1, stream = s }
    s:synchronize() wait = line()
    return mr.machine.chooser(), mr.machine.settings(), mr.machine.model()
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
end

-- Only what writes the tensor matters.
function TestLooks.test_peek()
  local s, other = mr.stream{ name = "s" }, mr.stream{ name = "other" }
  local x, y, wait = mr.zeros(1, { name = "x" }), mr.zeros(1), nil
  mr.synchronize()
  local result = mr.waits(function()
    s:run(function() x:add_(1) end)
    other:run(function() y:add_(1) end)
    other:synchronize() wait = line()
    s:synchronize()
    x:peek()
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
  check_unknown(result, wait + 1, "`peek` at line " .. wait + 2)
  lu.assertStrContains(at(result, wait + 1).because, "before `add_` at line " .. wait - 2 .. " is over")
  -- Its text says how much is pending.
  result = mr.waits(function()
    s:run(function() x:add_(1) end)
    s:synchronize() wait = line()
    return tostring(x)
  end)
  check_unknown(result, wait, "`tostring` at line " .. wait + 1)
  -- What reads it does not.
  result = mr.waits(function()
    s:run(function() y:add_(x) end)
    s:synchronize() wait = line()
    x:peek()
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
end

-- k:profile() has counts of what is over.
function TestLooks.test_counts_of_a_kernel()
  local k = mr.kernel([[extern "C" __global__ void fill(int *x) { x[threadIdx.x] = 1; }]])
  local x, wait = mr.zeros(32, { dtype = "i32" }), nil
  mr.synchronize()
  local result = mr.waits(function()
    k[{ 1, 32 }](x)
    mr.synchronize() wait = line()
    k:profile()
  end)
  check_unknown(result, wait, "`k:profile` at line " .. wait + 1)
end

-- One of two waits for the same work is enough; and what is pending anyway is no order to lose.
function TestLooks.test_orders_that_stay()
  local s, wait = mr.stream(), nil
  local result = mr.waits(function()
    mr.spin{ ms = 1, stream = s }
    s:synchronize() wait = line()
    mr.synchronize()
    mr.machine.queues()
  end)
  lu.assertEquals({ at(result, wait).verdict, at(result, wait + 1).verdict }, { "together", "together" })
  lu.assertEquals(result.sufficient, 1)
  local other = mr.stream()
  result = mr.waits(function()
    mr.spin{ ms = 1, stream = s }
    other:synchronize() wait = line()
    mr.machine.queues()
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
end

-- A wait between streams orders what the host has waited for.
function TestLooks.test_a_wait_of_a_stream()
  local s, other, wait = mr.stream(), mr.stream(), nil
  local result = mr.waits(function()
    mr.spin{ ms = 1, stream = s }
    other:wait_stream(s) wait = line()
    other:synchronize()
    mr.machine.queues()
  end)
  check_unknown(result, wait, "`mr.machine.queues` at line " .. wait + 2)
end

TestClaim = {}

function TestClaim.test_the_claim_of_a_program_without_waits()
  local result = mr.waits(function() return mr.zeros(1):add_(1) end)
  lu.assertEquals({ result.total, result.claim, result.not_followed }, { 0, "every-legal-schedule", nil })
  local via = mr.kernel([[extern "C" __global__ void via(int **p) { if (p[0]) **p += 1; }]])
  result = mr.waits(function() via[{ 1, 1 }](mr.zeros(1, { dtype = "i64" })) end)
  lu.assertEquals({ result.total, result.claim }, { 0, "none" })
  lu.assertStrContains(result.not_followed[1], "through a pointer")
  lu.assertStrContains(tostring(result), "Not everything was followed:\nnot checked: what 1 launch")
end

TestOutput = {}

local say = mr.kernel([[
extern "C" __global__ void say(int *x) { if (*x > 100) printf("%d\n", *x); }
]])
local quiet = mr.kernel([[extern "C" __global__ void quiet(int *x) { *x += 1; }]])

function TestOutput.test_kernels_that_print()
  local a, b = mr.stream{ name = "a" }, mr.stream{ name = "b" }
  local x, y, wait = mr.zeros(1, { dtype = "i32" }), mr.zeros(1, { dtype = "i32" }), nil
  mr.synchronize()
  local result = mr.waits(function()
    say[{ 1, 1, 0, a }](x)
    b:wait_stream(a) wait = line()
    say[{ 1, 1, 0, b }](y)
    mr.synchronize()
    io.write ""
  end)
  local order = "nothing then orders `say` at line %d and `say` at line %d; both may print"
  check_unknown(result, wait, order:format(wait - 1, wait + 1))
  check_unknown(result, wait + 2,
    ("the host may go on before `say` at line %d has run; both may print"):format(wait - 1))
  lu.assertNil(result.not_followed) -- what prints changes nothing that the script could depend on
  result = mr.waits(function()
    quiet[{ 1, 1, 0, a }](x)
    b:wait_stream(a) wait = line()
    quiet[{ 1, 1, 0, b }](y)
    mr.synchronize()
    io.write ""
  end)
  lu.assertEquals({ at(result, wait).verdict, at(result, wait + 2).verdict }, { "redundant", "redundant" })
end

os.exit(lu.LuaUnit.run())
