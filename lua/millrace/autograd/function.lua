-- mr.autograd.Function: operations with a derivative of the script's. A call makes one node, whose results each have a
-- slot of it.
--
-- The module is a function. Its arguments are the tools of src/bind/nn/gradient_tools.c, graph.lua,
-- recording.lua, and the checks of autograd.lua.
local mr = require "millrace"

return function(tools, graph, recording, checks)
  local version, is_float, misuse = tools.version, tools.is_float, tools.misuse
  local new_node, target, attach, unrecorded = graph.new_node, graph.target, graph.attach, recording.unrecorded
  local type_text, check_form = checks.type_text, checks.form

  local context = {}
  context.__index = context

  function context:save_for_backward(...)
    local list = table.pack(...)
    for i = 1, list.n do
      if list[i] ~= nil and not tools.is_tensor(list[i]) then
        misuse(("save_for_backward: argument %d: expected a tensor, got %s; keep other values as fields of ctx"):format(
          i, type_text(list[i])))
      end
    end
    list.versions = {}
    for i = 1, list.n do list.versions[i] = list[i] and version(list[i]) end
    rawset(self, "saved", list)
  end

  function context:saved_tensors()
    local list = rawget(self, "saved") or { n = 0 }
    return table.unpack(list, 1, list.n)
  end

  -- Whether backward gets zeros for a result that has no gradient; else nil.
  function context:set_materialize_grads(on)
    if type(on) ~= "boolean" then
      misuse("set_materialize_grads: expected true or false, got " .. type_text(on))
    end
    rawset(self, "keeps_nil", not on)
  end

  local function check_definition(definition)
    if type(definition) ~= "table" then
      misuse("Function: expected a table {forward=, backward=}, got " .. type_text(definition))
    end
    for _, key in ipairs { "forward", "backward" } do
      if type(definition[key]) ~= "function" then
        misuse(("Function: %s: expected a function, got %s"):format(key, type_text(definition[key])))
      end
    end
    for key in pairs(definition) do
      if key ~= "forward" and key ~= "backward" and key ~= "name" then
        misuse(("Function: there is no field `%s`: expected forward, backward and name"):format(tostring(key)))
      end
    end
  end

  -- The gradients that the script's backward returned, checked.
  local function check_gradients(n, ...)
    local name, count = n.rule.name, select("#", ...)
    if count > n.n then
      misuse(("%s: backward returned %d gradients for %d arguments"):format(name, count, n.n))
    end
    local list = { ... }
    for i = 1, n.n do
      if list[i] ~= nil and n[i] then check_form(("%s: gradient %d"):format(name, i), list[i], n.likes[i]) end
    end
    return list
  end

  local function function_back(gradients, n)
    local saved = rawget(n.context, "saved")
    for i = 1, saved and saved.n or 0 do
      if saved[i] and version(saved[i]) ~= saved.versions[i] then tools.was_changed(n, saved[i]) end
    end
    for k = 1, rawget(n.context, "keeps_nil") and 0 or n.outputs do
      gradients[k] = gradients[k] or mr.zeros(n.shapes[k], { dtype = n.dtypes[k], device = n.devices[k] })
    end
    return check_gradients(n, n.rule.backward(n.context, table.unpack(gradients, 1, n.outputs)))
  end

  -- The results become those of the node: each has a slot of it.
  local function attach_results(n, results)
    n.outputs, n.shapes, n.dtypes, n.devices = results.n, {}, {}, {}
    for k = 1, results.n do
      local out = results[k]
      n.shapes[k], n.dtypes[k], n.devices[k] = out.shape, out.dtype, out.device
      if is_float(out) then
        local slot = new_node({ name = n.rule.name, slot = k }, out)
        slot[1], slot.n = n, 1
        attach(out, slot)
      end
    end
  end

  local function check_results(name, args, results)
    for k = 1, results.n do
      if not tools.is_tensor(results[k]) then
        misuse(("%s: forward returned %s as result %d, expected a tensor"):format(name, type_text(results[k]), k))
      end
      for i = 1, args.n do
        if tools.is_tensor(args[i]) and tools.shares(args[i], results[k]) then
          misuse(("%s: result %d of forward has the memory of argument %d: return a clone() of it"):format(name, k, i))
        end
      end
    end
    if results.n == 0 then misuse(name .. ": forward returned nothing, expected a tensor") end
  end

  return function(definition)
    check_definition(definition)
    local name = definition.name or "Function"
    local rule = { name = name, all = function_back, backward = definition.backward }
    local forward = definition.forward
    return function(...)
      local args, ctx = table.pack(...), setmetatable({}, context)
      local results = unrecorded(function(...) return table.pack(forward(ctx, ...)) end, ...)
      check_results(name, args, results)
      local targets, any = {}, false
      for i = 1, args.n do
        targets[i] = mr.is_grad_enabled() and tools.is_tensor(args[i]) and target(args[i]) or nil
        any = any or targets[i] ~= nil
      end
      if any then
        local n = new_node(rule, results[1])
        n.n, n.context, n.likes = args.n, ctx, {}
        for i = 1, args.n do
          n[i] = targets[i]
          if targets[i] then n.likes[i] = args[i] end
        end
        attach_results(n, results)
      end
      return table.unpack(results, 1, results.n)
    end
  end
end
