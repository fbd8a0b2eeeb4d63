-- mr.sync_debug("warn"): a line on standard error for each place at which the host waits without having asked for it.
-- not replayed: the scripts run in processes of their own
local lu = require "luaunit"
local command = require "host.support.command"

local function lines_of(script)
  local lines = {}
  command.with_file("mr.sync_debug('warn')\n" .. script, function(path)
    local result = command.run { "--device", "virtual", path }
    lu.assertEquals(result.status, 0)
    local name = path:match("[^/]+$") -- without the script's folder
    for line in result.err:gmatch("[^\n]+") do
      lu.assertEquals(line:sub(1, #name + 1), name .. ":")
      lines[#lines + 1] = line:sub(#name + 2)
    end
  end)
  return lines
end

TestSyncDebug = {}

function TestSyncDebug.test_says_where_how_long_and_what_to_do()
  local lines = lines_of("local x = mr.ones(8)\nmr.spin{ms = 2}\nx:sum():item()")
  lu.assertEquals(#lines, 1)
  lu.assertStrMatches(lines[1], "4: item made the host wait for the device for 2%.%d+ ms: the host reads .*Instead: .*")
end

function TestSyncDebug.test_each_place_is_told_once()
  local lines = lines_of("local x = mr.ones(8)\nfor i = 1, 100 do x:cpu() end\nx:cpu()")
  lu.assertEquals(#lines, 2)
  lu.assertStrContains(lines[1], "3: cpu ")
  lu.assertStrContains(lines[2], "4: cpu ")
end

function TestSyncDebug.test_sizes_that_depend_on_data_are_waited_for()
  local lines = lines_of("local x = mr.ones(8)\nx:nonzero()\nx:masked_select(x:gt(0))")
  lu.assertEquals(#lines, 2)
  lu.assertStrContains(lines[1], "3: nonzero ")
  lu.assertStrContains(lines[2], "4: masked_select ")
end

function TestSyncDebug.test_what_is_asked_for_is_not_told()
  lu.assertEquals(lines_of([[
    local x, p = mr.ones(8), mr.zeros(8, {device = "cpu", pinned = true})
    p:copy_(x, {non_blocking = true})
    mr.synchronize()
    mr.current_stream():synchronize()
    mr.current_stream():record_event():synchronize()
    mr.launch_blocking(true)
    x:add_(1)]]), {})
end

function TestSyncDebug.test_a_full_launch_queue_is_told()
  local lines = lines_of("for i = 1, 1200 do mr.spin{ms = 0.1} end")
  lu.assertEquals(#lines, 1)
  lu.assertStrContains(lines[1], "R56")
end

os.exit(lu.LuaUnit.run())
