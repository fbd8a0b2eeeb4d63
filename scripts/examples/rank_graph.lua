-- A step of two ranks as a graph: each rank captures its own once, and launches it in each step.
--
-- The node of a collective is the call. Each launch makes it again, so the ranks meet at their launches, and a rank
-- that launches once less leaves the other one without a peer. Mistakes inside the step are found as anywhere: here the
-- wait for the reduction comes behind its use. If it is left out, the capture says so, as the group's stream does not
-- join again.
-- options: --device virtual:2
-- virtual only: ranks in one process are those of virtual devices
-- not replayed: ranks have a clock each
local mr = require "millrace"
local dist = mr.dist

-- Returns the parameter after these steps. `how`: {graph=, wait= "in time" or "late", steps= of rank 1}
local function train(how)
  return dist.spawn(2, function(rank)
    local parameter, gradient, momentum = mr.zeros(1024), mr.zeros(1024), mr.zeros(1024)
    local stream = mr.stream{name = "step"}
    mr.synchronize()

    local function step()
      gradient:copy_(parameter):mul_(0.5):add_(rank + 1) -- as backward would
      local work = dist.all_reduce(gradient, {op = "avg", async = true})
      momentum:mul_(0.9) -- beside the reduction
      if how.wait == "in time" then work:wait() end
      momentum:add_(gradient)
      parameter:sub_(momentum)
      if how.wait == "late" then work:wait() end
    end

    local graph = how.graph and mr.graph(step, {stream = stream})
    for _ = 1, rank == 1 and how.steps or 5 do
      if graph then graph:launch(stream) else stream:run(step) end
    end
    stream:synchronize()
    return parameter[1]:item()
  end)
end

-- Without the folder of this script and the graph's number.
local function say(text) print((text:gsub("[%w_./]*rank_graph", "rank_graph"):gsub("graph %d+, ", "graph, "))) end

local called, launched = train{wait = "in time"}, train{graph = true, wait = "in time"}
print("both ranks have the same parameter:", launched[1] == launched[2])
print("launches give what calls give:", launched[1] == called[1])

print("where the wait comes late, the checker says:")
local reports = mr.hazard.check(train, {graph = true, wait = "late"})
say((reports[1].message:match("^(.-)\n[^\n]*fix:")))

print("a rank that launches once less:")
local _, why = pcall(train, {graph = true, wait = "in time", steps = 4})
say(why.message)

print("a step that never waits:")
_, why = pcall(train, {graph = true})
say((why.message:match("^[^(]*")))
