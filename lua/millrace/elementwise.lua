-- mr.elementwise: a statement of CUDA C, computed for each element of tensors that broadcast.
--
-- The statement becomes a kernel. The call decides which one. Inputs that are numbers are passed by value. Tensors that
-- are contiguous and have the shape of the result share one index. All others have strides, whose loop over dims is
-- written out. Indices have 64 bits only where 32 are not enough. These choices are a form. The kernel of a form is
-- compiled when it is first needed.
--
-- The module is a function of the tools that bind/kernel/elementwise.c hands to it. It returns the function that
-- mr.elementwise calls.
local mr = require "millrace"

local source = require "millrace.elementwise.source"
local sum_to = require("millrace.autograd.helpers").sum_to

local kernel, empty, current_device = mr.kernel, mr.empty, mr.current_device

local THREADS = 256  -- of a block
local SMALL = 1 << 30 -- elements and offsets below this fit an int, also after the last block's end

return function(tools)
  local misuse, where, epoch = tools.misuse, tools.where, tools.epoch
  local conflict, self_overlaps = tools.conflict, tools.self_overlaps
  local parse = source.parser(misuse)

  -- ---------------------------------------------------------------- kernels

  local function compile(f, form)
    local options = { name = f.name, options = f.options, strided = form.dims ~= nil }
    local ok, result = pcall(kernel, source.generate(f, form), options)
    if ok then return result end
    if type(result) ~= "string" then error(result, 0) end
    local line = where()
    if line and result:sub(1, #line + 2) == line .. ": " then result = result:sub(#line + 3) end
    result = result:gsub("^the kernel source has errors:", ""):gsub("^[^\n]", " %0")
    return misuse(("%s, made at %s: its statement cannot be compiled:%s"):format(f.name, f.made or "an unknown line",
      result))
  end

  local function kernel_of(f, form)
    local key = {}
    for k = 1, #f.inputs do key[k] = form.by_value[k] and "v" or "t" end
    key[#key + 1] = form.wide and "64" or "32"
    key[#key + 1] = form.dims or "dense"
    key = table.concat(key, " ")
    if f.epoch ~= epoch() then f.epoch, f.kernels = epoch(), {} end
    local found = f.kernels[key]
    if not found then
      found = compile(f, form)
      f.kernels[key] = found
    end
    return found
  end

  -- ---------------------------------------------------------------- shapes

  local function is_tensor(value) return getmetatable(value) == "millrace.tensor" end

  local function describe(value)
    if is_tensor(value) then return "a tensor of " .. value.dtype end
    if value == nil or type(value) == "boolean" then return tostring(value) end
    return "a " .. type(value)
  end

  local function shape_text(shape) return "{" .. table.concat(shape, ", ") .. "}" end

  local function same_shape(a, b)
    if #a ~= #b then return false end
    for d = 1, #a do
      if a[d] ~= b[d] then return false end
    end
    return true
  end

  -- `shape`, widened by that of another tensor; nil: they do not fit.
  local function broadcast(shape, other)
    local result, dims = {}, math.max(#shape, #other)
    for d = 1, dims do
      local at, at_other = d - dims + #shape, d - dims + #other -- 0 or less: it has no such dim
      local a, b = at > 0 and shape[at] or 1, at_other > 0 and other[at_other] or 1
      if a ~= b and a ~= 1 and b ~= 1 then return nil end
      result[d] = a == 1 and b or a
    end
    return result
  end

  -- The tensor's strides in the dims of `shape`: 0 where it is repeated.
  local function broadcast_strides(tensor, shape)
    local own, strides, result = tensor.shape, tensor.stride, {}
    for d = 1, #shape do
      local k = d - #shape + #own -- 0 or less: it has no such dim
      result[d] = (k < 1 or own[k] == 1) and 0 or strides[k]
    end
    return result
  end

  -- Dims of size 1 go, and two dims become one where each tensor's stride allows it. `strides` is a list of lists.
  local function collapse(shape, strides)
    local sizes, kept = {}, {}
    for k = 1, #strides do kept[k] = {} end
    for d = 1, #shape do
      local last = #sizes
      local joins = last > 0
      for k = 1, #strides do joins = joins and kept[k][last] == strides[k][d] * shape[d] end
      if shape[d] ~= 1 then
        local to = joins and last or last + 1
        sizes[to] = (joins and sizes[last] or 1) * shape[d]
        for k = 1, #strides do kept[k][to] = strides[k][d] end
      end
    end
    return sizes, kept
  end

  local function count_of(shape)
    local count = 1
    for d = 1, #shape do count = count * shape[d] end
    return count
  end

  -- ---------------------------------------------------------------- a call

  local function bad_argument(f, k, expected, value)
    return misuse(("%s: argument %d (`%s`): expected %s, got %s"):format(f.name, k, f.inputs[k].text, expected,
      describe(value)))
  end

  local function check_number(f, k, value)
    local input = f.inputs[k]
    if type(value) == "boolean" and input.dtype == "bool" then return end
    if type(value) ~= "number" then
      return bad_argument(f, k, ("a tensor of %s or a number"):format(input.dtype), value)
    end
    if not input.least then return end
    local whole = math.tointeger(value)
    if not whole or whole < input.least or whole > input.most then
      misuse(("%s: argument %d (`%s`): expected an integer from %d to %d, got %s"):format(f.name, k, input.text,
        input.least, input.most, value))
    end
  end

  local function check_input(f, k, value)
    if not is_tensor(value) then return check_number(f, k, value) end
    local wanted = f.inputs[k].dtype
    if value.dtype ~= wanted then
      misuse(("%s: argument %d (`%s`): expected a tensor of %s, got one of %s: t:to(\"%s\") converts it"):format(
        f.name, k, f.inputs[k].text, wanted, value.dtype, wanted))
    end
    if value.device == "cpu" and not value.pinned then
      misuse(("%s: argument %d (`%s`): the tensor is in host memory, which a kernel does not reach: t:to(0) copies " ..
        "it to a device"):format(f.name, k, f.inputs[k].text))
    end
  end

  -- The outputs that the caller gives, in the order of the signature.
  local function given_outputs(f, out)
    if is_tensor(out) then out = { out } end
    if type(out) ~= "table" then
      misuse(("%s: option `out`: expected a tensor or a list of them, got %s"):format(f.name, describe(out)))
    end
    local list = {}
    for k, output in ipairs(f.outputs) do
      local t = out[k]
      if t == nil then t = out[output.name] end
      if not is_tensor(t) then
        misuse(("%s: option `out`: expected a tensor of %s for `%s`, got %s"):format(f.name, output.dtype, output.text,
          describe(t)))
      end
      list[k] = t
    end
    return list
  end

  local function check_options(f, options)
    for key in pairs(options) do
      if key ~= "out" and key ~= "stream" then
        misuse(("%s: there is no option `%s`: expected out or stream"):format(f.name, tostring(key)))
      end
    end
    return options
  end

  local function check_output(f, k, t, shape)
    local output = f.outputs[k]
    if t.dtype ~= output.dtype then
      misuse(("%s: output `%s`: expected a tensor of %s, got one of %s"):format(f.name, output.text, output.dtype,
        t.dtype))
    end
    if not same_shape(t.shape, shape) then
      misuse(("%s: output `%s`: its shape is %s, the result has %s"):format(f.name, output.text, shape_text(t.shape),
        shape_text(shape)))
    end
    if self_overlaps(t) then
      misuse(("%s: output `%s`: several of its elements are the same one in memory: pass its contiguous()"):format(
        f.name, output.text))
    end
  end

  -- Each thread reads its element before it writes; memory that is shared in any other way is written by one thread
  -- while another one uses it.
  local function begins_where(a, b)
    return a.storage_id == b.storage_id and a.storage_offset * a.itemsize == b.storage_offset * b.itemsize
  end

  local function check_memory(f, outputs, args)
    for k, output in ipairs(outputs) do
      for j, other in ipairs(outputs) do
        if j ~= k and output.numel > 0 and other.numel > 0 and
          (output == other or conflict(output, other) or begins_where(output, other)) then
          misuse(("%s: the outputs `%s` and `%s` share memory"):format(f.name, f.outputs[k].text, f.outputs[j].text))
        end
      end
      for j = 1, #f.inputs do
        if is_tensor(args[j]) and conflict(output, args[j]) then
          misuse(("%s: the output `%s` overlaps the input `%s` in part: write to another tensor, or pass a clone"):
            format(f.name, f.outputs[k].text, f.inputs[j].text))
        end
      end
    end
  end

  local function result_shape(f, args, outputs)
    local shape
    for k = 1, #f.inputs do
      if is_tensor(args[k]) then
        local wider = broadcast(shape or {}, args[k].shape)
        if not wider then
          misuse(("%s: argument %d (`%s`): the shape %s does not broadcast with %s"):format(f.name, k, f.inputs[k].text,
            shape_text(args[k].shape), shape_text(shape)))
        end
        shape = wider
      end
    end
    return shape or outputs and outputs[1].shape or {}
  end

  local function device_of(args, count, stream)
    for k = 1, count do
      local device = is_tensor(args[k]) and args[k].device
      if device and device ~= "cpu" then return device end
    end
    return stream and stream.device or current_device()
  end

  local function make_outputs(f, shape, device, stream)
    local list = {}
    for k, output in ipairs(f.outputs) do
      list[k] = empty(shape, { dtype = output.dtype, device = device, stream = stream })
    end
    return list
  end

  -- The form of the call, and the numbers after `n` among the kernel's arguments.
  local function choose_form(f, args, outputs, shape, count)
    local form, tensors, names = { by_value = {} }, {}, {}
    for k, output in ipairs(f.outputs) do tensors[k], names[k] = outputs[k], output.name end
    for k, input in ipairs(f.inputs) do
      form.by_value[k] = not is_tensor(args[k])
      if not form.by_value[k] then tensors[#tensors + 1], names[#names + 1] = args[k], input.name end
    end
    form.wide = count >= SMALL
    local dense = true
    for _, t in ipairs(tensors) do dense = dense and t.contiguous and same_shape(t.shape, shape) end
    if dense then return form, {} end

    local strides, numbers = {}, {}
    for k, t in ipairs(tensors) do strides[k] = broadcast_strides(t, shape) end
    local sizes, kept = collapse(shape, strides)
    if #sizes == 0 then -- one element
      sizes[1] = 1
      for k = 1, #kept do kept[k][1] = 0 end
    end
    form.dims, form.strided = #sizes, names
    for d = 2, #sizes do numbers[#numbers + 1] = sizes[d] end
    for k = 1, #kept do
      local last = 0
      for d = 1, #sizes do
        numbers[#numbers + 1] = kept[k][d]
        last = last + (sizes[d] - 1) * kept[k][d]
      end
      form.wide = form.wide or last >= SMALL
    end
    return form, numbers
  end

  local function compute(f, options, args)
    local wanted, stream, out = #f.inputs, options.stream, options.out
    local outputs = out ~= nil and given_outputs(f, out) or nil
    local shape = result_shape(f, args, outputs)
    if outputs then
      for k = 1, #outputs do check_output(f, k, outputs[k], shape) end
      check_memory(f, outputs, args)
    else
      outputs = make_outputs(f, shape, device_of(args, wanted, stream), stream)
    end

    local count = count_of(shape)
    if count > 0 then
      local form, numbers = choose_form(f, args, outputs, shape, count)
      local passed = { table.unpack(outputs) }
      for k = 1, wanted do passed[#passed + 1] = args[k] end
      passed[#passed + 1] = count
      for k = 1, #numbers do passed[#passed + 1] = numbers[k] end
      local blocks = (count + THREADS - 1) // THREADS
      kernel_of(f, form):launch({ grid = blocks, block = THREADS, stream = stream }, table.unpack(passed))
    end
    return table.unpack(outputs)
  end

  -- ---------------------------------------------------------------- gradients

  -- Whether a gradient is to go through the call. No gradient may get lost silently, so an input without a derivative
  -- is an error.
  local function is_recorded(f, args, options)
    if not mr.is_grad_enabled() then return false end
    local found
    for k, input in ipairs(f.inputs) do
      if is_tensor(args[k]) and args[k].requires_grad then
        found = true
        if not (f.derivatives and f.derivatives[k]) then
          misuse(("%s: argument %d (`%s`) requires gradients, but the function has no derivative for it: give " ..
            "mr.elementwise the option derivative={%s=...}, call it inside mr.no_grad, or pass t:detach()"):format(
            f.name, k, input.text, input.name))
        end
      end
    end
    if found and options.out ~= nil then
      misuse(f.name .. ": out= cannot be recorded for gradients: leave it out, or call this inside mr.no_grad")
    end
    return found
  end

  -- The factor of a gradient is computed by a function of its own, from the inputs, the output and `g`.
  local function record(f)
    return mr.autograd.Function {
      name = f.name,
      forward = function(ctx, options, ...)
        local args = { ... }
        local out = compute(f, options, args)
        local tensors, values = {}, {}
        for k = 1, #f.inputs do
          if is_tensor(args[k]) then tensors[k] = args[k] else values[k] = args[k] end
        end
        tensors[#f.inputs + 1] = out
        ctx.values, ctx.wanted = values, {}
        for k in pairs(tensors) do ctx.wanted[k] = k <= #f.inputs and args[k].requires_grad end
        ctx:save_for_backward(table.unpack(tensors, 1, #f.inputs + 1))
        return out
      end,
      backward = function(ctx, g)
        if mr.is_grad_enabled() then
          misuse(("%s: its derivative is a kernel, which has no derivative of its own: create_graph=true cannot go " ..
            "through it; write the function with operations on tensors"):format(f.name))
        end
        local saved, gradients = table.pack(ctx:saved_tensors()), {}
        for k = 1, saved.n do
          if saved[k] == nil then saved[k] = ctx.values[k] end
        end
        saved[saved.n + 1] = g
        for k = 1, #f.inputs do
          if ctx.wanted[k] then
            local whole = compute(f.derivatives[k], {}, saved)
            gradients[k + 1] = sum_to(whole, saved[k].shape)
          end
        end
        return table.unpack(gradients, 1, #f.inputs + 1)
      end,
    }
  end

  -- {x = "2 * x * g"}: for an input, an expression of CUDA C with the inputs, the output and the gradient of the
  -- output, g.
  local function add_derivatives(f, texts)
    if type(texts) ~= "table" then
      misuse(("elementwise: option `derivative`: expected a table such as {x = \"2 * x * g\"}, got %s"):format(
        describe(texts)))
    end
    if #f.outputs > 1 then
      misuse(("elementwise: option `derivative`: \"%s\" has %d outputs: only a function of one output can have " ..
        "derivatives; mr.autograd.Function makes others"):format(f.signature, #f.outputs))
    end
    local known, before = {}, f.signature:match("^(.-)%->")
    for k, input in ipairs(f.inputs) do known[input.name] = k end
    f.derivatives = {}
    for name, text in pairs(texts) do
      local input = f.inputs[known[name]]
      if not input or type(text) ~= "string" then
        misuse(("elementwise: option `derivative`: expected an expression for an input of \"%s\", got %s for `%s`")
          :format(f.signature, describe(text), tostring(name)))
      end
      if input.least then
        misuse(("elementwise: option `derivative`: `%s` is no float, so it has no gradient"):format(input.text))
      end
      local given = ("%s, %s, %s g"):format(before, f.outputs[1].text, f.outputs[1].type)
      local d = { name = f.name .. "_backward", made = f.made, options = f.options,
        signature = ("%s -> %s gradient"):format(given, input.type), statement = "gradient = " .. text }
      d.inputs, d.outputs = parse(d.signature)
      f.derivatives[known[name]] = d
    end
    f.recorded = record(f)
  end

  local function run(f, ...)
    local args, given, wanted = { ... }, select("#", ...), #f.inputs
    local options = {}
    if given == wanted + 1 and type(args[given]) == "table" then
      options, given = check_options(f, args[given]), wanted
    end
    if given ~= wanted then
      misuse(("%s: expected %d argument%s (%s), got %d"):format(f.name, wanted, wanted == 1 and "" or "s", f.signature,
        given))
    end
    for k = 1, wanted do check_input(f, k, args[k]) end
    if is_recorded(f, args, options) then return f.recorded(options, table.unpack(args, 1, wanted)) end
    return compute(f, options, args)
  end

  -- ---------------------------------------------------------------- objects

  local states = setmetatable({}, { __mode = "k" }) -- by object, which itself holds nothing that a script could change

  local function state_of(object)
    return states[object] or
      misuse("elementwise: called on " .. describe(object) .. ", expected an elementwise function")
  end

  local readable = { name = true, signature = true, statement = true }
  local methods = {}

  -- f:source() -> the CUDA C of the form for contiguous tensors of one shape.
  function methods.source(object)
    return source.generate(state_of(object), { by_value = {}, wide = false })
  end

  local metatable = {
    __call = function(object, ...) return run(state_of(object), ...) end,
    __index = function(object, key)
      if methods[key] then return methods[key] end
      if readable[key] then return states[object][key] end
      return misuse(("an elementwise function has no `%s`: it has name, signature, statement and source()"):format(
        tostring(key)))
    end,
    __newindex = function() misuse("an elementwise function has no fields that can be assigned") end,
    __name = "millrace.elementwise",
    __metatable = "millrace.elementwise",
    __tostring = function(object)
      local f = states[object]
      return ("%s(%s)"):format(f.name == "elementwise" and f.name or "elementwise " .. f.name, f.signature)
    end,
  }

  local function check_text(value, k, what)
    if type(value) == "string" then return value end
    return misuse(("elementwise: argument %d: expected %s (a string), got %s"):format(k, what, describe(value)))
  end

  return function(signature, statement, options)
    check_text(signature, 1, "a signature")
    check_text(statement, 2, "a statement")
    if type(options) == "string" then options = { name = options } end
    if options ~= nil and type(options) ~= "table" then
      misuse(("elementwise: argument 3: expected a name or a table of options, got %s"):format(describe(options)))
    end
    for key in pairs(options or {}) do
      if key ~= "name" and key ~= "options" and key ~= "derivative" then
        misuse(("elementwise: there is no option `%s`: expected name, options or derivative"):format(tostring(key)))
      end
    end
    local name = options and options.name or "elementwise"
    if type(name) ~= "string" or not name:find("^[%a_][%w_]*$") or #name > 100 then
      misuse(("elementwise: the name must be one that C allows for a function, got %s"):format(
        type(name) == "string" and "\"" .. name .. "\"" or describe(name)))
    end
    local f = { name = name, statement = statement, made = where() }
    f.options = options and options.options
    f.signature = signature:match("^%s*(.-)%s*$")
    f.inputs, f.outputs = parse(signature)
    if options and options.derivative ~= nil then add_derivatives(f, options.derivative) end
    local object = setmetatable({}, metatable)
    states[object] = f
    return object
  end
end
