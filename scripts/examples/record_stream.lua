-- record_stream: memory that is freed on one stream while another still reads it.
--
-- x is made on `main`. Its free (here x:free(), in real programs the end of the variable's scope) lets the next
-- allocation on `main` have the memory at once. `main` runs in order, so that is safe for `main`. The allocator knows
-- nothing of `side`, which is still adding up x, unless it is told.
-- not checked: one of its programs races
local mr = require "millrace"

local main, side = mr.stream{name = "main"}, mr.stream{name = "side"}

local function program(n, tell)
  local sum, reused
  mr.with(main, function()
    local x = mr.ones(n)
    side:wait_stream(main) -- side sees x filled: the order of the values is right in both cases
    mr.with(side, function()
      mr.spin{ms = 1}
      sum = x:sum()
    end)

    if tell then x:record_stream(side) end -- the memory is in use on `side` too
    local address = x.data_ptr
    x:free()

    local y = mr.zeros(n) -- the next tensor of that size
    reused = y.data_ptr == address
  end)
  mr.synchronize()
  return sum:item(), n, reused
end

local function report(title, sum, right, reused)
  print(("%s %4d, right is %d; y %s"):format(title, sum, right, reused and "got the memory of x" or "has other memory"))
end
report("without record_stream:", program(1000, false))
report("with record_stream:   ", program(1000, true))

return { -- for the tests
  fixed = function(n) return program(n, true) end,
  racy = function(n) return program(n, false) end,
}
