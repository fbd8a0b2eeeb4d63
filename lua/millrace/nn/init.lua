-- mr.nn.init: the values that parameters begin with. Names and distributions are those of torch.nn.init.
local mr = require "millrace"

return function(tools)
  local init = {}

  local function check(what, t)
    if not tools.is_tensor(t) then tools.misuse(("%s: expected a tensor, got %s"):format(what, tools.type_of(t))) end
  end

  local function without_gradients(name, t, ...)
    check(name, t)
    mr.no_grad(t[name], t, ...)
    return t
  end

  -- How many inputs and outputs an element of the result depends on: of a linear layer (out, in), of a convolution
  -- (out, in, rows, columns).
  local function fans(what, t)
    check(what, t)
    local shape = t.shape
    if #shape < 2 then tools.misuse(what .. ": the tensor has fewer than 2 dims, so it has no fan") end
    local field = 1
    for d = 3, #shape do field = field * shape[d] end
    return shape[2] * field, shape[1] * field
  end

  function init.uniform_(t, low, high) return without_gradients("uniform_", t, low or 0, high or 1) end
  function init.normal_(t, mean, std) return without_gradients("normal_", t, mean or 0, std or 1) end
  function init.constant_(t, value) return without_gradients("fill_", t, value) end

  function init.zeros_(t) return without_gradients("zero_", t) end
  function init.ones_(t) return without_gradients("fill_", t, 1) end

  -- options: {a=0}: the slope of a leaky ReLU that follows
  function init.kaiming_uniform_(t, options)
    local fan_in = fans("kaiming_uniform_", t)
    local a = type(options) == "table" and options.a or 0
    local bound = math.sqrt(3) * math.sqrt(2 / (1 + a * a)) / math.sqrt(math.max(fan_in, 1))
    return init.uniform_(t, -bound, bound)
  end

  function init.kaiming_normal_(t, options)
    local fan_in = fans("kaiming_normal_", t)
    local a = type(options) == "table" and options.a or 0
    return init.normal_(t, 0, math.sqrt(2 / (1 + a * a) / math.max(fan_in, 1)))
  end

  function init.xavier_uniform_(t, options)
    local fan_in, fan_out = fans("xavier_uniform_", t)
    local bound = (type(options) == "table" and options.gain or 1) * math.sqrt(6 / math.max(fan_in + fan_out, 1))
    return init.uniform_(t, -bound, bound)
  end

  init.fans = fans
  return init
end
