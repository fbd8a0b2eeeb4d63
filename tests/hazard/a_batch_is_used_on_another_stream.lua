-- The script has no variable for the stream of the library that copies the batch. record_stream needs none.
-- own pace: where in the loop garbage is collected decides whether the fix has one line or two
-- expect: kind=use-after-free first=13 second=collected second_stream=loader fix=x:record_stream(m) place=after:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.stream{name = "m"}
local rows = mr.randn(64, 4, {device = "cpu"})
local sum = mr.zeros(1)
mr.synchronize()
for x in mr.data.batches(rows, {batch_size = 16}) do
  m:wait_stream(mr.default_stream())
  mr.with(m, function() sum:add_(x:sum()) end)
  -- fix: x:record_stream(m)
end
m:synchronize()
