-- Errors while a stream captures (R35-R40): each call of the table in each mode, on blocking and non-blocking streams.
-- After each, the capture is invalidated exactly if the table says so, its end says the same, and the streams can be
-- used as before.
local lu = require "luaunit"
local mr = require "millrace"

TestGraphIllegal = {}

function TestGraphIllegal:setUp()
  mr.reset()
end

local unsupported, invalidated = "stream-capture-unsupported", "stream-capture-invalidated"
local numbers = {
  ["illegal-state"] = 401,
  [unsupported] = 900,
  [invalidated] = 901,
  ["stream-capture-merge"] = 902,
  ["stream-capture-unjoined"] = 904,
  ["stream-capture-isolation"] = 905,
  ["stream-capture-implicit"] = 906,
  ["captured-event"] = 907,
}

-- A call, its error in the modes global and thread, and its error in the mode relaxed (nil: it is allowed). Then
-- whether it leaves the capture as it is although it is an error. `w` is what make() returns.
local rows = {
  {"synchronize of the stream", unsupported, unsupported, function(w) w.s:synchronize() end},
  {"query of the stream", unsupported, unsupported, function(w) return w.s:query() end},
  {"synchronize of the devices", unsupported, unsupported, function() mr.synchronize() end},
  {"synchronize of the device", unsupported, unsupported, function() mr.current_device():synchronize() end},
  {"item", unsupported, unsupported, function(w) return w.s:run(function() return w.x[1]:item() end) end},
  {"totable", unsupported, unsupported, function(w) return w.s:run(function() return w.x:totable() end) end},
  {"print", unsupported, unsupported, function(w) w.s:run(function() print(w.x) end) end},
  {"to the host", unsupported, unsupported, function(w) return w.s:run(function() return w.x:to("cpu") end) end},
  {"close of the stream", unsupported, unsupported, function(w) w.s:close() end},
  {"synchronize of another stream", unsupported, nil, function(w) w.t:synchronize() end},
  {"query of another stream", unsupported, nil, function(w) return w.t:query() end},
  {"item on another stream", unsupported, nil, function(w) return w.t:run(function() return w.y[1]:item() end) end},
  {"synchronize of an event of outside", unsupported, nil, function(w) w.outside:synchronize() end},
  {"query of an event of outside", unsupported, nil, function(w) return w.outside:query() end},
  {"cudaFree", unsupported, nil, function(w) w.y:free{sync = true} end},
  {"synchronize of a captured event", "captured-event", "captured-event", function(w) w.captured:synchronize() end},
  {"query of a captured event", "captured-event", "captured-event", function(w) return w.captured:query() end},
  {"elapsed time to a captured event", unsupported, "captured-event",
    function(w) return w.outside:elapsed_time(w.captured) end},
  {"elapsed time from a captured event", "captured-event", "captured-event",
    function(w) return w.captured:elapsed_time(w.outside) end},
  {"elapsed time of events of outside", unsupported, nil, function(w) return w.outside:elapsed_time(w.outside) end},
  {"wait for an event of outside", "stream-capture-isolation", "stream-capture-isolation",
    function(w) w.s:wait_event(w.outside) end},
  {"wait for another stream", "stream-capture-isolation", "stream-capture-isolation",
    function(w) w.s:wait_stream(w.t) end},
  {"wait for an event of another capture", "stream-capture-merge", "stream-capture-merge",
    function(w) w.s:wait_event(w.other) end},
  {"wait for an event that was never recorded", nil, nil, function(w) w.s:wait_event(mr.event()) end},
  {"begin once more", "illegal-state", "illegal-state", function(w) mr.graph.begin(w.s) end, true},
  {"begin on the default stream", unsupported, unsupported, function() mr.graph.begin(mr.default_stream()) end, true},
  {"begin in no mode", "invalid-argument", "invalid-argument",
    function(w) mr.graph.begin(w.t, {mode = "none"}) end, true},
  {"end on a stream that does not capture", "illegal-state", "illegal-state",
    function(w) mr.graph.finish(w.t) end, true},
  {"end on a stream that joined", "illegal-state", "illegal-state", function(w) mr.graph.finish(w.joined) end, true},
  {"free of memory of outside", "invalid-argument", "invalid-argument",
    function(w) w.x:free{stream = w.s} end, true},
  {"free in the order of its own stream", nil, nil, function(w) w.x:free() end},
  {"another capture", nil, nil, function(w)
    mr.graph.begin(w.t)
    w.t:run(function() w.y:add_(1) end)
    mr.graph.finish(w.t)
  end},
  {"a capture of a function", nil, nil, function(w) mr.graph(function() w.y:add_(1) end):launch(w.t) end},
  {"work on another stream", nil, nil, function(w) w.t:run(function() w.y:add_(1) end) end},
  {"a host function on another stream", nil, nil, function(w) w.t:host_func(function() end) end},
  {"memory on another stream", nil, nil, function(w) return mr.zeros(4, {stream = w.t}) end},
  {"free on another stream", nil, nil, function(w) w.t:run(function() w.y:free() end) end},
  {"memory in the capture", nil, nil, function(w) w.s:run(function() mr.zeros(4):free() end) end},
  {"host memory", nil, nil, function() return mr.zeros(4, {device = "cpu"}) end},
  {"a new stream and its close", nil, nil, function() mr.stream():close() end},
  {"a new event and its close", nil, nil, function() mr.event():close() end},
  {"close of another stream", nil, nil, function(w) w.t:close() end},
  {"questions about the capture", nil, nil, function(w) return w.s:is_capturing(), w.s:capture_info() end},
}

-- The default stream, which waits for blocking streams.
local default_rows = {
  {"an operation", function(w) w.y:add_(1) end},
  {"a copy", function(w) mr.memcpy(w.y, w.z) end},
  {"a record", function() mr.default_stream():record_event() end},
}

local function make(mode, nonblocking)
  local w = {mode = mode}
  w.s = mr.stream{name = "s", nonblocking = nonblocking}
  w.t, w.u, w.joined = mr.stream{name = "t"}, mr.stream{name = "u"}, mr.stream{name = "joined"}
  w.x, w.y, w.z = mr.ones(4), mr.ones(4), mr.ones(4)
  w.outside = w.t:record_event(mr.event{timing = true})
  mr.synchronize()
  w.other, w.captured = mr.event{timing = true}, mr.event{timing = true}
  mr.graph.begin(w.u, {mode = "relaxed"})
  w.u:record_event(w.other)
  mr.graph.begin(w.s, {mode = mode})
  w.s:run(function() w.x:add_(1) end)
  w.s:record_event(w.captured)
  w.joined:wait_event(w.captured)
  return w
end

local function check_usable(w, name)
  pcall(mr.graph.finish, w.u)
  local x = mr.zeros(2)
  for _, key in ipairs{"s", "t", "u", "joined"} do
    local s = w[key]
    if not tostring(s):find("closed", 1, true) then
      lu.assertFalse(s:is_capturing(), name)
      s:wait_stream(mr.default_stream())
      s:run(function() x:add_(1) end)
      s:synchronize()
    end
  end
  lu.assertTrue(x[1]:item() >= 3, name)
end

local function check_end(w, name, refused)
  local s = w.s
  if not refused then
    local g = mr.graph.finish(s)
    lu.assertEquals(g:nodes()[1].name, "add_", name)
    return
  end
  for _, call in ipairs{function() s:run(function() w.x:add_(1) end) end, function() s:record_event() end,
                        function() mr.graph.finish(s) end} do
    local ok, err = pcall(call)
    lu.assertFalse(ok, name)
    lu.assertEquals(err.code, invalidated, name)
    lu.assertStrContains(err.message, "901", name)
  end
end

local function check_error(name, expected, ok, err)
  if not expected then
    lu.assertTrue(ok, name .. ": " .. tostring(err))
    return
  end
  lu.assertFalse(ok, name .. " is an error")
  if expected == "invalid-argument" then return lu.assertIsString(err, name) end -- as of any wrong argument
  lu.assertEquals(err.code, expected, name .. ": " .. tostring(err))
  lu.assertStrContains(err.message, tostring(numbers[expected]), name)
  lu.assertIsString(err.op, name)
  if expected == "stream-capture-invalidated" then lu.assertIsString(err.stream, name) end
  lu.assertStrContains(tostring(err.where or err.message), "graph_illegal", name)
end

local function check(row, mode, nonblocking)
  local name, call = ("%s (%s, %s)"):format(row[1], mode, nonblocking and "non-blocking" or "blocking"), row[4]
  local expected = row[2]
  if mode == "relaxed" then expected = row[3] end
  local w = make(mode, nonblocking)
  check_error(name, expected, pcall(call, w))
  local refused = expected ~= nil and not row[5]
  lu.assertEquals(w.s:capture_info().status, refused and "invalidated" or "active", name)
  check_end(w, name, refused)
  check_usable(w, name)
end

for _, mode in ipairs{"global", "thread", "relaxed"} do
  TestGraphIllegal["test_mode_" .. mode] = function()
    for _, row in ipairs(rows) do
      check(row, mode, true)
      check(row, mode, false)
    end
  end

  TestGraphIllegal["test_the_default_stream_in_mode_" .. mode] = function()
    for _, row in ipairs(default_rows) do
      check({row[1], nil, nil, row[2]}, mode, true)
      local code = "stream-capture-implicit"
      check({row[1], code, code, row[2]}, mode, false)
    end
  end
end

function TestGraphIllegal.test_an_error_at_the_end_names_what_was_called()
  local s, other = mr.stream(), mr.stream()
  local ok, err = pcall(mr.graph, function()
    other:wait_stream(s)
    other:run(function() mr.spin(1) end)
  end, { stream = s })
  check_error("unjoined", "stream-capture-unjoined", ok, err)
  lu.assertStrContains(err.message, "graph: ")
  lu.assertNotStrContains(err.message, "finish: ")
end

function TestGraphIllegal.test_ends_without_a_graph()
  for _, mode in ipairs{"global", "thread", "relaxed"} do
    local w = make(mode, true)
    w.joined:run(function() w.y:add_(1) end)
    local ok, err = pcall(mr.graph.finish, w.s)
    check_error("unjoined", "stream-capture-unjoined", ok, err)
    lu.assertStrContains(err.message, "stream `joined`")
    lu.assertStrContains(err.message, "finish: ")
    check_usable(w, "unjoined")
    local empty = mr.stream()
    mr.graph.begin(empty, {mode = mode})
    lu.assertEquals(mr.graph.finish(empty).node_count, 0)
    empty:synchronize()
  end
end

function TestGraphIllegal.test_reset_ends_captures()
  for _, mode in ipairs{"global", "thread", "relaxed"} do
    local w = make(mode, true)
    mr.reset()
    lu.assertError(mr.graph.finish, w.s)
    local s, x = mr.stream(), mr.zeros(2)
    mr.synchronize()
    mr.graph(function() x:add_(1) end):launch(s)
    s:synchronize()
    lu.assertEquals(x:totable(), {1.0, 1.0})
  end
end

os.exit(lu.LuaUnit.run())
