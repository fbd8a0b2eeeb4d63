-- A script outside ranks is a world of one: every function of mr.dist works there as on one rank.
-- virtual only: collectives are
local lu = require "luaunit"
local mr = require "millrace"
local dist = mr.dist

local function column(t) return t:cpu():totable() end

TestAlone = {}

function TestAlone.test_every_function()
  dist.init()
  lu.assertEquals({ dist.rank(), dist.local_rank(), dist.world_size() }, { 0, 0, 1 })
  local x, out = mr.arange(1, 5, { dtype = "f32" }), mr.zeros(4)
  dist.all_reduce(x)
  dist.broadcast(x, 0)
  dist.reduce(x, 0, { op = "max" })
  lu.assertEquals(column(x), { 1.0, 2.0, 3.0, 4.0 })
  for _, name in ipairs{ "all_gather", "reduce_scatter", "all_to_all" } do
    out:zero_()
    dist[name](out, x)
    lu.assertEquals(column(out), { 1.0, 2.0, 3.0, 4.0 }, name)
  end
  out:zero_()
  mr.nccl.group(function()
    dist.send(x, 0)
    dist.recv(out, 0)
  end)
  lu.assertEquals(column(out), { 1.0, 2.0, 3.0, 4.0 })
  dist.barrier()
end

function TestAlone.test_works_and_groups()
  local group = dist.new_group{ 0 }
  local x = mr.ones(4)
  local work = dist.all_reduce(x, { group = group, async = true })
  work:wait()
  x:add_(1)
  lu.assertEquals(x:sum():item(), 8.0)
  work = dist.all_reduce(x, { async = true })
  work:synchronize()
  lu.assertTrue(work:is_completed())
  -- The methods are functions of mr.dist.Work, too.
  work = dist.all_reduce(x, { async = true })
  dist.Work.wait(work)
  dist.Work.synchronize(work)
  lu.assertTrue(dist.Work.is_completed(work))
  lu.assertErrorMsgContains("rank 1", dist.new_group, { 1 })
  dist.destroy()
  dist.destroy()
  lu.assertEquals({ dist.rank(), dist.world_size() }, { 0, 1 })
  lu.assertErrorMsgContains("barrier: this rank has left the others by mr.dist.destroy", dist.barrier)
  lu.assertErrorMsgContains("dist_alone.lua:", dist.new_group, { 0 })
  dist.init()
  lu.assertErrorMsgContains("has closed group 1 of ranks 0: make it again", dist.all_reduce, x, { group = group })
  dist.barrier() -- a new world
  dist.all_reduce(x, { group = dist.new_group{ 0 } })
end

os.exit(lu.LuaUnit.run())
