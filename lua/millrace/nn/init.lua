-- mr.nn.init: the values that parameters begin with. Names and distributions are those of torch.nn.init.
--# nn_init of mr.nn.init: The values that parameters begin with.
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

  --- mr.nn.init.uniform_(t: tensor [, low: number=0, high: number=1]) -> t: tensor
  --- t:uniform_(low, high), which no gradient records.
  function init.uniform_(t, low, high) return without_gradients("uniform_", t, low or 0, high or 1) end

  --- mr.nn.init.normal_(t: tensor [, mean: number=0, std: number=1]) -> t: tensor
  --- t:normal_(mean, std), which no gradient records.
  function init.normal_(t, mean, std) return without_gradients("normal_", t, mean or 0, std or 1) end

  --- mr.nn.init.constant_(t: tensor, value: number) -> t: tensor
  --- t:fill_(value), which no gradient records.
  function init.constant_(t, value) return without_gradients("fill_", t, value) end

  --- mr.nn.init.zeros_(t: tensor) -> t: tensor
  --- t:zero_(), which no gradient records.
  function init.zeros_(t) return without_gradients("zero_", t) end

  --- mr.nn.init.ones_(t: tensor) -> t: tensor
  --- t:fill_(1), which no gradient records.
  function init.ones_(t) return without_gradients("fill_", t, 1) end

  --- mr.nn.init.kaiming_uniform_(t: tensor [, {a: number=0}]) -> t: tensor
  --- Uniform numbers whose variance is 2 / (1 + a^2) / inputs, for layers before a ReLU.
  -- options: {a=0}: the slope of a leaky ReLU that follows
  function init.kaiming_uniform_(t, options)
    local fan_in = fans("kaiming_uniform_", t)
    local a = type(options) == "table" and options.a or 0
    local bound = math.sqrt(3) * math.sqrt(2 / (1 + a * a)) / math.sqrt(math.max(fan_in, 1))
    return init.uniform_(t, -bound, bound)
  end

  --- mr.nn.init.kaiming_normal_(t: tensor [, {a: number=0}]) -> t: tensor
  --- Normal numbers whose variance is 2 / (1 + a^2) / inputs, for layers before a ReLU.
  function init.kaiming_normal_(t, options)
    local fan_in = fans("kaiming_normal_", t)
    local a = type(options) == "table" and options.a or 0
    return init.normal_(t, 0, math.sqrt(2 / (1 + a * a) / math.max(fan_in, 1)))
  end

  --- mr.nn.init.xavier_uniform_(t: tensor [, {gain: number=1}]) -> t: tensor
  --- Uniform numbers whose variance is 2 gain^2 / (inputs + outputs).
  function init.xavier_uniform_(t, options)
    local fan_in, fan_out = fans("xavier_uniform_", t)
    local bound = (type(options) == "table" and options.gain or 1) * math.sqrt(6 / math.max(fan_in + fan_out, 1))
    return init.uniform_(t, -bound, bound)
  end

  init.fans = fans
  return init
end
