-- The missing wait: the most common race there is.
--
-- x is filled on the default stream and summed on another. mr.stream() makes a non-blocking stream,
-- as torch.cuda.Stream() does: nothing orders it behind the default stream but a wait.
-- not checked: one of its programs races
local mr = require "millrace"

local other = mr.stream{name = "other"}

local function program(n, wait)
  mr.manual_seed(7)
  local x = mr.zeros(n)
  mr.synchronize()

  mr.spin{ms = 1} -- the default stream is busy, as it is in real programs
  x:normal_()
  if wait then other:wait_stream(mr.default_stream()) end -- the line that is missing
  local sum = mr.with(other, function() return x:sum() end)

  mr.synchronize()
  return sum:item(), x:sum():item()
end

print(("without the wait: %9.2f, and right is %9.2f"):format(program(1000000, false)))
print(("with the wait:    %9.2f, and right is %9.2f"):format(program(1000000, true)))

return { -- for the tests
  fixed = function(n) return program(n, true) end,
  racy = function(n) return program(n, false) end,
}
