-- own pace: a collector at each call changes the times that a picture shows
-- The picture (.svg) of a timeline: no text covers another one, and bars show how busy they are.
local lu = require "luaunit"
local command = require "host.support.command"
local svg_reader = require "host.support.svg"

-- The picture that the script saves as PATH, and what it printed.
local function picture(script)
  local path = os.tmpname() .. ".svg"
  local result = command.eval("local mr = require 'millrace' mr.hazard.mode('collect')\n" .. script:gsub("PATH", path))
  lu.assertEquals({ result.status, result.err }, { 0, "" })
  local text = command.read(path)
  os.remove(path)
  return text, result.out
end

local texts, overlapping = svg_reader.texts, svg_reader.overlapping

local function has_text(svg, wanted, class)
  for _, one in ipairs(texts(svg)) do
    if one.text == wanted and (not class or one.class == class) then return true end
  end
  return false
end

TestRaces = {}

-- Two short operations that race lie beside each other.
function TestRaces.test_beside_each_other()
  local svg = picture[[
local a, b = mr.stream{ name = "producer" }, mr.stream{ name = "consumer" }
local x = mr.zeros(1 << 20, { name = "x" })
mr.synchronize()
mr.timeline(function()
  for i = 1, 4 do
    a:run(function() x:fill_(i) mr.spin{ ms = 0.2 } x:mul_(2) end)
    b:run(function() mr.spin{ ms = 0.1 } local s = x:sum() end)
  end
  mr.synchronize()
end):save("PATH")]]
  lu.assertNil(overlapping(svg))
  for _, name in ipairs{ "!1", "!2", "mul_", "fill_", "sum" } do lu.assertTrue(has_text(svg, name, "n"), name) end
end

-- A name that its bar shows is not written again; one that only the host's lane shows is.
function TestRaces.test_on_three_lanes()
  local svg = picture[[
local a, b, c = mr.stream{ name = "load" }, mr.stream{ name = "compute" }, mr.stream{ name = "store" }
local x, y, z = mr.zeros(1 << 18, { name = "x" }), mr.zeros(1 << 18), mr.zeros(1 << 18)
mr.synchronize()
mr.timeline(function()
  a:run(function() x:fill_(1) y:fill_(2) z:fill_(3) end)
  b:run(function() x:mul_(2) y:mul_(3) z:relu_() end)
  c:run(function() local s = x:sum() local m = y:mean() local k = z:max() end)
  mr.synchronize()
end):save("PATH")]]
  lu.assertNil(overlapping(svg))
  lu.assertTrue(has_text(svg, "!2", "n"))
  lu.assertFalse(has_text(svg, "sum", "n"))
  lu.assertTrue(has_text(svg, "fill_", "n"))
end

local SEVERAL = [[
local s = {}
for i = 1, 5 do s[i] = mr.stream{ name = "worker" .. i } end
local x = mr.zeros(1 << 20, { name = "x" })
mr.synchronize()
local t = mr.timeline(function()
  for i = 1, 4 do s[i]:run(function() mr.op{ name = "step", ms = 0.2, reads = { x } } end) end
  s[5]:run(function() x:add_(1) end)
  mr.synchronize()
end)
t:save("PATH")
t:print{ width = 200, ascii = true }
]]

-- Its fix has a line for each of them.
function TestRaces.test_against_several_streams()
  local svg, out = picture(SEVERAL)
  for _, text in ipairs{ svg, out } do
    lu.assertNotStrContains(text:gsub("<title>.-</title>", ""), "\\n")
    lu.assertStrMatches(text, ".*missing: [^\n]-; [^\n]-, and 2 more lines.*")
  end
end

-- The cause of a gap stands beside the frame of an operation in it; in grey a frame is seen on a bar of its own grey.
function TestRaces.test_a_frame_in_a_gap()
  local svg = picture[[
local s = mr.stream{ name = "s" }
mr.timeline(function()
  local old = mr.full({ 4 }, 3.0, { name = "old" })
  mr.synchronize()
  old:add_(1)
  old:free()
  local new = mr.empty(4, { name = "new" })
  s:run(function() new:fill_(7) end)
  mr.synchronize()
  new:sum():item()
end):save("PATH")]]
  local frames, causes = svg_reader.frames(svg), 0
  lu.assertEquals(#frames, 2)
  for _, text in ipairs(texts(svg)) do
    if text.text:find("host stood in", 1, true) then
      causes = causes + 1
      for _, frame in ipairs(frames) do lu.assertFalse(svg_reader.is_over(text, frame), text.text) end
    end
  end
  lu.assertTrue(causes > 0)
  local _, halos = svg:gsub('<rect class="halo"', "")
  lu.assertEquals(halos, 2)
  lu.assertTrue(has_text(svg, "add_", "s")) -- its bar is too narrow for it
end

-- A race inside one launch has a frame, and no edge.
function TestRaces.test_inside_a_launch()
  local svg = picture[[
local ok, k = pcall(mr.kernel, "__global__ void k(float *y) { y[0] = threadIdx.x; }")
if not ok then print(k) mr.ones(1) end
local y = mr.zeros(1)
mr.timeline(function() if ok then k[{ 1, 64 }](y) end mr.synchronize() end):save("PATH")]]
  lu.skipIf(not svg:find(">k<", 1, true), "no compiler of kernels")
  lu.assertNotStrContains(svg, "this edge is missing")
  lu.assertTrue(has_text(svg, "!1 a race: nothing orders the threads of the launch in the frame", "d"))
  lu.assertStrContains(svg, "!1  race-in-kernel: threads of k (")
end

TestBars = {}

local SPARSE = [[
local s = mr.stream{ name = "an extremely long stream name that nobody would read to its end" }
local x = mr.zeros(16)
mr.synchronize()
mr.timeline(function()
  for i = 1, 2000 do
    s:run(function() x:add_(1) end)
    mr.machine.pass(0.04)
  end
  mr.synchronize()
end):save("PATH")]]

function TestBars.test_are_as_high_as_they_are_busy()
  local svg = picture(SPARSE)
  local share = tonumber(svg:match("add_ ×2000\n[^<]*busy ([%d.]+) %%"))
  lu.assertTrue(share > 1 and share < 10)
  local pale, height = svg:match('<rect class="kernel" [^>]*height="26" fill%-opacity="([%d.]+)"/>\n?' ..
    '<rect class="kernel" [^>]*height="(%d+)" rx="0"/>')
  lu.assertTrue(tonumber(pale) < 0.5)
  lu.assertEquals(height, "2")
  lu.assertTrue(has_text(svg, "several short ones: as high as they are busy"))
end

function TestBars.test_long_names_of_streams_end_before_the_bars()
  local svg = picture(SPARSE)
  lu.assertTrue(has_text(svg, "an extremely long str…"))
  lu.assertStrContains(svg, "<title>an extremely long stream name that nobody would read to its end</title>")
end

os.exit(lu.LuaUnit.run())
