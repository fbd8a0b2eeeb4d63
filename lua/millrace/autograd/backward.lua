-- The backward pass: from the gradients of some results to those of the leaves.
--
-- Nodes are carried out in the reverse order of the calls that made them. An edge leads to a smaller number. So when a
-- node has the greatest number that is left, all nodes that add to its gradient have been carried out. The order
-- depends on nothing else, so the same program has the same bits with one stream and with several.
--
-- Streams, as PyTorch has it: a node runs on the stream of its operation. Where a gradient goes to another stream, that
-- stream waits for it (an event after the node that made it) before it is used. The first nodes wait for the earlier
-- work of the caller's stream. In the end the caller's stream waits for all streams that have made a result. The
-- allocator is told of each tensor that another stream uses.
--
-- Easiest to break: nothing that the script can see changes before the last node has been carried out, except for the
-- leaves with hooks. So a failed pass leaves each `grad` and the graph unchanged. And a gradient is `owned` if nothing
-- else uses its memory: only then may it be changed, kept as a leaf's `grad`, or freed after use.
--
-- A leaf with hooks gets its `grad` after its last edge, and then its hooks are called, while the pass goes on. An edge
-- without a gradient counts, too. If a node below never runs, because no gradient reaches it, the leaf gets its `grad`
-- at the end, like those without hooks. A hook may run anything: other ranks, or another backward pass.
local mr = require "millrace"
local helpers = require "millrace.autograd.helpers"
local LONGEST_NAME = require "millrace.words".LONGEST_NAME

return function(tools, graph)
  local take, used_on, shares, drop, adds_to = tools.take, tools.used_on, tools.shares, tools.drop, tools.adds_to
  local set_stream, current_stream, ones_like = mr.set_stream, mr.current_stream, mr.ones_like
  local sum_to, rawequal = helpers.sum_to, rawequal

  -- ---------------------------------------------------------------- nodes, greatest number first

  local function push(heap, node)
    local at, seq = #heap + 1, node.seq
    while at > 1 do
      local above = at // 2
      if heap[above].seq > seq then break end
      heap[at] = heap[above]
      at = above
    end
    heap[at] = node
  end

  local function pop(heap)
    local top, count = heap[1], #heap
    local last = heap[count]
    heap[count] = nil
    count = count - 1
    if count == 0 then return top end
    local at, seq = 1, last.seq
    while true do
      local below = 2 * at
      if below > count then break end
      if below < count and heap[below + 1].seq > heap[below].seq then below = below + 1 end
      if heap[below].seq < seq then break end
      heap[at] = heap[below]
      at = below
    end
    heap[at] = last
    return top
  end

  -- ---------------------------------------------------------------- streams

  -- Makes a stream current; the device's former current stream is kept for the end.
  local function use(pass, stream)
    if not stream or stream == pass.current then return end
    local device = stream.device
    if not pass.before[device] then pass.before[device] = current_stream(device) end
    set_stream(stream)
    pass.current = stream
  end

  -- The current stream of the caller on the device of `stream`.
  local function caller_stream(pass, stream)
    local device = stream.device
    return pass.before[device] or current_stream(device)
  end

  -- An event after the work of the running node: one for all streams that wait for it.
  local function event_behind(pass, stream)
    if not pass.event then pass.event = stream:record_event() end
    return pass.event
  end

  local function crosses(from, to) return from and to and from ~= to end

  local function wait_for(stream, event, gradient)
    stream:wait_event(event)
    used_on(gradient, stream)
  end

  -- ---------------------------------------------------------------- gradients on their way

  -- The sum of two gradients that came for one tensor, a new tensor or, from the third on, the same one. Nothing is
  -- owned in a pass that is recorded, so nothing is changed there.
  local function add(have, have_owned, is_sum, gradient, owned)
    local sum
    if is_sum then
      sum = have:add_(gradient)
    else
      sum = have:add(gradient)
      if have_owned then drop(have) end
    end
    if owned then drop(gradient) end
    return sum
  end

  local function add_to_leaf(pass, leaf, gradient, owned, from)
    local entry = pass.leaf[leaf]
    if not entry then
      if leaf.replaced then
        tools.misuse(("backward: %s was moved by module:to() since the forward pass: compute the forward pass again")
          :format(tools.describe(leaf.leaf)))
      end
      entry = { leaf = leaf, gradient = gradient, owned = owned, stream = from }
      pass.leaf[leaf] = entry
      pass.leaves[#pass.leaves + 1] = entry
      return
    end
    if crosses(from, entry.stream) then wait_for(entry.stream, event_behind(pass, from), gradient) end
    use(pass, entry.stream)
    entry.gradient = add(entry.gradient, entry.owned, entry.is_sum, gradient, owned)
    entry.owned, entry.is_sum = not pass.recorded, not pass.recorded
  end

  local finish_leaf

  -- One edge less leads to a leaf with hooks.
  local function count_down(pass, to)
    local edges = pass.edges[to]
    if not edges then return end
    pass.edges[to] = edges > 1 and edges - 1 or nil
    local entry = pass.leaf[to]
    if edges == 1 and entry then finish_leaf(pass, entry) end
  end

  local function deliver_to_leaf(pass, leaf, gradient, owned, from)
    add_to_leaf(pass, leaf, gradient, owned, from)
    count_down(pass, leaf)
  end

  -- Gives the gradient, which was made on the stream `from`, to a node or a leaf.
  local function deliver(pass, to, gradient, owned, from)
    if to.leaf then return deliver_to_leaf(pass, to, gradient, owned, from) end
    local have, stream = pass.gradient[to], to.stream
    if not have then
      pass.gradient[to], pass.owned[to] = gradient, owned
      push(pass.heap, to)
      if crosses(from, stream) then
        pass.waits[to] = event_behind(pass, from)
      end
      return
    end
    local event = pass.waits[to]
    if event then
      wait_for(stream, event, have)
      pass.waits[to] = nil
    end
    if crosses(from, stream) then wait_for(stream, event_behind(pass, from), gradient) end
    use(pass, stream)
    pass.gradient[to] = add(have, pass.owned[to], pass.is_sum[to], gradient, owned)
    pass.owned[to], pass.is_sum[to] = not pass.recorded, not pass.recorded
  end

  -- To the node of several results: their gradients are a table.
  local function deliver_slot(pass, to, slot, gradient, from)
    local have = pass.gradient[to]
    if not have then
      have = { streams = {} }
      pass.gradient[to] = have
      push(pass.heap, to)
    end
    have[slot] = gradient
    if crosses(from, to.stream) then have.streams[slot] = event_behind(pass, from) end
  end

  -- ---------------------------------------------------------------- one node

  local function place_of(n) return tools.describe_node(n) end

  -- Raises: a tensor kept by the node was changed.
  local function was_changed(n, t)
    local ok, err = pcall(tools.check, t)
    if not ok then
      local text = type(err) == "string" and err:gsub("^[^\n]-:%d+: ", "") or err.message
      tools.misuse(("backward: %s needs a tensor for its gradient: %s"):format(place_of(n), text))
    end
    local writer, where = tools.writer(t)
    tools.misuse(("backward: %s needs the values of %s for its gradient, but %s%s changed them in place: " ..
      "change a clone, or change it after backward"):format(place_of(n), tools.describe(t), writer,
      where and " at " .. where or ""))
  end
  tools.was_changed = was_changed

  local function check_not_freed(n)
    local freed = n.freed
    if freed then
      tools.misuse(("backward: the graph of %s was freed by backward at %s: " ..
        "to go through it twice, set retain_graph=true the first time"):format(place_of(n),
        tools.place(freed.file, freed.line) or "an unknown line"))
    end
  end

  local function check_kept(n)
    check_not_freed(n)
    local stream = n.stream
    if n.va and not take(n.a, n.va, stream) then was_changed(n, n.a) end
    if n.vb and not take(n.b, n.vb, stream) then was_changed(n, n.b) end
    if n.vc and not take(n.c, n.vc, stream) then was_changed(n, n.c) end
    if n.vd and not take(n.d, n.vd, stream) then was_changed(n, n.d) end
    if n.vout and not take(n.out, n.vout, stream) then was_changed(n, n.out) end
  end

  -- For a result whose gradient is wanted: keeps the gradient unchanged.
  local function keep_gradient(pass, n, gradient)
    local entry = pass.wanted and pass.wanted[n]
    if not entry and not n.holder then return false end
    entry = entry or { holder = n.holder }
    entry.gradient, entry.stream = gradient, n.stream
    pass.kept[#pass.kept + 1] = entry
    return true
  end

  local function run_several(pass, n, gradients)
    for slot, event in pairs(gradients.streams) do wait_for(n.stream, event, gradients[slot]) end
    local list = n.rule.all(gradients, n)
    for i = 1, n.n do
      local to, gradient = n[i], list[i]
      if to and gradient and (not pass.needed or pass.needed[to]) then
        deliver(pass, to, gradient, false, n.stream)
      elseif to then
        count_down(pass, to)
      end
    end
  end

  local function run_node(pass, n)
    local g = pass.gradient[n]
    local rule, stream, count, needed = n.rule, n.stream, n.n, pass.needed
    pass.gradient[n], pass.event, pass.node = nil, nil, n
    use(pass, stream)
    check_kept(n)
    if rule.all then return run_several(pass, n, g) end
    local event, owned = pass.waits[n], pass.owned[n]
    if event then
      wait_for(stream, event, g)
      pass.waits[n] = nil
    end
    pass.owned[n], pass.is_sum[n] = nil, nil
    if keep_gradient(pass, n, g) then owned = false end
    if rule.slot then return deliver_slot(pass, n[1], rule.slot, g, stream) end

    local edges = 0
    for i = 1, count do
      if n[i] and (not needed or needed[n[i]]) then edges = edges + 1 end
    end
    local each, fit, passed = rule.each, n.fit, false
    for i = 1, count do
      local to = n[i]
      if to and (not needed or needed[to]) then
        local gradient
        use(pass, stream) -- a sum after the last edge may have been on another
        if each then gradient = each[i](g, n) else gradient = rule.back(g, n, i) end
        if fit and fit[i] then gradient = sum_to(gradient, fit[i].shape, fit[i].dtype) end
        local own = not pass.recorded
        if rawequal(gradient, g) then
          own, passed = owned and edges == 1, true
        elseif not each and shares(gradient, g) then
          own = owned and edges == 1
        end
        if not rawequal(gradient, g) then pass.event = nil end -- it was before this edge's work
        deliver(pass, to, gradient, own, stream)
      end
    end
    if owned and not passed then drop(g) end
  end

  -- ---------------------------------------------------------------- the end

  -- `stream` is that of a result that the caller gets: the caller's will wait for it.
  local function hand_over(pass, gradient, stream)
    if not stream then return end
    local caller = caller_stream(pass, stream)
    if caller == stream then return end
    used_on(gradient, caller)
    if pass.joined[stream] then return end
    pass.joined[stream] = true
    pass.to_join[#pass.to_join + 1] = stream
  end

  local function own_copy(gradient, owned)
    return owned and gradient.contiguous and gradient or gradient:clone()
  end

  -- Reports and messages call it `w.grad`.
  local function name_gradient(gradient, t)
    local name = t:name()
    if name and #name <= LONGEST_NAME then gradient:name(name .. ".grad") end
  end

  -- A hook gets the tensor, and a function with which it can ask for a call after the pass. The stream of the gradient
  -- is current.
  local function call_hooks(pass, s)
    local node = pass.node
    pass.node = nil -- an error is the hook's, and no operation's
    for _, hook in ipairs(table.move(s.hooks, 1, #s.hooks, 1, {})) do hook.fn(s.leaf, pass.at_end) end
    pass.node, pass.current = node, nil
  end

  function finish_leaf(pass, entry)
    local s, gradient, stream = entry.leaf, entry.gradient, entry.stream
    use(pass, stream)
    entry.is_finished = true
    if s.grad ~= nil and s.hooks then tools.check(s.grad) end
    if s.grad == nil then
      s.grad = own_copy(gradient, entry.owned)
      name_gradient(s.grad, s.leaf)
    else
      if stream then used_on(s.grad, stream) end
      adds_to(s.grad)
      s.grad:add_(gradient)
      if entry.owned then drop(gradient) end
    end
    if s.hooks then call_hooks(pass, s) end
    if s.grad then hand_over(pass, s.grad, stream) end
  end

  local function finish_kept(pass, entry)
    use(pass, entry.stream)
    local holder = entry.holder
    if not holder then
      entry.gradient = entry.gradient:clone()
      hand_over(pass, entry.gradient, entry.stream)
      return
    end
    if holder.grad == nil then holder.grad = entry.gradient:clone() else holder.grad:add_(entry.gradient) end
    hand_over(pass, holder.grad, entry.stream)
  end

  -- A `grad` that cannot be added to is found before the first one changes.
  local function check_results(pass)
    if pass.wanted then return end
    for _, entry in ipairs(pass.leaves) do
      if entry.leaf.grad and not entry.is_finished then tools.check(entry.leaf.grad) end
    end
    for _, entry in ipairs(pass.kept) do
      if entry.holder.grad then tools.check(entry.holder.grad) end
    end
  end

  local function free_graph(pass)
    local file, line = tools.line()
    local freed = { file = file, line = line }
    for _, n in ipairs(pass.done) do
      n.freed = freed
      n.a, n.b, n.c, n.d, n.out, n.context, n.likes = nil, nil, nil, nil, nil, nil, nil
      n.va, n.vb, n.vc, n.vd, n.vout = nil, nil, nil, nil, nil
      for i = 1, n.n do n[i] = nil end
    end
  end

  -- ---------------------------------------------------------------- the whole

  -- The set of nodes and leaves from which one of `wanted` is reached. Also returns a freed node, if there is one: the
  -- graph behind it is unknown.
  local function find_needed(roots, wanted)
    local list, seen, needed, freed = {}, {}, {}, nil
    local function visit(node)
      if node and not seen[node] then
        seen[node] = true
        list[#list + 1] = node
      end
    end
    for _, root in ipairs(roots) do visit(root.node) end
    local at = 1
    while list[at] do
      if list[at].freed then freed = list[at] end
      for i = 1, list[at].n or 0 do visit(list[at][i]) end
      at = at + 1
    end
    table.sort(list, function(x, y) return x.seq < y.seq end)
    for _, node in ipairs(list) do
      local is_needed = wanted[node] ~= nil
      for i = 1, node.n or 0 do is_needed = is_needed or (node[i] and needed[node[i]]) end
      needed[node] = is_needed or nil
    end
    return needed, freed
  end

  -- How many edges lead from the roots to each leaf with hooks.
  local function count_edges(roots)
    local edges, list, seen = {}, {}, {}
    local function visit(to)
      if to.hooks then
        edges[to] = (edges[to] or 0) + 1
      elseif not to.leaf and not seen[to] then
        seen[to] = true
        list[#list + 1] = to
      end
    end
    for _, root in ipairs(roots) do visit(root.node) end
    local at = 1
    while list[at] do
      local node = list[at]
      for i = 1, node.n do
        if node[i] then visit(node[i]) end
      end
      at = at + 1
    end
    return edges
  end

  local function begin(pass, roots)
    for _, root in ipairs(roots) do
      local owned = root.gradient == nil and not pass.recorded
      local gradient = root.gradient or ones_like(root.like)
      local stream = tools.stream_of(root.like)
      pass.event = nil
      deliver(pass, root.node, gradient, owned, stream)
    end
  end

  local function work(pass, roots, retain)
    begin(pass, roots)
    local heap, done = pass.heap, pass.done
    while heap[1] do
      local n = pop(heap)
      run_node(pass, n)
      done[#done + 1] = n
    end
    pass.node = nil
    check_results(pass)
    for _, entry in ipairs(pass.leaves) do
      if not pass.wanted then
        if not entry.is_finished then finish_leaf(pass, entry) end
      elseif pass.wanted[entry.leaf] then
        local found = pass.wanted[entry.leaf]
        use(pass, entry.stream)
        found.gradient = own_copy(entry.gradient, entry.owned)
        hand_over(pass, found.gradient, entry.stream)
      end
    end
    for _, entry in ipairs(pass.kept) do finish_kept(pass, entry) end
    for _, stream in ipairs(pass.to_join) do caller_stream(pass, stream):wait_stream(stream) end
    if not retain then free_graph(pass) end
  end

  -- After mr.reset(), which a backward function can call, the streams are gone.
  local function restore(pass)
    for _, stream in pairs(pass.before) do pcall(set_stream, stream) end
    mr.set_device(pass.device)
  end

  -- Names the operation whose gradient failed.
  local function explain(pass, err)
    local n = pass.node
    if not n then return err end
    if type(err) == "table" and type(err.message) == "string" then
      err.message = ("backward of %s: %s"):format(place_of(n), err.message)
    end
    if type(err) ~= "string" or err:find("backward: ", 1, true) or err:find("backward of ", 1, true) then return err end
    local place, text = err:match("^([^\n]-:%d+: )(.*)$")
    return ("%sbackward of %s: %s"):format(place or "", place_of(n), text or err)
  end

  -- `roots`: a list of {node, like = the tensor, gradient or nil}. Adds to the `grad` of the leaves; or, where
  -- `wanted` lists nodes and leaves, returns the gradients of those. `unused(i)` is called for one of them that no
  -- root depends on.
  return function(roots, options, wanted, unused)
    local pass = {
      recorded = options.create_graph,
      gradient = {}, owned = {}, is_sum = {}, waits = {}, -- by node: what has come so far
      heap = {}, done = {},                               -- nodes to carry out, and carried out
      leaf = {}, leaves = {}, kept = {},                  -- results
      joined = {}, to_join = {},                          -- streams that have made results
      before = {}, device = mr.current_device(),          -- current before: streams by device; the device
      edges = {}, calls = {},                             -- to leaves with hooks, still to come; for after the pass
    }
    function pass.at_end(fn) pass.calls[#pass.calls + 1] = fn end
    if not wanted and graph.hooks > 0 then pass.edges = count_edges(roots) end
    if wanted then
      pass.wanted = {}
      for _, node in ipairs(wanted) do pass.wanted[node] = pass.wanted[node] or {} end
      local freed
      pass.needed, freed = find_needed(roots, pass.wanted)
      for i, node in ipairs(wanted) do
        if not pass.needed[node] then
          if freed then check_not_freed(freed) end
          unused(i)
        end
      end
    end
    local retain = options.retain_graph
    if retain == nil then retain = pass.recorded end
    local off = tools.set_off(not pass.recorded)
    local ok, err = pcall(work, pass, roots, retain)
    restore(pass)
    tools.set_off(off)
    for _, fn in ipairs(pass.calls) do
      if ok then fn() else pcall(fn) end -- the error of the pass is the one to report
    end
    if not ok then error(explain(pass, err), 0) end
    local found = {}
    for i, node in ipairs(wanted or {}) do found[i] = pass.wanted[node].gradient end
    return found
  end
end
