-- The names of the two operations are in the script nowhere: one line, twice.
-- expect: kind=write-after-write reason=no-path first=12 second=12 fix=ss.green:wait_stream(ss.red) place=before:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local ss = { red = mr.stream{name = "red"}, green = mr.stream{name = "green"} }
local x = mr.zeros(8)
mr.synchronize()
for _, name in ipairs{"red", "green"} do
  -- fix: ss.green:wait_stream(ss.red)
  local own = "to " .. name
  mr.op{name = own, writes = {x}, stream = ss[name]}
end
