-- mr.nn.LSTM and mr.nn.GRU. Parameters, their names and first values are PyTorch's. The inputs of all steps go through
-- one product; each step then is a product with the state.
--
-- The module is a function of the tools that src/bind/nn/nn.c hands to it, of module.lua and init.lua.
--# nn
local mr = require "millrace"
local keys = require "millrace.words".keys

return function(tools, module, init)
  local misuse = tools.misuse
  local nn = {}

  local OPTIONS = { num_layers = 1, bias = true, batch_first = false, dropout = 0, bidirectional = false, dtype = false,
    device = false }

  local function whole(name, what, value)
    if math.type(value) ~= "integer" or value < 1 then
      misuse(("%s: %s is %s, expected an integer from 1 on"):format(name, what, tostring(value)))
    end
    return value
  end

  local function read_options(name, m, options)
    if options ~= nil and type(options) ~= "table" then
      misuse(("%s: argument 3 is %s, expected a table of options"):format(name, tools.type_of(options)))
    end
    options = options or {}
    for key in pairs(options) do
      if OPTIONS[key] == nil then misuse(name .. ": " .. tools.no_option(key, keys(OPTIONS))) end
    end
    m.num_layers = whole(name, "num_layers", options.num_layers or 1)
    m.bias, m.batch_first = options.bias ~= false, options.batch_first == true
    m.bidirectional, m.dropout = options.bidirectional == true, options.dropout or 0
    if type(m.dropout) ~= "number" or not (m.dropout >= 0 and m.dropout <= 1) then
      misuse(("%s: dropout is %s, expected a number from 0 to 1"):format(name, tostring(m.dropout)))
    end
    return options
  end

  -- Calls visit(suffix, inputs, layer, is_reverse) for each layer and direction, in the order of the states.
  local function each_direction(m, visit)
    local directions = m.bidirectional and 2 or 1
    for layer = 1, m.num_layers do
      local inputs = layer == 1 and m.input_size or m.hidden_size * directions
      for direction = 1, directions do
        visit(("l%d%s"):format(layer - 1, direction == 2 and "_reverse" or ""), inputs, layer, direction == 2)
      end
    end
  end

  -- From the first step to the last, or back: the results of all steps, and the last state.
  local function run(m, x, suffix, state, is_reverse, step)
    local bias_ih, bias_hh = m["bias_ih_" .. suffix], m["bias_hh_" .. suffix]
    local inputs = x:linear(m["weight_ih_" .. suffix], bias_ih)
    local weight, count, results = m["weight_hh_" .. suffix], x:size(1), {}
    for k = 1, count do
      local at = is_reverse and count + 1 - k or k
      state = step(inputs:select(1, at), state[1]:linear(weight, bias_hh), state)
      results[at] = state[1]
    end
    return mr.stack(results), state
  end

  -- LSTM has two states, in a list; the one of GRU is a tensor.
  local function check_form(name, given, count)
    local expected = count == 1 and "one tensor" or "a list {h, c} of two tensors"
    local function refuse(what)
      misuse(("%s: argument 2, the state, is %s, expected %s"):format(name, what, expected))
    end
    if count == 1 then
      if not tools.is_tensor(given) then refuse(tools.type_of(given)) end
      return
    end
    if type(given) ~= "table" then refuse(tools.type_of(given)) end
    for k = 1, math.max(count, #given) do
      if not tools.is_tensor(given[k]) or k > count then
        refuse(("a list whose element %d is %s"):format(k, tools.type_of(given[k])))
      end
    end
  end

  local function first_states(name, m, x, given, count)
    local directions = m.bidirectional and 2 or 1
    local shape = { m.num_layers * directions, x:size(2), m.hidden_size }
    local states = {}
    for k = 1, count do
      local t = given and given[k]
      if t == nil then t = mr.zeros(shape, { dtype = x.dtype, device = x.device }) end
      if table.concat(t.shape, "x") ~= table.concat(shape, "x") then
        misuse(("%s: the state has the shape %s, expected %s"):format(name, table.concat(t.shape, "x"),
          table.concat(shape, "x")))
      end
      states[k] = t
    end
    return states
  end

  -- `gates`: rows of the weights for each element of the state; `count`: tensors in the state; step(input, from_state,
  -- state) returns the next state.
  local function recurrent(name, gates, count, step)
    local class = module.class(name)

    function class.init(m, input_size, hidden_size, options)
      m.input_size, m.hidden_size = whole(name, "input_size", input_size), whole(name, "hidden_size", hidden_size)
      options = read_options(name, m, options)
      local bound, rows = 1 / math.sqrt(hidden_size), gates * hidden_size
      local function new(...)
        local t = mr.empty({ ... }, { dtype = options.dtype or "f32", device = options.device })
        return init.uniform_(module.parameter(t), -bound, bound)
      end
      each_direction(m, function(suffix, inputs)
        m["weight_ih_" .. suffix], m["weight_hh_" .. suffix] = new(rows, inputs), new(rows, hidden_size)
        if m.bias then m["bias_ih_" .. suffix], m["bias_hh_" .. suffix] = new(rows), new(rows) end
      end)
    end

    -- x, the state, which count > 1 has in a list -> the results, the last state in the same form
    function class.forward(m, x, given)
      module.check(m, "forward")
      if not tools.is_tensor(x) then
        misuse(("%s: the input is %s, expected a tensor"):format(name, tools.type_of(x)))
      end
      if x.ndim ~= 3 or x:size(3) ~= m.input_size or x:size(m.batch_first and 2 or 1) == 0 then
        misuse(("%s: the input has the shape %s, expected %s"):format(name, table.concat(x.shape, "x"),
          (m.batch_first and "(sequences, steps, %d)" or "(steps, sequences, %d)"):format(m.input_size)))
      end
      if given ~= nil then check_form(name, given, count) end
      if count == 1 and given ~= nil then given = { given } end
      if m.batch_first then x = x:transpose(1, 2) end
      local states, last, place, sides = first_states(name, m, x, given, count), {}, 0, {}
      for k = 1, count do last[k] = {} end
      each_direction(m, function(suffix, _, layer, is_reverse)
        place = place + 1
        local state = {}
        for k = 1, count do state[k] = states[k]:select(1, place) end
        sides[#sides + 1], state = run(m, x, suffix, state, is_reverse, step)
        for k = 1, count do last[k][place] = state[k] end
        if m.bidirectional and not is_reverse then return end
        x, sides = #sides == 1 and sides[1] or mr.cat(sides, 3), {}
        if layer < m.num_layers and m.dropout > 0 then x = x:dropout(m.dropout, m.training) end
      end)
      for k = 1, count do last[k] = mr.stack(last[k]) end
      if m.batch_first then x = x:transpose(1, 2) end
      return x, count == 1 and last[1] or last
    end

    function class.extra_repr(m)
      local text = ("%d, %d"):format(m.input_size, m.hidden_size)
      if m.num_layers ~= 1 then text = text .. ", num_layers=" .. m.num_layers end
      if m.batch_first then text = text .. ", batch_first=true" end
      return m.bidirectional and text .. ", bidirectional=true" or text
    end

    nn[name] = class
  end

  --- mr.nn.LSTM(inputs: integer, size: integer [, {num_layers: integer=1, bias: boolean=true, batch_first:
  ---   boolean=false, dropout: number=0, bidirectional: boolean=false, dtype: string, device: device}]) -> module:
  ---   table
  --- lstm(x, {h, c}) returns the results of all steps and the list {h, c} of the last states. x has the shape (steps,
  --- sequences, inputs), or with batch_first (sequences, steps, inputs); a state (layers * directions, sequences,
  --- size). Without states, they are 0.
  recurrent("LSTM", 4, 2, function(input, from_state, state)
    local gates = (input + from_state):chunk(4, -1)
    local cell = gates[2]:sigmoid() * state[2] + gates[1]:sigmoid() * gates[3]:tanh()
    return { gates[4]:sigmoid() * cell:tanh(), cell }
  end)

  --- mr.nn.GRU(inputs: integer, size: integer [, {num_layers: integer=1, bias: boolean=true, batch_first:
  ---   boolean=false, dropout: number=0, bidirectional: boolean=false, dtype: string, device: device}]) -> module:
  ---   table
  --- gru(x, h) returns the results of all steps and the last state. Shapes are those of LSTM.
  recurrent("GRU", 3, 1, function(input, from_state, state)
    local i, h = input:chunk(3, -1), from_state:chunk(3, -1)
    local reset, update = (i[1] + h[1]):sigmoid(), (i[2] + h[2]):sigmoid()
    local new = (i[3] + reset * h[3]):tanh()
    return { new + update * (state[1] - new) }
  end)

  return nn
end
