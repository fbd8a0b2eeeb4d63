-- Functions of `string` and `table` that the host has in a form that can be stopped: they do what Lua's own do.
local lu = require "luaunit"
local command = require "host.support.command"

TestLibrary = {}

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("[^\n]*") do lines[#lines + 1] = line end
  return lines
end

function TestLibrary.test_it_is_lua()
  for seed = 1, 2 do
    local arguments = ("tests/host/support/library_calls.lua %d 1500"):format(seed)
    local pipe = io.popen("lua5.4 " .. arguments .. " 2>&1")
    local expected = lines_of(pipe:read("a"))
    lu.assertTrue(pipe:close())
    local result = command.run{ "tests/host/support/library_calls.lua", tostring(seed), "1500" }
    lu.assertEquals(result.err, "")
    local found = lines_of(result.out)
    for i = 1, math.max(#expected, #found) do
      if expected[i] ~= found[i] then -- with what it was asked
        local from = math.max(1, i - 7)
        lu.assertEquals(table.concat(found, "\n", from, i), table.concat(expected, "\n", from, i))
      end
    end
    lu.assertTrue(#found > 10000)
  end
end

-- A large result is made of parts, between which it can be stopped.
function TestLibrary.test_large_ones()
  local result = command.run{ "-e", [[
    local s = ("abc"):rep(5000000, ", ")
    print(#s, s:sub(1, 8), s:sub(-8), select(2, s:gsub("abc, ", "")))
    print(pcall(string.rep, "", 1 << 62))
    print(select(2, pcall(string.rep, "x", 1 << 62)))
    local t = {}
    for i = 1, 300000 do t[i] = i end
    table.insert(t, 1, 0)
    print(#t, t[1], t[2], t[300001], table.remove(t, 1), t[1], t[300000], #t)
    print(#table.concat(t, ","), table.move(t, 1, 300000, 3)[300002])]] }
  lu.assertEquals(result.out, "24999998\tabc, abc\tabc, abc\t4999999\ntrue\t\nnot enough memory\n" ..
    "300001\t0\t1\t300000\t0\t1\t300000\t300000\n1988894\t300000\n", result.err)
end

os.exit(lu.LuaUnit.run())
