-- mr.nn.Module: the common part of all modules.
--
-- A module is a table. A table of its own keeps the assigned values, so that each assignment is seen. A parameter, a
-- buffer or another module is registered under the name of the field, in the order of the first assignment.
--
--   values   what was assigned, by name
--   kinds    of the registered names: "parameter", "buffer" or "module"
--   order    the registered names
--   transient  the names of the buffers that are in no state_dict
--   path     the module's position, for messages: the class of the outermost module and the names from there on, such
--            as `Net.layers.2`; a parameter or buffer without a name of the script's is named `Net.layers.2.weight`
--
-- A class is a table of methods whose `__index` is its parent; the methods of mr.nn.Module are those that `methods`
-- has. Easiest to break: pairs() has no order, so this file never uses it on `values` or `kinds` if the order is
-- visible.
--# nn
local mr = require "millrace"

return function(tools)
  local misuse = tools.misuse
  local common = require "millrace.parameters" (tools)
  local check_switch = common.check_switch
  local LONGEST_NAME = require "millrace.words".LONGEST_NAME
  local STATE = {} -- the key under which a module has its table
  local is_parameter = setmetatable({}, { __mode = "k" })
  local methods = {}

  local function is_tensor(value) return tools.is_tensor(value) end
  local function is_module(value) return type(value) == "table" and rawget(value, STATE) ~= nil end

  local function state_of(m, what)
    if not is_module(m) then
      misuse(("%s: expected a module in front of the colon, got %s: write m:%s(...)%s"):format(what, tools.type_of(m),
        what, what == "forward" and ", or m(...)" or ""))
    end
    return rawget(m, STATE)
  end

  -- ---------------------------------------------------------------- parameters, registration

  --- mr.nn.Parameter(t: tensor [, requires_grad: boolean=true]) -> t: tensor
  --- Makes t a parameter: it requires gradients, and a module that it is assigned to registers it.
  -- The same tensor, which from now on is registered where it is assigned.
  local function Parameter(t, requires_grad)
    if not is_tensor(t) then misuse("Parameter: expected a tensor, got " .. tools.type_of(t)) end
    if not t.is_leaf then
      misuse("Parameter: the tensor is the result of a recorded operation; a parameter is made of its detach()")
    end
    if requires_grad ~= false then t:requires_grad_() end
    is_parameter[t] = true
    return t
  end

  local function kind_of(value)
    if is_module(value) then return "module" end
    if is_parameter[value] then return "parameter" end
    return nil
  end

  -- { {name, tensor}, ... } by kind and state of a module: the results of the last walk, until a module changes.
  local found = { parameter = setmetatable({}, { __mode = "k" }), buffer = setmetatable({}, { __mode = "k" }) }

  local function forget_walks()
    for _, lists in pairs(found) do
      for s in pairs(lists) do lists[s] = nil end
    end
  end

  local function register(s, name, kind)
    if kind or s.kinds[name] then forget_walks() end
    if s.kinds[name] == nil and kind ~= nil then s.order[#s.order + 1] = name end
    if s.kinds[name] ~= nil and kind == nil then
      for i, other in ipairs(s.order) do
        if other == name then
          table.remove(s.order, i)
          break
        end
      end
    end
    if kind ~= "buffer" then s.transient[name] = nil end
    s.kinds[name] = kind
  end

  -- Messages and reports call a tensor by its name.
  local function name_tensor(t, name)
    if #name <= LONGEST_NAME then t:name(name) end
  end

  -- m and the modules below it have other paths, unless the script has named them or they are elsewhere, too.
  local function move_path(m, path)
    local s = rawget(m, STATE)
    local before = s.path
    s.path = path
    for _, name in ipairs(s.order) do
      local value, inside = s.values[name], "." .. name
      if s.kinds[name] ~= "module" then
        if value:name() == before .. inside then name_tensor(value, path .. inside) end
      elseif rawget(value, STATE).path == before .. inside then
        move_path(value, path .. inside)
      end
    end
  end

  -- Gives a value that was assigned to m its path or name there, if it has no other.
  local function place_in(m, name, kind, value)
    local path = rawget(m, STATE).path .. "." .. name
    if kind ~= "module" then
      if not value:name() then name_tensor(value, path) end
    elseif rawget(value, STATE).path == rawget(value, STATE).class.name then
      move_path(value, path)
    end
  end

  -- Calls visit(module, prefix) for m and all below it, each module once, parents first.
  local function walk(m, prefix, seen, visit)
    if seen[m] then return end
    seen[m] = true
    visit(m, prefix)
    local s = rawget(m, STATE)
    for _, name in ipairs(s.order) do
      if s.kinds[name] == "module" then walk(s.values[name], prefix .. name .. ".", seen, visit) end
    end
  end

  local function check_registered(m, name, kind, value)
    if type(name) == "string" and name:find(".", 1, true) then
      misuse(("`%s`: the name of a %s cannot have a dot, which separates the names in a state_dict"):format(name,
        kind))
    end
    if kind ~= "module" then return end
    walk(value, "", {}, function(below)
      if rawequal(below, m) then
        misuse(("`%s`: the module would be inside itself"):format(tostring(name)))
      end
    end)
  end

  local function assign(m, name, value)
    local s = rawget(m, STATE)
    local kind, before = kind_of(value), s.kinds[name]
    if kind then check_registered(m, name, kind, value) end
    if value ~= nil and not kind then
      if before == "parameter" then
        misuse(("`%s` is a parameter: assign an mr.nn.Parameter or nil, or change its values inside mr.no_grad"):format(
          tostring(name)))
      elseif before == "buffer" and is_tensor(value) then
        kind = "buffer"
      end
    end
    register(s, name, kind)
    s.values[name] = value
    if kind then place_in(m, name, kind, value) end
  end

  local function check_name(s, what, name)
    if type(name) ~= "string" or name == "" or name:find(".", 1, true) then
      misuse(what .. ": the name is a string without dots")
    end
    if s.values[name] ~= nil then misuse(("%s: `%s` is there already"):format(what, name)) end
  end

  -- ---------------------------------------------------------------- classes
  --# nn_module of mr.nn.Module: What all modules have. A module is called: m(x).

  local FOREIGN = tools.advice_of "mr.nn.Module"
  local Base = setmetatable({}, { __index = function(_, name)
    if FOREIGN[name] then misuse(("a module has no `%s`: %s"):format(name, FOREIGN[name])) end
  end })

  local function print_module(m)
    local s = rawget(m, STATE)
    local extra = m:extra_repr()
    local lines = {}
    if extra ~= "" then lines[1] = extra end
    for _, name in ipairs(s.order) do
      if s.kinds[name] == "module" then
        lines[#lines + 1] = ("(%s): %s"):format(name, (tostring(s.values[name]):gsub("\n", "\n  ")))
      end
    end
    local class_name = s.class.name
    if #lines == 0 then return class_name .. "()" end
    if #lines == 1 and extra ~= "" then return class_name .. "(" .. extra .. ")" end
    return class_name .. "(\n  " .. table.concat(lines, "\n  ") .. "\n)"
  end

  local function new_metatable(class)
    return {
      __name = class.name,
      help = "mr.nn.Module",      -- for help()
      methods = class.methods,    -- for completion
      fields = STATE,             -- the key of a table that has them as its `values`
      __index = function(m, key)
        local value = rawget(m, STATE).values[key]
        if value ~= nil then return value end
        if math.type(key) == "integer" then return rawget(m, STATE).values[tostring(key)] end -- of a container
        return class.methods[key]
      end,
      __newindex = assign,
      __call = function(m, ...)
        local forward = m.forward
        if not forward then misuse(("%s has no method `forward`, which calling a module calls"):format(class.name)) end
        return forward(m, ...)
      end,
      __tostring = print_module,
      __pairs = function(m) return pairs(rawget(m, STATE).values) end,
      __len = function(m)
        local s, count = rawget(m, STATE), 0
        for _, name in ipairs(s.order) do count = count + (s.kinds[name] == "module" and 1 or 0) end
        return count
      end,
    }
  end

  -- Makes the module that calling a class returns.
  local function new_instance(class, ...)
    local m = setmetatable({ [STATE] = { values = { training = true }, kinds = {}, order = {}, transient = {},
      path = class.name, class = class } }, class.metatable)
    local init = class.methods.init
    if init then init(m, ...) end
    return m
  end

  -- A class with this name; `parent` is the table of methods of another one.
  local function new_class(name, parent)
    local class = { name = name, methods = setmetatable({}, { __index = parent or Base }) }
    class.metatable = new_metatable(class)
    local front = setmetatable({}, {
      __index = class.methods,
      __newindex = function(_, key, value)
        if FOREIGN[key] and key:find "^__" then
          misuse(("%s: `%s` is never called: %s"):format(name, key, (FOREIGN[key]:gsub("Net", name))))
        end
        class.methods[key] = value
      end,
      __call = function(_, ...) return new_instance(class, ...) end,
      __tostring = function() return "class " .. name end,
    })
    -- A.class("B") inherits from A.
    class.methods.class = function(child, other) return methods.class(child, other or front) end
    return front
  end

  --- mr.nn.Module.class(name: string [, parent: table]) -> class: table
  --- Makes a class of modules. Give it a method `init`, which gets the arguments of class(...) and assigns parameters
  --- and other modules to fields of self, and a method `forward`, which calling a module calls. mr.nn.Module() makes
  --- an empty module without a class: assign its parts and `forward` to its fields.
  function methods.class(name, parent)
    if type(name) ~= "string" or name == "" then misuse("class: expected a name, got " .. tools.type_of(name)) end
    if parent ~= nil and not (type(parent) == "table" and parent.parameters == Base.parameters) then
      misuse("class: the parent is no class of modules")
    end
    return new_class(name, parent)
  end

  -- ---------------------------------------------------------------- walks

  -- { {name, tensor}, ... } of a kind, each tensor once.
  local function named_tensors(m, what, kind)
    local root = state_of(m, what)
    if found[kind][root] then return found[kind][root] end
    local list, met = {}, {}
    found[kind][root] = list
    walk(m, "", {}, function(module, prefix)
      local s = rawget(module, STATE)
      for _, name in ipairs(s.order) do
        local t = s.values[name]
        if s.kinds[name] == kind and not met[t] then
          met[t] = true
          list[#list + 1] = { prefix .. name, t }
        end
      end
    end)
    return list
  end

  local function named_modules(m, what)
    local list = {}
    state_of(m, what)
    walk(m, "", {}, function(module, prefix) list[#list + 1] = { prefix:gsub("%.$", ""), module } end)
    return list
  end

  local function named_children(m, what)
    local list, s = {}, state_of(m, what)
    for _, name in ipairs(s.order) do
      if s.kinds[name] == "module" then list[#list + 1] = { name, s.values[name] } end
    end
    return list
  end

  -- The modules that are registered in m itself, in order.
  local function children(m)
    local list, s = {}, rawget(m, STATE)
    for _, name in ipairs(s.order) do
      if s.kinds[name] == "module" then list[#list + 1] = s.values[name] end
    end
    return list
  end

  local function seconds(list)
    local result = {}
    for i, pair in ipairs(list) do result[i] = pair[2] end
    return result
  end

  local function walker(list)
    local i = 0
    return function()
      i = i + 1
      if list[i] then return list[i][1], list[i][2] end
    end
  end

  -- An iterator over the pairs of a list. `pairs` of it gives the same, since both are habits.
  local PAIRS = { __call = function(all) return all.next() end, __pairs = function(all) return walker(all.list) end }
  local function each(list) return setmetatable({ list = list, next = walker(list) }, PAIRS) end

  --- m:parameters() -> list: tensor[]
  --- Returns the parameters of the module and of all modules in it, each once, in the order of their assignment.
  function methods.parameters(m) return seconds(named_tensors(m, "parameters", "parameter")) end

  --- m:named_parameters() -> iterator: function
  --- For loops: for name, p in m:named_parameters() do. Names have dots: "fc1.weight".
  function methods.named_parameters(m) return each(named_tensors(m, "named_parameters", "parameter")) end

  --- m:buffers() -> list: tensor[]
  --- Returns the buffers, which are saved with the parameters and not trained.
  function methods.buffers(m) return seconds(named_tensors(m, "buffers", "buffer")) end

  --- m:named_buffers() -> iterator: function
  --- As named_parameters, for buffers.
  function methods.named_buffers(m) return each(named_tensors(m, "named_buffers", "buffer")) end

  --- m:register_buffer(name: string, t: tensor [, persistent: boolean=true])
  --- Makes the tensor a buffer of the module: it moves with it, and no optimiser changes it. It is in the state_dict
  --- of the module if it is persistent.
  function methods.register_buffer(m, name, value, persistent)
    local s = state_of(m, "register_buffer")
    persistent = check_switch("register_buffer", "persistent", persistent)
    check_name(s, "register_buffer", name)
    if not is_tensor(value) then misuse("register_buffer: expected a tensor, got " .. tools.type_of(value)) end
    register(s, name, "buffer")
    s.values[name], s.transient[name] = value, not persistent or nil
    place_in(m, name, "buffer", value)
  end

  --- m:modules() -> list: table[]
  --- Returns the module and all modules in it, parents first.
  function methods.modules(m) return seconds(named_modules(m, "modules")) end

  --- m:named_modules() -> iterator: function
  --- As named_parameters, for modules; the name of m itself is empty.
  function methods.named_modules(m) return each(named_modules(m, "named_modules")) end

  --- m:children() -> list: table[]
  --- Returns the modules that are fields of m.
  function methods.children(m)
    state_of(m, "children")
    return children(m)
  end

  --- m:named_children() -> iterator: function
  --- As named_parameters, for the modules that are fields of m.
  function methods.named_children(m) return each(named_children(m, "named_children")) end

  --- m:apply(fn: function) -> m: table
  --- Calls fn(module) for all modules in m, then for m itself. Returns m.
  function methods.apply(m, fn)
    if type(fn) ~= "function" then misuse("apply: expected a function, got " .. tools.type_of(fn)) end
    for _, child in ipairs(m:children()) do child:apply(fn) end
    fn(m)
    return m
  end

  --- m:train([on: boolean=true]) -> m: table
  --- Sets `training` of the module and of all modules in it; Dropout and BatchNorm depend on it. Returns m.
  function methods.train(m, on)
    on = check_switch("train", "argument 1", on)
    for _, module in ipairs(m:modules()) do module.training = on end
    return m
  end

  --- m:eval() -> m: table
  --- The same as m:train(false).
  function methods.eval(m) return m:train(false) end

  --- m:requires_grad_([on: boolean=true]) -> m: table
  --- Calls requires_grad_ of all parameters. Returns m.
  function methods.requires_grad_(m, on)
    on = check_switch("requires_grad_", "argument 1", on)
    for _, p in ipairs(m:parameters()) do p:requires_grad_(on) end
    return m
  end

  --- m:zero_grad([set_to_none: boolean=true])
  --- Drops the gradients of all parameters, or with false fills them with zeros.
  function methods.zero_grad(m, set_to_none) common.zero_grad(m:parameters(), set_to_none) end

  function methods.extra_repr() return "" end

  -- ---------------------------------------------------------------- moving

  local FLOATS = { f16 = true, bf16 = true, f32 = true, f64 = true }

  -- `t` there; a dtype is for floats only.
  local function moved(t, where)
    local dtype = tools.dtype_of(where)
    if dtype and not FLOATS[dtype] then misuse(("to: a module can be of a dtype of floats, not %s"):format(dtype)) end
    if dtype and not FLOATS[t.dtype] then return t end
    return t:detach():to(where)
  end

  local function moved_through(t, places)
    for i = 1, places.n do t = moved(t, places[i]) end
    return t
  end

  local function same_place(a, b) return a.dtype == b.dtype and tostring(a.device) == tostring(b.device) end

  -- Calls visit(state, name, kind, tensor) for each name of a parameter or buffer.
  local function each_tensor(m, visit)
    for _, module in ipairs(m:modules()) do
      local s = rawget(module, STATE)
      for _, name in ipairs(s.order) do
        if s.kinds[name] ~= "module" then visit(s, name, s.kinds[name], s.values[name]) end
      end
    end
  end

  --- m:to(where: device|integer|string|tensor...) -> m: table
  --- Moves the parameters and buffers as t:to() does; a dtype is for those of floats. The parameters stay the same
  --- objects, so their optimiser continues to work. Returns m.
  -- Parameters stay the objects that they are, so an optimiser that has them goes on; buffers are replaced. One that is
  -- shared stays shared. All copies are made before the first one is used.
  function methods.to(m, ...)
    local places = table.pack(...)
    if places.n == 0 then misuse("to: an argument is missing: expected a device, \"cpu\" or a dtype") end
    local new, gradients = {}, {}
    each_tensor(m, function(_, _, kind, t)
      if new[t] then return end
      new[t] = moved_through(t, places)
      if t:name() then new[t]:name(t:name()) end
      if kind == "parameter" and t.grad then gradients[t] = moved_through(t.grad, places) end
    end)
    local taken = {}
    each_tensor(m, function(s, name, kind, t)
      if kind == "buffer" then
        s.values[name] = new[t]
      elseif not taken[t] and not same_place(new[t], t) then
        tools.replace(t, new[t], gradients[t])
      end
      taken[t] = true
    end)
    forget_walks()
    return m
  end

  --- m:cpu() -> m: table
  --- The same as m:to("cpu").
  function methods.cpu(m) return m:to("cpu") end

  --- m:cuda([device: device|integer=current]) -> m: table
  --- Moves the parameters and buffers to a device. Returns m.
  function methods.cuda(m, device) return m:to(device == nil and mr.current_device() or device) end

  -- ---------------------------------------------------------------- states

  -- The name of a module in a state. Files have PyTorch's names, in which the modules of a container count from 0.
  local function state_name(name, from)
    local number = tostring(name):match "^[1-9]%d*$"
    return number and ("%d"):format(number - 1 + from) or name
  end

  -- { {name, tensor}, ... } of parameters and buffers; one that is shared has all its names. The modules of a container
  -- count from `from`.
  local function named_state(m, what, from)
    local list = {}
    state_of(m, what)
    local function add(module, prefix)
      local s = rawget(module, STATE)
      for _, name in ipairs(s.order) do
        if s.kinds[name] == "module" then add(s.values[name], prefix .. state_name(name, from or 0) .. ".")
        elseif not s.transient[name] then list[#list + 1] = { prefix .. name, s.values[name] } end
      end
    end
    add(m, "")
    return list
  end

  --- m:state_dict() -> state: table
  --- Returns the parameters and buffers by name, as tensors with the same memory: mr.save("m.safetensors",
  --- m:state_dict()). The names are PyTorch's, so the modules of a Sequential or a list count from 0 in them: the
  --- weight of m[1] is "0.weight".
  function methods.state_dict(m)
    local dict = {}
    for _, pair in ipairs(named_state(m, "state_dict")) do dict[pair[1]] = pair[2]:detach() end
    return dict
  end

  local function shape_text(t) return #t.shape == 0 and "a 0-dim tensor" or table.concat(t.shape, "x") end

  -- Names that only one of both has.
  local function compare_names(own, dict)
    local missing, unexpected, known = {}, {}, {}
    for _, pair in ipairs(own) do
      known[pair[1]] = true
      if dict[pair[1]] == nil then missing[#missing + 1] = pair[1] end
    end
    for name in pairs(dict) do
      if not known[name] then unexpected[#unexpected + 1] = tostring(name) end
    end
    table.sort(unexpected)
    return missing, unexpected
  end

  -- Lists the values that are not tensors of the module's shapes.
  local function faults_of_values(own, dict)
    local faults = {}
    for _, pair in ipairs(own) do
      local name, value = pair[1], dict[pair[1]]
      if value ~= nil and not is_tensor(value) then
        faults[#faults + 1] = ("`%s` is %s, expected a tensor"):format(name, tools.type_of(value))
      elseif value ~= nil and shape_text(value) ~= shape_text(pair[2]) then
        faults[#faults + 1] = ("`%s` is %s, but the module's is %s"):format(name, shape_text(value),
          shape_text(pair[2]))
      end
    end
    return faults
  end

  --- m:load_state_dict(state: table [, {strict: boolean=true}]) -> missing: string[], unexpected: string[]
  --- Copies the values of these tensors into the parameters and buffers. All names and shapes are checked first; with
  --- strict=false, names that only one side has are returned instead. A state in which the modules of all containers
  --- count from 1 is taken, too, if all names fit.
  function methods.load_state_dict(m, dict, options)
    if type(dict) ~= "table" then
      misuse("load_state_dict: expected a table of tensors, got " .. tools.type_of(dict))
    end
    local own = named_state(m, "load_state_dict")
    local missing, unexpected = compare_names(own, dict)
    if #missing > 0 and #unexpected > 0 then -- the names of m[1], m[2], ... are taken if all of them fit
      local from_one = named_state(m, "load_state_dict", 1)
      local not_there, not_known = compare_names(from_one, dict)
      if #not_there == 0 and #not_known == 0 then own, missing, unexpected = from_one, not_there, not_known end
    end
    local strict = type(options) ~= "table" or options.strict ~= false
    local faults = faults_of_values(own, dict)
    if strict and #unexpected > 0 then
      table.insert(faults, 1, ("the module has no `%s`"):format(table.concat(unexpected, "`, `")))
    end
    if strict and #missing > 0 then
      local verb = #missing == 1 and "is" or "are"
      table.insert(faults, 1, ("`%s` %s missing"):format(table.concat(missing, "`, `"), verb))
    end
    if #faults > 0 then misuse("load_state_dict: " .. table.concat(faults, "; ")) end
    mr.no_grad(function()
      for _, pair in ipairs(own) do
        if dict[pair[1]] ~= nil then pair[2]:copy_(dict[pair[1]]) end
      end
    end)
    return missing, unexpected
  end

  -- All but `class` are called on a module.
  for name, method in pairs(methods) do
    if name ~= "class" then
      methods[name] = function(m, ...)
        state_of(m, name)
        return method(m, ...)
      end
    end
  end

  -- The methods in mr.nn.Module, so that help knows them.
  for name, method in pairs(methods) do Base[name] = rawget(mr.nn.Module, name) or method end

  -- mr.nn.Module(): a module of no class of its own, which gets its parts and its `forward` by assignment.
  local plain_class = new_class("Module")
  local function plain(...)
    if select("#", ...) > 0 then
      misuse "Module: takes no arguments: a module with an `init` is one of a class that mr.nn.Module.class(name) makes"
    end
    return plain_class()
  end

  -- A copy of m and of the modules in it, where tensors[t] stands for the parameter or buffer t. A module, too, that
  -- stands in two places is one in the copy.
  local function copy(m, tensors, copies)
    copies = copies or {}
    if copies[m] then return copies[m] end
    local s, values, kinds, transient = rawget(m, STATE), {}, {}, {}
    local made = setmetatable({ [STATE] = { values = values, kinds = kinds, transient = transient, path = s.path,
      order = table.move(s.order, 1, #s.order, 1, {}), class = s.class } }, s.class.metatable)
    copies[m] = made
    for name, value in pairs(s.values) do
      local kind = s.kinds[name]
      if kind == "module" then value = copy(value, tensors, copies)
      elseif kind then value = tensors[value] or value end
      values[name], kinds[name], transient[name] = value, kind, s.transient[name]
    end
    return made
  end

  return { methods = methods, plain = plain, copy = copy, parameter = Parameter, class = new_class,
    is_module = is_module, check = state_of, assign = assign, children = children }
end
