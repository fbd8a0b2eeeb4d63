-- Autograd: what is recorded of each call whose arguments require gradients, and what scripts call. The derivatives
-- are in derivatives.lua, the backward pass in autograd/backward.lua; docs/autograd.md is the user's page.
--
-- The graph. An operation that is recorded makes a node:
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
--   a leaf           {leaf = the tensor, on = it requires gradients, grad =}
--   of a view        {view = a node, base = the tensor that it is a view of, seen = version}
--
-- A view and its base share memory, so a change of one changes the other. Easiest to break: `view` is good only while
-- the memory has the version `seen`; after a change of it, what the view holds comes from the base's new node
-- (view_target). A view that was made when there was nothing to record has no state; the first change that is recorded
-- makes it one of those, too: the base's new node has the number of the newest tensor at that time, as `newest`.
--
-- A leaf that requires gradients is the base of its views, although it may be a view itself: its `base` is nil then.
--
-- The module is a function of the tools that src/bind/gradient_tools.c hands to it.
local mr = require "millrace"
local derivatives = require "millrace.derivatives"
local helpers = require "millrace.autograd.helpers"
local new_engine = require "millrace.autograd.backward"

return function(tools)
  local state, set_state, base_of, version = tools.state, tools.set_state, tools.base, tools.version
  local stream_of, line_of, same_form, is_float = tools.stream_of, tools.line, tools.same_form, tools.is_float
  local misuse, set_off, describe = tools.misuse, tools.set_off, tools.describe
  local select, type = select, type

  local seq = 0

  -- ---------------------------------------------------------------- the place of a tensor in the graph

  local function new_node(rule, out)
    seq = seq + 1
    local file, line = line_of()
    return { rule = rule, seq = seq, stream = stream_of(out), file = file, line = line }
  end

  local view_target

  -- Of a view without a state: as target(t).
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

  -- What the view holds, if its memory was changed since: a part of what the base holds.
  function view_target(s, t)
    if s.seen == version(t) then return s.view end
    local from = target(s.base)
    if from and from.rule then -- what was changed inside mr.no_grad, as a leaf is, is no operation
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

  -- After a view was changed: its base is what it was, with the node's result in the place of the view.
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

  -- ---------------------------------------------------------------- recording

  local function save(n, reads, a, b, c, d, out)
    if reads.a and n.va == nil then n.a, n.va = a, type(a) == "userdata" and version(a) end
    if reads.b and n.vb == nil then n.b, n.vb = b, type(b) == "userdata" and version(b) end
    if reads.c and n.vc == nil then n.c, n.vc = c, type(c) == "userdata" and version(c) end
    if reads.d and n.vd == nil then n.d, n.vd = d, type(d) == "userdata" and version(d) end
    if reads.out and n.vout == nil then n.out, n.vout = out, version(out) end
  end

  -- How input i was broadcast or converted, to be undone with its gradient.
  local function note_form(n, i, t)
    n.fit = n.fit or {}
    n.fit[i] = { shape = t.shape, dtype = t.dtype }
  end

  local function refuse_out(rule, ...)
    local last = select(-1, ...)
    if type(last) == "table" and last.out ~= nil then
      misuse(rule.name .. ": out= cannot be recorded for gradients: leave it out, or call this inside mr.no_grad")
    end
  end

  local function give(out, second)
    if second ~= nil then return out, second end
    return out
  end

  local function call_op(rule, run, ...)
    local inputs = rule.inputs
    if select("#", ...) > inputs then refuse_out(rule, ...) end
    local out, second = run(...)
    local a, b, c, d = ...
    if rule.arguments then a, b, c, d = rule.arguments(...) end
    if rule.second then d = second end
    if rule.moves and (rawequal(out, a) or not is_float(out)) then return out end
    local ta, tb, tc = type(a) == "userdata" and target(a) or nil, nil, nil
    if inputs > 1 then
      tb = type(b) == "userdata" and target(b) or nil
      if inputs > 2 then tc = type(c) == "userdata" and target(c) or nil end
    end
    if not (ta or tb or tc) then return give(out, second) end
    local n, needs = new_node(rule, out), rule.needs
    n.n = inputs
    if ta then
      n[1] = ta
      save(n, needs[1], a, b, c, d, out)
      if rule.broadcasts and not same_form(a, out) then note_form(n, 1, a) end
    end
    if tb then
      n[2] = tb
      save(n, needs[2], a, b, c, d, out)
      if rule.broadcasts and not same_form(b, out) then note_form(n, 2, b) end
    end
    if tc then
      n[3] = tc
      save(n, needs[3], a, b, c, d, out)
      if rule.broadcasts and not same_form(c, out) then note_form(n, 3, c) end
    end
    if rule.keep then rule.keep(n, out, ...) end
    if rule.moves and not n.stream then n.stream = stream_of(a) end -- from a device to the host
    attach(out, n)
    return give(out, second)
  end

  -- The arguments are put in order first.
  local function call_arranged(rule, run, ...)
    local out, second = call_op(rule, run, rule.arrange(...))
    return give(out, rule.asked(...) and second or nil)
  end

  -- The inputs are listed in the first argument.
  local function call_list(rule, run, list, ...)
    local out = run(list, ...)
    local n, any = new_node(rule, out), false
    n.n = #list
    for i = 1, #list do
      n[i] = target(list[i])
      any = any or n[i] ~= nil
    end
    if any then
      rule.keep(n, out, list, ...)
      attach(out, n)
    end
    return out
  end

  -- Each part of chunk and split is a view of its own: one that is not used costs nothing.
  local function call_parts(rule, run, t, size, dim)
    local parts, from = run(t, size, dim), target(t)
    if not from then return parts end
    local start, shape = 1, t.shape
    dim = dim or 1
    for _, part in ipairs(parts) do
      local n = new_node(rule, part)
      n[1], n.n = from, 1
      n.shape, n.dim, n.start, n.length = shape, dim, start, part:size(dim)
      start = start + n.length
      attach(part, n)
    end
    return parts
  end

  -- What to write in place of the change of t: the operation that makes a new tensor, or the change of a clone.
  local function in_new_tensor(rule, t)
    local exists = rule.name == rule.row .. "_" and pcall(function() return t[rule.row] end)
    if exists then return ("write x = x:%s(...) for a new tensor"):format(rule.row) end
    if rule.name == "t[i]=" then return "change x = x:clone()" end
    return ("write x = x:clone():%s(...) for a new tensor"):format(rule.name)
  end

  -- Raises where a change would be one of a leaf. Returns the tensor that t is a view of, and where its gradient goes.
  local function check_change(rule, t)
    local s, base = state(t), base_of(t)
    if base and not tools.shares(base, t) then base = nil end
    if s and s.on then
      misuse(("%s: %s is a leaf that requires gradients and cannot be changed in place: %s, or change it inside " ..
        "mr.no_grad"):format(rule.name, describe(t), in_new_tensor(rule, t)))
    end
    local base_state = base and state(base)
    if base_state and base_state.on then
      misuse(("%s: %s is a view of %s, a leaf that requires gradients and cannot be changed in place: change a " ..
        "clone of the leaf, or do it inside mr.no_grad"):format(rule.name, describe(t), describe(base)))
    end
    if base and not base.contiguous then
      misuse(("%s: %s is a view of %s, which is not contiguous: the change of a part of it cannot be recorded for " ..
        "gradients; change a contiguous() copy"):format(rule.name, describe(t), describe(base)))
    end
    return base, base and target(base)
  end

  local function unrecorded(fn, ...)
    local before = set_off(true)
    local ok, result = pcall(fn, ...)
    set_off(before)
    if not ok then error(result, 0) end
    return result
  end

  local function clone(t) return t:clone() end

  local function call_in_place(rule, run, ...)
    local t, b, c, d = ...
    if not tools.is_tensor(t) then return run(...) end -- which says so
    local base, base_target = check_change(rule, t)
    local inputs, needs = rule.inputs, rule.needs
    if rule.arguments then t, b, c, d = rule.arguments(...) end
    local ta = target(t)
    local tb = inputs > 1 and type(b) == "userdata" and target(b) or nil
    local tc = inputs > 2 and type(c) == "userdata" and target(c) or nil
    if not (ta or tb or tc or base_target) then return run(...) end
    local before = t
    if ta and needs[1].a or tb and needs[2].a or tc and needs[3].a then
      before = unrecorded(clone, t)
      if ta then set_state(before, ta, true) end -- for gradients of gradients
    end
    run(...)
    local n = new_node(rule, t)
    n.n, n[1], n[2], n[3] = inputs, ta, tb, tc
    for i = 1, inputs do
      if n[i] then save(n, needs[i], before, b, c, d, t) end
    end
    if rule.broadcasts then
      local b_fits = type(b) ~= "userdata" or same_form(b, t)
      local c_fits = type(c) ~= "userdata" or same_form(c, t)
      if ta and not (b_fits and c_fits) then note_form(n, 1, t) end
      if tb and not b_fits then note_form(n, 2, b) end
      if tc and not c_fits then note_form(n, 3, c) end
    end
    if rule.keep then rule.keep(n, t, ...) end
    if not n.stream and type(b) == "userdata" then n.stream = stream_of(b) end -- from a device to the host
    change(t, n, base, base_target)
    return t
  end

  -- t[key] = value: copy_ or fill_ of a view.
  local function call_set_index(rule, run, t, key, value)
    local view = unrecorded(function() return t[key] end)
    local copies = tools.is_tensor(value)
    call_in_place(copies and rule.copy or rule.fill, function() run(t, key, value) end, view, value)
  end

  local function call_plain(_, run, ...) return run(...) end

  -- ---------------------------------------------------------------- rules

  -- "g * b; g * a" -> for each input a function(g, n), and which names it reads.
  local function compile(rule)
    local names = {}
    for name in pairs(helpers) do names[#names + 1] = name end
    table.sort(names)
    local head = ("local H = ...; local %s = H.%s\n"):format(table.concat(names, ", "), table.concat(names, ", H."))
    rule.each, rule.needs, rule.broadcasts = {}, {}, true
    for text in (rule.formula .. ";"):gmatch("%s*(.-)%s*;") do
      local i, reads, lines = #rule.needs + 1, {}, {}
      for word in text:gmatch("[%a_][%w_]*") do
        if not reads[word] and (word == "a" or word == "b" or word == "c" or word == "out") then
          reads[word] = true
          lines[#lines + 1] = ("local %s = n.%s"):format(word, word)
        end
      end
      rule.needs[i] = reads
      if text ~= "-" then
        local code = ("%sreturn function(g, n) %s return %s end"):format(head, table.concat(lines, " "), text)
        rule.each[i] = tools.load(code)(helpers)
      end
    end
  end

  local function read_needs(list)
    local needs = {}
    for i, text in ipairs(list) do
      needs[i] = {}
      for word in text:gmatch("%w+") do needs[i][word] = true end
    end
    return needs
  end

  local function make_rule(name, row, in_place, entry)
    if entry == "none" then return { name = name, row = row, call = call_plain } end
    local rule = { call = entry.list and call_list or entry.parts and call_parts or call_op }
    if entry.arrange then rule.call = call_arranged end
    if in_place then rule.call = call_in_place end
    for key, value in pairs(entry) do rule[key] = value end
    rule.name, rule.row = name, row
    if rule.back then rule.needs = read_needs(rule.needs) elseif not rule.parts then compile(rule) end
    rule.inputs = rule.inputs or rule.needs and #rule.needs
    return rule
  end

  local OPERATORS = { __add = "add", __sub = "sub", __mul = "mul", __div = "div", __pow = "pow", __mod = "remainder",
    __unm = "neg", __idiv = "floor_divide" }

  -- rules[name of the function]
  local rules = setmetatable({}, { __index = function(list, name)
    local row, in_place = OPERATORS[name] or name, false
    if derivatives[row] == nil then row, in_place = name:match("^(.-)_$"), true end
    local entry = row and derivatives[row]
    if entry == nil then return nil end
    list[name] = make_rule(name == "__index" and "t[i]" or name:find("^__") and row or name, row, in_place, entry)
    return list[name]
  end })

  rules.__newindex = {
    call = call_set_index,
    copy = setmetatable({ name = "t[i]=", row = "clone" }, { __index = rules.copy_ }),
    fill = setmetatable({ name = "t[i]=", row = "clone" }, { __index = rules.fill_ }),
  }

  local M = {}

  -- Carries out the call of a function (`run`, known as `name`) that has an argument which requires gradients.
  function M.record(run, name, ...)
    local rule = rules[name]
    if rule and rule.of_two and tools.is_tensor((select(2, ...))) then rule = rules[rule.of_two] end
    if rule then return rule.call(rule, run, ...) end
    return misuse(name .. ": its derivative is not known: if no gradient is to go through it, call it inside " ..
      "mr.no_grad or on x:detach()")
  end

  -- ---------------------------------------------------------------- what scripts call

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
      misuse(("requires_grad_: %s is the result of %s, so it is not for the script to say: use t:detach()"):format(
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

  -- t, a leaf, becomes what `other` is, which nobody else has, with this gradient: as t.data = other in PyTorch.
  -- What was recorded before needs the former values, so backward() refuses it.
  function M.replace(t, other, gradient)
    local s = settled(t)
    local on = s ~= nil and s.on
    tools.take_tensor(t, other)
    if s then s.replaced = true end
    set_state(t, { leaf = t, seq = 0, on = on, grad = gradient }, on)
  end

  function M.is_recorded(t) return target(t) ~= nil end

  function M.detach(t) return tools.alias(t) end

  function M.is_leaf(t)
    local s = settled(t)
    return s == nil or s.leaf ~= nil
  end

  local function describe_node(n)
    local place = tools.place(n.file, n.line)
    return n.rule.name .. (place and " at " .. place or "")
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
        misuse(("grad: %s is an expanded view, to which nothing can be added: give a clone() of it"):format(
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
  local run = new_engine(tools)

  local KNOWN = {
    backward = { retain_graph = true },
    grad = { retain_graph = true, allow_unused = true, create_graph = true },
  }

  local function check_options(what, options)
    for key, value in pairs(options) do
      if not KNOWN[what][key] then misuse(("%s: there is no option `%s` here"):format(what, tostring(key))) end
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
      misuse(("%s: %s has %d elements: only of a single one the gradient is 1 by itself; give the gradient of the " ..
        "same shape, or take the sum()"):format(what, describe(t), t.numel))
    end
    return given
  end

  local function root(what, t)
    tools.check(t)
    local from = target(t)
    if from then return from end
    return misuse(("%s: %s does not require gradients, and neither does anything that it was computed from: call " ..
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

  -- ---------------------------------------------------------------- operations of the script's

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
    rawset(self, "saved", list)
  end

  function context:saved_tensors()
    local list = rawget(self, "saved") or { n = 0 }
    return table.unpack(list, 1, list.n)
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
      if saved[i] and version(saved[i]) ~= n.versions[i] then tools.was_changed(n, saved[i]) end
    end
    for k = 1, n.outputs do
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

  function M.Function(definition)
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
        n.n, n.context, n.likes, n.versions = args.n, ctx, {}, {}
        for i = 1, args.n do
          n[i] = targets[i]
          if targets[i] then n.likes[i] = args[i] end
        end
        local saved = rawget(ctx, "saved")
        for i = 1, saved and saved.n or 0 do n.versions[i] = saved[i] and version(saved[i]) end
        attach_results(n, results)
      end
      return table.unpack(results, 1, results.n)
    end
  end

  return M
end
