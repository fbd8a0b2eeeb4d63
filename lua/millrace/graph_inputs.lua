-- g:inputs: names for tensors from before the capture that a graph reads, and new values for them.
--
-- New values are copied in front of the next launch, on its stream, so they come after the earlier launches there. The
-- checker sees the copies like those of the script. The launch drops its reference to the values, which may be the last
-- one and from another stream, so it records its stream. Easiest to break: a call with one wrong entry changes nothing.
local mr = require "millrace"

return function(tools)
  local misuse = tools.misuse
  local inputs = {}

  local function shape_of(t)
    local sizes = {}
    for i = 1, t.ndim do sizes[i] = t:size(i) end
    return ("%s[%s]"):format(t.dtype, table.concat(sizes, ","))
  end

  local function check_new(g, name, t)
    if not tools.is_input(g, t) then
      misuse(("inputs: no node of the graph reads the tensor that was given for `%s`, or the graph makes it: " ..
        "name a tensor from before the capture"):format(name))
    end
  end

  local function check_values(name, input, t)
    if shape_of(input) ~= shape_of(t) then
      misuse(("inputs: `%s` is %s, and %s was given: a graph has fixed shapes and dtypes"):format(name,
        shape_of(input), shape_of(t)))
    end
  end

  -- state: {tensors = by name, values = by name, until the next launch}
  local function check(g, state, given)
    if type(given) ~= "table" then
      misuse("inputs: expected a table of tensors by name, got " .. tools.type_of(given))
    end
    for name, t in pairs(given) do
      if type(name) ~= "string" then misuse("inputs: the name of an input is a string, not " .. tools.type_of(name)) end
      if not tools.is_tensor(t) then
        misuse(("inputs: `%s` is %s, expected a tensor"):format(name, tools.type_of(t)))
      end
      local input = state.tensors[name]
      if input then check_values(name, input, t) else check_new(g, name, t) end
    end
  end

  function inputs.set(g, state, given)
    check(g, state, given)
    for name, t in pairs(given) do
      local input = state.tensors[name]
      if not input then state.tensors[name] = t
      elseif t ~= input then state.values[name] = t end
    end
  end

  function inputs.list(state)
    local out = {}
    for name, t in pairs(state.tensors) do out[name] = t end
    return out
  end

  -- In the order of the names, so that each run submits the same.
  function inputs.copy(state, stream)
    local names = {}
    for name in pairs(state.values) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      local input, value = state.tensors[name], state.values[name]
      mr.with(stream, function() input:detach():copy_(value:detach()) end)
      if value.device ~= "cpu" then value:record_stream(stream) end
      state.values[name] = nil
    end
  end

  return inputs
end
