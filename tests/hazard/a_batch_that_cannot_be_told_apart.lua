-- Two batches are used on one line, and the collected one has no variable any more.
-- expect: kind=use-after-free first=12 second=collected second_stream=loader fix=mr.synchronize()_--_or_call_record_stream(m)_on_the_tensor_made_at_line_10 place=after:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.stream{name = "m"}
local rows = mr.randn(64, 4, {device = "cpu"})
local sum = mr.zeros(1)
mr.synchronize()
for x, y in mr.data.batches({rows, rows}, {batch_size = 16}) do
  m:wait_stream(mr.default_stream())
  mr.with(m, function() sum:add_((x + y):sum()) end)
  -- fix: x:record_stream(m) y:record_stream(m)
end
m:synchronize()
