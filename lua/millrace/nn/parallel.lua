-- mr.nn.parallel: one batch on several devices of this process, as torch.nn.parallel has it.
--
-- DataParallel's call does four things: `scatter` cuts the batch, `replicate` copies the module to each device,
-- `parallel_apply` calls each copy on its part, `gather` joins the results. Nothing waits on the host, so the devices
-- work side by side.
--
-- Streams: every step works on the stream that is current on each device. The backward pass of a step works on the
-- streams of its forward pass, which may not be the current ones any more; `on_streams` sees to that. Copies between
-- devices and collectives order both sides by themselves.
--
-- Easiest to break: parameters of replicas are results of a recorded operation, so gradients come back through it.
-- Buffers are not. Those of the first replica are the module's own, so its writes to them stay.
--
-- The module is a function of the tools that src/bind/nn/nn.c hands to it, and of module.lua.
--# nn_parallel of mr.nn.parallel: One batch on several devices.
local mr = require "millrace"
local words = require "millrace.words"
local LONGEST_NAME = words.LONGEST_NAME

return function(tools, module)
  local misuse, is_tensor = tools.misuse, tools.is_tensor
  local parallel = {}

  -- ---------------------------------------------------------------- devices and streams

  -- A device object, of a device or its number.
  local function device_of(what, value)
    local ok, stream = pcall(mr.current_stream, value)
    if value == nil or not ok then
      misuse(("%s: expected a device or its number, got %s"):format(what, value == nil and "nil" or
        type(value) == "number" and ("%s: this machine has %d"):format(value, mr.device_count()) or
        tools.type_of(value)))
    end
    return stream.device
  end

  local function check_devices(what, list)
    if type(list) ~= "table" or #list == 0 then
      misuse(("%s: the devices are %s, expected a list such as {0, 1}"):format(what,
        type(list) == "table" and "an empty list" or tools.type_of(list)))
    end
    local devices, seen = {}, {}
    for i, value in ipairs(list) do
      devices[i] = device_of(("%s: entry %d of the devices"):format(what, i), value)
      if seen[devices[i]] then misuse(("%s: device %d is in the list twice"):format(what, devices[i].index)) end
      seen[devices[i]] = true
    end
    return devices
  end

  -- The current stream of each device, and of one more, which may be the host.
  local function current_streams(devices, more)
    local streams, seen = {}, {}
    for _, device in ipairs(table.move({ more }, 1, 1, #devices + 1, table.move(devices, 1, #devices, 1, {}))) do
      if device ~= "cpu" and not seen[device] then streams[#streams + 1] = mr.current_stream(device) end
      seen[device] = true
    end
    return streams
  end

  -- fn(...) with these streams current, one a device.
  local function with_streams(streams, fn, ...)
    for _, stream in ipairs(streams) do
      local inner = fn
      fn = function(...) return mr.with(stream, inner, ...) end
    end
    return fn(...)
  end

  -- fn(...) in a backward pass. The current stream has waited for the gradients, and is to have the results.
  local function on_streams(streams, gradients, fn, ...)
    local here = mr.current_stream()
    for _, stream in ipairs(streams) do
      if stream ~= here then stream:wait_stream(here) end
      for _, g in pairs(gradients) do
        if g.device == stream.device then g:record_stream(stream) end
      end
    end
    local results = table.pack(with_streams(streams, fn, ...))
    for _, stream in ipairs(streams) do
      if stream ~= here then here:wait_stream(stream) end
    end
    return table.unpack(results, 1, results.n)
  end

  -- ---------------------------------------------------------------- tensors in parts

  -- Parts of these sizes along dim 1, each in memory of its own on its device.
  local function copy_parts(t, sizes, devices)
    local parts = {}
    for i, part in ipairs(t:split(sizes)) do
      parts[i] = part.device == devices[i] and part:clone() or part:to(devices[i])
    end
    return parts
  end

  local function joined(parts, device)
    local there = {}
    for i, part in ipairs(parts) do
      part = part:to(device)
      there[i] = part.ndim == 0 and part:reshape(1) or part
    end
    return mr.cat(there)
  end

  -- The gradient of each of the two is the other, so gradients of gradients are known, too.
  local scatter_parts, gather_parts

  scatter_parts = mr.autograd.Function {
    name = "scatter",
    forward = function(ctx, t, sizes, devices)
      ctx.device, ctx.streams = t.device, current_streams(devices)
      return table.unpack(copy_parts(t, sizes, devices))
    end,
    backward = function(ctx, ...)
      local g = on_streams(ctx.streams, { ... }, gather_parts, ctx.device, ...)
      if ctx.device ~= "cpu" then mr.current_stream():wait_stream(mr.current_stream(ctx.device)) end
      return g
    end,
  }

  gather_parts = mr.autograd.Function {
    name = "gather",
    forward = function(ctx, device, ...)
      ctx.sizes, ctx.devices, ctx.shapes = {}, {}, {}
      for i, part in ipairs { ... } do
        ctx.sizes[i], ctx.devices[i], ctx.shapes[i] = part.ndim == 0 and 1 or part:size(1), part.device, part.shape
      end
      ctx.streams = current_streams(ctx.devices, device)
      return joined({ ... }, device)
    end,
    backward = function(ctx, g)
      local parts = on_streams(ctx.streams, { g }, function()
        return { scatter_parts(g, ctx.sizes, ctx.devices) }
      end)
      for i, part in ipairs(parts) do
        if #ctx.shapes[i] == 0 then parts[i] = part:reshape({}) end
      end
      return nil, table.unpack(parts)
    end,
  }

  -- ---------------------------------------------------------------- scatter and gather

  local function is_plain_table(value) return type(value) == "table" and getmetatable(value) == nil end

  local function scatter_tensor(t, devices)
    if t.ndim == 0 then misuse "scatter: a tensor without dims cannot be cut: pass a number, which every part gets" end
    local size = math.max((t:size(1) + #devices - 1) // #devices, 1)
    local sizes, parts, rest = {}, {}, t:size(1)
    repeat
      sizes[#sizes + 1] = math.min(size, rest)
      rest = rest - sizes[#sizes]
    until rest == 0
    local own = table.move(devices, 1, #sizes, 1, {})
    if t.requires_grad and mr.is_grad_enabled() then return { scatter_parts(t, sizes, own) } end
    for i, part in ipairs(t:split(sizes)) do parts[i] = part:to(own[i]) end
    return parts
  end

  -- The number of parts that the tensors in a table have, and the parts of each field. nil: there is no tensor in it.
  local scatter_value

  local function scatter_table(value, devices)
    local keys, fields, count = {}, {}, nil
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys, function(x, y) -- the order of pairs is not defined
      if type(x) == type(y) and (type(x) == "number" or type(x) == "string") then return x < y end
      return type(x) < type(y)
    end)
    for _, key in ipairs(keys) do
      local list = scatter_value(value[key], devices)
      if list then
        if count and count ~= #list then
          misuse(("scatter: field `%s` gives %d parts and another field %d: the tensors must agree in dim 1"):format(
            tostring(key), #list, count))
        end
        count, fields[key] = #list, list
      end
    end
    if not count then return nil end
    local parts = {}
    for i = 1, count do
      parts[i] = {}
      for _, key in ipairs(keys) do
        if fields[key] then parts[i][key] = fields[key][i] else parts[i][key] = value[key] end
      end
    end
    return parts
  end

  -- The list of parts; nil: there is no tensor in the value.
  function scatter_value(value, devices)
    if is_tensor(value) then return scatter_tensor(value, devices) end
    if is_plain_table(value) then return scatter_table(value, devices) end
    return nil
  end

  --- mr.nn.parallel.scatter(x: any, devices: list) -> parts: list
  --- Cuts a tensor along dim 1 into one part for each device, and copies each part there. All parts but the last have
  --- the same size; with few rows there are fewer parts than devices. In a table the tensors are cut, at any depth;
  --- every part gets all other values. The gradient of x is gathered from those of the parts.
  function parallel.scatter(x, devices)
    devices = check_devices("scatter", devices)
    local parts = scatter_value(x, devices)
    if parts then return parts end
    parts = {}
    for i = 1, #devices do parts[i] = x end
    return parts
  end

  local gather_value

  local function gather_tables(outputs, device, what)
    local result = {}
    for key in pairs(outputs[1]) do
      local list = {}
      for i, output in ipairs(outputs) do
        list[i] = is_plain_table(output) and output[key]
        if not list[i] then misuse(("%s: output %d has no field `%s`, but output 1 has"):format(what, i,
          tostring(key))) end
      end
      result[key] = gather_value(list, device, what)
    end
    return result
  end

  function gather_value(outputs, device, what)
    local tables = is_plain_table(outputs[1])
    for i, output in ipairs(outputs) do
      if not is_tensor(output) and not is_plain_table(output) then
        misuse(("%s: output %d is %s, expected a tensor or a table of tensors"):format(what, i,
          tools.type_of(output)))
      end
      if is_tensor(output) and output.device == "cpu" then
        misuse(("%s: output %d is on the host, expected a tensor on a device"):format(what, i))
      end
      if is_plain_table(output) ~= tables then
        misuse(("%s: output %d is %s, but output 1 is %s"):format(what, i, tools.type_of(output),
          tools.type_of(outputs[1])))
      end
    end
    if tables then return gather_tables(outputs, device, what) end
    return (gather_parts(device, table.unpack(outputs)))
  end

  --- mr.nn.parallel.gather(outputs: list, device: device|integer) -> y: tensor|table
  --- Joins tensors of several devices along dim 1 on one device. Tensors without dims become the elements of a vector.
  --- If the outputs are tables of tensors, it joins each field. The gradient of y is scattered to the outputs.
  function parallel.gather(outputs, device)
    device = device_of("gather: argument 2", device)
    if type(outputs) ~= "table" or module.is_module(outputs) or #outputs == 0 then
      misuse(("gather: the outputs are %s, expected a list of tensors"):format(
        is_plain_table(outputs) and "an empty list" or tools.type_of(outputs)))
    end
    return gather_value(outputs, device, "gather")
  end

  -- ---------------------------------------------------------------- replicate

  -- The tensors of a device one after the other, and views of such a row in the shapes of tensors.
  local function row_of(tensors)
    local parts = {}
    for i, t in ipairs(tensors) do parts[i] = t:reshape(t.numel) end
    return mr.cat(parts)
  end

  local function views_of(row, like)
    local views, at = {}, 1
    for i, t in ipairs(like) do
      views[i] = row:narrow(1, at, t.numel):view(t.shape)
      at = at + t.numel
    end
    return views
  end

  -- One list from the tensors of device 1, of device 2, ...: the part of device k.
  local function part_of(list, k, count) return table.move(list, (k - 1) * count + 1, k * count, 1, {}) end

  -- The tensors are of one dtype. The gradient of each of the two is the other.
  local broadcast_all, sum_all

  -- Gradients by device; a tensor that no device has used has none. Returns a sum or nil for each.
  local function sum_used(devices, shapes, dtype, gradients)
    local count, used, list = #shapes, {}, {}
    for i = 1, count do
      for k = 1, #devices do
        if gradients[(k - 1) * count + i] then
          used[#used + 1] = i
          break
        end
      end
    end
    for k, device in ipairs(devices) do
      for _, i in ipairs(used) do
        list[#list + 1] = gradients[(k - 1) * count + i] or mr.zeros(shapes[i], { dtype = dtype, device = device })
      end
    end
    local sums, results = { sum_all(devices, table.unpack(list)) }, {}
    for n, i in ipairs(used) do results[i] = sums[n] end
    return table.unpack(results, 1, count)
  end

  broadcast_all = mr.autograd.Function {
    name = "replicate",
    forward = function(ctx, devices, ...)
      local tensors, results = { ... }, {}
      local rows = { row_of(tensors) }
      local numel, dtype = rows[1].numel, rows[1].dtype
      ctx:set_materialize_grads(false)
      ctx.devices, ctx.streams, ctx.shapes, ctx.dtype = devices, current_streams(devices), {}, dtype
      for i, t in ipairs(tensors) do ctx.shapes[i] = t.shape end
      for k = 2, #devices do rows[k] = mr.empty({ numel }, { dtype = dtype, device = devices[k] }) end
      mr.nccl.broadcast(rows)
      for _, row in ipairs(rows) do table.move(views_of(row, tensors), 1, #tensors, #results + 1, results) end
      return table.unpack(results)
    end,
    backward = function(ctx, ...)
      return nil, on_streams(ctx.streams, { ... }, sum_used, ctx.devices, ctx.shapes, ctx.dtype, { ... })
    end,
  }

  sum_all = mr.autograd.Function {
    name = "sum of replicas",
    forward = function(ctx, devices, ...)
      local count, rows = select("#", ...) // #devices, {}
      ctx.devices, ctx.streams = devices, current_streams(devices)
      for k = 1, #devices do rows[k] = row_of(part_of({ ... }, k, count)) end
      mr.nccl.reduce(rows)
      return table.unpack(views_of(rows[1], part_of({ ... }, 1, count)))
    end,
    backward = function(ctx, ...)
      return nil, on_streams(ctx.streams, { ... }, broadcast_all, ctx.devices, ...)
    end,
  }

  -- Calls give(t, k, copy) for each tensor and device. Lists of one dtype are sent as one.
  local function send_trained(list, devices, give)
    local by_dtype, dtypes = {}, {}
    for _, t in ipairs(list) do
      if not by_dtype[t.dtype] then
        by_dtype[t.dtype] = {}
        dtypes[#dtypes + 1] = t.dtype
      end
      table.insert(by_dtype[t.dtype], t)
    end
    for _, dtype in ipairs(dtypes) do
      local tensors = by_dtype[dtype]
      local copies = { broadcast_all(devices, table.unpack(tensors)) }
      for k = 1, #devices do
        for i, copy in ipairs(part_of(copies, k, #tensors)) do give(tensors[i], k, copy) end
      end
    end
  end

  -- Likewise for tensors without gradients: the first device has the tensor itself. Each copy has memory of its own, as
  -- a module may change a buffer whose neighbour a derivative reads.
  local function send_fixed(list, devices, give)
    mr.no_grad(mr.nccl.group, function()
      for _, t in ipairs(list) do
        local all = { t:detach():contiguous() }
        for k = 2, #devices do all[k] = mr.empty(t.shape, { dtype = t.dtype, device = devices[k] }) end
        mr.nccl.broadcast(all)
        give(t, 1, t)
        for k = 2, #devices do give(t, k, all[k]) end
      end
    end)
  end

  local function name_copy(copy, t, device)
    local name = t:name()
    if not name or copy:name() then return end
    name = ("%s@%d"):format(name, device.index)
    if #name <= LONGEST_NAME then copy:name(name) end
  end

  -- All of them have to be on the first device.
  local function tensors_of(what, net, device)
    local trained, fixed = {}, {}
    for _, kind in ipairs { "parameters", "buffers" } do
      for name, t in net["named_" .. kind](net) do
        if t.device ~= device then
          misuse(("%s: `%s` of the module is on %s, expected device %d, the first of the list: call net:to(%d)"):format(
            what, name, tostring(t.device), device.index, device.index))
        end
        table.insert(t.requires_grad and trained or fixed, t)
      end
    end
    return trained, fixed
  end

  local function replicas_of(what, net, devices)
    local trained, fixed = tensors_of(what, net, devices[1])
    local copies, replicas = {}, {}
    for k = 1, #devices do copies[k] = {} end
    local function give(t, k, copy)
      copies[k][t] = copy
      name_copy(copy, t, devices[k])
    end
    send_trained(trained, devices, give)
    send_fixed(fixed, devices, give)
    for k = 1, #devices do replicas[k] = module.copy(net, copies[k]) end
    return replicas
  end

  --- mr.nn.parallel.replicate(net: table, devices: list) -> replicas: table[]
  --- Copies a module to each of the devices; its tensors have to be on the first one. The gradients of all replicas are
  --- summed into those of the module. The buffers of the first replica are the module's own, so changes of them stay;
  --- those of the others are copies. Other fields are copied as they are.
  function parallel.replicate(net, devices)
    if not module.is_module(net) then misuse("replicate: expected a module, got " .. tools.type_of(net)) end
    return replicas_of("replicate", net, check_devices("replicate", devices))
  end

  -- ---------------------------------------------------------------- parallel_apply, DataParallel

  -- The device of the first tensor in a value, or nil.
  local function device_in(value)
    if is_tensor(value) then return value.device ~= "cpu" and value.device or nil end
    if not is_plain_table(value) then return nil end
    for _, field in pairs(value) do
      local device = device_in(field)
      if device then return device end
    end
    return nil
  end

  local function apply(replica, device, ...)
    if not device then return replica(...) end
    return mr.with(mr.current_stream(device), replica, ...)
  end

  --- mr.nn.parallel.parallel_apply(replicas: list, inputs: list) -> outputs: list
  --- Calls replica k with input k, on the current stream of the device of its input. Nothing waits in between, so the
  --- devices work at the same time.
  function parallel.parallel_apply(replicas, inputs)
    if type(replicas) ~= "table" or module.is_module(replicas) or type(inputs) ~= "table" then
      misuse(("parallel_apply: expected a list of modules and a list of inputs, got %s and %s"):format(
        module.is_module(replicas) and "a module" or tools.type_of(replicas), tools.type_of(inputs)))
    end
    if #replicas ~= #inputs then
      misuse(("parallel_apply: there are %d replicas and %d inputs: expected one of each for a device"):format(
        #replicas, #inputs))
    end
    local outputs = {}
    for i, replica in ipairs(replicas) do outputs[i] = apply(replica, device_in(inputs[i]), inputs[i]) end
    return outputs
  end

  local OPTIONS = { devices = true, output_device = true }

  --- mr.nn.parallel.DataParallel(net: table [, {devices: list=all, output_device: device|integer=first}]) ->
  ---   module: table
  --- A module whose call cuts the batch into parts, runs net on all devices, one part each, and joins the results on
  --- the output device. The parameters stay on the first device, where net has to be. net is its field `module`.
  local DataParallel = module.class("DataParallel")

  function DataParallel.init(m, net, options)
    if not module.is_module(net) then misuse("DataParallel: expected a module, got " .. tools.type_of(net)) end
    if options ~= nil and not is_plain_table(options) then
      misuse("DataParallel: argument 2 is " .. tools.type_of(options) .. ", expected a table of options: {devices=}")
    end
    options = options or {}
    for key in pairs(options) do
      if not OPTIONS[key] then misuse("DataParallel: " .. tools.no_option(key, words.keys(OPTIONS))) end
    end
    local devices = options.devices
    if devices == nil then
      devices = {}
      for k = 1, mr.device_count() do devices[k] = k - 1 end
    end
    m.devices = check_devices("DataParallel", devices)
    m.output_device = options.output_device == nil and m.devices[1] or
      device_of("DataParallel: output_device", options.output_device)
    tensors_of("DataParallel", net, m.devices[1])
    m.module = net
  end

  function DataParallel.forward(m, ...)
    module.check(m, "forward")
    tensors_of("DataParallel", m.module, m.devices[1])
    local arguments = table.pack(...)
    local parts = scatter_value(arguments, m.devices)
    if not parts then misuse "DataParallel: there is no tensor among the arguments, so there is no batch to cut" end
    local used = table.move(m.devices, 1, #parts, 1, {})
    local whole = #parts == 1
    local replicas = whole and { m.module } or replicas_of("DataParallel", m.module, used)
    local outputs = {}
    for k, part in ipairs(parts) do
      outputs[k] = apply(replicas[k], used[k], table.unpack(part, 1, arguments.n))
    end
    if whole and device_in(outputs[1]) == m.output_device then return outputs[1] end
    return gather_value(outputs, m.output_device, "DataParallel")
  end

  parallel.DataParallel = DataParallel
  parallel.DistributedDataParallel = require "millrace.nn.distributed" (tools, module)
  return parallel
end
