-- The modules of mr.nn with or without parameters. Arguments, defaults and first values are PyTorch's; dims count
-- from 1.
--# nn
local mr = require "millrace"

return function(tools, module, init)
  local misuse = tools.misuse
  local nn = {}

  -- How the layers of this file use memory, by their `forward`. `makes`: a result has memory of its own; that of the
  -- others may be the input's. `in_place` names the method that overwrites the input with the result. None of them
  -- keeps its input.
  local memory = {}

  -- The options after the positional arguments (at most `most`); leaves the positional ones in `arguments`.
  local function take_options(name, known, most, arguments)
    local options = arguments[arguments.n]
    local is_options = type(options) == "table" and not module.is_module(options) and
      (next(options) == nil or type(next(options)) == "string")
    if is_options then arguments.n = arguments.n - 1 else options = {} end
    for i = most + 1, arguments.n do
      if arguments[i] ~= nil then
        misuse(("%s: argument %d is %s, expected %s"):format(name, i, tools.type_of(arguments[i]), known == "" and
          "no more arguments" or "a table of options: {" .. known:gsub(" ", "=, ") .. "=}"))
      end
    end
    return options
  end

  -- A class whose `init` gets at most `most` positional arguments and then a table of options, which has only known
  -- names.
  local function layer(name, most, known, body)
    local class = module.class(name)
    local names = {}
    for option in known:gmatch("[%w_]+") do names[option] = true end
    for key, value in pairs(body) do
      if type(value) == "function" and key ~= "init" then class[key] = value end
    end
    function class.forward(m, x, ...)
      module.check(m, "forward")
      if not tools.is_tensor(x) then
        misuse(("%s: the input is %s, expected a tensor"):format(name, tools.type_of(x)))
      end
      return body.forward(m, x, ...)
    end
    memory[class.forward] = { makes = body.makes ~= false, in_place = body.in_place }
    function class.init(m, ...)
      local arguments = table.pack(...)
      local options = take_options(name, known, most, arguments)
      for key in pairs(options) do
        if not names[key] then
          misuse(name .. ": " .. tools.no_option(key, known))
        end
      end
      if body.init then body.init(m, options, table.unpack(arguments, 1, arguments.n)) end
    end
    nn[name] = class
    return class
  end

  local function dim(what, name, value)
    if math.type(value) ~= "integer" or value == 0 then
      misuse(("%s: %s is %s, expected a dim from 1 on, or from -1 down"):format(what, name, tostring(value)))
    end
    return value
  end

  local function whole(what, name, value, least)
    if math.type(value) ~= "integer" or value < (least or 1) then
      misuse(("%s: %s is %s, expected an integer from %d on"):format(what, name, tostring(value), least or 1))
    end
    return value
  end

  -- A number or {rows, columns}, as two numbers.
  local function pair(what, name, value, least)
    local rows, columns = value, value
    if type(value) == "table" then
      if #value ~= 2 then misuse(("%s: %s has %d numbers, expected {rows, columns}"):format(what, name, #value)) end
      rows, columns = value[1], value[2]
    end
    return { whole(what, name, rows, least), whole(what, name, columns, least) }
  end

  -- "2", or "(2, 3)" where both numbers differ
  local function pair_text(p) return ("(%d, %d)"):format(p[1], p[2]) end

  -- make(shape) where the options say; a table without options would be a shape.
  local function new(make, shape, options, dtype)
    dtype = dtype or options.dtype
    if not dtype and options.device == nil then return make(shape) end
    return make(shape, { dtype = dtype, device = options.device })
  end

  local function uniform(shape, bound, options)
    local p = module.parameter(new(mr.empty, shape, options))
    return init.uniform_(p, -bound, bound)
  end

  -- The bias of a layer whose outputs depend on so many inputs each.
  local function new_bias(size, fan_in, options)
    if options.bias == false then return nil end
    return uniform({ size }, 1 / math.sqrt(math.max(fan_in, 1)), options)
  end

  -- ---------------------------------------------------------------- with parameters

  --- mr.nn.Linear(inputs: integer, outputs: integer [, {bias: boolean=true, dtype: string, device: device}]) ->
  ---   module: table
  --- x times the transposed weight, plus the bias.
  layer("Linear", 2, "bias dtype device", {
    init = function(m, options, inputs, outputs)
      m.in_features, m.out_features = whole("Linear", "inputs", inputs), whole("Linear", "outputs", outputs)
      -- kaiming_uniform_ with a = sqrt(5): a bound of 1 / sqrt(inputs)
      m.weight = uniform({ outputs, inputs }, 1 / math.sqrt(inputs), options)
      m.bias = new_bias(outputs, inputs, options)
    end,
    forward = function(m, x) return x:linear(m.weight, m.bias) end,
    extra_repr = function(m)
      return ("in_features=%d, out_features=%d, bias=%s"):format(m.in_features, m.out_features, m.bias ~= nil)
    end,
  })

  local function check_groups(what, inputs, outputs, groups)
    if inputs % groups ~= 0 or outputs % groups ~= 0 then
      misuse(("%s: %d and %d channels cannot be divided into %d groups"):format(what, inputs, outputs, groups))
    end
  end

  -- The options of a convolution with so many dims: reads one, lists its numbers and shows them. One number for one
  -- dim, a pair for two.
  local FORMS = {
    [1] = {
      read = whole,
      list = function(size) return { size } end,
      text = function(size) return ("(%d,)"):format(size) end,
    },
    [2] = { read = pair, list = function(sizes) return sizes end, text = pair_text },
  }

  local function read_padding(form, what, value)
    if value == "same" or value == "valid" then return value end
    if type(value) == "string" then
      misuse(("%s: padding=\"%s\", expected numbers, \"same\" or \"valid\""):format(what, value))
    end
    return form.read(what, "padding", value or 0, 0)
  end

  local function all_are(list, number)
    for _, value in ipairs(list) do
      if value ~= number then return false end
    end
    return true
  end

  local function conv_text(m, form)
    local text = ("%d, %d, kernel_size=%s, stride=%s"):format(m.in_channels, m.out_channels, form.text(m.kernel_size),
      form.text(m.stride))
    if type(m.padding) == "string" then text = text .. ", padding=" .. m.padding
    elseif not all_are(form.list(m.padding), 0) then text = text .. ", padding=" .. form.text(m.padding) end
    if not all_are(form.list(m.dilation), 1) then text = text .. ", dilation=" .. form.text(m.dilation) end
    if m.groups ~= 1 then text = text .. ", groups=" .. m.groups end
    return m.bias and text or text .. ", bias=false"
  end

  local function conv(name, method, form)
    layer(name, 3, "stride padding dilation groups bias dtype device", {
      init = function(m, options, channels, outputs, size)
        m.in_channels, m.out_channels = whole(name, "in_channels", channels), whole(name, "out_channels", outputs)
        m.kernel_size = form.read(name, "kernel_size", size)
        m.stride = form.read(name, "stride", options.stride or 1)
        m.padding = read_padding(form, name, options.padding)
        m.dilation = form.read(name, "dilation", options.dilation or 1)
        m.groups = whole(name, "groups", options.groups or 1)
        check_groups(name, channels, outputs, m.groups)
        if m.padding == "same" and not all_are(form.list(m.stride), 1) then
          misuse(name .. ": padding=\"same\" needs a stride of 1")
        end
        local shape, fan_in = { outputs, channels // m.groups }, channels // m.groups
        for _, length in ipairs(form.list(m.kernel_size)) do
          shape[#shape + 1], fan_in = length, fan_in * length
        end
        m.weight = uniform(shape, 1 / math.sqrt(fan_in), options)
        m.bias = new_bias(outputs, fan_in, options)
      end,
      forward = function(m, x)
        return x[method](x, m.weight, { bias = m.bias, stride = m.stride, padding = m.padding, dilation = m.dilation,
          groups = m.groups })
      end,
      extra_repr = function(m) return conv_text(m, form) end,
    })
  end

  --- mr.nn.Conv1d(inputs: integer, outputs: integer, kernel_size: integer [, {stride: integer=1, padding:
  ---   integer|string=0, dilation: integer=1, groups: integer=1, bias: boolean=true, dtype: string, device: device}])
  ---   -> module: table
  --- The convolution of sequences (sequences, channels, elements). The padding can be a word as of Conv2d.
  conv("Conv1d", "conv1d", FORMS[1])

  --- mr.nn.Conv2d(inputs: integer, outputs: integer, kernel_size: integer|table [, {stride: integer|table=1, padding:
  ---   integer|table|string=0, dilation: integer|table=1, groups: integer=1, bias: boolean=true, dtype: string,
  ---   device: device}]) -> module: table
  --- The convolution of images (images, channels, rows, columns). Sizes are a number or {rows, columns}. With the
  --- padding "same" the result has as many rows and columns as the input; "valid" is none.
  conv("Conv2d", "conv2d", FORMS[2])

  --- mr.nn.ConvTranspose2d(inputs: integer, outputs: integer, kernel_size: integer|table [, {stride: integer|table=1,
  ---   padding: integer|table=0, output_padding: integer|table=0, dilation: integer|table=1, groups: integer=1, bias:
  ---   boolean=true, dtype: string, device: device}]) -> module: table
  --- The transposed convolution of images: x:conv_transpose2d.
  -- conv2d from its results to its inputs.
  layer("ConvTranspose2d", 3, "stride padding output_padding groups bias dilation dtype device", {
    init = function(m, options, channels, outputs, size)
      local name = "ConvTranspose2d"
      m.in_channels, m.out_channels = whole(name, "in_channels", channels), whole(name, "out_channels", outputs)
      m.kernel_size, m.stride = pair(name, "kernel_size", size), pair(name, "stride", options.stride or 1)
      m.padding = pair(name, "padding", options.padding or 0, 0)
      m.output_padding = pair(name, "output_padding", options.output_padding or 0, 0)
      m.dilation, m.groups = pair(name, "dilation", options.dilation or 1), whole(name, "groups", options.groups or 1)
      check_groups(name, channels, outputs, m.groups)
      local fan_in = outputs // m.groups * m.kernel_size[1] * m.kernel_size[2]
      m.weight = uniform({ channels, outputs // m.groups, m.kernel_size[1], m.kernel_size[2] }, 1 / math.sqrt(fan_in),
        options)
      m.bias = new_bias(outputs, fan_in, options)
    end,
    forward = function(m, x)
      return x:conv_transpose2d(m.weight, { bias = m.bias, stride = m.stride, padding = m.padding,
        output_padding = m.output_padding, dilation = m.dilation, groups = m.groups })
    end,
    extra_repr = function(m)
      return ("%d, %d, kernel_size=%s, stride=%s"):format(m.in_channels, m.out_channels, pair_text(m.kernel_size),
        pair_text(m.stride))
    end,
  })

  --- mr.nn.Upsample({size: integer|table, scale_factor: number|table, mode: string="nearest", align_corners:
  ---   boolean=false}) -> module: table
  --- x:interpolate with these options.
  layer("Upsample", 0, "size scale_factor mode align_corners", {
    init = function(m, options)
      m.size, m.scale_factor = options.size, options.scale_factor
      m.mode, m.align_corners = options.mode or "nearest", options.align_corners
    end,
    forward = function(m, x)
      return x:interpolate { size = m.size, scale_factor = m.scale_factor, mode = m.mode,
        align_corners = m.align_corners }
    end,
    extra_repr = function(m) return "mode=" .. m.mode end,
  })

  -- `dims`: what the input can have.
  local function batch_norm(name, dims, expected)
    layer(name, 1, "eps momentum affine track_running_stats dtype device", {
      init = function(m, options, features)
        m.num_features = whole(name, "features", features)
        m.eps, m.momentum = options.eps or 1e-5, options.momentum == nil and 0.1 or options.momentum
        m.affine, m.track_running_stats = options.affine ~= false, options.track_running_stats ~= false
        if m.affine then
          m.weight = module.parameter(new(mr.ones, { features }, options))
          m.bias = module.parameter(new(mr.zeros, { features }, options))
        end
        if m.track_running_stats then
          m:register_buffer("running_mean", new(mr.zeros, { features }, options))
          m:register_buffer("running_var", new(mr.ones, { features }, options))
          m:register_buffer("num_batches_tracked", new(mr.zeros, {}, options, "i64"))
        end
      end,
      forward = function(m, x)
        if not dims[x.ndim] or x:size(2) ~= m.num_features then
          misuse(("%s: the input is %s, expected %s dims of which the second is %d"):format(name,
            table.concat(x.shape, "x"), expected, m.num_features))
        end
        if m.training and x.numel // m.num_features < 2 then
          misuse(name .. ": training needs more than one value for each channel, and the input has one")
        end
        local follows = m.training and m.track_running_stats
        local y = x:batch_norm(m.running_mean, m.running_var, { weight = m.weight, bias = m.bias, eps = m.eps,
          training = m.training or not m.track_running_stats, momentum = follows and m:next_momentum() or 0 })
        if follows then m.num_batches_tracked:add_(1) end
        return y
      end,
      -- The part of a batch in the running averages. Without a momentum it is the same for all batches so far.
      next_momentum = function(m) return m.momentum or 1 / (m.num_batches_tracked:item() + 1) end,
      extra_repr = function(m)
        return ("%d, eps=%s, momentum=%s, affine=%s, track_running_stats=%s"):format(m.num_features, m.eps, m.momentum,
          m.affine, m.track_running_stats)
      end,
    })
  end

  --- mr.nn.BatchNorm1d(channels: integer [, {eps: number=1e-5, momentum: number=0.1, affine: boolean=true,
  ---   track_running_stats: boolean=true, dtype: string, device: device}]) -> module: table
  --- As BatchNorm2d, for rows (rows, channels) or sequences (sequences, channels, elements).
  batch_norm("BatchNorm1d", { [2] = true, [3] = true }, "2 or 3")

  --- mr.nn.BatchNorm2d(channels: integer [, {eps: number=1e-5, momentum: number=0.1, affine: boolean=true,
  ---   track_running_stats: boolean=true, dtype: string, device: device}]) -> module: table
  --- Subtracts from each channel of images its mean, and divides it by its standard deviation. In training, these are
  --- of the batch; otherwise they are the running ones.
  batch_norm("BatchNorm2d", { [4] = true }, "4")

  --- mr.nn.Embedding(count: integer, size: integer [, {dtype: string, device: device}]) -> module: table
  --- A table of vectors; the input is a tensor of indices, which count from 1.
  layer("Embedding", 2, "dtype device", {
    init = function(m, options, count, size)
      m.num_embeddings, m.embedding_dim = whole("Embedding", "count", count), whole("Embedding", "size", size)
      m.weight = init.normal_(module.parameter(new(mr.empty, { count, size }, options)))
    end,
    -- Indices count from 1 and have any shape.
    forward = function(m, index)
      local shape = index.shape
      shape[#shape + 1] = m.embedding_dim
      return m.weight:index_select(1, index:reshape(index.numel)):view(shape)
    end,
    extra_repr = function(m) return ("%d, %d"):format(m.num_embeddings, m.embedding_dim) end,
  })

  --- mr.nn.LayerNorm(shape: integer|integer[] [, {eps: number=1e-5, elementwise_affine: boolean=true, dtype: string,
  ---   device: device}]) -> module: table
  --- Subtracts the mean over the last dims from the input, and divides by the standard deviation.
  layer("LayerNorm", 1, "eps elementwise_affine dtype device", {
    init = function(m, options, shape)
      m.normalized_shape = type(shape) == "table" and shape or { shape }
      for _, size in ipairs(m.normalized_shape) do whole("LayerNorm", "a size", size) end
      m.eps, m.elementwise_affine = options.eps or 1e-5, options.elementwise_affine ~= false
      if m.elementwise_affine then
        m.weight = module.parameter(new(mr.ones, m.normalized_shape, options))
        m.bias = module.parameter(new(mr.zeros, m.normalized_shape, options))
      end
    end,
    forward = function(m, x)
      return x:layer_norm(m.normalized_shape, { weight = m.weight, bias = m.bias, eps = m.eps })
    end,
    extra_repr = function(m)
      return ("(%s%s), eps=%s, elementwise_affine=%s"):format(table.concat(m.normalized_shape, ", "),
        #m.normalized_shape == 1 and "," or "", m.eps, m.elementwise_affine)
    end,
  })

  -- ---------------------------------------------------------------- functions of their input

  local function plain(name, method, in_place)
    layer(name, 0, "", { forward = function(_, x) return x[method](x) end, in_place = in_place })
  end

  --- mr.nn.ReLU() -> module: table
  --- x:relu().
  plain("ReLU", "relu", "relu_")

  --- mr.nn.GELU() -> module: table
  --- x:gelu().
  plain("GELU", "gelu")

  --- mr.nn.SiLU() -> module: table
  --- x:silu().
  plain("SiLU", "silu")

  --- mr.nn.Softplus() -> module: table
  --- x:softplus().
  plain("Softplus", "softplus")

  --- mr.nn.Tanh() -> module: table
  --- x:tanh().
  plain("Tanh", "tanh", "tanh_")

  --- mr.nn.Sigmoid() -> module: table
  --- x:sigmoid().
  plain("Sigmoid", "sigmoid", "sigmoid_")

  -- A function with one parameter, which has a default.
  local function activation(name, method, parameter, default)
    layer(name, 1, parameter, {
      init = function(m, options, value)
        value = value == nil and options[parameter] or value or default
        if type(value) ~= "number" then
          misuse(("%s: %s is %s, expected a number"):format(name, parameter, tools.type_of(value)))
        end
        m[parameter] = value
      end,
      forward = function(m, x) return x[method](x, m[parameter]) end,
      extra_repr = function(m) return ("%s=%s"):format(parameter, m[parameter]) end,
    })
  end

  --- mr.nn.LeakyReLU([negative_slope: number=0.01]) -> module: table
  --- x:leaky_relu(negative_slope).
  activation("LeakyReLU", "leaky_relu", "negative_slope", 0.01)

  --- mr.nn.ELU([alpha: number=1]) -> module: table
  --- x:elu(alpha).
  activation("ELU", "elu", "alpha", 1.0)

  local function along_dim(name, method)
    layer(name, 1, "dim", {
      init = function(m, options, given)
        m.dim = given or options.dim
        if m.dim == nil then misuse(name .. ": the dim is missing: mr.nn." .. name .. "(2)") end
        dim(name, "dim", m.dim)
      end,
      forward = function(m, x) return x[method](x, m.dim) end,
      extra_repr = function(m) return "dim=" .. m.dim end,
    })
  end

  --- mr.nn.Softmax(dim: integer) -> module: table
  --- x:softmax(dim).
  along_dim("Softmax", "softmax")

  --- mr.nn.LogSoftmax(dim: integer) -> module: table
  --- x:log_softmax(dim).
  along_dim("LogSoftmax", "log_softmax")

  --- mr.nn.Identity() -> module: table
  --- Returns its input.
  layer("Identity", 0, "", { forward = function(_, x) return x end, makes = false })

  --- mr.nn.Dropout([p: number=0.5]) -> module: table
  --- Sets elements to 0 with probability p while the module is trained, and divides the others by 1 - p.
  layer("Dropout", 1, "p", {
    init = function(m, options, p)
      m.p = p or options.p or 0.5
      if type(m.p) ~= "number" or not (m.p >= 0 and m.p <= 1) then
        misuse(("Dropout: p is %s, expected a probability from 0 to 1"):format(tostring(m.p)))
      end
    end,
    forward = function(m, x) return x:dropout(m.p, m.training) end,
    makes = false,
    extra_repr = function(m) return "p=" .. m.p end,
  })

  --- mr.nn.Flatten([first: integer=2 [, last: integer=-1]]) -> module: table
  --- x:flatten(first, last): by default all dims but the first, the batch.
  layer("Flatten", 2, "", {
    init = function(m, _, first, last)
      m.start_dim, m.end_dim = dim("Flatten", "first", first or 2), dim("Flatten", "last", last or -1)
    end,
    forward = function(m, x) return x:flatten(m.start_dim, m.end_dim) end,
    makes = false,
    extra_repr = function(m) return ("start_dim=%d, end_dim=%d"):format(m.start_dim, m.end_dim) end,
  })

  -- ---------------------------------------------------------------- pools

  --- mr.nn.MaxPool2d(kernel_size: integer|table [, {stride: integer|table=kernel_size, padding: integer|table=0,
  ---   dilation: integer|table=1, ceil_mode: boolean=false}]) -> module: table
  --- The greatest element of each window.
  layer("MaxPool2d", 1, "stride padding dilation ceil_mode", {
    init = function(m, options, size)
      m.kernel_size = pair("MaxPool2d", "kernel_size", size)
      m.stride = pair("MaxPool2d", "stride", options.stride or size)
      m.padding = pair("MaxPool2d", "padding", options.padding or 0, 0)
      m.dilation = pair("MaxPool2d", "dilation", options.dilation or 1)
      m.ceil_mode = options.ceil_mode or false
    end,
    forward = function(m, x)
      return (x:max_pool2d(m.kernel_size, { stride = m.stride, padding = m.padding, dilation = m.dilation,
        ceil_mode = m.ceil_mode }))
    end,
    extra_repr = function(m)
      return ("kernel_size=%s, stride=%s, padding=%s, dilation=%s, ceil_mode=%s"):format(pair_text(m.kernel_size),
        pair_text(m.stride), pair_text(m.padding), pair_text(m.dilation), m.ceil_mode)
    end,
  })

  --- mr.nn.AvgPool2d(kernel_size: integer|table [, {stride: integer|table=kernel_size, padding: integer|table=0,
  ---   ceil_mode: boolean=false, count_include_pad: boolean=true}]) -> module: table
  --- The mean of each window.
  layer("AvgPool2d", 1, "stride padding ceil_mode count_include_pad", {
    init = function(m, options, size)
      m.kernel_size = pair("AvgPool2d", "kernel_size", size)
      m.stride = pair("AvgPool2d", "stride", options.stride or size)
      m.padding = pair("AvgPool2d", "padding", options.padding or 0, 0)
      m.ceil_mode, m.count_include_pad = options.ceil_mode or false, options.count_include_pad ~= false
    end,
    forward = function(m, x)
      return x:avg_pool2d(m.kernel_size, { stride = m.stride, padding = m.padding, ceil_mode = m.ceil_mode,
        count_include_pad = m.count_include_pad })
    end,
    extra_repr = function(m)
      return ("kernel_size=%s, stride=%s, padding=%s"):format(pair_text(m.kernel_size), pair_text(m.stride),
        pair_text(m.padding))
    end,
  })

  --- mr.nn.AdaptiveAvgPool2d(size: integer|table) -> module: table
  --- The means of windows; the result has this size, and the windows cover the input.
  layer("AdaptiveAvgPool2d", 1, "", {
    init = function(m, _, size) m.output_size = pair("AdaptiveAvgPool2d", "output_size", size) end,
    forward = function(m, x) return x:adaptive_avg_pool2d(m.output_size) end,
    extra_repr = function(m) return "output_size=" .. pair_text(m.output_size) end,
  })

  -- ---------------------------------------------------------------- containers

  local function close(t) local _ <close> = t end

  -- Runs the layers in turn without recording: between two layers of this file, the first one's result has no other
  -- user. So it is closed after the second has used it, or overwritten, and the next layer gets memory that is still in
  -- the cache. `own`: x has no other user. `alone`: its memory has none, either.
  local function run_unrecorded(children, x)
    local own, alone = false, false
    for _, child in ipairs(children) do
      local known, y = memory[child.forward]
      local in_place = alone and known and known.in_place
      -- of integers there is a float for each, which is larger
      if in_place and x.dtype:find "f" then y = x[in_place](x) else y = child(x) end
      local is_new = not rawequal(x, y)
      if known and own and is_new then close(x) end
      own = known ~= nil and (own or is_new)
      alone = known ~= nil and (alone or known.makes and is_new)
      x = y
    end
    return x
  end

  --- mr.nn.Sequential(module: table...) -> module: table
  --- Calls its modules one after the other. They are named from "1" on: m:get(1) is the first.
  local Sequential = module.class("Sequential")
  function Sequential.init(m, ...)
    for i = 1, select("#", ...) do
      local child = select(i, ...)
      if not module.is_module(child) then
        misuse(("Sequential: argument %d is %s, expected a module"):format(i, tools.type_of(child)))
      end
      module.assign(m, tostring(i), child)
    end
  end
  function Sequential.forward(m, x)
    module.check(m, "forward")
    local children = module.children(m)
    if not mr.is_grad_enabled() then return run_unrecorded(children, x) end
    for _, child in ipairs(children) do x = child(x) end
    return x
  end
  function Sequential.get(m, i)
    module.check(m, "get")
    return m[tostring(i)]
  end
  nn.Sequential = Sequential

  --- mr.nn.ModuleList([modules: table[]]) -> module: table
  --- A list of modules. Unlike a table of modules, it is registered when it is assigned to a field. l[i], l:get(i), #l,
  --- l:append(module); it has no forward.
  -- Modules in a list, which are registered, unlike those in a table.
  local ModuleList = module.class("ModuleList")
  function ModuleList.init(m, list)
    if list ~= nil and (type(list) ~= "table" or module.is_module(list)) then
      misuse("ModuleList: expected a list of modules, got " .. (list and module.is_module(list) and "a module" or
        tools.type_of(list)))
    end
    for i, child in ipairs(list or {}) do
      if not module.is_module(child) then
        misuse(("ModuleList: entry %d is %s, expected a module"):format(i, tools.type_of(child)))
      end
    end
    for _, child in ipairs(list or {}) do m:append(child) end
  end
  function ModuleList.append(m, child)
    module.check(m, "append")
    if not module.is_module(child) then misuse("append: expected a module, got " .. tools.type_of(child)) end
    module.assign(m, tostring(#m + 1), child)
    return m
  end
  ModuleList.get = Sequential.get
  nn.ModuleList = ModuleList

  return nn
end
