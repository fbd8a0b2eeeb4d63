-- Records a call whose arguments require gradients: the rule of the function, made of its entry in derivatives.lua, and
-- a node with the values that the derivative reads.
--
-- Easiest to break: a call that is refused has done nothing, so all that is refused here is checked before the function
-- runs.
--
-- The module is a function of the tools that src/bind/nn/gradient_tools.c hands to it, and of graph.lua.
local derivatives = require "millrace.derivatives"
local helpers = require "millrace.autograd.helpers"

return function(tools, graph)
  local state, set_state, base_of, version = tools.state, tools.set_state, tools.base, tools.version
  local stream_of, same_form, is_float = tools.stream_of, tools.same_form, tools.is_float
  local misuse, set_off, describe = tools.misuse, tools.set_off, tools.describe
  local new_node, target, attach, change = graph.new_node, graph.target, graph.attach, graph.change
  local select, type = select, type

  local function save(n, reads, a, b, c, d)
    if reads.a and n.va == nil then n.a, n.va = a, type(a) == "userdata" and version(a) end
    if reads.b and n.vb == nil then n.b, n.vb = b, type(b) == "userdata" and version(b) end
    if reads.c and n.vc == nil then n.c, n.vc = c, type(c) == "userdata" and version(c) end
    if reads.d and n.vd == nil then n.d, n.vd = d, type(d) == "userdata" and version(d) end
  end

  local function save_out(n, reads, out)
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

  -- An option that the result depends on, and that has no derivative.
  local function refuse_constant(rule, ...)
    local options = select(-1, ...)
    local t = type(options) == "table" and options[rule.constant]
    if t and target(t) then
      misuse(("%s: %s=%s requires gradients, and its derivative is not known: use its detach()"):format(rule.name,
        rule.constant, describe(t)))
    end
  end

  local function give(out, second)
    if second ~= nil then return out, second end
    return out
  end

  local function call_op(rule, run, ...)
    local inputs = rule.inputs
    if select("#", ...) > inputs then refuse_out(rule, ...) end
    if rule.constant then refuse_constant(rule, ...) end
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
      save(n, needs[1], a, b, c, d)
      save_out(n, needs[1], out)
      if rule.broadcasts and not same_form(a, out) then note_form(n, 1, a) end
    end
    if tb then
      n[2] = tb
      save(n, needs[2], a, b, c, d)
      save_out(n, needs[2], out)
      if rule.broadcasts and not same_form(b, out) then note_form(n, 2, b) end
    end
    if tc then
      n[3] = tc
      save(n, needs[3], a, b, c, d)
      save_out(n, needs[3], out)
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
    if select("#", ...) > 0 and type(list) == "table" then
      for i = 1, #list do
        if type(list[i]) == "userdata" and target(list[i]) then refuse_out(rule, ...) end
      end
    end
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

  -- The advice to replace a change of t: the operation that makes a new tensor, or a change of a clone.
  local function in_new_tensor(rule, t)
    local exists = rule.name == rule.row .. "_" and pcall(function() return t[rule.row] end)
    if exists then return ("write x = x:%s(...) for a new tensor"):format(rule.row) end
    if rule.name == "t[i]=" then return "change x = x:clone()" end
    return ("write x = x:clone():%s(...) for a new tensor"):format(rule.name)
  end

  -- Raises if the change would change a leaf. Returns the tensor that t is a view of, and where its gradient goes.
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
    local n = new_node(rule, t)
    n.n, n[1], n[2], n[3] = inputs, ta, tb, tc
    for i = 1, inputs do
      if n[i] then save(n, needs[i], before, b, c, d) end -- an operand in the memory of t loses these values
    end
    run(...)
    for i = 1, inputs do
      if n[i] then save_out(n, needs[i], t) end
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

  -- Carries out the call of a function (`run`, known as `name`) that has an argument which requires gradients.
  local function record(run, name, ...)
    local rule = rules[name]
    if rule and rule.of_two and tools.is_tensor((select(2, ...))) then rule = rules[rule.of_two] end
    if rule then return rule.call(rule, run, ...) end
    return misuse(name .. ": its derivative is not known: if no gradient is to go through it, call it inside " ..
      "mr.no_grad or on x:detach()")
  end

  return { record = record, unrecorded = unrecorded }
end
