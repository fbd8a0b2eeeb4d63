-- Autograd, as scripts call it. The page for users is docs/autograd.md; the list below has the files.
--
-- Easiest to break: a tensor's properties can depend on a change that was made through another view. So functions use
-- `settled` and `target`, which take that into account, and not the state itself.
--
-- The module is a function of the tools that src/bind/nn/gradient_tools.c hands to it.
--
-- Autograd (docs/autograd.md) is written in Lua; C only passes calls to it. A function that makes a tensor from others,
-- or changes one, is an `MR_RECORDED_FUNCTION` (`bind/record.h`). It checks whether any tensor of the state requires
-- gradients, which is one comparison, and runs. If one of its arguments does, `lua/millrace/autograd/recording.lua`
-- gets the call: it calls the function itself, and makes a node. So a function in a local of the script is recorded,
-- too, and what is recorded costs nothing elsewhere.
--
--     bind/record.h            one comparison; bind/record.c asks about the arguments
--     lua/millrace/autograd.lua            what scripts call: requires_grad_, backward, mr.autograd.grad
--     lua/millrace/autograd/recording.lua  the rule of the function; a node with what its derivative reads
--     lua/millrace/autograd/graph.lua      the place of a tensor in the graph; changes in place, of views, too
--     lua/millrace/autograd/function.lua   operations with a derivative of the script's
--     lua/millrace/derivatives.lua         the derivatives, most of them as an expression: mul = "g * b; g * a"
--     lua/millrace/autograd/backward.lua   nodes in the reverse order of the calls; streams, waits, record_stream
--
-- The record that autograd keeps for a tensor is the user value of its userdata, so it goes with the tensor. A view's
-- user value is the tensor that it is a view of, even while nothing is recorded: a later `v:copy_(x)` must find what it
-- changes. Each storage counts the writes to it (`mr_storage.version`), and its last writer is noted for messages. A
-- value that a derivative reads is kept with the count. A difference is an error that has both lines.
--
-- With `create_graph` the pass is recorded like other calls, and owns nothing: gradients are not added to in place,
-- and the collector frees them. Values that a change in place has kept from before the change are in the graph, too.
--
-- Nodes are numbered. An edge leads to a smaller number, so the greatest one that has a gradient is always complete,
-- and a heap replaces the counting of dependencies. Until the last node has been carried out nothing changes that the
-- script can see.
local mr = require "millrace"
local keys = require "millrace.words".keys
local new_engine = require "millrace.autograd.backward"
local new_function = require "millrace.autograd.function"
local new_graph = require "millrace.autograd.graph"
local new_recording = require "millrace.autograd.recording"

return function(tools)
  local set_state, base_of, same_form, is_float = tools.set_state, tools.base, tools.same_form, tools.is_float
  local misuse, describe = tools.misuse, tools.describe
  local graph = new_graph(tools)
  local target, settled, retain, describe_node = graph.target, graph.settled, graph.retain, graph.describe_node
  local recording = new_recording(tools, graph)
  local M = { record = recording.record }

  local function type_text(value) return tools.is_tensor(value) and "a tensor" or "a " .. type(value) end

  -- Only a missing argument means true: nil is most often a name that Lua does not know, such as False.
  function M.requires_grad(t, ...)
    local on = ...
    if select("#", ...) > 0 and type(on) ~= "boolean" then
      misuse("requires_grad_: argument 1: expected true or false, got " .. (on == nil and "nil" or type_text(on)))
    end
    local s = settled(t)
    if s and not s.leaf then
      if on ~= false then return t end
      misuse(("requires_grad_: %s is the result of %s, so its requires_grad cannot be set: use t:detach()"):format(
        describe(t), M.grad_fn(t)))
    end
    on = on ~= false
    if on and not is_float(t) then
      misuse(("requires_grad_: %s is %s; only tensors of floats can require gradients"):format(describe(t), t.dtype))
    end
    s = s or { leaf = t, seq = 0, root = base_of(t) }
    s.on, s.base = on, not on and s.root or nil
    set_state(t, s, on)
    return t
  end

  -- Gives t, a leaf, the contents of `other`, which has no other user, with this gradient: like t.data = other in
  -- PyTorch. Nodes recorded before need the former values, so backward() refuses them.
  function M.replace(t, other, gradient)
    local s = settled(t)
    local on = s ~= nil and s.on
    tools.take_tensor(t, other)
    if s then s.replaced = true end
    set_state(t, { leaf = t, seq = 0, on = on, grad = gradient, hooks = s and s.hooks }, on)
  end

  -- Has fn(t) called in each backward pass once t.grad is complete. Returns a function that ends this.
  function M.add_hook(t, fn)
    local s = settled(t)
    if type(fn) ~= "function" then
      misuse("register_post_accumulate_grad_hook: expected a function, got " .. type_text(fn))
    end
    if not (s and s.leaf and s.on) then
      misuse(("register_post_accumulate_grad_hook: %s is not a leaf that requires gradients"):format(describe(t)))
    end
    local hooks, hook = s.hooks or {}, { fn = fn }
    hooks[#hooks + 1], s.hooks = hook, hooks
    graph.hooks = graph.hooks + 1
    return function()
      for i, other in ipairs(hooks) do
        if other == hook then
          table.remove(hooks, i)
          graph.hooks = graph.hooks - 1
        end
      end
    end
  end

  function M.is_recorded(t) return target(t) ~= nil end

  function M.detach(t) return tools.alias(t) end

  function M.is_leaf(t)
    local s = settled(t)
    return s == nil or s.leaf ~= nil
  end

  function M.grad_fn(t)
    local n = target(t)
    if n and n.rule then return describe_node(n) end
    return nil
  end

  function M.retain_grad(t)
    local s = settled(t)
    if not s or s.leaf and not s.on then
      misuse(("retain_grad: %s does not require gradients"):format(describe(t)))
    end
    if not s.leaf then retain(s, target(t)) end
    return t
  end

  local function check_form(what, g, t)
    if not tools.is_tensor(g) then misuse(("%s: expected a tensor, got %s"):format(what, type_text(g))) end
    tools.check(g)
    if g.device ~= t.device then
      misuse(("%s: %s is on %s, but %s is on %s"):format(what, describe(g), tostring(g.device), describe(t),
        tostring(t.device)))
    end
    if same_form(g, t) then return end
    local function form(x) return ("%s of shape {%s}"):format(x.dtype, table.concat(x.shape, ", ")) end
    misuse(("%s: %s is %s, expected %s, as %s is"):format(what, describe(g), form(g), form(t), describe(t)))
  end

  local fields = {}

  function fields.requires_grad(t, value)
    if type(value) ~= "boolean" then
      misuse("requires_grad: expected true or false, got " .. (value == nil and "nil" or type_text(value)))
    end
    M.requires_grad(t, value)
  end

  function fields.grad(t, value)
    local s = settled(t)
    if s and not s.leaf then
      misuse(("grad: %s is not a leaf, so its gradient cannot be set"):format(describe(t)))
    end
    if value ~= nil then
      check_form("grad", value, t)
      if tools.repeats(value) then
        misuse(("grad: %s is an expanded view, so no gradient can be added to it: give a clone() of it"):format(
          describe(value)))
      end
    end
    if not s then
      s = { leaf = t, seq = 0, base = base_of(t), root = base_of(t), on = false }
      set_state(t, s, false)
    end
    s.grad = value
  end

  function M.set_field(t, key, value)
    if fields[key] then return fields[key](t, value) end
    return misuse(("%s: field `%s` of a tensor cannot be assigned: t:name(\"x\") sets the name"):format(describe(t),
      key:sub(1, 40)))
  end

  -- ---------------------------------------------------------------- backward

  tools.describe_node = describe_node
  local run = new_engine(tools, graph)

  local KNOWN = {
    backward = { retain_graph = true },
    grad = { retain_graph = true, allow_unused = true, create_graph = true },
  }

  local function check_options(what, options)
    for key, value in pairs(options) do
      if not KNOWN[what][key] then misuse(what .. ": " .. tools.no_option(key, keys(KNOWN[what]))) end
      if type(value) ~= "boolean" then
        misuse(("%s: option `%s`: expected true or false, got %s"):format(what, key, type_text(value)))
      end
    end
    return options
  end

  -- The gradient of t that a backward pass begins with; nil: it is 1.
  local function first_gradient(what, t, given)
    if given ~= nil then
      check_form(what, given, t)
    elseif t.numel ~= 1 then
      misuse(("%s: %s has %d elements: only a tensor with one element has the default gradient 1; give a gradient " ..
        "of the same shape, or take the sum()"):format(what, describe(t), t.numel))
    end
    return given
  end

  local function root(what, t)
    tools.check(t)
    local from = target(t)
    if from then return from end
    return misuse(("%s: %s does not require gradients, and was not computed from a tensor that does: call " ..
      "x:requires_grad_() before the computation%s"):format(what, describe(t),
      mr.is_grad_enabled() and "" or " and do it outside of mr.no_grad"))
  end

  function M.backward(t, given, options)
    if type(given) == "table" and options == nil then given, options = nil, given end
    options = check_options("backward", options or {})
    local from = root("backward", t)
    run({ { node = from, like = t, gradient = first_gradient("backward", t, given) } }, options)
  end

  local function as_list(what, value, of)
    if tools.is_tensor(value) then return { value } end
    if type(value) ~= "table" or #value == 0 then
      misuse(("grad: %s: expected a tensor or a list of tensors, got %s"):format(what, type_text(value)))
    end
    local list = {}
    for i = 1, of or #value do
      list[i] = value[i]
      if list[i] ~= nil and not tools.is_tensor(list[i]) or list[i] == nil and not of then
        misuse(("grad: %s: entry %d is %s, expected a tensor"):format(what, i, type_text(list[i])))
      end
    end
    return list
  end

  local function is_options(value) return type(value) == "table" and #value == 0 and next(value) ~= nil end

  function M.grad(outputs, inputs, given, options)
    if options == nil and is_options(given) then given, options = nil, given end
    options = check_options("grad", options or {})
    outputs, inputs = as_list("outputs", outputs), as_list("inputs", inputs)
    given = given ~= nil and as_list("gradients", given, #outputs) or {}
    local roots, wanted = {}, {}
    for i, t in ipairs(outputs) do
      roots[i] = { node = root("grad", t), like = t, gradient = first_gradient("grad", t, given[i]) }
    end
    for i, t in ipairs(inputs) do
      wanted[i] = root("grad", t)
    end
    local found = run(roots, options, wanted, function(i)
      if options.allow_unused then return end
      misuse(("grad: no output depends on input %d, %s: leave it out, or set allow_unused=true"):format(i,
        describe(inputs[i])))
    end)
    return table.unpack(found, 1, #inputs)
  end

  M.Function = new_function(tools, graph, recording, { type_text = type_text, form = check_form })
  return M
end
