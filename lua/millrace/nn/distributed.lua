-- mr.nn.parallel.DistributedDataParallel: a copy of the module on each rank, each trained with its own part of the
-- batch, as torch.nn.parallel has it.
--
-- All ranks begin with the values of the group's first rank and take the same steps, as all get the same gradients:
-- the means over the ranks. Gradients lie in buckets. A hook of each parameter notes that its gradient is complete. The
-- bucket whose last one comes takes its gradients, in one command, and is reduced at once, on the group's stream, while
-- the pass goes on with other layers. When the pass has ended, the current stream waits for the works.
--
-- Easiest to break: all ranks must reduce the same buckets in the same order, whatever the order in which their
-- gradients come. So a bucket waits for those before it (`launch_ready`), and the arrangement is that of the first
-- rank. And the gradients of a bucket may come on several streams: each takes its own (`gather`), and the reduction
-- waits for all of them (`launch`).
--
-- Other ranks run while a hook waits in a collective. All that changes is in the reducer, one for each module.
--# nn_parallel
local mr = require "millrace"
local words = require "millrace.words"
local keys, LONGEST_NAME = words.keys, words.LONGEST_NAME

return function(tools, module)
  local misuse = tools.misuse
  local WHO = "DistributedDataParallel"
  local MB = 1 << 20
  local reducer_of = setmetatable({}, { __mode = "k" }) -- by parameter: whose hook it has

  -- ---------------------------------------------------------------- all ranks the same

  local function root_of(group) return group and group.ranks[1] or 0 end
  local function size_of(group) return group and #group.ranks or mr.dist.world_size() end
  local function is_root(group) return mr.dist.rank() == root_of(group) end

  -- The tensors get the values of those of the first rank. Those of one dtype are sent as one.
  local function send_values(tensors, group)
    if size_of(group) == 1 then return end
    local by_dtype, dtypes = {}, {}
    for _, t in ipairs(tensors) do
      if not by_dtype[t.dtype] then
        by_dtype[t.dtype] = {}
        dtypes[#dtypes + 1] = t.dtype
      end
      table.insert(by_dtype[t.dtype], t:detach())
    end
    for _, dtype in ipairs(dtypes) do
      local parts = {}
      for i, t in ipairs(by_dtype[dtype]) do parts[i] = t:reshape(t.numel) end
      local row, at = mr.cat(parts), 1
      mr.dist.broadcast(row, root_of(group), { group = group })
      for _, t in ipairs(is_root(group) and {} or by_dtype[dtype]) do
        t:copy_(row:narrow(1, at, t.numel):view(t.shape))
        at = at + t.numel
      end
    end
  end

  -- The list of integers that the first rank gives. The host waits.
  local function agree(list, group, device)
    if size_of(group) == 1 then return list end
    local count = mr.tensor({ #list }, { dtype = "i64", device = device })
    mr.dist.broadcast(count, root_of(group), { group = group })
    local values = is_root(group) and mr.tensor(list, { dtype = "i64", device = device }) or
      mr.zeros(count:item(), { dtype = "i64", device = device })
    mr.dist.broadcast(values, root_of(group), { group = group })
    return values:cpu():totable()
  end

  local function form_text(p)
    return ("%s of shape {%s}%s"):format(p.dtype, table.concat(p.shape, ", "), p.requires_grad and "" or ", frozen")
  end

  -- As in reports: by the name of the tensor, if it has one. `path`: of the parameter in the module.
  local function name_of(p, path) return p:name() or path end

  -- Raises unless the parameters are those of the first rank.
  local function check_same(parameters, names, group, device)
    local lines = {}
    for i, p in ipairs(parameters) do lines[i] = form_text(p) end
    local bytes, own = {}, table.concat(lines, "\n")
    for i = 1, #own do bytes[i] = own:byte(i) end
    local first = {}
    for i, byte in ipairs(agree(bytes, group, device)) do first[i] = string.char(byte) end
    local i = 0
    for line in (table.concat(first) .. "\n"):gmatch "(.-)\n" do
      i = i + 1
      if line ~= lines[i] then
        local p = parameters[i]
        misuse(("%s: parameter %d of rank %d is %s, but that of rank %d is %s: all ranks make the same module"):format(
          WHO, i, mr.dist.rank(), p and ("`%s`, %s"):format(name_of(p, names[p]), lines[i]) or "missing",
          root_of(group), line))
      end
    end
    if i < #lines then
      misuse(("%s: rank %d has %d parameters, but rank %d has %d: all ranks make the same module"):format(WHO,
        mr.dist.rank(), #lines, root_of(group), i))
    end
  end

  -- ---------------------------------------------------------------- buckets

  -- Where the last parameters begin that are of so many bytes together.
  local function begin_of_last(order, bytes)
    local i = #order + 1
    while i > 1 and order[i - 1].nbytes <= bytes do
      i = i - 1
      bytes = bytes - order[i].nbytes
    end
    return i
  end

  -- Lists of parameters: `order` cut at the limits, each of one dtype, in the order in which they are complete. The
  -- last bucket is small like the first: it is reduced when backward has nothing left to do meanwhile.
  local function cut(order, first_bytes, bytes)
    local buckets, open, closed, last = {}, {}, 0, begin_of_last(order, first_bytes)
    for i, p in ipairs(order) do
      if i == last then open = {} end
      local bucket = open[p.dtype]
      if not bucket then
        bucket = { parameters = {}, bytes = 0 }
        open[p.dtype], buckets[#buckets + 1] = bucket, bucket
      end
      table.insert(bucket.parameters, p)
      bucket.bytes, bucket.last = bucket.bytes + p.nbytes, i
      if bucket.bytes >= (closed == 0 and first_bytes or bytes) then
        open[p.dtype], closed = nil, closed + 1
      end
    end
    table.sort(buckets, function(a, b) return a.last < b.last end)
    return buckets
  end

  local function name_if_short(t, name)
    if #name <= LONGEST_NAME then t:name(name) end
  end

  -- Gives each bucket its memory, and each parameter a part of it. Gradients that are there move.
  local function arrange(r, order)
    r.buckets, r.place = cut(order, r.first_bytes, r.bytes), {}
    for k, bucket in ipairs(r.buckets) do
      local numel, at = 0, 1
      for _, p in ipairs(bucket.parameters) do numel = numel + p.numel end
      bucket.dtype = bucket.parameters[1].dtype
      bucket.takes_all = bucket.dtype == "f32" or bucket.dtype == "f64" -- the dtypes of gather_grads
      bucket.row = mr.zeros(numel, { dtype = bucket.dtype, device = r.device })
      bucket.row:name("bucket " .. k)
      for _, p in ipairs(bucket.parameters) do
        local view = bucket.row:narrow(1, at, p.numel):view(p.shape)
        at = at + p.numel
        r.place[p] = { bucket = bucket, view = view }
        if p:name() then name_if_short(view, p:name() .. ".grad") end
        if p.grad then
          view:copy_(p.grad)
          p.grad = view
        end
      end
    end
  end

  -- The first pass has shown in which order gradients come. That of the first rank becomes the order of all.
  local function rearrange(r)
    local number, list, order = {}, {}, {}
    for i, p in ipairs(r.trained) do number[p] = i end
    for i, p in ipairs(r.arrived) do list[i] = number[p] end
    for i, k in ipairs(agree(list, r.group, r.device)) do order[i] = r.trained[k] end
    r.arrived, r.is_arranged = nil, true
    arrange(r, order)
  end

  -- ---------------------------------------------------------------- one pass

  local NO_NUMBERS = {}

  -- Copies the gradients that came on the current stream into their places. From now on these are the gradients.
  local function gather(bucket, part)
    if bucket.takes_all then
      tools.step("gather_grads", 0, NO_NUMBERS, part.tensors)
    else
      for i = 1, #part.tensors, 2 do part.tensors[i]:copy_(part.tensors[i + 1]) end
    end
    for i, p in ipairs(part.parameters) do p.grad = part.tensors[2 * i - 1] end
  end

  local function reduce(r, bucket)
    return mr.dist.all_reduce(bucket.row, { op = "avg", group = r.group, async = true })
  end

  -- The reduction comes behind the gradients, on whatever streams they came. None of these streams waits for another.
  local function launch(r, pass, bucket)
    local parts = pass.parts[bucket]
    for _, part in ipairs(parts) do mr.with(part.stream, gather, bucket, part) end
    if #parts == 1 and parts[1].stream == mr.current_stream() then return reduce(r, bucket) end
    r.launcher = r.launcher or mr.stream { device = r.device, name = "buckets" }
    for _, part in ipairs(parts) do r.launcher:wait_stream(part.stream) end
    return mr.with(r.launcher, reduce, r, bucket)
  end

  -- Reduces complete buckets, in their order.
  local function launch_ready(r, pass)
    local bucket = r.buckets[pass.next]
    while bucket and pass.missing[bucket] == 0 do
      pass.next = pass.next + 1
      pass.works[#pass.works + 1] = launch(r, pass, bucket)
      bucket = r.buckets[pass.next]
    end
  end

  local function missing_text(r, pass)
    local list = {}
    for _, p in ipairs(r.trained) do
      if not pass.came[p] then list[#list + 1] = "`" .. name_of(p, r.names[p]) .. "`" end
    end
    local more = #list - 6
    if more > 0 then list[7] = ("%d more"):format(more) end
    return table.concat(list, ", ", 1, math.min(#list, 7)), #list
  end

  -- The pass has ended; also one that failed has works under way.
  local function finish(r, pass)
    r.pass, r.is_prepared = nil, false
    local stream = mr.current_stream(r.device)
    for _, work in ipairs(pass.works) do work:wait(stream) end
    if pass.next > #r.buckets then
      if not r.is_arranged then r.arrived = pass.order end
      return
    end
    local names, count = missing_text(r, pass)
    misuse(("%s: %s of rank %d got no gradient in this pass, so %s not reduced: leave %s out of the module, or " ..
      "freeze with requires_grad_(false) before %s is made"):format(WHO, names, mr.dist.rank(),
      count == 1 and "its bucket was" or "their buckets were", count == 1 and "it" or "them", WHO))
  end

  local function new_pass(r, at_end)
    local pass = { next = 1, missing = {}, parts = {}, works = {}, came = {}, order = {} }
    for _, bucket in ipairs(r.buckets) do
      pass.missing[bucket], pass.parts[bucket] = #bucket.parameters, {}
    end
    at_end(function() finish(r, pass) end)
    return pass
  end

  -- The part of a bucket from one stream: parameters, and for each its place and its gradient, one after the other.
  local function part_of(pass, bucket, stream)
    local parts = pass.parts[bucket]
    for _, part in ipairs(parts) do
      if part.stream == stream then return part end
    end
    local part = { stream = stream, parameters = {}, tensors = {} }
    parts[#parts + 1] = part
    bucket.row:record_stream(stream)
    return part
  end

  -- The hook of the parameter p.
  local function take_gradient(r, p, at_end)
    if not r.is_prepared then return end
    local place = r.place[p]
    local bucket = place.bucket
    if p.dtype ~= bucket.dtype or p.device ~= r.device then
      misuse(("%s: `%s` was moved by module:to() after %s was made: move the module first"):format(WHO,
        name_of(p, r.names[p]), WHO))
    end
    if not r.pass then r.pass = new_pass(r, at_end) end
    local pass, part, gradient = r.pass, part_of(r.pass, bucket, mr.current_stream()), p.grad
    if not rawequal(gradient, place.view) then
      local tensors = part.tensors
      part.parameters[#part.parameters + 1] = p
      tensors[#tensors + 1] = place.view
      tensors[#tensors + 1] = gradient:contiguous()
    end
    pass.missing[bucket] = pass.missing[bucket] - 1
    pass.came[p], pass.order[#pass.order + 1] = true, p
    launch_ready(r, pass)
  end

  -- ---------------------------------------------------------------- the module

  local OPTIONS = { bucket_mb = 25, first_bucket_mb = 1, broadcast_buffers = true }

  local function check_options(options)
    if options ~= nil and (type(options) ~= "table" or getmetatable(options)) then
      misuse(("%s: argument 2 is %s, expected a table of options"):format(WHO, tools.type_of(options)))
    end
    local o = { group = options and options.group }
    for name, value in pairs(OPTIONS) do
      o[name] = value
      if options and options[name] ~= nil then o[name] = options[name] end
    end
    for name in pairs(options or {}) do
      if name ~= "group" and OPTIONS[name] == nil then
        misuse(WHO .. ": " .. tools.no_option(name, "group " .. keys(OPTIONS)))
      end
    end
    for _, name in ipairs { "bucket_mb", "first_bucket_mb" } do
      local is_size = type(o[name]) == "number" and o[name] >= 0 -- false for NaN, too
      if not is_size then
        misuse(("%s: %s is %s, expected a number from 0 on"):format(WHO, name, tostring(o[name])))
      end
    end
    if type(o.broadcast_buffers) ~= "boolean" then
      misuse(("%s: broadcast_buffers is %s, expected true or false"):format(WHO, tostring(o.broadcast_buffers)))
    end
    return o
  end

  -- All parameters with their names, the device that they are on, and those that are trained, in the order in which
  -- gradients are expected: the last layer first.
  local function parameters_of(net)
    local all, names, trained, device = {}, {}, {}, nil
    for name, p in net:named_parameters() do
      all[#all + 1], names[p] = p, name
      device = device or p.device
      if p.device ~= device or p.device == "cpu" then
        misuse(("%s: `%s` is on %s, expected one device for all parameters: call net:to(mr.current_device())"):format(
          WHO, name_of(p, name), p.device == "cpu" and "the host" or tostring(p.device)))
      end
      if p.requires_grad then table.insert(trained, 1, p) end
    end
    if #trained == 0 then
      misuse(WHO .. ": the module has no parameter that requires gradients, so there is nothing to reduce")
    end
    return all, names, trained, device
  end

  -- Asked before the first collective, whose error would name a tensor that the script has not made.
  local function check_device(group, name, device)
    if tools.group_device(WHO, group) == device then return end
    misuse(("%s: `%s` is on %s, which is not that of rank %d: call net:to(mr.current_device())"):format(WHO, name,
      tostring(device), mr.dist.rank()))
  end

  -- A parameter has one reducer: the last that was made.
  local function take_over(r)
    for _, p in ipairs(r.trained) do
      local before = reducer_of[p]
      for _, remove in ipairs(before and before.removers or {}) do remove() end
      if before then before.is_replaced = true end
      reducer_of[p] = r
      table.insert(r.removers, p:register_post_accumulate_grad_hook(function(t, at_end)
        take_gradient(r, t, at_end)
      end))
    end
  end

  --- mr.nn.parallel.DistributedDataParallel(net: table [, {bucket_mb: number=25, first_bucket_mb: number=1, group:
  ---   table, broadcast_buffers: boolean=true}]) -> module: table
  --- A module whose call runs net, and whose gradients are the means over the ranks of the group. All ranks make it,
  --- of equal modules; they get the values of the first rank. Gradients are views of buckets of this size, the first
  --- and the last one of about first_bucket_mb. A bucket is reduced on the group's stream as soon as it is complete,
  --- while backward goes on, and the current stream waits for all at the end of backward. A parameter without a
  --- gradient is an error. A call of the module prepares one backward pass; a backward pass after a call of net itself
  --- reduces nothing, as in PyTorch. ddp:no_sync(fn, ...) calls fn, and the gradients of forward passes in it stay the
  --- rank's own. Buffers are those of the first rank in each training step.
  --- net is the field `module`.
  local DistributedDataParallel = module.class(WHO)

  function DistributedDataParallel.init(m, net, options)
    if not module.is_module(net) then misuse(("%s: expected a module, got %s"):format(WHO, tools.type_of(net))) end
    local o = check_options(options)
    local all, names, trained, device = parameters_of(net)
    local r = { group = o.group, names = names, trained = trained, device = device, removers = {},
      first_bytes = math.min(o.first_bucket_mb, o.bucket_mb) * MB, bytes = o.bucket_mb * MB,
      sends_buffers = o.broadcast_buffers, wants = true, is_prepared = false }
    check_device(o.group, name_of(all[1], names[all[1]]), device)
    check_same(all, names, o.group, device)
    send_values(table.move(net:buffers(), 1, #net:buffers(), #all + 1, all), o.group)
    m.reducer, m.module = r, net -- gives the parameters the names after which `arrange` calls their gradients
    mr.no_grad(arrange, r, trained)
    take_over(r)
  end

  local function check_parameters(r, net)
    if r.is_replaced then misuse(WHO .. ": another one was made of the same parameters: use that one") end
    for name, p in net:named_parameters() do
      if p.requires_grad and not r.place[p] then
        misuse(("%s: `%s` did not require gradients when %s was made: make it anew"):format(WHO, name_of(p, name), WHO))
      end
    end
  end

  -- Called with the results of a forward pass. Only a pass of the wrapper prepares a reduction, as in PyTorch. A call
  -- of the module itself leaves the gradients unreduced.
  local function prepare(r, ...)
    if mr.is_grad_enabled() then r.is_prepared = r.wants end
    return ...
  end

  function DistributedDataParallel.forward(m, ...)
    module.check(m, "forward")
    local r, net = m.reducer, m.module
    check_parameters(r, net)
    if r.wants and mr.is_grad_enabled() then
      if r.arrived and #r.buckets > 1 then mr.no_grad(rearrange, r) end
      if r.sends_buffers and net.training then mr.no_grad(send_values, net:buffers(), r.group) end
    end
    return prepare(r, net(...))
  end

  function DistributedDataParallel.no_sync(m, fn, ...)
    module.check(m, "no_sync")
    if type(fn) ~= "function" then misuse("no_sync: expected a function, got " .. tools.type_of(fn)) end
    local r, before = m.reducer, m.reducer.wants
    r.wants = false
    local results = table.pack(pcall(fn, ...))
    r.wants = before
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
  end

  return DistributedDataParallel
end
