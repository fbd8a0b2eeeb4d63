-- Graphs as scripts see them: captured calls, a graph's text, ends of captures, and equal values with and without
-- a graph.
local lu = require "luaunit"
local mr = require "millrace"

TestGraph = {}

local function folder()
  local path = os.tmpname()
  os.remove(path)
  return path
end

local function read(path)
  local f <close> = assert(io.open(path))
  return f:read("a")
end

-- ---------------------------------------------------------------- what a graph shows

local function example()
  local x, y = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "y"})
  mr.synchronize()
  local g = mr.graph(function()
    x:add_(1)
    y:copy_(x)
  end)
  return g, x, y
end

function TestGraph.test_nodes_and_properties()
  local g = example()
  lu.assertEquals(g.node_count, 2)
  lu.assertEquals(g.edge_count, 1)
  lu.assertEquals(g.lanes, 1)
  lu.assertEquals(g.nbytes, 0)
  lu.assertTrue(rawequal(g.device, mr.current_device()))
  lu.assertStrContains(g.where, "graph.lua:")
  lu.assertStrContains(tostring(g), "(2 nodes)")
  local first, second = table.unpack(g:nodes())
  lu.assertEquals(first.kind, "kernel")
  lu.assertEquals(first.name, "add_")
  lu.assertEquals(first.writes, {"x"})
  lu.assertEquals(second.kind, "copy")
  lu.assertEquals(second.after, {1})
  lu.assertEquals(second.reads, {"x"})
  lu.assertEquals(second.writes, {"y"})
  lu.assertStrContains(second.where, "graph.lua:")
end

function TestGraph.test_print_and_save()
  local g = example()
  local text = g:print()
  lu.assertStrContains(text, "add_")
  lu.assertStrContains(text, "after 1")
  g:enable(2, false)
  for ending, sign in pairs{dot = "n1 -> n2", svg = "</svg>", json = '"after": [1]', txt = "(disabled)"} do
    local path = folder() .. "." .. ending
    g:save(path)
    lu.assertStrContains(read(path), sign)
    os.remove(path)
  end
  lu.assertErrorMsgContains(".dot, .svg, .json", g.save, g, "graph.png")
  lu.assertErrorMsgContains("cannot create", g.save, g, "/no/such/folder/graph.dot")
end

function TestGraph.test_capture_is_the_same_as_calling_mr_graph()
  local x = mr.zeros(4)
  local g = mr.graph.capture(function() x:add_(1) end)
  g:launch()
  g:launch()
  lu.assertEquals(x:sum():item(), 8.0)
end

function TestGraph.test_a_closed_graph()
  local g, x = example()
  g:launch()
  g:close()
  g:close()
  lu.assertEquals(tostring(g), "graph (closed)")
  lu.assertErrorMsgContains("closed", g.launch, g)
  lu.assertErrorMsgContains("expected a graph, got a number", g.launch, 5, mr.stream())
  lu.assertErrorMsgContains("closed", function() return g.node_count end)
  lu.assertEquals(x:sum():item(), 4.0)
end

function TestGraph.test_only_what_the_function_returns_is_returned()
  local s = mr.stream()
  for _, options in ipairs{{}, {mode = "relaxed"}, {stream = s}, {auto_free = false, mode = "thread", stream = s}} do
    local got = table.pack(mr.graph(function() return 5, nil, "six" end, options))
    lu.assertEquals(got.n, 4)
    lu.assertStrContains(tostring(got[1]), "graph")
    lu.assertEquals({got[2], got[3], got[4]}, {5, nil, "six"})
    lu.assertEquals(select("#", mr.graph(function() end, options)), 1)
    lu.assertEquals(table.pack(got[1]:update(function() return 7, 8 end, options)), {7, 8, n = 2})
  end
end

-- Whatever becomes of the stream that began a capture, the machine can be used afterwards.
function TestGraph.test_the_stream_of_a_capture_is_closed_or_lost()
  local s, x = mr.stream(), mr.ones(2)
  mr.synchronize()
  mr.graph.begin(s)
  lu.assertErrorMsgContains("only this stream can end", s.close, s)
  lu.assertErrorMsgContains("901", mr.graph.finish, s)
  lu.assertErrorMsgContains("only this stream can end", mr.graph, function() s:close() end, {stream = s})
  lu.assertEquals(x:sum():item(), 2.0)
  do
    local scoped <close> = mr.stream()
    mr.graph.begin(scoped)
  end
  lu.assertEquals(x:sum():item(), 2.0)
  mr.graph.begin(mr.stream())
  collectgarbage()
  collectgarbage()
  lu.assertEquals(x:sum():item(), 2.0)
  local g = mr.graph(function() -- a stream that joined may go
    local other <close> = mr.stream()
    other:wait_stream(s)
    other:run(function() x:add_(1) end)
    s:wait_stream(other)
  end, {stream = s})
  g:launch(s)
  s:synchronize()
  lu.assertEquals(x:sum():item(), 4.0)
  s:close()
end

function TestGraph.test_wrong_arguments()
  local g = example()
  lu.assertErrorMsgContains("graph: expected a function, got a number", mr.graph, 5)
  lu.assertErrorMsgContains("graph: expected a function, got a string", mr.graph, "g", function() end)
  lu.assertErrorMsgContains("graph: expected a function, got a stream: the function comes first", mr.graph,
    mr.stream(), function() end)
  lu.assertErrorMsgContains("capture: expected a function", mr.graph.capture, 5)
  lu.assertErrorMsgContains("update: expected a function", function() mr.graph(function() end):update(5) end)
  lu.assertErrorMsgContains("mode", mr.graph, function() end, {mode = "none"})
  lu.assertErrorMsgContains("nodes 1 to 2", g.enable, g, 3)
  lu.assertErrorMsgContains("nodes 1 to 2", g.enable, g, 0)
  lu.assertErrorMsgContains("did you mean", function() return g.lanch end)
end

function TestGraph.test_an_empty_graph()
  local g = mr.graph(function() end)
  lu.assertEquals(g:nodes(), {})
  g:launch()
  mr.synchronize()
  g:update(function() end)
end

-- ---------------------------------------------------------------- what can be captured

function TestGraph.test_a_host_function_is_a_node()
  local s, seen = mr.stream(), {}
  local x = mr.zeros(1)
  local host = mr.zeros(1, {pinned = true})
  mr.synchronize()
  mr.graph.begin(s)
  s:run(function() x:add_(1) end)
  mr.memcpy_async(host, x, {stream = s})
  s:host_func(function() seen[#seen + 1] = host:item() end)
  local g = mr.graph.finish(s)
  lu.assertEquals(g:nodes()[3].kind, "host function")
  g:launch(s)
  g:launch(s)
  s:synchronize()
  lu.assertEquals(seen, {1.0, 2.0})
end

function TestGraph.test_kernels_products_and_reductions()
  local k = mr.kernel([[extern "C" __global__ void add(float *y, float a, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] += a;
  }]], "add")
  local a, b, y = mr.eye(3), mr.full({3, 3}, 2.0), mr.zeros(3)
  mr.synchronize()
  local g, total = mr.graph(function()
    k[{1, 32}](y, 1.5, 3)
    local c = mr.matmul(a, b)
    return c:sum() + y:sum()
  end)
  g:launch()
  g:launch()
  lu.assertEquals(total:item(), 18 + 9.0)
end

function TestGraph.test_a_graph_in_a_graph()
  local x = mr.zeros(1)
  local s = mr.stream()
  mr.synchronize()
  local add = mr.graph(function() x:add_(1); x:mul_(2) end)
  add:enable(2, false)
  local outer = mr.graph(function()
    x:fill_(10)
    add:launch()
    add:launch()
    x:mul_(3)
  end)
  lu.assertEquals(outer.node_count, 6)
  outer:launch(s)
  s:synchronize()
  lu.assertEquals(x:item(), 36.0)
  local memory = mr.graph(function() return x + 1 end)
  lu.assertErrorMsgContains("R44", mr.graph, function() memory:launch() end)
end

function TestGraph.test_random_numbers_advance_from_launch_to_launch()
  local x, y = mr.zeros(5), mr.zeros(5)
  local g = mr.graph(function() x:uniform_(); y:normal_() end)
  local function values(fn)
    mr.manual_seed(7)
    local out = {}
    for _ = 1, 3 do
      fn()
      out[#out + 1] = x:totable()
      out[#out + 1] = y:totable()
    end
    out[#out + 1] = mr.rand(2):totable()
    return out
  end
  local captured = values(function() g:launch() end)
  lu.assertEquals(captured, values(function() x:uniform_(); y:normal_() end))
  lu.assertNotEquals(captured[1], captured[3])
end

-- ---------------------------------------------------------------- named inputs

function TestGraph.test_inputs()
  local s = mr.stream()
  local x, y, out = mr.ones(4), mr.zeros(4), mr.zeros(4)
  mr.synchronize()
  local g, made = mr.graph(function() out:copy_(x); out:mul_(2); return x + y end)
  lu.assertEquals(g:inputs(), {})
  local named = g:inputs{x = x, y = y}
  lu.assertTrue(rawequal(named.x, x) and rawequal(named.y, y))
  g:launch(s)
  local new = mr.full({4}, 5.0)
  mr.synchronize()
  local reports = mr.hazard.check(function()
    g:inputs{x = new}
    lu.assertEquals(x[1]:item(), 1.0) -- by the next launch
    g:launch(s)
    g:launch(s)
    s:synchronize()
  end)
  lu.assertEquals(#reports, 0)
  lu.assertEquals({x[1]:item(), out[1]:item(), made[1]:item(), y[1]:item()}, {5.0, 10.0, 5.0, 0.0})
  local newest <close> = mr.tensor{1, 2, 3, 4.0} -- the launch reads it, in another stream than its own
  g:inputs{x = newest, y = y} -- the input itself is no new value
  mr.synchronize()
  g:launch(s)
  s:synchronize()
  lu.assertEquals(out:totable(), {2.0, 4.0, 6.0, 8.0})
  -- So it does with a temporary, which nobody has when the launch is over, and with memory of the host.
  reports = mr.hazard.check(function()
    g:inputs{x = mr.full({4}, 3.0)}
    s:wait_stream(mr.default_stream())
    g:launch(s)
    g:inputs{x = mr.full({4}, 4.0, {pinned = true})}
    g:launch(s)
    collectgarbage()
    collectgarbage()
    s:synchronize()
  end)
  lu.assertEquals(#reports, 0)
  lu.assertEquals(out:totable(), {8.0, 8.0, 8.0, 8.0})
end

function TestGraph.test_wrong_inputs()
  local x, out = mr.ones(4), mr.zeros(4)
  local g, made = mr.graph(function() out:copy_(x); return x + 1 end)
  g:inputs{x = x}
  for text, given in pairs{
    ["`x` is f32[4], and f32[3] was given"] = {x = mr.ones(3)},
    ["and f64[4] was given"] = {x = mr.ones(4, {dtype = "f64"})},
    ["no node of the graph reads"] = {other = mr.ones(4)},
    ["or the graph makes it"] = {made = made},
    ["`x` is a number"] = {x = 5},
    ["the name of an input is a string"] = {x},
  } do
    lu.assertErrorMsgContains(text, g.inputs, g, given)
  end
  lu.assertErrorMsgContains("expected a table", g.inputs, g, 5)
  lu.assertErrorMsgContains("no node", g.inputs, g, {out = out}) -- it is written only
  local names = {}
  for name in pairs(g:inputs()) do names[#names + 1] = name end
  lu.assertEquals(names, {"x"})
end

-- ---------------------------------------------------------------- captures that are left open

-- Errors end the captures of mr.graph(fn) only; others end by finish, with their stream, or by a reset.
function TestGraph.test_captures_left_open()
  local x = mr.ones(2)
  mr.synchronize()
  local s
  lu.assertErrorMsgContains("left open", function()
    s = mr.stream()
    mr.graph.begin(s)
    s:run(function() x:add_(1) end)
    error("left open")
  end)
  lu.assertTrue(s:is_capturing())
  local g = mr.graph.finish(s) -- an error outside of mr.graph(fn) ends no capture
  lu.assertEquals(g.node_count, 1)
  for _ = 1, 3 do
    mr.graph.begin(mr.stream())
    collectgarbage()
    collectgarbage()
  end
  lu.assertEquals(x:sum():item(), 2.0)
  lu.assertErrorMsgContains("inside", mr.graph, function()
    local other = mr.stream()
    other:wait_stream(mr.current_stream())
    error("inside")
  end)
  lu.assertEquals(x:sum():item(), 2.0)
end

function TestGraph.test_ten_thousand_captures()
  local x = mr.zeros(8)
  mr.synchronize()
  local function many(count)
    for _ = 1, count do mr.graph(function() return x + 1 end) end
    collectgarbage()
    collectgarbage()
    mr.synchronize()
    return mr.memory.allocated(), collectgarbage("count")
  end
  local device, host = many(500)
  local device_after, host_after = many(10000)
  lu.assertEquals(device_after, device)
  lu.assertTrue(host_after < host + 200, host_after - host)
end

-- ---------------------------------------------------------------- what the checker says

local function reports_of(fn)
  local list = {}
  for i, r in ipairs(mr.hazard.check(fn)) do
    list[i] = r.kind .. " " .. r.tensor
    lu.assertStrContains(r.message, "in a graph launched at ")
    local node = r.first.launched and r.first or r.second
    lu.assertStrContains(node.launched, "graph.lua:")
    lu.assertNotEquals(node.launched, node.where)
  end
  mr.synchronize() -- what the function leaves may be collected in another test
  return table.concat(list, ", ")
end

function TestGraph.test_an_input_overwritten_while_a_launch_reads_it()
  local a, b = mr.stream(), mr.stream()
  local batch, out = mr.zeros(4, {name = "batch"}), mr.zeros(4, {name = "out"})
  mr.synchronize()
  local g = mr.graph(function() mr.spin{ms = 1}; out:copy_(batch) end)
  lu.assertEquals(reports_of(function()
    g:launch(a)
    b:run(function() batch:fill_(1) end)
  end), "write-after-read batch")
  lu.assertEquals(reports_of(function()
    g:launch(a)
    b:wait_stream(a)
    b:run(function() batch:fill_(1) end)
    a:wait_stream(b)
    g:launch(a)
  end), "")
end

function TestGraph.test_a_result_read_while_the_next_launch_writes_it()
  local a, b = mr.stream(), mr.stream()
  local x = mr.ones(4)
  mr.synchronize()
  local g, y = mr.graph(function() return x + 1 end)
  y:name("result")
  lu.assertEquals(reports_of(function()
    g:launch(a)
    b:wait_stream(a)
    local _ = b:run(function() return y:clone() end)
    g:launch(a)
  end), "write-after-read result")
end

function TestGraph.test_inside_a_graph_only_its_edges_count()
  local a, b = mr.stream(), mr.stream()
  local x = mr.zeros(4, {name = "x"})
  mr.synchronize()
  mr.graph.begin(a)
  b:wait_stream(a)
  a:run(function() x:add_(1) end)
  b:run(function() x:add_(2) end)
  a:wait_stream(b)
  local g = mr.graph.finish(a)
  lu.assertStrContains(reports_of(function() g:launch(a) end), "x")
  lu.assertEquals(#mr.hazard.check(function() mr.graph(function() x:add_(1); x:mul_(2) end):launch(a) end), 0)
end

function TestGraph.test_a_result_that_no_launch_has_written()
  local s = mr.stream{name = "s"}
  local reports = mr.hazard.check(function()
    local _, y = mr.graph(function() return mr.ones(4) + 1 end)
    s:run(function() return y:sum() end)
    s:synchronize() -- before the collector frees y
  end)
  lu.assertTrue(#reports > 0)
  for _, r in ipairs(reports) do
    lu.assertStrContains(r.message, "launch the graph before ")
    lu.assertNotStrContains(r.message, "mr.empty")
    lu.assertNotStrContains(r.message, "synchronize")
  end
end

-- The script has no event that a message could name.
function TestGraph.test_a_wait_for_a_stream_outside_of_the_capture()
  local s, other = mr.stream(), mr.stream()
  mr.graph.begin(s)
  local ok, err = pcall(s.wait_stream, s, other)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "stream-capture-isolation")
  lu.assertNotStrContains(err.message, "event #")
  lu.assertStrContains(err.message, "the stream that it waits for does not")
  pcall(mr.graph.finish, s)
end

function TestGraph.test_the_line_of_elapsed_time_is_named()
  local s, first, last = mr.stream(), mr.event{timing = true}, mr.event{timing = true}
  s:record_event(first)
  s:record_event(last)
  s:synchronize()
  for _, ask in ipairs{function() return first:elapsed_time(last) end, function() return last - first end} do
    mr.graph.begin(s)
    lu.assertFalse((pcall(ask)))
    lu.assertStrMatches(s:capture_info().reason_where, ".*graph.lua:%d+")
    local ok, err = pcall(mr.graph.finish, s)
    lu.assertFalse(ok)
    lu.assertStrMatches(err.message, ".*invalidated by elapsed_time at .*graph.lua:%d+.*")
  end
end

function TestGraph.test_one_node_is_singular()
  local x = mr.zeros(4)
  local function head(fn) return mr.graph(fn):print():match("^[^\n]*") end
  lu.assertStrMatches(head(function() x:add_(1) end), "graph %d+: 1 node, 0 edges, captured .*")
  lu.assertStrMatches(head(function() return x + 1 end), "graph %d+: 2 nodes, 1 edge, %d+ bytes in 1 allocation, .*")
end

-- The seed is the host's: it is set at the capture, and no launch sets it again.
function TestGraph.test_a_launch_does_not_set_the_seed_again()
  local x = mr.zeros(8)
  local function draw() x:uniform_() return x:totable() end
  mr.manual_seed(5)
  local first, second = draw(), draw()
  local g = mr.graph(function()
    mr.manual_seed(5)
    x:uniform_()
  end)
  local function launch()
    g:launch()
    mr.synchronize()
    return x:totable()
  end
  lu.assertEquals(launch(), first)
  lu.assertEquals(launch(), second)
  mr.manual_seed(5)
  lu.assertEquals(launch(), first)
end

-- A capture refuses the wait of a read, and then the read has not been submitted either.
function TestGraph.test_a_refused_read_has_submitted_nothing()
  local host = {device = "cpu"}
  local reads = {
    item = function(x) return x[1]:item() end,
    print = function(x) print(x) end,
    totable = function(x) return x:totable() end,
    cpu = function(x) return x:cpu() end,
    copy = function(x) return mr.zeros(4, host):copy_(x) end,
    column = function(x) return mr.zeros(4, 2, host):t()[1]:copy_(x, {non_blocking = true}) end,
    upload = function(x) return x:copy_(mr.ones(4, host)) end,
    nonzero = function(x) return x:nonzero() end,
    masked_select = function(x) return x:masked_select(mr.ones(4, {dtype = "bool"})) end,
    has_nan = function(x) return x:has_nan() end,
    equal = function(x) return mr.equal(x, x) end,
  }
  for name, call in pairs(reads) do
    local x, s = mr.zeros(4), mr.stream()
    mr.synchronize()
    local found = mr.hazard.check(function()
      mr.graph.begin(s)
      local ok, err = pcall(call, x)
      lu.assertFalse(ok, name)
      lu.assertEquals(err.code, "stream-capture-unsupported", name)
      pcall(mr.graph.finish, s)
      s:run(function() x:add_(1) end)
      s:synchronize()
    end)
    lu.assertEquals(#found, 0, name)
    lu.assertEquals(x:totable(), {1.0, 1.0, 1.0, 1.0}, name)
  end
end

-- ---------------------------------------------------------------- how captures end

function TestGraph.test_the_collector_takes_graphs_and_captures()
  collectgarbage()
  local x = mr.zeros(16)
  mr.synchronize()
  for _ = 1, 200 do
    local g = mr.graph(function() return x + 1 end)
    g:launch()
  end
  collectgarbage()
  collectgarbage()
  mr.synchronize()
  local live = mr.memory.allocated()
  for _ = 1, 2000 do
    local g = mr.graph(function() return x + 1 end)
    g:launch()
    pcall(mr.graph, function() local _ = x + 1; error("stop") end)
  end
  collectgarbage()
  collectgarbage()
  mr.synchronize()
  lu.assertEquals(mr.memory.allocated(), live)
end

function TestGraph.test_inputs_live_as_long_as_the_graph()
  local s = mr.stream()
  local out = mr.zeros(4)
  local g
  do
    local x = mr.full({4}, 5.0)
    mr.synchronize()
    g = mr.graph(function() out:add_(x) end)
  end
  collectgarbage()
  collectgarbage()
  mr.full({4}, 9.0)
  mr.synchronize()
  g:launch(s)
  s:synchronize()
  lu.assertEquals(out:sum():item(), 20.0)
end

-- The graph goes first, then the last handle of what its pending launch writes: the next tensor at that address must
-- not be written.
function TestGraph.test_inputs_outlive_the_last_launch()
  local s = mr.stream()
  local out = mr.zeros(4)
  mr.synchronize()
  local g = mr.graph(function() mr.spin{ms = 1}; out:fill_(1) end)
  g:launch(s)
  g:close()
  out = nil -- luacheck: no unused
  collectgarbage()
  collectgarbage()
  local later = {}
  for i = 1, 8 do later[i] = mr.full({4}, 5.0) end
  mr.synchronize()
  for i = 1, 8 do lu.assertEquals(later[i]:sum():item(), 20.0) end
end

function TestGraph.test_a_free_comes_after_each_use()
  local x, y = mr.zeros(8), mr.zeros(8)
  mr.synchronize()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  for _, ordered in ipairs{ false, true } do
    mr.graph.begin(a)
    local t = a:run(function() return x + 1 end)
    b:wait_stream(a)
    b:run(function() y:copy_(t) end)
    local where = debug.getinfo(1, "l").currentline - 1
    if ordered then
      a:wait_stream(b)
      a:run(function() t:free() end)
    else
      local place = "`copy_` at tests/lua/graph.lua:" .. where
      lu.assertErrorMsgContains(place, a.run, a, function() t:free() end)
      a:wait_stream(b)
    end
    local g = mr.graph.finish(a)
    y:zero_()
    mr.synchronize()
    g:launch(a)
    a:synchronize()
    lu.assertEquals(y:sum():item(), 8.0)
    g:close()
  end
end

function TestGraph.test_a_freed_input_is_named()
  local x = mr.zeros(4, {name = "weights"})
  mr.synchronize()
  local g = mr.graph(function() x:add_(1) end)
  x:free()
  lu.assertErrorMsgContains("`weights`", g.launch, g)
  lu.assertErrorMsgContains("was freed at", g.launch, g)
end

-- R45: the graph has the event's handle. On CUDA this was a crash.
function TestGraph.test_a_closed_event_of_outside_is_named()
  local x, before, after = mr.zeros(4), mr.event(), mr.event{name = "after"}
  before:record()
  local g = mr.graph(function()
    mr.current_stream():wait_event(before, {external = true})
    x:add_(1)
    after:record(nil, {external = true})
  end)
  g:launch()
  after:close()
  lu.assertErrorMsgContains("is for event `after`, which is closed", g.launch, g)
  g:enable(3, false)
  g:launch()
  lu.assertEquals(x:sum():item(), 8.0)
  lu.assertNil(g.rebuilt)
end

function TestGraph.test_a_reset_ends_captures()
  local s = mr.stream()
  local g = mr.graph(function() mr.spin{ms = 1} end)
  mr.graph.begin(s)
  s:run(function() mr.zeros(4) end)
  mr.reset()
  lu.assertErrorMsgContains("mr.reset", s.synchronize, s)
  lu.assertErrorMsgContains("mr.reset", g.launch, g)
  lu.assertErrorMsgContains("mr.reset", g.instantiate, g)
  lu.assertFalse(s:is_capturing())
  mr.zeros(4):add_(1)
  mr.synchronize()
end

function TestGraph.test_a_function_that_ends_its_own_capture()
  local line = debug.getinfo(1, "l").currentline + 1
  local ok, err = pcall(mr.graph, function() mr.graph.finish(mr.current_stream()) end)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "illegal-state")
  lu.assertStrContains(err.message, "was ended at tests/lua/graph.lua:" .. line)
end

function TestGraph.test_a_caught_error_still_invalidates()
  local ok, err = pcall(mr.graph, function() pcall(mr.synchronize) end)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "stream-capture-invalidated")
  lu.assertStrContains(err.message, "synchronize")
end

-- ---------------------------------------------------------------- with a graph and without

-- A random program: operations on a few tensors over three streams, with the waits that make it
-- deterministic. It begins behind all that the first stream has been given, and ends there.
-- `kept` holds its tensors until the caller has waited: the collector frees a tensor in the order
-- of the stream that made it, and other streams read it.
local function random_program(seed)
  math.randomseed(seed)
  local steps = {}
  for i = 1, math.random(1, 25) do
    steps[i] = {stream = math.random(3), kind = math.random(7), a = math.random(4), b = math.random(4),
                number = math.random(5)}
  end
  return steps
end

local function carry_out(steps, streams, tensors, kept)
  local last -- the stream of the step before: each step comes after it
  local made = {}
  kept[#kept + 1] = made
  for i = 2, #streams do streams[i]:wait_stream(streams[1]) end
  for _, step in ipairs(steps) do
    local s = streams[step.stream]
    if last and last ~= s then s:wait_event(last:record_event()) end
    last = s
    s:run(function()
      local a, b = tensors[step.a], tensors[step.b]
      if step.kind == 1 then a:add_(step.number)
      elseif step.kind == 2 then a:add_(b)
      elseif step.kind == 3 then a:fill_(step.number)
      elseif step.kind == 4 then a:copy_(b)
      elseif step.kind == 5 then made[#made + 1] = a * b
      elseif step.kind == 6 then a:uniform_()
      elseif made[1] then a:copy_(made[#made]) end
    end)
  end
  if last and last ~= streams[1] then streams[1]:wait_stream(last) end
end

local function new_tensors()
  local tensors = {}
  for i = 1, 4 do tensors[i] = mr.full({6}, i, {dtype = "f32"}) end
  mr.manual_seed(99)
  mr.synchronize()
  return tensors
end

local function bytes_of(tensors)
  local out = {}
  for i, t in ipairs(tensors) do out[i] = string.pack(("f"):rep(6), table.unpack(t:totable())) end
  return table.concat(out)
end

function TestGraph.test_the_same_bytes_as_without_a_graph()
  local streams = {mr.stream(), mr.stream(), mr.stream()}
  for seed = 1, 1000 do
    local steps = random_program(seed)
    local launches = seed % 3 + 1
    local eager, kept = new_tensors(), {}
    for _ = 1, launches do carry_out(steps, streams, eager, kept) end
    mr.synchronize()
    local tensors = new_tensors()
    mr.graph.begin(streams[1])
    carry_out(steps, streams, tensors, kept)
    local g = mr.graph.finish(streams[1])
    for _ = 1, launches do g:launch(streams[seed % 3 + 1]) end
    mr.synchronize()
    lu.assertTrue(bytes_of(tensors) == bytes_of(eager), "program " .. seed)
  end
end

os.exit(lu.LuaUnit.run())
