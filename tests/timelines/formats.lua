-- Files of traces that other programs read: the trace-event format by its own rules, the same spans in CSV and JSON.
-- not replayed: it starts other programs
-- not recorded: it starts other programs
-- timeout: 120
local lu = require "luaunit"
local json = require "timelines.support.json"
local samples = require "timelines.support.samples"

-- ---------------------------------------------------------------- the trace-event format

local CATEGORIES = { kernel = "gpu", gpu_memcpy = "gpu", gpu_memset = "gpu", cuda_sync = "gpu", host_function = "gpu",
  cuda_runtime = "host", cpu_op = "host" }
local METADATA = { process_name = "name", process_sort_index = "sort_index", thread_name = "name",
  thread_sort_index = "sort_index" }

local function is_time(value) return math.type(value) and value >= 0 and value < 1e12 end

local function thread_of(event) return event.pid .. "/" .. event.tid end

-- Each event for itself.
local function check_event(event)
  lu.assertNotNil(({ M = true, X = true, s = true, f = true })[event.ph], event.ph)
  lu.assertEquals(math.type(event.pid), "integer")
  lu.assertEquals(math.type(event.tid), "integer")
  lu.assertEquals(type(event.name), "string")
  lu.assertTrue(is_time(event.ts))
  if event.ph == "M" then
    lu.assertNotNil(event.args[METADATA[event.name]], event.name)
  elseif event.ph == "X" then
    lu.assertNotNil(CATEGORIES[event.cat], event.cat)
    lu.assertTrue(is_time(event.dur))
    lu.assertEquals(math.type(event.args.correlation), "integer")
    if event.cat == "kernel" or event.cat == "gpu_memcpy" then
      lu.assertEquals(event.args.device, event.pid)
      lu.assertEquals(event.args.stream, event.tid % 100000)
    end
  else
    lu.assertEquals(event.cat, "ac2g")
    lu.assertEquals(event.bp, event.ph == "f" and "e" or nil)
    lu.assertEquals(math.type(event.id), "integer")
  end
end

-- In nanoseconds: sums of decimal fractions are not exact.
local function ns(us) return math.floor(us * 1000 + 0.5) end

-- One of two slices of a thread lies within the other, or they have no time in common.
local function check_nesting(slices)
  table.sort(slices, function(a, b)
    if a.from ~= b.from then return a.from < b.from end
    return a.to > b.to
  end)
  local open = {}
  for _, slice in ipairs(slices) do
    while #open > 0 and open[#open].to <= slice.from do table.remove(open) end
    if #open > 0 and slice.to > open[#open].to then
      lu.fail(("%s (%d to %d) and %s (%d to %d) overlap in thread %s"):format(open[#open].event.name, open[#open].from,
        open[#open].to, slice.event.name, slice.from, slice.to, thread_of(slice.event)))
    end
    open[#open + 1] = slice
  end
end

local function begins_at(slices, time)
  for _, slice in ipairs(slices) do if slice.from == time then return true end end
  return false
end

-- Returns its slices by category, after all has been checked.
local function check_trace(text)
  local trace = json.decode(text)
  lu.assertEquals(trace.schemaVersion, 1)
  local threads, named, flows, of_host, on_device = {}, {}, {}, {}, {}
  for _, event in ipairs(trace.traceEvents) do
    check_event(event)
    if event.ph == "M" then
      named[(event.name:find("process") and event.pid or thread_of(event)) .. " " .. event.name] = true
    elseif event.ph == "X" then
      local key = thread_of(event)
      local slice = { from = ns(event.ts), to = ns(event.ts) + ns(event.dur), event = event }
      threads[key] = threads[key] or {}
      table.insert(threads[key], slice)
      local place = CATEGORIES[event.cat] == "host" and of_host or on_device
      if event.cat ~= "host_function" then lu.assertNil(place[event.args.correlation]) end
      place[event.args.correlation] = slice
      if CATEGORIES[event.cat] == "host" then lu.assertEquals(event.pid, 9999) else lu.assertTrue(event.pid < 9999) end
    else
      flows[event.id] = flows[event.id] or {}
      lu.assertNil(flows[event.id][event.ph])
      flows[event.id][event.ph] = event
    end
  end
  for key, slices in pairs(threads) do
    check_nesting(slices)
    for _, what in ipairs { "thread_name", "thread_sort_index" } do lu.assertTrue(named[key .. " " .. what], key) end
    for _, what in ipairs { "process_name", "process_sort_index" } do
      lu.assertTrue(named[key:match("^%d+") .. " " .. what], key)
    end
  end
  for id, flow in pairs(flows) do
    lu.assertEquals(ns(flow.s.ts), of_host[id].from)
    lu.assertTrue(begins_at(threads[thread_of(flow.f)], ns(flow.f.ts)))
    lu.assertEquals(ns(flow.f.ts), on_device[id].from)
  end
  for id in pairs(on_device) do lu.assertNotNil(flows[id], id) end
  return on_device, of_host
end

TestChrome = {}

function TestChrome.test_all_samples_obey_the_format()
  for _, name in ipairs(samples.names) do check_trace(samples.text(name, "json")) end
end

-- Slices of one thread nest, so that calls of two ranks at one time need a thread each.
function TestChrome.test_a_rank_has_a_thread()
  local text = samples.text("ranks", "json")
  for _, name in ipairs { "ranks.lua", "host of rank 0", "host of rank 1" } do
    lu.assertStrContains(text, ('"args":{"name":"%s"}'):format(name))
  end
end

function TestChrome.test_the_checks_find_mistakes()
  local good = samples.text("race", "json")
  local bad = {
    { '"ph":"f"', '"ph":"q"' }, { '"bp":"e",', "" }, { '"cat":"kernel"', '"cat":"kernal"' },
    { '"thread_name"', '"thraed_name"' }, { '"dur":', '"dur":-' },
    { '("cat":"kernel","name":"fill_".-"ts":)', "%15" }, -- it begins later, within another one
    { '"id":3,', '"id":4,' }, { "}%s*$", "" }, { "\n{", '\n{"ph":"M",' },
  }
  for _, pair in ipairs(bad) do
    local text, count = good:gsub(pair[1], pair[2], 1)
    lu.assertEquals(count, 1, pair[1])
    lu.assertFalse((pcall(check_trace, text)), pair[1])
  end
end

-- ---------------------------------------------------------------- tables

-- RFC 4180: records of fields, some in quotes.
local function read_csv(text)
  local records, record, at = {}, {}, 1
  while at <= #text do
    local field
    if text:sub(at, at) == '"' then
      local stop = at + 1
      while true do
        stop = assert(text:find('"', stop, true), "a quote has no end")
        if text:sub(stop + 1, stop + 1) ~= '"' then break end
        stop = stop + 2
      end
      field = text:sub(at + 1, stop - 1):gsub('""', '"')
      at = stop + 1
    else
      field = text:match('^[^,\r\n"]*', at)
      at = at + #field
    end
    record[#record + 1] = field
    if text:sub(at, at + 1) == "\r\n" then
      records[#records + 1] = record
      record, at = {}, at + 2
    else
      assert(text:sub(at, at) == ",", "expected a comma or the end of a line")
      at = at + 1
    end
  end
  return records
end

-- Controls, and what is no UTF-8, are shown in CSV as on a terminal, and are there as they are in JSON.
local function is_plain(text) return not text:find("%c") and not text:find("[\xe2\xef]") end

local function check_tables(name)
  local csv, spans = read_csv(samples.text(name, "csv")), json.decode(samples.text(name, "spans.json"))
  local titles = table.remove(csv, 1)
  lu.assertEquals(#csv, #spans.spans)
  for i, record in ipairs(csv) do
    lu.assertEquals(#record, #titles)
    local span = spans.spans[i]
    for k, title in ipairs(titles) do
      local value = span[title]
      lu.assertNotNil(value, title)
      if value == json.null then lu.assertEquals(record[k], "")
      elseif type(value) == "number" then lu.assertEquals(tonumber(record[k]), value)
      elseif is_plain(value) then lu.assertEquals(record[k], value) end
    end
  end
  return spans
end

TestTables = {}

function TestTables.test_a_trace_of_ranks_names_the_rank()
  for _, span in ipairs(json.decode(samples.text("ranks", "spans.json")).spans) do
    lu.assertEquals(span.rank, span.name == "begin" and json.null or span.seq <= 5 and 0 or 1)
  end
  lu.assertNil(json.decode(samples.text("pipeline", "spans.json")).spans[1].rank)
end

function TestTables.test_csv_and_json_say_the_same()
  for _, name in ipairs(samples.names) do check_tables(name) end
end

-- The same operations, in two formats that are written by different code.
function TestTables.test_chrome_has_each_operation_once()
  for _, name in ipairs(samples.names) do
    local spans = check_tables(name).spans
    local on_device, of_host = check_trace(samples.text(name, "json"))
    for _, span in ipairs(spans) do
      local work, call = on_device[span.seq], of_host[span.seq]
      local ran = span.start ~= json.null and span.engine ~= "none"
      lu.assertEquals(work ~= nil and work.event.cat ~= "cuda_sync", ran)
      if ran then
        lu.assertEquals({ work.event.name, work.from, work.to },
          { span.name, ns(span.start * 1000), ns(span.finish * 1000) })
      end
      lu.assertEquals({ call.from, call.to }, { ns(span.call * 1000), ns(span.returned * 1000) })
    end
  end
end

-- ---------------------------------------------------------------- pictures and graphs

-- Well-formed as far as it goes: tags that nest, no bare & or <, attributes in quotes.
local function check_xml(text)
  local open, at = {}, 1
  while true do
    local content, tag, next_at = text:match("^([^<]*)(%b<>)()", at)
    if not tag then break end
    for entity in content:gmatch("&[^;%s]*;?") do
      lu.assertNotNil(({ ["&lt;"] = 1, ["&gt;"] = 1, ["&amp;"] = 1, ["&quot;"] = 1, ["&#39;"] = 1 })[entity], entity)
    end
    lu.assertNil(content:find("[%z\1-\8\11-\31]"))
    local slash, name, attributes, empty = tag:match("^<(/?)([%a]+)(.-)(/?)>$")
    lu.assertNotNil(name, tag)
    lu.assertEquals(attributes:gsub('%s+[%a-]+="[^"<]*"', ""):gsub("%s", ""), "")
    if slash == "/" then lu.assertEquals(table.remove(open), name)
    elseif empty == "" then open[#open + 1] = name end
    at = next_at
  end
  lu.assertEquals(#open, 0)
  lu.assertTrue(utf8.len(text) ~= nil)
  return text
end

TestPictures = {}

function TestPictures.test_svg_is_xml()
  for _, name in ipairs(samples.names) do check_xml(samples.text(name, "svg")) end
  local both = check_xml(samples.text("both", "svg"))
  lu.assertStrContains(both, "before: pipeline.lua")
  lu.assertStrContains(both, "after: pipeline.lua")
end

function TestPictures.test_a_rank_has_a_lane()
  local text, last = samples.text("ranks", "svg"), 0
  for _, label in ipairs { "host", "host of rank 0", "host of rank 1", "copy", "rank 1 copy" } do
    last = text:find(">" .. label .. "<", last + 1, true)
    lu.assertNotNil(last, label)
  end
end

function TestPictures.test_svg_stays_small()
  lu.assertTrue(#samples.text("dense:200000", "svg") < 100000)
end

-- Whether `to` can be reached from `from` along the edges of a graph.
local function reaches(next_of, from, to)
  local todo, seen = { from }, {}
  while #todo > 0 do
    local node = table.remove(todo)
    if node == to then return true end
    for _, other in ipairs(next_of[node] or {}) do
      if not seen[other] then
        seen[other] = true
        todo[#todo + 1] = other
      end
    end
  end
  return false
end

function TestPictures.test_dot_has_the_order_of_streams_and_of_waits()
  local spans = json.decode(samples.text("pipeline", "spans.json")).spans
  local text, next_of, of_seq = samples.text("pipeline", "dot"), {}, {}
  for from, to in text:gmatch("n(%d+) %-> n(%d+)") do
    next_of[tonumber(from)] = next_of[tonumber(from)] or {}
    table.insert(next_of[tonumber(from)], tonumber(to))
    lu.assertTrue(tonumber(from) < tonumber(to)) -- so there is no circle
  end
  for i, span in ipairs(spans) do of_seq[span.seq] = i - 1 end
  for i, span in ipairs(spans) do
    lu.assertStrContains(text, ("n%d [label="):format(i - 1))
    if span.waits_for ~= json.null then lu.assertTrue(reaches(next_of, of_seq[span.waits_for], i - 1)) end
    for k = 1, i - 1 do
      if spans[k].stream == span.stream then lu.assertTrue(reaches(next_of, k - 1, i - 1)) end
    end
  end
  local first, last = of_seq[spans[1].seq], #spans - 1 -- the host waits for everything
  lu.assertTrue(reaches(next_of, first, last))
end

function TestPictures.test_dot_labels_are_closed()
  for line in samples.text("hostile", "dot"):gmatch("[^\n]+") do
    local quotes = line:gsub("\\.", ""):gsub('[^"]', "")
    lu.assertEquals(#quotes % 2, 0, line)
  end
end

os.exit(lu.LuaUnit.run())
