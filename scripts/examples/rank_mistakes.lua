-- Six mistakes in programs of several ranks, each with what says so, and with its fix.
--
-- The first two are races: the values are right in most runs, and the hazard checker names the lines. The other four
-- hang a cluster; here each is an error that says who waits for whom.
-- options: --device virtual:3
-- virtual only: ranks in one process are those of virtual devices
-- not replayed: ranks have a clock each
local mr = require "millrace"
local dist = mr.dist

-- What the checker or an error says of fn on two ranks; the first lines of it.
local function said_of(fn, ...)
  local arguments, ok, err = table.pack(...), nil, nil
  local reports = mr.hazard.check(function()
    ok, err = pcall(dist.spawn, 2, fn, table.unpack(arguments, 1, arguments.n))
    for d = 0, 1 do mr.synchronize(d) end
  end)
  if not ok then return (tostring(err):gsub("^rank %d: ", ""):gsub("[%w_./]*rank_mistakes", "rank_mistakes")) end
  if #reports == 0 then return "nothing to report" end
  return (reports[1].message:match("^(.-)\n[^\n]*fix:"):gsub("[%w_./]*rank_mistakes", "rank_mistakes"))
end

local function show(title, fn)
  print(title)
  print("  wrong: " .. said_of(fn, false):gsub("\n", "\n         "))
  print("  right: " .. said_of(fn, true))
end

show("1. The wait is forgotten.", function(_, right)
  local gradient, weight = mr.ones(1000), mr.zeros(1000)
  local work = dist.all_reduce(gradient, {op = "avg", async = true})
  if right then work:wait() end -- the current stream waits, and the host goes on
  weight:sub_(gradient)
end)

show("2. A buffer is changed while it is reduced.", function(_, right)
  local bucket = mr.ones(1000)
  local work = dist.all_reduce(bucket, {async = true})
  if right then work:wait() end
  bucket:fill_(0) -- for the next step
  work:wait()
end)

show("3. The group is forgotten: both send, and nobody receives.", function(rank, right)
  local mine, theirs = mr.ones(1000), mr.zeros(1000)
  local function exchange()
    dist.send(mine, 1 - rank)
    dist.recv(theirs, 1 - rank)
  end
  if right then mr.nccl.group(exchange) else exchange() end
end)

show("4. Two communicators are used in another order.", function(rank, right)
  local data, model = dist.new_group{0, 1}, dist.new_group{0, 1}
  local a, b = mr.ones(10), mr.ones(10)
  if rank == 0 or right then
    dist.all_reduce(a, {group = data})
    dist.all_reduce(b, {group = model})
  else
    dist.all_reduce(b, {group = model})
    dist.all_reduce(a, {group = data})
  end
end)

show("5. One rank has another shape: the last batch is smaller.", function(rank, right)
  local rows = (rank == 1 and not right) and 3 or 4
  local outputs = mr.ones(rows, 10)
  dist.all_reduce(outputs)
end)

show("6. One rank leaves the loop early.", function(rank, right)
  for step = 1, 3 do
    local loss = mr.full(1, 1 / step + rank)
    if right then dist.all_reduce(loss, {op = "avg"}) end -- all see the same number
    if loss:item() < 0.6 then break end
    if not right then dist.all_reduce(loss, {op = "avg"}) end
  end
end)
