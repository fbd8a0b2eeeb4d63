-- The examples as whole scripts under --explore: each ends by itself, in time, with the verdict that is known of it.
-- Those that a search does not finish, or that compute for seconds, run in `make check-long` only.
-- timeout: 300
local lu = require "luaunit"
local command = require "host.support.command"

local ONE, TWO = "^1 schedule, 1 outcome: deterministic", "^2 schedules, 2 outcomes\n"
local CUT_SEVERAL = "^%d+ schedules, 2 outcomes; not all schedules: "
local SOME = "^%d+ schedules?, %d+ outcomes?" -- of a search that is cut or not
local EXPLORES = "the function calls mr%.%a+: it calls its function again and again"

local EXPECTED = {
  compute_communicate = "^5 schedules, 5 outcomes\n", default_streams = TWO, missing_wait = TWO,
  producer_consumer = TWO, record_stream = "^4 schedules, 2 outcomes\n", two_streams = "^3 schedules, 2 outcomes\n",
  fan_out = TWO,
  elementwise_by_hand = ONE, graph_fork_join = ONE, graph_mistakes = ONE, graph_small_kernels = ONE, histogram = ONE,
  priorities = ONE, saxpy = ONE, shared_transpose = ONE, tiled_matmul = ONE, tree_reduction = ONE,
  graveyard = "^%d+ schedules, 1 outcome: deterministic but for parts of operations that race\n",
  needed_waits = ONE, cuda_guide_loop = ONE, train_mlp = ONE,
  explore_double_buffer = EXPLORES, explore_early_event = EXPLORES, explore_lost_update = EXPLORES,
  explore_pipeline = EXPLORES, explore_polling = EXPLORES, explore_reuse = EXPLORES, explore_tree = EXPLORES,
  steered_early_read = EXPLORES,
  race_tour = "the function calls mr%.machine%.chooser%(name%): the exploration chooses",
}

local LONG = { copy_to_pinned = "^%d+ schedules, %d+ outcomes",
               graph_training_step = ONE, two_branch_net = ONE, two_matmuls = ONE,
               event_timing = TWO, halo_stencil = CUT_SEVERAL,
               double_buffer = "^127 schedules, 2 outcomes\n" }

TestExamples = {}

-- They need several devices.
local DEVICES = { device_placement = 3, rank_graph = 2, rank_halo = 3, rank_mistakes = 2, rank_pipeline = 2,
                  ranks_train = 2, ring_all_reduce = 4 }

-- Their orders are many, and a search of all takes as long as it may. `make check-long` gives it the time.
local MANY_ORDERS = { rank_graph = true, rank_halo = true, rank_mistakes = true }

-- A tenth of its time goes into orders before the rest is proved at once.
local PROVED = { graveyard = true }

-- A search that ends may take long on a busy machine; one that may not end is cut soon.
local function check(name, expected)
  local devices = DEVICES[name] and "--device virtual:" .. DEVICES[name] .. " " or ""
  local time = (expected == CUT_SEVERAL or expected == SOME
    or expected:find("1 outcome$")) and 4 or PROVED[name] and not os.getenv("MILLRACE_LONG") and 10 or 60
  local most = MANY_ORDERS[name] and not os.getenv("MILLRACE_LONG") and ",max:50" or ""
  local text, status = command.say{ options = ("%s--explore=time:%d%s"):format(devices, time, most),
                            ("scripts/examples/%s.lua"):format(name) }
  lu.assertStrContains(text, expected:gsub("^%^", ""), true, name .. ": exit status " .. status)
  if expected:sub(1, 1) == "^" then lu.assertTrue(text:find(expected) == 1, name .. ": " .. text) end
end

for name in pairs(DEVICES) do EXPECTED[name] = ONE end
EXPECTED.device_placement = "^4 schedules, 4 outcomes\n"
EXPECTED.rank_graph, EXPECTED.rank_halo = "^%d+ schedules, 1 outcome", "^%d+ schedules, 1 outcome"
EXPECTED.rank_mistakes = SOME

function TestExamples.test_all_are_listed()
  local listing <close> = assert(io.popen("ls scripts/examples/*.lua"))
  for path in listing:lines() do
    local name = path:match("([^/]+)%.lua$")
    lu.assertNotNil(EXPECTED[name] or LONG[name], name .. ": what does it come to under --explore?")
  end
end

-- `make check` has a third of them.
local names = {}
for name in pairs(EXPECTED) do names[#names + 1] = name end
table.sort(names)
for i = 1, #names, os.getenv("MILLRACE_SHORT") == "all" and 3 or 1 do
  TestExamples["test_" .. names[i]] = function() check(names[i], EXPECTED[names[i]]) end
end

for name, expected in pairs(os.getenv("MILLRACE_LONG") and LONG or {}) do
  TestExamples["test_" .. name] = function() check(name, expected) end
end

os.exit(lu.LuaUnit.run())
