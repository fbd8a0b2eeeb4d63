-- A line after the statement would come after the free, so the fix is in words.
-- expect: kind=use-after-free reason=collected-while-pending first=18 second=collected place=none
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local s = mr.stream{name = "s"}
local x = mr.ones(8)
local kept -- luacheck: ignore kept
mr.synchronize()
local function double()
  local y = s:run(function() return x * 2 end)
  s:synchronize()
  -- fix: kept = y
  return y
end
mr.op{name = "before"}
double():sum():item()
mr.op{name = "more", stream = s}
