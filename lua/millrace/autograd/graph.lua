-- The graph of autograd: the place of a tensor in it, and the effect of a change in place on the places of a tensor and
-- its views.
--
-- An operation that is recorded makes a node:
--
--   rule, seq        its derivative; its number in the order of the calls: edges lead to smaller numbers
--   [1], [2], ...    edges: where the gradient of each input goes, a node or the leaf's state; nil: nowhere
--   stream           on which the operation ran, and on which its gradient is computed; nil: on the host
--   file, line       of the script
--   a, b, c, d, out  the tensors and numbers that the derivative reads, and va, vb, vc, vd, vout: their versions
--
-- and, with the rule's `keep`, other facts. A tensor knows its place in the graph by its state, which C keeps for it:
--
--   a node           the tensor is the node's result
--   a leaf           {leaf = the tensor, on = it requires gradients, grad =, hooks = a list or nil}
--   of a view        {view = a node, base = the tensor that it is a view of, seen = version}
--
-- A view and its base share memory, so a change of one changes the other. Easiest to break: `view` is good only while
-- the memory has the version `seen`. After a change, the view's values come from the base's new node (view_target). A
-- view that was made without recording has no state. The first recorded change gives it one. The base's new node has
-- the number of the newest tensor at that time, as `newest`.
--
-- A leaf that requires gradients is the base of its views, although it may be a view itself: its `base` is nil then.
--
-- The module is a function of the tools that src/bind/nn/gradient_tools.c hands to it.
local mr = require "millrace"
local helpers = require "millrace.autograd.helpers"

return function(tools)
  local state, set_state, base_of, version = tools.state, tools.set_state, tools.base, tools.version
  local stream_of, line_of = tools.stream_of, tools.line

  local seq = 0

  local function new_node(rule, out)
    seq = seq + 1
    local file, line = line_of()
    return { rule = rule, seq = seq, stream = stream_of(out), file = file, line = line }
  end

  local view_target

  -- For a view without a state: as target(t).
  local function old_view_target(t, base)
    local of_base = state(base)
    if not (of_base and of_base.newest) or tools.number(t) > of_base.newest then return nil end
    local s = { base = base }
    set_state(t, s, true)
    return view_target(s, t)
  end

  -- Where the gradient of t goes: a node, a leaf's state, or nil.
  local function target(t)
    local s, base = state(t)
    if s == nil then return base and old_view_target(t, base) end
    if s.rule then return s end
    if s.view then return view_target(s, t) end
    return s.on and s or nil
  end

  local REGION = {
    name = "view",
    each = { function(g, n)
      local whole = mr.zeros(n.shape, { dtype = g.dtype, device = g.device })
      local part = tools.part(whole, n.region)
      part:copy_(helpers.sum_to(g, part.shape))
      return whole
    end },
  }

  -- The target of a view whose memory was changed since: a part of the base's target.
  function view_target(s, t)
    if s.seen == version(t) then return s.view end
    local from = target(s.base)
    if from and from.rule then -- a change inside mr.no_grad, as of a leaf, is not an operation
      local node = new_node(REGION, t)
      node[1], node.n, node.shape, node.region = from, 1, s.base.shape, tools.region(t, s.base)
      if s.retained then s.view.holder, node.holder = nil, s end
      s.view, s.seen = node, version(t)
    end
    return s.view
  end

  -- The state of t, also where t is a view that only now gets one.
  local function settled(t)
    target(t)
    return (state(t))
  end

  -- `out` is the result of the node.
  local function attach(out, node)
    local base = node.rule.view and base_of(out)
    if base and tools.shares(base, out) then
      set_state(out, { view = node, base = base, seen = version(out) }, true)
    else
      set_state(out, node, true)
    end
  end

  -- A part of a gradient, which in a pass that is recorded is a view like others.
  local function part_of(g, region)
    local part, from = tools.part(g, region), target(g)
    if from and mr.is_grad_enabled() then
      local node = new_node(REGION, part)
      node[1], node.n, node.shape, node.region = from, 1, g.shape, region
      set_state(part, { view = node, base = g, seen = version(part) }, true)
    end
    return part
  end

  -- After a change of a view: the base has its old values, with the node's result in the place of the view.
  local PUT = {
    name = "change of a view",
    each = {
      function(g, n)
        local rest = g:clone()
        tools.part(rest, n.region):zero_()
        return rest
      end,
      function(g, n) return part_of(g:contiguous(), n.region):clone() end,
    },
  }

  -- t's gradient is kept: that of its newest value.
  local function retain(s, node)
    s.retained, node.holder = true, s
  end

  -- Gives t a new state, whose gradients go to `node`.
  local function replace_state(t, new, node)
    local old = state(t)
    if old and old.retained then
      (old.view or old).holder = nil
      retain(new, node)
    end
    set_state(t, new, true)
  end

  local function change(t, node, base, base_target)
    local _, newest = tools.number(t)
    if not base then
      node.newest = newest
      replace_state(t, node, node)
      return
    end
    local put = new_node(PUT, base)
    put.newest = newest
    put[1], put[2], put.n, put.region = base_target, node, 2, tools.region(t, base)
    replace_state(base, put, put)
    replace_state(t, { view = node, base = base, seen = version(t) }, node)
  end

  -- "mul at train.lua:7"
  local function describe_node(n)
    local place = tools.place(n.file, n.line)
    return n.rule.name .. (place and " at " .. place or "")
  end

  -- `hooks`: how many there are, of all leaves. A pass looks for them only if there are some.
  return { hooks = 0, new_node = new_node, target = target, settled = settled, attach = attach, change = change,
    retain = retain, describe_node = describe_node }
end
