---@meta millrace
-- For lua-language-server. `make docs` writes this file; it is never run.

---@class millrace
---@field backend "virtual"|"cuda"
local mr = {}

---One GPU. mr.device(i) and mr.current_device() return devices.
---@class millrace.Device
---@field index integer CUDA's ordinal, from 0.
---@field name string The name of the device model.
---@field backend string "virtual" or "cuda".
---@field sm_count integer The number of streaming multiprocessors.
---@field total_memory integer Bytes of device memory.
---@field compute_capability string "9.0" on an H200.
---@field max_threads_per_block integer Threads.
---@field max_threads_per_sm integer Threads that can be resident on one SM.
---@field max_blocks_per_sm integer Blocks that can be resident on one SM.
---@field max_resident_grids integer Kernels that can run at the same time (R53).
---@field clock_hz integer The highest clock of the multiprocessors, in hertz.
---@field registers_per_sm integer 32-bit registers of one SM.
---@field shared_per_sm integer Bytes of shared memory of one SM.
---@field shared_per_block integer Bytes of shared memory that one block can have.
---@field warp_size integer Threads of a warp.
---@field async_engine_count integer Copies that can run at the same time as kernels (R25).
---@field l2_bytes integer Bytes of L2 cache.
---@field memory_bandwidth number Bytes per second, reads and writes together.
local Device = {}

---A queue of work for one device. Its work runs in the order of submission (R1). Work of different
---streams has no order (R2) unless an event, the default stream or the host creates one.
---What a stream tells of a capture.
---@class millrace.Stream
---@field device millrace.Device The device of the stream.
---@field priority integer The priority, after clamping to the allowed range (R8).
---@field nonblocking boolean Whether the default stream's barrier excludes it (R4).
---@field name string? The name given at creation; "default" or "per-thread" for these two streams.
---@field id integer A unique number.
---@field closed boolean Whether it has been closed.
local Stream = {}

---A mark in a stream. Its record stands for all work that was in the stream at the time of the record.
---@class millrace.Event
---@field device millrace.Device? The device of its first record; nil before that (R14).
---@field timing boolean Whether it stores time stamps, for elapsed_time.
---@field blocking boolean Whether the host sleeps while it waits for the event (R18).
---@field name string? The name given at creation.
---@field id integer A unique number.
---@field recorded boolean Whether it has been recorded. A wait for an event that was never recorded has no effect (R13).
---@field closed boolean Whether it has been closed.
---@operator sub(millrace.Event): number
local Event = {}

---A typed, strided view of device or host memory. Shapes, dims and elements count from 1. `==`
---compares identity; mr.equal compares values.
---Properties of a tensor can be read at any time, also after it was freed.
---Views of a tensor share its memory: a write to one is visible in the other.
---Copies run on the current stream of the device. After a copy between device and host, the host waits
---for that stream, unless non_blocking is set. Other copies do not wait.
---Operators broadcast and promote dtypes as the methods do, by PyTorch's rule. The categories are,
---from high to low: float, integer, bool; inside a category, the wider type is taken. A tensor without
---dimensions changes the dtype only if its category is higher than that of all tensors with
---dimensions. A plain number does so only if its category is higher than that of all tensors. `==`
---compares identity. `<`, `<=`, `>` and `>=` do not exist, because Lua would convert their result to
---one boolean: use lt, le, gt, ge, eq, ne.
---Networks.
---Made of several operations.
---The forms of scatter_, scatter_add_ and index_add_ that return a new tensor.
---Linear algebra.
---Gradients: docs/autograd.md explains them.
---Comparing whole tensors.
---Looking at device memory.
---@class millrace.Tensor
---@field data_ptr integer The address of the first element.
---@field storage_id integer A number for its memory: views of one tensor have the same.
---@field storage_offset integer Where the first element lies in its memory, in elements.
---@field shape integer[] The sizes of its dims, as a new table each time.
---@field stride integer[] For each dim, the distance in elements from one index to the next.
---@field dtype string "f32" "f64" "f16" "bf16" "i32" "i64" "u8" or "bool".
---@field device millrace.Device|string The device of its memory, or "cpu" for host memory.
---@field numel integer The number of elements.
---@field ndim integer The number of dims; 0 for a single value.
---@field itemsize integer The bytes of one element.
---@field nbytes integer The bytes of all elements.
---@field pinned boolean Whether it is host memory that the device can access.
---@field contiguous boolean Whether it is row-major without gaps.
---@field requires_grad boolean Whether operations on it are recorded for gradients. Can be assigned.
---@field is_leaf boolean Whether it is not the result of an operation that was recorded.
---@field grad millrace.Tensor|nil The gradient that backward() has added up. Can be assigned: a tensor of the same shape, dtype and device, or nil.
---@field grad_fn string|nil The operation that made it and its line, if that was recorded: "mul at train.lua:7".
---@operator len: integer
---@operator add(millrace.Tensor|number): millrace.Tensor
---@operator sub(millrace.Tensor|number): millrace.Tensor
---@operator mul(millrace.Tensor|number): millrace.Tensor
---@operator div(millrace.Tensor|number): millrace.Tensor
---@operator pow(millrace.Tensor|number): millrace.Tensor
---@operator mod(millrace.Tensor|number): millrace.Tensor
---@operator unm: millrace.Tensor
local Tensor = {}

---Gradients other than by t:backward(), and operations with derivatives of your own.
mr.autograd = {}

---Modules: the layers of networks, and losses. docs/nn.md explains them.
mr.nn = {}

---What all modules have. A module is called: m(x).
mr.nn.Module = {}

---The values that parameters begin with.
mr.nn.init = {}

---Gradients before a step.
mr.nn.utils = {}

---Optimisers: a step of all parameters is one command.
mr.optim = {}

---What all optimisers have.
mr.optim.Optimizer = {}

---Rates that depend on the number of epochs.
mr.optim.lr_scheduler = {}

---What all schedulers have.
mr.optim.lr_scheduler.Scheduler = {}

---Batches on their way to the device.
mr.data = {}

---A compiled kernel of your own.
---What the launches of a kernel did.
---@class millrace.Kernel
---@field name string The name by which it was asked for.
---@field symbol string Its symbol in the PTX.
---@field module millrace.Module The module that it is in, for its variables: k.module:global(name).
---@field params table[] Its parameters: name, type, kind and bytes of each.
---@field num_regs integer Registers of a thread: on a GPU those that the driver's compiler uses, on the virtual GPU an estimate from the PTX.
---@field shared_bytes integer Static shared memory of a block, in bytes.
---@field local_bytes integer Local memory of a thread, in bytes, without recursion.
---@field max_threads integer Threads that a block may have.
local Kernel = {}

---Kernels that were compiled together, and their variables.
---The kernels of a module.
---The variables of a module.
---@class millrace.Module
---@field kernels string[] The names of its kernels, for m:get(name).
---@field ptx string Its PTX.
local Module = {}

---Memory use. Freed device memory stays in the pool, in stream order, until it is reused or returned to the system.
mr.memory = {}

---The hazard checker: finds accesses to the same bytes that nothing orders, and reports the reason and the lines to add. docs/hazards.md explains each kind and reason. What the checker knows.
mr.hazard = {}

---Graphs: what streams were given, captured once and launched many times. mr.graph(fn) captures a function; the others are the pieces. docs/graphs.md explains captures and their errors. Functions that become graphs by themselves. Memory that graphs share.
mr.graph = {}

---Memory that graphs share, which never run at once. docs/graphs.md explains it.
---@class millrace.Graph_pool
---@field bytes integer Bytes of memory that the graphs of the pool have together.
---@field saved integer How many bytes more they would have without the pool.
---@field graphs integer How many graphs were captured with it and are not gone.
---@field allocations integer How many pieces the memory consists of.
---@field device millrace.Device The device of its graphs.
local Graph_pool = {}

---What was captured, and an executable of it. It does not change, except by update, enable and set.
---Named inputs.
---@class millrace.Graph
---@field id integer The number of the capture.
---@field node_count integer How many nodes it has.
---@field edge_count integer How many edges it has.
---@field nbytes integer Bytes of memory that were allocated in the capture (R44).
---@field lanes integer How many chains of nodes a launch may run at once.
---@field expanded string? On a real GPU: why the last launch was given to it node by node. nil: it was one call of the driver.
---@field rebuilt string? On a real GPU: why the driver could not apply the last update or set to its graph, in its own words; it was given a new graph, which the first launch after it pays for. nil: it could (R43).
---@field where string? The line that began the capture.
---@field device millrace.Device The device of the capture.
local Graph = {}

---Steps and time. What is pending. The virtual GPU: its chooser, its pending work, and its settings. nil on a real GPU.
mr.machine = {}

---Traces record each operation: the time of the host's call, and the time at which a device carried it out. mr.timeline(fn) is the short way. docs/timelines.md has an introduction.
mr.trace = {}

---What a script asked for and when the devices carried it out. Does not change after it was made. Made
---by mr.timeline and mr.trace.stop.
---@class millrace.Trace
---@field spans table[] One table for each command, in the order of submission: name, kind ("op", "copy", "record", ...), stream (its name, or "host"), engine ("sm", "copy-in", ..., "host" for what the host does by itself), start and finish (on the device; nil: it has not run), where, seq; where they are known ready, called, returned, waited (the host's clock and how long the host stood in the call); bytes, blocks, event, record (index of the record that it waits for), held_by (what it waited for last) and holder (index). Times are milliseconds since the trace began.
---@field ms number How long it took: the latest time of any span.
---@field streams table[] The streams: name, id, device, priority.
---@field hazards table[] Hazards that the checker reported: kind, message, fix, first and second (indices of spans).
---@field facts table Where it is from: backend, device, model, chooser, how (how times were found), script, began (the host's clock at 0), forgotten (spans that are no longer there), device_count.
---@operator len: integer
local Trace = {}

---Returns the number of devices.
---@return integer count
function mr.device_count() end

---Returns the device with this ordinal. Ordinals count from 0, as in CUDA.
---@param ordinal integer
---@return millrace.Device device
function mr.device(ordinal) end

---Returns the current device. New tensors, streams and events belong to it (R57).
---@return millrace.Device device
function mr.current_device() end

---Makes a device current. Waits for nothing (R57).
---@param device millrace.Device|integer
function mr.set_device(device) end

---Runs `fn(...)` with that stream or device current and returns its results. Afterwards, also after an
---error, the previous one is current again. Waits for nothing.
---@param where millrace.Stream|millrace.Device
---@param fn function
---@param ... any
---@return any ...
function mr.with(where, fn, ...) end

---The host waits for all streams of one device (default: the current device). It does not wait for
---other devices (R10).
---@param device? millrace.Device|integer
function mr.synchronize(device) end

---Returns the host's clock in milliseconds. On the virtual GPU this is virtual time, in which the
---host's own computations take no time.
---@return number ms
function mr.clock() end

---Sets the seed of the random numbers (Philox). The same seed and the same calls give the same numbers
---on every backend.
---@param seed integer
function mr.manual_seed(seed) end

---With true, the host waits for each operation and copy where it is called, like
---CUDA_LAUNCH_BLOCKING=1 (R52). A failure is then raised at its own line, and races are hidden.
---Returns the previous value.
---@param on? boolean
---@return boolean before
function mr.launch_blocking(on) end

---With true, products of f32 matrices and convolutions of f32 may be computed in TF32 on a GPU that
---has it. This is faster, and the inputs are rounded to 10 bits of mantissa. The virtual GPU always
---computes in f32. Returns the previous value; off at the start.
---@param on? boolean
---@return boolean before
function mr.allow_tf32(on) end

---Resets all devices, also after a failure after which every call fails (R50). Pending work is
---dropped, and device memory is freed. Streams, events and device tensors that were made before the
---reset raise an error when they are used. Host tensors keep their values. On a real GPU, after some
---failures (such as an illegal address), the driver gives the process no new context; the error then
---says to restart the program.
function mr.reset() end

---Makes a stream on the current device or on `device`. It is non-blocking by default, as in PyTorch:
---the default stream's barrier does not include it (R4). A lower number is a higher priority; values
---out of range are clamped (R8).
---@param opts? { priority?: integer, nonblocking?: boolean, device?: millrace.Device|integer, name?: string }
---@return millrace.Stream stream
function mr.stream(opts) end

---Returns the legacy default stream. Its work waits for all earlier work of the blocking streams of
---its device, and their later work waits for it (R3).
---@param device? millrace.Device|integer
---@return millrace.Stream stream
function mr.default_stream(device) end

---Returns the per-thread default stream. It is an ordinary blocking stream with a fixed handle (R6).
---@param device? millrace.Device|integer
---@return millrace.Stream stream
function mr.per_thread_stream(device) end

---Returns the current stream. Operations without a `stream` option run on it. At the start it is the
---default stream.
---@param device? millrace.Device|integer
---@return millrace.Stream stream
function mr.current_stream(device) end

---Makes a stream current on its device, and makes that device current. Waits for nothing.
---@param s millrace.Stream
function mr.set_stream(s) end

---Returns the lowest and the highest priority of streams on the current device. The highest is the
---smaller number (R8).
---@return integer least
---@return integer greatest
function mr.priority_range() end

---Later work of each of these streams waits for all work that was submitted to any of them so far. The
---host does not wait.
---@param streams millrace.Stream[]
function mr.barrier(streams) end

---Makes an event. The event belongs to the device of the stream on which it is first recorded (R14).
---elapsed_time needs `timing=true`. With `blocking=true`, the host sleeps instead of polling while it
---waits for the event; this does not change any order (R18).
---@param opts? { timing?: boolean, blocking?: boolean, name?: string }
---@return millrace.Event e
function mr.event(opts) end

---Makes a tensor with these values: nested tables of equal length at each level, or a single value.
---Integers give i64, numbers with a fraction (also 1.0) give f32, booleans give bool, unless `dtype`
---is given. If the tensor is on a device, the values are copied there and the host waits for the copy,
---as with copy_.
---@param values table|number|boolean
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.tensor(values, options) end

---Makes a tensor without writing its values: they are whatever the memory contains. The sizes can also
---be one table. Device memory is allocated in the order of `stream` (default: the current stream).
---@param ... integer|{ dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.empty(...) end

---Makes a tensor of zeros, f32 unless `dtype` is given. The sizes can also be one table.
---@param ... integer|{ dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.zeros(...) end

---Makes a tensor of ones, f32 unless `dtype` is given. The sizes can also be one table.
---@param ... integer|{ dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.ones(...) end

---Makes a tensor in which every element has this value. An integer gives i64, another number f32, a
---boolean bool, unless `dtype` is given. The sizes can also be separate arguments before the value.
---@param sizes integer[]
---@param value number|boolean
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.full(sizes, value, options) end

---Like mr.empty, with the shape of t, and with its dtype and device unless the options give others.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.empty_like(t, options) end

---Makes a tensor of zeros with the shape of t, and with its dtype and device unless the options give
---others.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.zeros_like(t, options) end

---Makes a tensor of ones with the shape of t, and with its dtype and device unless the options give
---others.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.ones_like(t, options) end

---Makes a tensor in which every element has this value, with the shape of t, and with its dtype and
---device unless the options give others.
---@param t millrace.Tensor
---@param value number|boolean
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.full_like(t, value, options) end

---Makes a 1-D tensor of the numbers from `start` up to, but not including, `stop`: mr.arange(3) is 0 1
---2. It is i64 if all three arguments are integers, otherwise f32, unless `dtype` is given.
---@param start? number
---@param stop number
---@param step? number
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.arange(start, stop, step, options) end

---Makes a 1-D tensor of `count` numbers at equal distances, including `first` and `last`; f32 unless
---`dtype` is given.
---@param first number
---@param last number
---@param count integer
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.linspace(first, last, count, options) end

---Makes a matrix with ones on the diagonal and zeros elsewhere; f32 unless `dtype` is given.
---@param rows integer
---@param columns? integer
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream, requires_grad?: boolean }
---@return millrace.Tensor
function mr.eye(rows, columns, options) end

---Makes a tensor of uniform random numbers from 0 up to, but not including, 1; f32 unless `dtype` is
---another floating one. The sizes can also be one table.
---@param ... integer|{ dtype?: string, device?: millrace.Device, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.rand(...) end

---Makes a tensor of random numbers from the normal distribution with mean 0 and standard deviation 1;
---f32 unless `dtype` is another floating one. The sizes can also be one table.
---@param ... integer|{ dtype?: string, device?: millrace.Device, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.randn(...) end

---Like mr.rand, with the shape of t, and with its dtype and device unless the options give others.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device }
---@return millrace.Tensor
function mr.rand_like(t, options) end

---Like mr.randn, with the shape of t, and with its dtype and device unless the options give others.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device }
---@return millrace.Tensor
function mr.randn_like(t, options) end

---Makes a tensor of random integers from `low` up to, but not including, `high`; i64 unless `dtype` is
---given. If both bounds are given, the sizes can also be separate arguments.
---@param low? integer
---@param high integer
---@param sizes integer[]
---@param options? { dtype?: string, device?: millrace.Device, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.randint(low, high, sizes, options) end

---Like mr.randint, with the shape of t, and with its dtype and device unless the options give others.
---@param t millrace.Tensor
---@param low? integer
---@param high integer
---@param options? { dtype?: string, device?: millrace.Device }
---@return millrace.Tensor
function mr.randint_like(t, low, high, options) end

---Makes a tensor of the integers from 1 to n in random order, for use as indices; i64 unless `dtype`
---is given.
---@param n integer
---@param options? { dtype?: string, device?: millrace.Device, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.randperm(n, options) end

---x times the transpose of w (outputs, inputs), plus the bias. The last dim of x holds the inputs; all
---other dims are kept.
---@param x millrace.Tensor
---@param w millrace.Tensor
---@param bias? millrace.Tensor
---@return millrace.Tensor
function mr.linear(x, w, bias) end

---The convolution of sequences (sequences, channels, elements) with weights (outputs, channels /
---groups, elements): conv2d with one row.
---@param x millrace.Tensor
---@param w millrace.Tensor
---@param bias? millrace.Tensor
---@param options? { bias?: millrace.Tensor, stride?: integer, padding?: integer|string, dilation?: integer, groups?: integer }
---@return millrace.Tensor
function mr.conv1d(x, w, bias, options) end

---Each element becomes 0 with probability p; what is kept is divided by 1 - p. Without training it
---returns x. {p=, training=} can be given instead.
---@param x millrace.Tensor
---@param p? number
---@param training? boolean
---@return millrace.Tensor
function mr.dropout(x, p, training) end

---Subtracts the mean over the last dims, whose sizes `shape` lists, divides by the root of their
---variance plus eps, and multiplies by the weight and adds the bias.
---@param x millrace.Tensor
---@param shape integer|integer[]
---@param options? { weight?: millrace.Tensor, bias?: millrace.Tensor, eps?: number }
---@return millrace.Tensor
function mr.layer_norm(x, shape, options) end

---Normalizes each channel, which is the second dim. With training it takes mean and variance of x, and
---moves the running ones towards them by the momentum (the variance as that of a sample); otherwise it
---takes the running ones.
---@param x millrace.Tensor
---@param running_mean millrace.Tensor|nil
---@param running_var millrace.Tensor|nil
---@param options? { weight?: millrace.Tensor, bias?: millrace.Tensor, training?: boolean, momentum?: number, eps?: number }
---@return millrace.Tensor
function mr.batch_norm(x, running_mean, running_var, options) end

---The cross entropy of scores x (items, classes, ...) and targets, which are classes and count from 1:
---nll_loss of log_softmax. Targets of floats, of the shape of x, are the probabilities of the classes.
---With label_smoothing, that part of each target is spread over all classes.
---@param x millrace.Tensor
---@param target millrace.Tensor
---@param options? { weight?: millrace.Tensor, ignore_index?: integer, reduction?: string, label_smoothing?: number }
---@return millrace.Tensor
function mr.cross_entropy(x, target, options) end

---The squares of the differences: their mean, their sum, or ("none") all of them.
---@param x millrace.Tensor
---@param target millrace.Tensor
---@param options? { reduction?: string }
---@return millrace.Tensor
function mr.mse_loss(x, target, options) end

---The absolute differences: their mean, their sum, or ("none") all of them.
---@param x millrace.Tensor
---@param target millrace.Tensor
---@param options? { reduction?: string }
---@return millrace.Tensor
function mr.l1_loss(x, target, options) end

---The cross entropy of two classes: x has the probabilities of the target 1, and the targets are
---floats from 0 to 1. Logarithms count as at least -100.
---@param x millrace.Tensor
---@param target millrace.Tensor
---@param options? { reduction?: string }
---@return millrace.Tensor
function mr.binary_cross_entropy(x, target, options) end

---The transposed convolution of images (images, inputs, rows, columns) with weights (inputs, outputs /
---groups, rows, columns): the gradient of conv2d with the same options.
---@param x millrace.Tensor
---@param w millrace.Tensor
---@param bias? millrace.Tensor
---@param options? { bias?: millrace.Tensor, stride?: integer|table, padding?: integer|table, output_padding?: integer|table, dilation?: integer|table, groups?: integer }
---@return millrace.Tensor
function mr.conv_transpose2d(x, w, bias, options) end

---Another size of the dims behind items and channels, by size= or scale_factor=. The modes are
---"nearest", "linear" for sequences and "bilinear" for images.
---@param x millrace.Tensor
---@param options { size?: integer|table, scale_factor?: number|table, mode?: string, align_corners?: boolean }
---@return millrace.Tensor
function mr.interpolate(x, options) end

---softmax(q @ k^T * scale + mask) @ v. A mask of bools says which keys a query sees; one of floats is
---added. is_causal lets query i see the keys up to i. The scale is 1 / sqrt(the last size of q) by
---default.
---@param q millrace.Tensor
---@param k millrace.Tensor
---@param v millrace.Tensor
---@param options? { attn_mask?: millrace.Tensor, dropout_p?: number, is_causal?: boolean, scale?: number }
---@return millrace.Tensor
function mr.scaled_dot_product_attention(q, k, v, options) end

---The greatest element over everything, a dim or several. In place of max, it returns no positions,
---and equal elements share the gradient.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return millrace.Tensor
function mr.amax(x, dim, keepdim) end

---The least element, as amax gives the greatest.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return millrace.Tensor
function mr.amin(x, dim, keepdim) end

---The logarithm of the sum of exp(x), without overflow.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return millrace.Tensor
function mr.logsumexp(x, dim, keepdim) end

---True where |a - b| <= atol + rtol * |b|. mr.allclose gives one boolean for all elements.
---@param a millrace.Tensor
---@param b millrace.Tensor
---@param options? { rtol?: number, atol?: number, equal_nan?: boolean }
---@return millrace.Tensor
function mr.isclose(a, b, options) end

---Returns x:expand(other.shape), a view.
---@param x millrace.Tensor
---@param other millrace.Tensor
---@return millrace.Tensor
function mr.expand_as(x, other) end

---Returns x:view(other.shape).
---@param x millrace.Tensor
---@param other millrace.Tensor
---@return millrace.Tensor
function mr.view_as(x, other) end

---Repeats x so many times along each dim, as a copy (PyTorch's repeat, which is a word of Lua's).
---Numbers for fewer dims are those of the last ones; for more, x gets dims in front. They can also be
---one table.
---@param x millrace.Tensor
---@param ... integer
---@return millrace.Tensor
function mr.tile(x, ...) end

---Repeats each element so many times along the dim, one after the other, as a copy. Without a dim, x
---counts as a vector.
---@param x millrace.Tensor
---@param times integer
---@param dim? integer
---@return millrace.Tensor
function mr.repeat_interleave(x, times, dim) end

---Returns diagonal k of a matrix, as a copy. For a vector, returns the matrix with it as that diagonal
---and 0 elsewhere. Diagonal 1 is the one above the main diagonal.
---@param x millrace.Tensor
---@param k? integer
---@return millrace.Tensor
function mr.diag(x, k) end

---For each class in `index`, which counts from 1, a row of i64 that is 1 there and 0 elsewhere.
---Without `classes` it is the greatest index, for which the host waits. An index out of range is an
---error as in index_select.
---@param index millrace.Tensor
---@param classes? integer
---@return millrace.Tensor
function mr.one_hot(index, classes) end

---The median: of an even number of elements the lower one of the two in the middle. NaN if any element
---is NaN. Without a dim it is that of all elements, and there are no positions.
---@param x millrace.Tensor
---@param dim? integer
---@param keepdim? boolean
---@return millrace.Tensor values
---@return millrace.Tensor positions
function mr.median(x, dim, keepdim) end

---The different values of x in order, as a vector. The inverse has for each element of x its position
---among them, and the counts say how often each one stands in x. What was not asked for is left out.
---The host waits for the number of values.
---@param x millrace.Tensor
---@param options? { return_inverse?: boolean, return_counts?: boolean }
---@return millrace.Tensor values
---@return millrace.Tensor inverse
---@return millrace.Tensor counts
function mr.unique(x, options) end

---Draws so many positions (from 1), each with a probability in proportion to the element of x there,
---from each row of x. Without replacement no position is drawn twice. The host waits until the
---probabilities have been checked.
---@param x millrace.Tensor
---@param count integer
---@param replacement? boolean
---@return millrace.Tensor positions
function mr.multinomial(x, count, replacement) end

---More elements around x. The sizes are those in front and behind, for each dim from the last one on:
---{left, right, top, bottom}. The modes are "constant", "reflect", "replicate" and "circular"; with
---"constant", a size below 0 takes elements away. {mode=, value=} can be given instead.
---@param x millrace.Tensor
---@param sizes integer[]
---@param mode? string
---@param value? number
---@return millrace.Tensor
function mr.pad(x, sizes, mode, value) end

---A list of x:select(dim, i) for each index of the dim.
---@param x millrace.Tensor
---@param dim? integer
---@return millrace.Tensor[] views
function mr.unbind(x, dim) end

---Products of the operands, summed over all dims that the result has not: mr.einsum("ij,jk->ik", a, b)
---is the matrix product. A letter names a dim; the same letter twice in one operand takes its
---diagonal; `...` stands for further dims, which broadcast. Without an arrow, the result has the
---letters that stand once, in alphabetical order.
---@param equation string
---@param ... millrace.Tensor
---@return millrace.Tensor
function mr.einsum(equation, ...) end

---For each vector a view in which its elements stand along its dim, and are repeated along the dims of
---the others. With the indexing "xy" the first two dims change places.
---@param ... millrace.Tensor|{ indexing?: string }
---@return millrace.Tensor[] grids
function mr.meshgrid(...) end

---Returns the same elements in another shape. One size may be -1; it is computed from the others. The
---result is a view if the strides allow it, otherwise a copy.
---@param t millrace.Tensor
---@param ... integer
---@return millrace.Tensor
function mr.reshape(t, ...) end

---Joins the dims from `first` to `last` into one. The result is a view if the strides allow it,
---otherwise a copy.
---@param t millrace.Tensor
---@param first? integer
---@param last? integer
---@return millrace.Tensor
function mr.flatten(t, first, last) end

---Returns the transposed matrix, as a view. A tensor with fewer than 2 dims is returned unchanged.
---@param t millrace.Tensor
---@return millrace.Tensor
function mr.t(t) end

---Returns a view with two dims exchanged.
---@param t millrace.Tensor
---@param dim1 integer
---@param dim2 integer
---@return millrace.Tensor
function mr.transpose(t, dim1, dim2) end

---Returns a view with the dims in another order. Each dim must be given once.
---@param t millrace.Tensor
---@param ... integer
---@return millrace.Tensor
function mr.permute(t, ...) end

---Returns a view of `length` elements of a dim, starting at element `start` (from 1; negative: from
---the end).
---@param t millrace.Tensor
---@param dim integer
---@param start integer
---@param length integer
---@return millrace.Tensor
function mr.narrow(t, dim, start, length) end

---Returns a view of one index of a dim, without that dim.
---@param t millrace.Tensor
---@param dim integer
---@param index integer
---@return millrace.Tensor
function mr.select(t, dim, index) end

---Returns a view without this dim if its size is 1; without an argument, a view without all dims of
---size 1.
---@param t millrace.Tensor
---@param dim? integer
---@return millrace.Tensor
function mr.squeeze(t, dim) end

---Returns a view with a new dim of size 1 at this position: 1 is first, -1 is last.
---@param t millrace.Tensor
---@param dim integer
---@return millrace.Tensor
function mr.unsqueeze(t, dim) end

---Returns a list of at most `count` views of equal size along a dim. The last one may be smaller.
---@param t millrace.Tensor
---@param count integer
---@param dim? integer
---@return millrace.Tensor[]
function mr.chunk(t, count, dim) end

---Returns a list of views along a dim: views of this size (the last one may be smaller), or of the
---listed sizes, whose sum must be the size of the dim.
---@param t millrace.Tensor
---@param size integer|integer[]
---@param dim? integer
---@return millrace.Tensor[]
function mr.split(t, size, dim) end

---Returns a contiguous copy on the same device, made in its current stream. A copy of a host tensor is
---in pageable memory.
---@param t millrace.Tensor
---@return millrace.Tensor
function mr.clone(t) end

---Returns a copy of x in which scatter_ has set elements.
---@param x millrace.Tensor
---@param dim integer
---@param index millrace.Tensor
---@param source millrace.Tensor|number
---@return millrace.Tensor
function mr.scatter(x, dim, index, source) end

---Returns a copy of x to which scatter_add_ has added.
---@param x millrace.Tensor
---@param dim integer
---@param index millrace.Tensor
---@param source millrace.Tensor
---@return millrace.Tensor
function mr.scatter_add(x, dim, index, source) end

---Returns a copy of x to which index_add_ has added.
---@param x millrace.Tensor
---@param dim integer
---@param index millrace.Tensor
---@param source millrace.Tensor
---@return millrace.Tensor
function mr.index_add(x, dim, index, source) end

---Returns beta * x + alpha * (a @ b): a matrix product to which x is added after broadcasting. With
---beta=0, the values of x are not used, so NaN in x has no effect.
---@param x millrace.Tensor
---@param a millrace.Tensor
---@param b millrace.Tensor
---@param options? { beta?: number, alpha?: number }
---@return millrace.Tensor
function mr.addmm(x, a, b, options) end

---Returns the outer product of two vectors: element i of x times element j of y at row i and column j.
---@param x millrace.Tensor
---@param y millrace.Tensor
---@return millrace.Tensor
function mr.outer(x, y) end

---Concatenates the tensors along a dim. All other sizes must be equal, but a vector without elements
---joins with anything. The dtype of the result is the one to which their dtypes promote.
---@param tensors millrace.Tensor[]
---@param dim? integer
---@return millrace.Tensor
function mr.cat(tensors, dim) end

---Joins tensors of the same shape along a new dim. The dtype of the result is the one to which their
---dtypes promote.
---@param tensors millrace.Tensor[]
---@param dim? integer
---@return millrace.Tensor
function mr.stack(tensors, dim) end

---Calls fn(...) without recording operations for gradients, and returns its results.
---@param fn function
---@param ... any
---@return any ...
function mr.no_grad(fn, ...) end

---Calls fn(...) with recording on, inside mr.no_grad, too, and returns its results.
---@param fn function
---@param ... any
---@return any ...
function mr.enable_grad(fn, ...) end

---Returns false inside mr.no_grad, otherwise true.
---@return boolean
function mr.is_grad_enabled() end

---Returns whether both tensors have the same shape and the same values; NaN is not equal to anything.
---The values of device tensors are copied to the host in the current stream, and the host waits for
---that stream.
---@param a millrace.Tensor
---@param b millrace.Tensor
---@return boolean
function mr.equal(a, b) end

---Returns whether |a - b| <= atol + rtol * |b| for all elements, after broadcasting. The values of
---device tensors are copied to the host in the current stream, and the host waits for that stream.
---@param a millrace.Tensor
---@param b millrace.Tensor
---@param options? { rtol?: number, atol?: number, equal_nan?: boolean }
---@return boolean
function mr.allclose(a, b, options) end

---Returns the values as text, in the form that print shows. Long dims are shortened. The last line has
---dtype, shape and device, and says whether the tensor requires gradients. Copies the values to the
---host in the current stream and waits for it.
---@param t millrace.Tensor
---@return string
function mr.format(t) end

---Like Lua's print, but shows the values of tensors. It copies them to the host in the current stream
---and waits for it. A freed tensor raises an error. Loading the module makes this function the global
---print.
---@param ... any
function mr.print(...) end

---Returns the operation table as data. Each row is {name=, family=, inputs=, dtypes=, result=, flops=,
---formula=, derivative=, forms=, usage=, help=}. `inputs` is how many tensors or numbers it reads
---besides its output, `dtypes` lists the dtypes that it takes, and `flops` is the work for each item.
---`result` is the dtype of the output: "same" as the inputs (promoted), "float" (integers become f32),
---"sum" (integers become i64), "bool" or "i64". `formula` is the expression in C that the loops are
---made of, if it is one. `derivative` is "none" or says how gradients are made. `forms` has the names
---under which a script calls it: {method=, in_place=, mr=}.
---@return table[] rows
function mr.ops() end

---Writes tensors to a file. The ending of the path says which kind: `.npy` holds one tensor, for NumPy
---(np.load); `.safetensors` holds a table of tensors by name, such as a state_dict, and the strings of
---`metadata`. The values of device tensors are copied to the host in the current stream, and the host
---waits for them. The file appears complete or not at all: if something fails, an old file remains as
---it was. Not available under --sandbox.
---@param path string
---@param value millrace.Tensor|table
---@param options? { metadata?: table }
function mr.save(path, value, options) end

---Reads tensors from a file. A `.npy` file of NumPy (np.save) gives one tensor, and one in Fortran
---order a transposed view. A `.safetensors` file gives a table of tensors by name, and the texts of
---its `__metadata__` as a second table. The tensors are in host memory, or on `device`; then they are
---copied there in the current stream, and the host waits for the copies. The file is checked as a
---whole first: a damaged one makes nothing. Not available under --sandbox.
---@param path string
---@param options? { device?: millrace.Device|integer|string, pinned?: boolean, stream?: millrace.Stream }
---@return millrace.Tensor|table
---@return table metadata
function mr.load(path, options) end

---cudaMemcpy, on the legacy default stream. The host waits until the copy is done. From a pageable
---source it waits only until the source has been staged; between device tensors it does not wait (R20,
---R21). Both tensors must be contiguous and have the same dtype and number of bytes.
---@param destination millrace.Tensor
---@param source millrace.Tensor
function mr.memcpy(destination, source) end

---cudaMemcpyAsync, on `stream` or on the current stream of the source's device (if the source is on
---the host: of the destination's device). Returns at once if the host memory is pinned. With pageable
---memory, a copy to the host waits (R22, R23). Both tensors must be contiguous and have the same dtype
---and number of bytes.
---@param destination millrace.Tensor
---@param source millrace.Tensor
---@param options? { stream?: millrace.Stream }
function mr.memcpy_async(destination, source, options) end

---cudaMemset, on the legacy default stream: sets every byte to `byte` (0 to 255). The host waits only
---if t is pinned host memory (R24). t must be contiguous.
---@param t millrace.Tensor
---@param byte integer
function mr.memset(t, byte) end

---cudaMemsetAsync, on `stream` or on the current stream: sets every byte to `byte`. The host never
---waits (R24). t must be contiguous.
---@param t millrace.Tensor
---@param byte integer
---@param options? { stream?: millrace.Stream }
function mr.memset_async(t, byte, options) end

---Submits an abstract operation, to sketch a program. It takes `ms` milliseconds on the device,
---occupies `blocks` multiprocessors, and reads and writes exactly these tensors. A view counts as the
---bytes that it covers. Pinned host tensors are allowed. Each written element becomes a fixed mix of
---the values read and the name, so a different order gives different values.
---@param options { name?: string, reads?: millrace.Tensor[], writes?: millrace.Tensor[], ms?: number, stream?: millrace.Stream, blocks?: integer }
function mr.op(options) end

---Keeps a stream (default: the current stream) busy for this many milliseconds, without any memory
---access. Use it to make overlap and races visible. mr.spin(ms) is also allowed.
---@param options { ms?: number, stream?: millrace.Stream }
function mr.spin(options) end

---Compiles CUDA C++ and returns the kernel of that name, which may be an instance of a template, such
---as `block_sum<256>`; without a name, the only kernel of the source. Sources, options and errors are
---those of mr.module. What the kernel does with the memory behind each pointer is read from its code;
---`access` says it instead, as {y="rw", x="r"}. With `strided`, tensors need not be contiguous. Launch
---it with k[{grid, block}](...).
---@param source string|{ptx
---@param name? string|{name:string,options:string[],access:table,strided:boolean
---@return millrace.Kernel k
function mr.kernel(source, name) end

---Compiles CUDA C++, loads the kernels that are in it, and returns the module. In place of a source:
---{ptx=text}, or {path=file} of a .cu or .ptx file. `options` are those of nvcc, as "-DN=4" or
---"--use_fast_math". `names` lists the instances of templates that are wanted, as `block_sum<256>`. A
---compiler's errors are raised as it wrote them, with the lines of your file. NVRTC or clang compiles;
---MILLRACE_COMPILER chooses. What was compiled is kept on disk.
---@param source string|{ptx
---@param options? { options?: string[], names?: string[] }
---@return millrace.Module m
function mr.module(source, options) end

---Makes a function that computes each element with a statement of CUDA C: mr.elementwise("float a,
---float x, float y -> float z", "z = a * x + y"). Call it as f(a, x, y) for new tensors, or with
---{out=z} as the last argument; several outputs are listed: {out={z, w}}. Inputs are tensors, which
---broadcast, or numbers. Types are float, double, __half, __nv_bfloat16, int, long long, unsigned char
---and bool. In the statement, inputs are values (of the two halves: float), outputs are variables, `i`
---is the position of the element in row-major order, from 0, and `n` the number of elements.
---{stream=s} says where it runs. A kernel is compiled at the first call that needs it. An input that
---requires gradients is an error, unless derivative={x = "2 * x * g"} has an expression for it: of the
---inputs, the output and its gradient `g`. f:source() returns the CUDA C of the kernel for contiguous
---tensors of one shape.
---@param signature string
---@param statement string
---@param name? string|{name:string,options:string[],derivative:table}
---@return function f
function mr.elementwise(signature, statement, name) end

---Runs `fn(...)`, waits until all devices are done, and returns a trace of it, and then what `fn`
---returned. An error in `fn` is raised.
---@param fn function
---@param ... any
---@return millrace.Trace trace
---@return any ...
function mr.timeline(fn, ...) end

---Names calls that make the host wait for a device although they are not called synchronize: item(),
---print(t), copies that block or are of pageable memory, t:free{sync=true}. "warn": a line on standard
---error for each place of the script, with the time that the host stood there; "error": the call
---raises before it waits; "off" (costs nothing). Like torch.cuda.set_sync_debug_mode. Returns the
---previous mode.
---@param mode? string
---@return string before
function mr.sync_debug(mode) end

---Runs `fn` under every order that CUDA's rules allow and that can make a difference: one schedule of
---each class of equivalent ones (virtual GPU only). What `fn` returns, or the error that it raises, is
---the outcome; tensors count by their bytes after all work. Returns {schedules=, complete=,
---incomplete= (why not), deterministic=, not_followed= (clauses, or nil), outcomes={{value=, error=,
---count=, schedule=, steps=}, ...}, hazards= (as mr.hazard.check), runs=, interrupted= (by Ctrl-C:
---what was found by then)}; print it. `fn` must do the same when it is called again and reads the same
---values; it is called again only where it reads others. `max` and `time` (seconds) bound the search;
---`grain` cuts each operation into so many parts; `preempt` bounds the pairs that run against the
---order of submission, and tries those schedules first that have the fewest; `polls` is how often in a
---row a query says no; `unspecified` also tries what CUDA leaves open besides the order; with `seeds`
---so many schedules are drawn at random instead.
---@param fn function
---@param options? { max?: integer, time?: number, grain?: integer, preempt?: integer, polls?: integer, unspecified?: boolean, seeds?: integer, seed?: integer }
---@return table result
function mr.explore(fn, options) end

---Runs `fn` under a schedule that mr.explore has found, and returns what it returns. Everything that
---`fn` uses must be as it was then.
---@param schedule string
---@param fn function
---@return any ...
function mr.replay(schedule, fn) end

---Calls `fn` so many times, with delays of the device at random between its operations, and returns
---the values that it came to: {runs=, outcomes={{value=, error=, count=, seed=}, ...}}; print it.
---Ctrl-C ends it with the calls so far, and interrupted=true. For any backend; what mr.explore proves
---on the virtual GPU, this can only find. A delay takes at most `ms` milliseconds. {runs=1, seed=s}
---repeats the delays of an outcome. On a real GPU, tensors of the device that `fn` finds outside of
---itself are not put back between the calls. With `schedule`, a text that mr.explore has found, there
---are no delays: each call carries out its operations in this order, also on a real GPU. `followed` is
---then the number of calls that did, and `unfollowed` why another one could not. A call in which
---nothing goes on for `patience` milliseconds gives the schedule up (real GPU only).
---@param fn function
---@param options? { runs?: integer, seed?: integer, ms?: number, schedule?: string, patience?: number }
---@return table result
function mr.stress(fn, options) end

---Runs `fn()` once and tells which of its waits are needed: wait_event, wait_stream, each member of a
---barrier, synchronize. The commands are shown to the hazard checker without each of them; nothing
---runs again. The result can be printed. It has total, sufficient (the size of a smallest set that is
---enough); exact (whether no smaller one is), hazards (accesses that have one already); not_followed
---(clauses, or nil); makespan_ms, sufficient_ms (with only that set), and waits: for each line {kind=,
---where=, who=, verdict="needed", "together" (others do the same, and not all can go), "unknown" (it
---orders what nobody follows: host functions, an answer, atomic updates) or "redundant"; kept= (in
---that set), because=, rounds=, needed_rounds=, costs_ms= (what the program would take less without
---it, by the device model), instead= (something cheaper)}, and record_streams: for each line that
---calls record_stream {where=, tensor=, stream=, verdict=, kept=, because=, rounds=}. `costs`: predict
---all costs, also of a long program. After Ctrl-C it has what was found by then: complete=false,
---interrupted=true; without sufficient, only needed waits are listed.
---@param fn function
---@param opts? { costs?: boolean }
---@return table result
function mr.waits(fn, opts) end

---Prints help about a function, an object, or a name such as "add_", "stream", "mr.memory" or
---"one-way" (a word of the hazard checker); an ordering rule ("R13"); "examples", or the text of one
---of them ("fan_out"); or what the pages of docs/ say about a word ("overlap"). Without an argument,
---it prints the first steps. The line length is the width of the terminal, or the value of COLUMNS.
---@param what? any
function mr.help(what) end

---Returns the documentation as data. First {name=, owner=, kind=, usage= or type=, text=, part=} for
---each function and property, in the order of the reference page; then {name=, text=} for each class
---and table; then {name=, kind=, text=} for each word of the hazard checker: a "kind" of hazard, a
---"reason", a kind of "advice", a "limit" or a "condition" of its verdict.
---@return table[] entries
---@return table[] classes
---@return table[] words
function mr.docs() end

---The host waits for all streams of this device (R10). The same as mr.synchronize(d).
function Device:synchronize() end

---Returns whether kernels of this device can access the memory of the other device directly (R59).
---@param peer millrace.Device|integer
---@return boolean possible
function Device:can_access_peer(peer) end

---Lets kernels of this device access the memory of the other device directly. This is for one
---direction only. Copies between the two devices then no longer go through the host. A second call is
---an error: peer-access-already-enabled (R59).
---@param peer millrace.Device|integer
function Device:enable_peer_access(peer) end

---Later work of `s` waits for the event's most recent record. The host does not wait (R12, R15). A
---wait for an event that was never recorded has no effect (R13). `external`: if `s` captures a graph,
---each launch waits for the record that is then the most recent (R45).
---@param e millrace.Event
---@param opts? { external?: boolean }
function Stream:wait_event(e, opts) end

---Later work of `s` waits for all work that was submitted to `other` so far. The host does not wait.
---@param other millrace.Stream
function Stream:wait_stream(other) end

---Calls wait_event or wait_stream, depending on the type of `x`.
---@param x millrace.Event|millrace.Stream
function Stream:wait(x) end

---Records an event (`e`, or a new one) after all work that was submitted to `s` so far, and returns
---the event (R11). `external`: if `s` captures a graph, each launch records the event (R45).
---@param e? millrace.Event
---@param opts? { external?: boolean }
---@return millrace.Event e
function Stream:record_event(e, opts) end

---The host waits for all work that was submitted to `s` so far (R10). For the default stream, this
---includes only the work of blocking streams that was submitted before the default stream's last
---command. GPUs were seen to wait for the rest, too, but CUDA does not guarantee it (R5).
---mr.synchronize() waits for everything.
function Stream:synchronize() end

---Returns whether all submitted work is done. Never waits. The answer `true` orders like synchronize
---(R10).
---@return boolean done
function Stream:query() end

---The same as mr.with(s, fn, ...).
---@param fn function
---@param ... any
---@return any ...
function Stream:run(fn, ...) end

---Makes `s` current until the returned scope is closed: `local _ <close> = s:scope()`.
---@return scope scope
function Stream:scope() end

---Submits a host function: `fn()` runs after the earlier work and before the later work of the stream.
---It runs in the Lua thread while the host waits or queries (R46). `fn` must not use the device. If it
---fails, the call that waited raises the error.
---@param fn function
function Stream:host_func(fn) end

---Closes the stream. Returns at once; pending work still runs (R9). Later use of `s` is an error;
---closing it again is not. A stream on which a capture began is closed after the end of that.
function Stream:close() end

---Returns whether the stream captures: it began a capture, or joined one. Also true for a capture that
---has been invalidated (R38).
---@return boolean capturing
function Stream:is_capturing() end

---Returns {status="none", "active" or "invalidated", id=, mode=, nodes= (so far), where= (of its
---begin), origin= (the stream that began it), reason= and reason_where= (the call that invalidated
---it)}.
---@return table info
function Stream:capture_info() end

---Captures all work that was submitted to `s` (default: the current stream) so far. Replaces the
---previous record (R11, R12). `external`: if `s` captures a graph, each launch records the event
---(R45).
---@param s? millrace.Stream
---@param opts? { external?: boolean }
---@return millrace.Event e
function Event:record(s, opts) end

---Later work of `s` (default: the current stream) waits for the most recent record. The host does not
---wait (R12, R15). `external`: if `s` captures a graph, each launch waits for the record that is then
---the most recent (R45).
---@param s? millrace.Stream
---@param opts? { external?: boolean }
function Event:wait(s, opts) end

---The host waits for the most recent record. If there is none, it returns at once (R13).
function Event:synchronize() end

---Returns whether the work that the most recent record captured is done; true if the event was never
---recorded (R13). Never waits. The answer `true` orders like synchronize.
---@return boolean done
function Event:query() end

---Returns the milliseconds on the device between the two records. There are three different errors:
---the event was made without timing=true, it was never recorded, or the record is not complete (R17).
---@param later millrace.Event
---@return number ms
function Event:elapsed_time(later) end

---Closes the event. Returns at once; waits that are already submitted stay valid (R19).
function Event:close() end

---Frees the memory of this tensor and all its views; any later use of them is an error. The free is in
---the order of the stream on which the tensor was allocated, or of `stream` (cudaFreeAsync). With
---sync=true it frees at once, like cudaFree. cudaFree does not wait here: it assumes that all work on
---the memory is done, so wait for that work first (R27). Freeing twice is an error.
---@param options? { stream?: millrace.Stream, sync?: boolean }
function Tensor:free(options) end

---Says that work on `s` uses the memory. When the tensor is freed, the memory is reused only after the
---work that was submitted to `s` before the free (R33). Without this call, memory that another stream
---still uses may be overwritten. Returns t.
---@param s millrace.Stream
---@return millrace.Tensor
function Tensor:record_stream(s) end

---Without an argument, returns the name that messages and reports use, or nil. With an argument, sets
---the name and returns t. If several views of a storage have names, messages use the last one that was
---set.
---@param name? string
---@return string
function Tensor:name(name) end

---Returns the size of a dim (from 1; negative: from the end), or all sizes as a table.
---@param dim? integer
---@return integer|integer[]
function Tensor:size(dim) end

---Returns a view with the same elements in another shape. One size may be -1; it is computed from the
---others. If the strides do not allow a view, it is an error; reshape copies in that case.
---@param ... integer
---@return millrace.Tensor
function Tensor:view(...) end

---Returns the same elements in another shape. One size may be -1; it is computed from the others. The
---result is a view if the strides allow it, otherwise a copy.
---@param ... integer
---@return millrace.Tensor
function Tensor:reshape(...) end

---Joins the dims from `first` to `last` into one. The result is a view if the strides allow it,
---otherwise a copy.
---@param first? integer
---@param last? integer
---@return millrace.Tensor
function Tensor:flatten(first, last) end

---Returns the transposed matrix, as a view. A tensor with fewer than 2 dims is returned unchanged.
---@return millrace.Tensor
function Tensor:t() end

---Returns a view with two dims exchanged.
---@param dim1 integer
---@param dim2 integer
---@return millrace.Tensor
function Tensor:transpose(dim1, dim2) end

---Returns a view with the dims in another order. Each dim must be given once.
---@param ... integer
---@return millrace.Tensor
function Tensor:permute(...) end

---Returns a view of `length` elements of a dim, starting at element `start` (from 1; negative: from
---the end).
---@param dim integer
---@param start integer
---@param length integer
---@return millrace.Tensor
function Tensor:narrow(dim, start, length) end

---Returns a view of one index of a dim, without that dim.
---@param dim integer
---@param index integer
---@return millrace.Tensor
function Tensor:select(dim, index) end

---Returns a view without this dim if its size is 1; without an argument, a view without all dims of
---size 1.
---@param dim? integer
---@return millrace.Tensor
function Tensor:squeeze(dim) end

---Returns a view with a new dim of size 1 at this position: 1 is first, -1 is last.
---@param dim integer
---@return millrace.Tensor
function Tensor:unsqueeze(dim) end

---Returns a view in which dims of size 1, and new dims in front, repeat their elements. A size of -1
---keeps the size. Several elements of the view share one place in memory, so the view cannot be
---written.
---@param ... integer
---@return millrace.Tensor
function Tensor:expand(...) end

---Returns a list of at most `count` views of equal size along a dim. The last one may be smaller.
---@param count integer
---@param dim? integer
---@return millrace.Tensor[]
function Tensor:chunk(count, dim) end

---Returns a list of views along a dim: views of this size (the last one may be smaller), or of the
---listed sizes, whose sum must be the size of the dim.
---@param size integer|integer[]
---@param dim? integer
---@return millrace.Tensor[]
function Tensor:split(size, dim) end

---Returns a contiguous copy on the same device, made in its current stream. A copy of a host tensor is
---in pageable memory.
---@return millrace.Tensor
function Tensor:clone() end

---Returns t itself if it is contiguous, otherwise a contiguous copy.
---@return millrace.Tensor
function Tensor:contiguous() end

---Copies the values of `source` into t, with broadcasting and conversion to t's dtype, between any two
---memories. Runs on the current stream of the device. If one of the tensors is on the host, the host
---then waits for that stream, unless non_blocking is set. A copy between two devices runs on the
---current stream of the source's device; it first waits for the current stream of the other device,
---and that stream then waits for the copy. Returns t.
---@param source millrace.Tensor
---@param options? { non_blocking?: boolean }
---@return millrace.Tensor
function Tensor:copy_(source, options) end

---Returns the tensor on a device (an object, an ordinal, "cuda", "cuda:1"), on the host ("cpu"), with
---a dtype ("f64"), or with the device and dtype of another tensor. Two of these can be given. Returns
---t itself if nothing changes, otherwise a copy, made as by copy_. With non_blocking, a copy to the
---host is in pinned memory, and its values are there after a wait for the stream.
---@param ... millrace.Device|integer|string|millrace.Tensor|{ non_blocking?: boolean }
---@return millrace.Tensor
function Tensor:to(...) end

---The same as t:to("cpu"): returns the tensor in host memory. The host waits for the values, unless
---non_blocking is set.
---@param options? { non_blocking?: boolean }
---@return millrace.Tensor
function Tensor:cpu(options) end

---Returns the tensor on this device (default: the current device); t itself if it is already there.
---@param device? millrace.Device|integer
---@param options? { non_blocking?: boolean }
---@return millrace.Tensor
function Tensor:cuda(device, options) end

---Returns a copy of a host tensor in pinned memory, which the device can access without the host; t
---itself if it is already pinned.
---@return millrace.Tensor
function Tensor:pin_memory() end

---Returns the value of a tensor with one element as an integer, a float or a boolean, depending on its
---dtype. The value of a device tensor is copied in the current stream, and the host waits for that
---stream.
---@return number|boolean
function Tensor:item() end

---Returns the values as nested tables of integers, floats or booleans; for a 0-dim tensor, the value
---itself. The values of a device tensor are copied in the current stream, and the host waits for that
---stream.
---@return table
function Tensor:totable() end

---Returns whether at least one element is NaN. For floats this asks the device in the current stream,
---and the host waits for that stream; integers and bools are never NaN.
---@return boolean
function Tensor:has_nan() end

---x times the transpose of w (outputs, inputs), plus the bias. The last dim of x holds the inputs; all
---other dims are kept.
---@param w millrace.Tensor
---@param bias? millrace.Tensor
---@return millrace.Tensor
function Tensor:linear(w, bias) end

---The convolution of sequences (sequences, channels, elements) with weights (outputs, channels /
---groups, elements): conv2d with one row.
---@param w millrace.Tensor
---@param bias? millrace.Tensor
---@param options? { bias?: millrace.Tensor, stride?: integer, padding?: integer|string, dilation?: integer, groups?: integer }
---@return millrace.Tensor
function Tensor:conv1d(w, bias, options) end

---Each element becomes 0 with probability p; what is kept is divided by 1 - p. Without training it
---returns x. {p=, training=} can be given instead.
---@param p? number
---@param training? boolean
---@return millrace.Tensor
function Tensor:dropout(p, training) end

---Subtracts the mean over the last dims, whose sizes `shape` lists, divides by the root of their
---variance plus eps, and multiplies by the weight and adds the bias.
---@param shape integer|integer[]
---@param options? { weight?: millrace.Tensor, bias?: millrace.Tensor, eps?: number }
---@return millrace.Tensor
function Tensor:layer_norm(shape, options) end

---Normalizes each channel, which is the second dim. With training it takes mean and variance of x, and
---moves the running ones towards them by the momentum (the variance as that of a sample); otherwise it
---takes the running ones.
---@param running_mean millrace.Tensor|nil
---@param running_var millrace.Tensor|nil
---@param options? { weight?: millrace.Tensor, bias?: millrace.Tensor, training?: boolean, momentum?: number, eps?: number }
---@return millrace.Tensor
function Tensor:batch_norm(running_mean, running_var, options) end

---The cross entropy of scores x (items, classes, ...) and targets, which are classes and count from 1:
---nll_loss of log_softmax. Targets of floats, of the shape of x, are the probabilities of the classes.
---With label_smoothing, that part of each target is spread over all classes.
---@param target millrace.Tensor
---@param options? { weight?: millrace.Tensor, ignore_index?: integer, reduction?: string, label_smoothing?: number }
---@return millrace.Tensor
function Tensor:cross_entropy(target, options) end

---The squares of the differences: their mean, their sum, or ("none") all of them.
---@param target millrace.Tensor
---@param options? { reduction?: string }
---@return millrace.Tensor
function Tensor:mse_loss(target, options) end

---The absolute differences: their mean, their sum, or ("none") all of them.
---@param target millrace.Tensor
---@param options? { reduction?: string }
---@return millrace.Tensor
function Tensor:l1_loss(target, options) end

---The cross entropy of two classes: x has the probabilities of the target 1, and the targets are
---floats from 0 to 1. Logarithms count as at least -100.
---@param target millrace.Tensor
---@param options? { reduction?: string }
---@return millrace.Tensor
function Tensor:binary_cross_entropy(target, options) end

---The transposed convolution of images (images, inputs, rows, columns) with weights (inputs, outputs /
---groups, rows, columns): the gradient of conv2d with the same options.
---@param w millrace.Tensor
---@param bias? millrace.Tensor
---@param options? { bias?: millrace.Tensor, stride?: integer|table, padding?: integer|table, output_padding?: integer|table, dilation?: integer|table, groups?: integer }
---@return millrace.Tensor
function Tensor:conv_transpose2d(w, bias, options) end

---Another size of the dims behind items and channels, by size= or scale_factor=. The modes are
---"nearest", "linear" for sequences and "bilinear" for images.
---@param options { size?: integer|table, scale_factor?: number|table, mode?: string, align_corners?: boolean }
---@return millrace.Tensor
function Tensor:interpolate(options) end

---softmax(q @ k^T * scale + mask) @ v. A mask of bools says which keys a query sees; one of floats is
---added. is_causal lets query i see the keys up to i. The scale is 1 / sqrt(the last size of q) by
---default.
---@param k millrace.Tensor
---@param v millrace.Tensor
---@param options? { attn_mask?: millrace.Tensor, dropout_p?: number, is_causal?: boolean, scale?: number }
---@return millrace.Tensor
function Tensor:scaled_dot_product_attention(k, v, options) end

---The greatest element over everything, a dim or several. In place of max, it returns no positions,
---and equal elements share the gradient.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return millrace.Tensor
function Tensor:amax(dim, keepdim) end

---The least element, as amax gives the greatest.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return millrace.Tensor
function Tensor:amin(dim, keepdim) end

---The logarithm of the sum of exp(x), without overflow.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@return millrace.Tensor
function Tensor:logsumexp(dim, keepdim) end

---True where |a - b| <= atol + rtol * |b|. mr.allclose gives one boolean for all elements.
---@param b millrace.Tensor
---@param options? { rtol?: number, atol?: number, equal_nan?: boolean }
---@return millrace.Tensor
function Tensor:isclose(b, options) end

---Returns x:expand(other.shape), a view.
---@param other millrace.Tensor
---@return millrace.Tensor
function Tensor:expand_as(other) end

---Returns x:view(other.shape).
---@param other millrace.Tensor
---@return millrace.Tensor
function Tensor:view_as(other) end

---Repeats x so many times along each dim, as a copy (PyTorch's repeat, which is a word of Lua's).
---Numbers for fewer dims are those of the last ones; for more, x gets dims in front. They can also be
---one table.
---@param ... integer
---@return millrace.Tensor
function Tensor:tile(...) end

---Repeats each element so many times along the dim, one after the other, as a copy. Without a dim, x
---counts as a vector.
---@param times integer
---@param dim? integer
---@return millrace.Tensor
function Tensor:repeat_interleave(times, dim) end

---Returns diagonal k of a matrix, as a copy. For a vector, returns the matrix with it as that diagonal
---and 0 elsewhere. Diagonal 1 is the one above the main diagonal.
---@param k? integer
---@return millrace.Tensor
function Tensor:diag(k) end

---For each class in `index`, which counts from 1, a row of i64 that is 1 there and 0 elsewhere.
---Without `classes` it is the greatest index, for which the host waits. An index out of range is an
---error as in index_select.
---@param classes? integer
---@return millrace.Tensor
function Tensor:one_hot(classes) end

---The median: of an even number of elements the lower one of the two in the middle. NaN if any element
---is NaN. Without a dim it is that of all elements, and there are no positions.
---@param dim? integer
---@param keepdim? boolean
---@return millrace.Tensor values
---@return millrace.Tensor positions
function Tensor:median(dim, keepdim) end

---The different values of x in order, as a vector. The inverse has for each element of x its position
---among them, and the counts say how often each one stands in x. What was not asked for is left out.
---The host waits for the number of values.
---@param options? { return_inverse?: boolean, return_counts?: boolean }
---@return millrace.Tensor values
---@return millrace.Tensor inverse
---@return millrace.Tensor counts
function Tensor:unique(options) end

---Draws so many positions (from 1), each with a probability in proportion to the element of x there,
---from each row of x. Without replacement no position is drawn twice. The host waits until the
---probabilities have been checked.
---@param count integer
---@param replacement? boolean
---@return millrace.Tensor positions
function Tensor:multinomial(count, replacement) end

---More elements around x. The sizes are those in front and behind, for each dim from the last one on:
---{left, right, top, bottom}. The modes are "constant", "reflect", "replicate" and "circular"; with
---"constant", a size below 0 takes elements away. {mode=, value=} can be given instead.
---@param sizes integer[]
---@param mode? string
---@param value? number
---@return millrace.Tensor
function Tensor:pad(sizes, mode, value) end

---A list of x:select(dim, i) for each index of the dim.
---@param dim? integer
---@return millrace.Tensor[] views
function Tensor:unbind(dim) end

---Returns a copy of x in which scatter_ has set elements.
---@param dim integer
---@param index millrace.Tensor
---@param source millrace.Tensor|number
---@return millrace.Tensor
function Tensor:scatter(dim, index, source) end

---Returns a copy of x to which scatter_add_ has added.
---@param dim integer
---@param index millrace.Tensor
---@param source millrace.Tensor
---@return millrace.Tensor
function Tensor:scatter_add(dim, index, source) end

---Returns a copy of x to which index_add_ has added.
---@param dim integer
---@param index millrace.Tensor
---@param source millrace.Tensor
---@return millrace.Tensor
function Tensor:index_add(dim, index, source) end

---Returns beta * x + alpha * (a @ b): a matrix product to which x is added after broadcasting. With
---beta=0, the values of x are not used, so NaN in x has no effect.
---@param a millrace.Tensor
---@param b millrace.Tensor
---@param options? { beta?: number, alpha?: number }
---@return millrace.Tensor
function Tensor:addmm(a, b, options) end

---Returns the outer product of two vectors: element i of x times element j of y at row i and column j.
---@param y millrace.Tensor
---@return millrace.Tensor
function Tensor:outer(y) end

---Says that gradients for this tensor are wanted: operations on it are recorded from now on, and
---t:backward() of what is computed from it adds to t.grad. Only tensors of floats can require
---gradients. Returns t.
---@param on? boolean
---@return millrace.Tensor
function Tensor:requires_grad_(on) end

---Returns a tensor with the same memory that takes no part in gradients.
---@return millrace.Tensor
function Tensor:detach() end

---Says that t.grad is wanted although t is the result of an operation; without it only leaves get one.
---Returns t.
---@return millrace.Tensor
function Tensor:retain_grad() end

---Computes the gradients of t with respect to the leaves that it was computed from, and adds them to
---their `grad`. `gradient` is the gradient of t itself; for a tensor with one element it can be left
---out and is 1. Each operation's gradient is computed on the stream on which the operation ran; the
---work of this call begins after what the current stream has, and the current stream waits for all
---gradients. The graph is freed, unless retain_graph is set. The host does not wait.
---@param gradient? millrace.Tensor
---@param options? { retain_graph?: boolean }
function Tensor:backward(gradient, options) end

---Returns whether both tensors have the same shape and the same values; NaN is not equal to anything.
---The values of device tensors are copied to the host in the current stream, and the host waits for
---that stream.
---@param b millrace.Tensor
---@return boolean
function Tensor:equal(b) end

---Returns whether |a - b| <= atol + rtol * |b| for all elements, after broadcasting. The values of
---device tensors are copied to the host in the current stream, and the host waits for that stream.
---@param b millrace.Tensor
---@param options? { rtol?: number, atol?: number, equal_nan?: boolean }
---@return boolean
function Tensor:allclose(b, options) end

---Returns the values of t as they are now, half-written ones included, as a new host tensor. Unlike
---cpu() it submits nothing, waits for nothing and orders nothing, and for the hazard checker it is no
---access. Only on the virtual GPU: real hardware does not show its memory without an access.
---@return millrace.Tensor
function Tensor:peek() end

---Returns the gradients of the sum of the outputs with respect to each input, and leaves every `grad`
---as it is. An input that no output depends on is an error; with allow_unused=true its gradient is
---nil. With create_graph=true the gradients are recorded, so that they have gradients themselves, and
---the graph stays. Streams are as for t:backward().
---@param outputs millrace.Tensor|millrace.Tensor[]
---@param inputs millrace.Tensor|millrace.Tensor[]
---@param gradients? millrace.Tensor|millrace.Tensor[]
---@param options? { retain_graph?: boolean, allow_unused?: boolean, create_graph?: boolean }
---@return millrace.Tensor
function mr.autograd.grad(outputs, inputs, gradients, options) end

---Makes an operation with a derivative of its own. f(...) calls forward(ctx, ...), whose operations
---are not recorded. backward(ctx, g1, ...) gets the gradient of each result and returns the gradient
---of each argument, or nil. ctx:save_for_backward(t, ...) keeps tensors, which ctx:saved_tensors()
---returns in backward; other fields of ctx are free.
---@param options { forward?: function, backward?: function, name?: string }
---@return function f
function mr.autograd.Function(options) end

---Makes t a parameter: it requires gradients, and a module that it is assigned to registers it.
---@param t millrace.Tensor
---@param requires_grad? boolean
---@return millrace.Tensor t
function mr.nn.Parameter(t, requires_grad) end

---Calls its modules one after the other. They are named from "1" on: m:get(1) is the first.
---@param ... table
---@return table module
function mr.nn.Sequential(...) end

---A list of modules. It is registered where it is assigned, unlike a table of modules. l[i], l:get(i),
---#l, l:append(module); it has no forward.
---@param modules? table[]
---@return table module
function mr.nn.ModuleList(modules) end

---x times the transposed weight, plus the bias.
---@param inputs integer
---@param outputs integer
---@param options? { bias?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.Linear(inputs, outputs, options) end

---The convolution of sequences (sequences, channels, elements). The padding can be a word as of
---Conv2d.
---@param inputs integer
---@param outputs integer
---@param kernel_size integer
---@param options? { stride?: integer, padding?: integer|string, dilation?: integer, groups?: integer, bias?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.Conv1d(inputs, outputs, kernel_size, options) end

---The convolution of images (images, channels, rows, columns). Sizes are a number or {rows, columns}.
---With the padding "same" the result has as many rows and columns as the input; "valid" is none.
---@param inputs integer
---@param outputs integer
---@param kernel_size integer|table
---@param options? { stride?: integer|table, padding?: integer|table|string, dilation?: integer|table, groups?: integer, bias?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.Conv2d(inputs, outputs, kernel_size, options) end

---The transposed convolution of images: x:conv_transpose2d.
---@param inputs integer
---@param outputs integer
---@param kernel_size integer|table
---@param options? { stride?: integer|table, padding?: integer|table, output_padding?: integer|table, dilation?: integer|table, groups?: integer, bias?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.ConvTranspose2d(inputs, outputs, kernel_size, options) end

---x:interpolate with these options.
---@param options { size?: integer|table, scale_factor?: number|table, mode?: string, align_corners?: boolean }
---@return table module
function mr.nn.Upsample(options) end

---lstm(x, {h, c}) returns the results of all steps and the list {h, c} of the last states. x has the
---shape (steps, sequences, inputs), or with batch_first (sequences, steps, inputs); a state (layers *
---directions, sequences, size). Without states, they are 0.
---@param inputs integer
---@param size integer
---@param options? { num_layers?: integer, bias?: boolean, batch_first?: boolean, dropout?: number, bidirectional?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.LSTM(inputs, size, options) end

---gru(x, h) returns the results of all steps and the last state. Shapes are those of LSTM.
---@param inputs integer
---@param size integer
---@param options? { num_layers?: integer, bias?: boolean, batch_first?: boolean, dropout?: number, bidirectional?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.GRU(inputs, size, options) end

---x:binary_cross_entropy(target): loss(probabilities, target).
---@param options? { weight?: millrace.Tensor, reduction?: string }
---@return table module
function mr.nn.BCELoss(options) end

---As BatchNorm2d, for rows (rows, channels) or sequences (sequences, channels, elements).
---@param channels integer
---@param options? { eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.BatchNorm1d(channels, options) end

---Each channel of images less its mean, divided by its standard deviation: those of the batch while
---the module is trained, and running ones otherwise.
---@param channels integer
---@param options? { eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.BatchNorm2d(channels, options) end

---A table of vectors; the input is a tensor of indices, which count from 1.
---@param count integer
---@param size integer
---@param options? { dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.Embedding(count, size, options) end

---The input less its mean over the last dims, divided by its standard deviation.
---@param shape integer|integer[]
---@param options? { eps?: number, elementwise_affine?: boolean, dtype?: string, device?: millrace.Device }
---@return table module
function mr.nn.LayerNorm(shape, options) end

---x:relu().
---@return table module
function mr.nn.ReLU() end

---x:gelu().
---@return table module
function mr.nn.GELU() end

---x:silu().
---@return table module
function mr.nn.SiLU() end

---x:softplus().
---@return table module
function mr.nn.Softplus() end

---x:leaky_relu(negative_slope).
---@param negative_slope? number
---@return table module
function mr.nn.LeakyReLU(negative_slope) end

---x:elu(alpha).
---@param alpha? number
---@return table module
function mr.nn.ELU(alpha) end

---x:tanh().
---@return table module
function mr.nn.Tanh() end

---x:sigmoid().
---@return table module
function mr.nn.Sigmoid() end

---x:softmax(dim).
---@param dim integer
---@return table module
function mr.nn.Softmax(dim) end

---x:log_softmax(dim).
---@param dim integer
---@return table module
function mr.nn.LogSoftmax(dim) end

---Sets elements to 0 with probability p while the module is trained, and divides the others by 1 - p.
---@param p? number
---@return table module
function mr.nn.Dropout(p) end

---Returns its input.
---@return table module
function mr.nn.Identity() end

---x:flatten(first, last): by default all dims but that of the batch.
---@param first? integer
---@param last? integer
---@return table module
function mr.nn.Flatten(first, last) end

---The greatest element of each window.
---@param kernel_size integer|table
---@param options? { stride?: integer|table, padding?: integer|table, dilation?: integer|table, ceil_mode?: boolean }
---@return table module
function mr.nn.MaxPool2d(kernel_size, options) end

---The mean of each window.
---@param kernel_size integer|table
---@param options? { stride?: integer|table, padding?: integer|table, ceil_mode?: boolean, count_include_pad?: boolean }
---@return table module
function mr.nn.AvgPool2d(kernel_size, options) end

---The means of as many windows as the result shall have rows and columns.
---@param size integer|table
---@return table module
function mr.nn.AdaptiveAvgPool2d(size) end

---The mean of the squares of the differences: loss(x, target). reduction is "mean", "sum" or "none".
---@param options? { reduction?: string }
---@return table module
function mr.nn.MSELoss(options) end

---The mean of the absolute differences: loss(x, target).
---@param options? { reduction?: string }
---@return table module
function mr.nn.L1Loss(options) end

---Half of the square of a difference up to delta, and delta times the rest of it from there on.
---@param options? { delta?: number, reduction?: string }
---@return table module
function mr.nn.HuberLoss(options) end

---HuberLoss with delta=beta, divided by beta.
---@param options? { beta?: number, reduction?: string }
---@return table module
function mr.nn.SmoothL1Loss(options) end

---The cross entropy of two classes: loss(x, target), where sigmoid(x) is the probability of the target
---1, and the targets are floats from 0 to 1. pos_weight multiplies the loss of the targets 1.
---@param options? { weight?: millrace.Tensor, pos_weight?: millrace.Tensor, reduction?: string }
---@return table module
function mr.nn.BCEWithLogitsLoss(options) end

---The negative logarithm of the probability of the target class: loss(log_probabilities, classes);
---classes count from 1.
---@param options? { weight?: millrace.Tensor, ignore_index?: integer, reduction?: string }
---@return table module
function mr.nn.NLLLoss(options) end

---NLLLoss of the log_softmax of the input: loss(scores, classes).
---@param options? { weight?: millrace.Tensor, ignore_index?: integer, reduction?: string, label_smoothing?: number }
---@return table module
function mr.nn.CrossEntropyLoss(options) end

---Makes a class of modules. Give it a method `init`, which gets the arguments of class(...) and
---assigns parameters and other modules to fields of self, and a method `forward`, which calling a
---module calls. mr.nn.Module() makes an empty module without a class: assign its parts and `forward`
---to its fields.
---@param name string
---@param parent? table
---@return table class
function mr.nn.Module.class(name, parent) end

---Returns the parameters of the module and of all modules in it, each once, in the order of their
---assignment.
---@return millrace.Tensor[] list
function mr.nn.Module:parameters() end

---For loops: for name, p in m:named_parameters() do. Names have dots: "fc1.weight".
---@return function iterator
function mr.nn.Module:named_parameters() end

---Returns the buffers, which are saved with the parameters and not trained.
---@return millrace.Tensor[] list
function mr.nn.Module:buffers() end

---As named_parameters, for buffers.
---@return function iterator
function mr.nn.Module:named_buffers() end

---Makes the tensor a buffer of the module: it moves with it, and no optimiser changes it. It is in the
---state_dict of the module if it is persistent.
---@param name string
---@param t millrace.Tensor
---@param persistent? boolean
function mr.nn.Module:register_buffer(name, t, persistent) end

---Returns the module and all modules in it, parents first.
---@return table[] list
function mr.nn.Module:modules() end

---As named_parameters, for modules; the name of m itself is empty.
---@return function iterator
function mr.nn.Module:named_modules() end

---Returns the modules that are fields of m.
---@return table[] list
function mr.nn.Module:children() end

---As named_parameters, for the modules that are fields of m.
---@return function iterator
function mr.nn.Module:named_children() end

---Calls fn(module) for all modules in m, then for m itself. Returns m.
---@param fn function
---@return table m
function mr.nn.Module:apply(fn) end

---Says that the module is being trained, which Dropout and BatchNorm2d ask: sets `training` of the
---module and of all in it. Returns m.
---@param on? boolean
---@return table m
function mr.nn.Module:train(on) end

---The same as m:train(false).
---@return table m
function mr.nn.Module:eval() end

---Moves the parameters and buffers as t:to() does; a dtype is for those of floats. The parameters stay
---the same objects, so an optimiser that has them goes on with them. Returns m.
---@param ... millrace.Device|integer|string|millrace.Tensor
---@return table m
function mr.nn.Module:to(...) end

---The same as m:to("cpu").
---@return table m
function mr.nn.Module:cpu() end

---Moves the parameters and buffers to a device. Returns m.
---@param device? millrace.Device|integer
---@return table m
function mr.nn.Module:cuda(device) end

---Returns the parameters and buffers by name, as tensors with the same memory:
---mr.save("m.safetensors", m:state_dict()). The names are PyTorch's, so the modules of a Sequential or
---a list count from 0 in them: the weight of m[1] is "0.weight".
---@return table state
function mr.nn.Module:state_dict() end

---Copies the values of these tensors into the parameters and buffers. All names and shapes are checked
---first; with strict=false, names that only one side has are returned instead. A state in which the
---modules of all containers count from 1 is taken, too, if all names fit.
---@param state table
---@param options? { strict?: boolean }
---@return string[] missing
---@return string[] unexpected
function mr.nn.Module:load_state_dict(state, options) end

---Calls requires_grad_ of all parameters. Returns m.
---@param on? boolean
---@return table m
function mr.nn.Module:requires_grad_(on) end

---Drops the gradients of all parameters, or with false fills them with zeros.
---@param set_to_none? boolean
function mr.nn.Module:zero_grad(set_to_none) end

---t:uniform_(low, high), which no gradient records.
---@param t millrace.Tensor
---@param low? number
---@param high? number
---@return millrace.Tensor t
function mr.nn.init.uniform_(t, low, high) end

---t:normal_(mean, std), which no gradient records.
---@param t millrace.Tensor
---@param mean? number
---@param std? number
---@return millrace.Tensor t
function mr.nn.init.normal_(t, mean, std) end

---t:fill_(value), which no gradient records.
---@param t millrace.Tensor
---@param value number
---@return millrace.Tensor t
function mr.nn.init.constant_(t, value) end

---t:zero_(), which no gradient records.
---@param t millrace.Tensor
---@return millrace.Tensor t
function mr.nn.init.zeros_(t) end

---t:fill_(1), which no gradient records.
---@param t millrace.Tensor
---@return millrace.Tensor t
function mr.nn.init.ones_(t) end

---Normal numbers whose variance is 2 / (1 + a^2) / inputs, for layers before a ReLU.
---@param t millrace.Tensor
---@param options? { a?: number }
---@return millrace.Tensor t
function mr.nn.init.kaiming_normal_(t, options) end

---Uniform numbers whose variance is 2 / (1 + a^2) / inputs, for layers before a ReLU.
---@param t millrace.Tensor
---@param options? { a?: number }
---@return millrace.Tensor t
function mr.nn.init.kaiming_uniform_(t, options) end

---Uniform numbers whose variance is 2 gain^2 / (inputs + outputs).
---@param t millrace.Tensor
---@param options? { gain?: number }
---@return millrace.Tensor t
function mr.nn.init.xavier_uniform_(t, options) end

---Scales the gradients so that the norm of all of them together is at most this number. norm_type is
---the p of the norm; math.huge stands for the greatest absolute value. Returns the norm that they had,
---as a tensor: nothing waits.
---@param parameters millrace.Tensor[]
---@param most number
---@param options? { norm_type?: number }
---@return millrace.Tensor norm
function mr.nn.utils.clip_grad_norm_(parameters, most, options) end

---Limits each element of the gradients to the range from -most to most.
---@param parameters millrace.Tensor[]
---@param most number
function mr.nn.utils.clip_grad_value_(parameters, most) end

---Stochastic gradient descent. optimiser:step() changes all parameters that have a gradient, in one
---command on the current stream; optimiser:zero_grad() drops the gradients; optimiser.lr can be set.
---The parameters are a list of tensors, or of groups {params=, lr=, ...}.
---@param parameters millrace.Tensor[]
---@param options? { lr?: number, momentum?: number, dampening?: number, weight_decay?: number, nesterov?: boolean }
---@return table optimiser
function mr.optim.SGD(parameters, options) end

---Divides each gradient by the root of the average of its squares; methods as those of SGD.
---@param parameters millrace.Tensor[]
---@param options? { lr?: number, alpha?: number, eps?: number, weight_decay?: number, momentum?: number }
---@return table optimiser
function mr.optim.RMSprop(parameters, options) end

---Adam; methods as those of SGD. optimiser:state_dict() and load_state_dict() are for its averages.
---@param parameters millrace.Tensor[]
---@param options? { lr?: number, betas?: number[], eps?: number, weight_decay?: number }
---@return table optimiser
function mr.optim.Adam(parameters, options) end

---Adam with a weight decay that shrinks the parameters by itself.
---@param parameters millrace.Tensor[]
---@param options? { lr?: number, betas?: number[], eps?: number, weight_decay?: number }
---@return table optimiser
function mr.optim.AdamW(parameters, options) end

---Changes all parameters that have a gradient, in one command on the current stream. A closure is
---called first: it computes the gradients, and what it returns is returned.
---@param closure? function
---@return any loss
function mr.optim.Optimizer:step(closure) end

---Drops the gradients of the parameters, or with false fills them with zeros.
---@param set_to_none? boolean
function mr.optim.Optimizer:zero_grad(set_to_none) end

---Returns the averages and step numbers as tensors, by the number of the parameter:
---mr.save("o.safetensors", o:state_dict()).
---@return table state
function mr.optim.Optimizer:state_dict() end

---Goes on where the optimiser that gave this state was. All entries are checked first.
---@param state table
function mr.optim.Optimizer:load_state_dict(state) end

---Multiplies the rates of the optimiser by gamma every step_size epochs. scheduler:step() ends an
---epoch.
---@param o table
---@param step_size integer
---@param options? { gamma?: number }
---@return table scheduler
function mr.optim.lr_scheduler.StepLR(o, step_size, options) end

---Lowers the rates to eta_min in t_max epochs, as half a wave of a cosine.
---@param o table
---@param t_max integer
---@param options? { eta_min?: number }
---@return table scheduler
function mr.optim.lr_scheduler.CosineAnnealingLR(o, t_max, options) end

---Multiplies the first rates by fn(epoch). The first epoch is 0.
---@param o table
---@param fn function
---@return table scheduler
function mr.optim.lr_scheduler.LambdaLR(o, fn) end

---Ends an epoch: sets the rates of the optimiser for the next one.
function mr.optim.lr_scheduler.Scheduler:step() end

---Returns the rates of the groups of the optimiser.
---@return number[] rates
function mr.optim.lr_scheduler.Scheduler:get_last_lr() end

---Returns the epoch and the first rates, as tensors.
---@return table state
function mr.optim.lr_scheduler.Scheduler:state_dict() end

---Goes on in the epoch of this state, and sets the rates of the optimiser.
---@param state table
function mr.optim.lr_scheduler.Scheduler:load_state_dict(state) end

---For loops over the rows of host tensors: for x, y in mr.data.batches({xs, ys}, {batch_size=64}) do.
---The batches are copied to the device on a stream of their own, `depth` of them ahead, from pinned
---memory; the current stream waits for a batch when the loop gets it.
---@param tensors millrace.Tensor|millrace.Tensor[]
---@param options? { batch_size?: integer, shuffle?: boolean, drop_last?: boolean, device?: millrace.Device, depth?: integer, stream?: millrace.Stream }
---@return function iterator
function mr.data.batches(tensors, options) end

---Launches the kernel, as k[{grid, block, shared, stream}](...) does. `cooperative`: all blocks run at
---once, and may wait for each other in grid.sync().
---@param options { grid?: integer|integer[], block?: integer|integer[], shared?: integer, stream?: millrace.Stream, cooperative?: boolean }
---@param ... any
function Kernel:launch(options, ...) end

---Returns what the kernel does with the memory behind each pointer: {y="rw", x="r"}, "" if nothing.
---The second table has, for each parameter for which the code does not tell, the reason; the hazard
---checker then takes it as read and written.
---@return table access
---@return table unknown
function Kernel:access() end

---What the launches of the kernel did on the virtual GPU so far, or since the last `reset`: `blocks`
---that were counted (of `launched_blocks`: all of a kernel's first 2048 threads, then one of 64, or as
---the setting `kernel_profile_every` says); `instructions` of warps, `active_lanes` of 32 (the mean of
---the instructions that at least one lane executes); `classes` (counts by kind of instruction: memory
---requests, sectors of 32 bytes, efficiency, passes over the banks; the same for its `loads` and its
---`stores`); `occupancy` and `limited_by` for blocks of that size (those of the last launch); `ms`
---that a launch takes by the device's figures, `bound_by` and `times` of whatever may bound it;
---p:lines() has the same counts for each line of the source. print shows both. nil and why, if no
---launch was counted yet. Waits for nothing: synchronize first.
---@param options? { block?: integer, shared?: integer, reset?: boolean }
---@return table? p
---@return string? why
function Kernel:profile(options) end

---Returns the kernel of that name: as in the source, its symbol in the PTX, or one of the `names` of
---mr.module.
---@param name string
---@return millrace.Kernel k
function Module:get(name) end

---Returns the `__device__` or `__constant__` variable of that name, on the current device, as a
---tensor: of no dims if it is one value, of one dim if it is an array. `dtype` says how to read it; by
---default as the source declares it, and structs as bytes (u8). The tensor may be written between
---launches, also if the variable is `__constant__`, as with cudaMemcpyToSymbol.
---@param name string
---@param dtype? string
---@return millrace.Tensor t
function Module:global(name, dtype) end

---Returns the bytes and counts of one device: `live` (bytes of tensors that the script holds),
---`reserved` (bytes that the pool has allocated from the device), `peak` (the highest `live`),
---`allocations` (live ones) and `total_allocations`. Without a device, it returns the sums over all
---devices, and a list `devices` with the values of each (the first entry is device 0). `host` has
---live, peak and allocations of host memory.
---@param device? millrace.Device|integer
---@return table
function mr.memory.stats(device) end

---Returns the bytes of device memory that the script's tensors hold, on one device or on all.
---@param device? millrace.Device|integer
---@return integer
function mr.memory.allocated(device) end

---Returns the bytes that the pool has allocated from the device, used or not, on one device or on all.
---@param device? millrace.Device|integer
---@return integer
function mr.memory.reserved(device) end

---Returns the highest value of allocated() so far, for one device, or the sum of these values for all
---devices.
---@param device? millrace.Device|integer
---@return integer
function mr.memory.max_allocated(device) end

---Makes max_allocated() and `peak` of stats() begin again with what is allocated now, on one device,
---or on all and on the host.
---@param device? millrace.Device|integer
function mr.memory.reset_peak(device) end

---Returns memory that no tensor uses to the system, on one device or on all.
---@param device? millrace.Device|integer
function mr.memory.empty_cache(device) end

---"off" (costs nothing), "warn" (each new report goes to standard error), "error" (the call that makes
---a hazard raises, and is not carried out), "collect" (for reports()). When the checker is switched
---on, all earlier work counts as ordered. Inside check(fn), mr.explore, mr.stress and mr.replay the
---new mode starts at their end. Before the checker is switched off, pending host functions run. A host
---function can ask for the mode and not change it. Returns the previous mode.
---@param mode? string
---@return string before
function mr.hazard.mode(mode) end

---What has been found so far, one table for each pair of places: kind, reason, tensor, tensors (that
---one and the others of the same operation), bytes, first, second (op, access, stream, where, seq; of
---a kernel's launch: assumed, why it may not touch these bytes at all, and atomic, true for atomic
---updates); fix (the lines to add, as text), fixes (the same as a list, with their places), count,
---stream_pairs (between how many pairs of streams), amended, why, message.
---@return table[] reports
function mr.hazard.reports() end

---Forgets the reports and begins a new summary; the order of the work remains. The verdict and the
---exit status of --check still count what was forgotten.
function mr.hazard.clear() end

---Runs `fn(...)` from a state in which all earlier work is ordered and returns the hazards in it. Host
---functions that are pending before it or after it run then, and what they touch counts. Works in
---every mode and puts it back; an error in `fn` is raised after that. Not inside another check or a
---host function.
---@param fn function
---@param ... any
---@return table[] reports
function mr.hazard.check(fn, ...) end

---Reports that match all that is given are counted and not shown: by the tensor's name, the kind, and
---a place ("file.lua" or "file.lua:12", either side). Without an argument: removes all rules.
---@param what? { tensor?: string, kind?: string, where?: string }
function mr.hazard.ignore(what) end

---Returns possible improvements: waits that order nothing new, records that nothing waits for, a
---device synchronize where an event is enough, asynchronous copies of pageable memory. The first call
---turns advice on; it covers what is submitted from then on while the checker is on.
---@param on? boolean
---@return table[] reports
function mr.hazard.advice(on) end

---Returns a text to print: the chain that orders two operations, or that nothing does. Each is a side
---of a report, "file.lua:12" (":12": of any file) for the last operation of that line (if it has none,
---the last record, wait or synchronize), or the operation's seq. The last 4096 commands are
---remembered, also after the checker is switched off or a check has ended.
---@param first table|string|integer
---@param second table|string|integer
---@return string text
---@return boolean ordered
function mr.hazard.why(first, second) end

---"no hazards: every legal schedule ..." or how many there were, and a line for each thing that was
---not followed; and the numbers, since the last clear(): claim ("every-legal-schedule", "conditional",
---"none"), operations, hazards, reports (pairs of places); follow_ups (other accesses that the same
---fixes order), checked_apart (operations inside check()); and how much of each row in docs/hazards.md
---was not followed: failed, not_run, queries and the others.
---@return string text
---@return table totals
function mr.hazard.summary() end

---Returns whether the next operation of that stream could read all of `t` without a hazard; without a
---stream: whether the host could. If not, which operation wrote there last that nothing orders before
---it, and its line. Returns nil while the checker is off. Changes nothing.
---@param t millrace.Tensor
---@param s? millrace.Stream
---@return boolean? readable
---@return string? writer
---@return string? where
function mr.hazard.readable(t, s) end

---Captures `fn()` and returns the graph, and what `fn` returned. The same as mr.graph(fn, opts).
---Nothing is carried out: g:launch() does that, as often as it is called (R35). `fn` runs with a
---stream of its own as the current one, or with `stream`. Tensors that it makes have fixed addresses,
---and each launch writes them again (R44). `mode`: which calls of the host are an error meanwhile
---(R40): "global", "thread" or "relaxed". `auto_free`=false: a launch is an error while memory of the
---last one is not freed, as in CUDA. `pool`: with whose other graphs it shares memory (mr.graph.pool).
---@param fn function
---@param opts? { stream?: millrace.Stream, mode?: string, auto_free?: boolean, pool?: millrace.Graph_pool }
---@return millrace.Graph g
---@return any ...
function mr.graph.capture(fn, opts) end

---Begins a capture on the stream (cudaStreamBeginCapture). What it is given from now on is captured
---and not carried out. A stream that waits for an event of the capture joins it (R36).
---mr.graph.finish(s) ends it.
---@param s millrace.Stream
---@param opts? { mode?: string, auto_free?: boolean, pool?: millrace.Graph_pool }
function mr.graph.begin(s, opts) end

---Ends the capture that began on this stream (cudaStreamEndCapture), and returns its graph. Each
---stream that joined it must have been joined to `s` again (R36). After an error the streams can be
---used as before.
---@param s millrace.Stream
---@return millrace.Graph g
function mr.graph.finish(s) end

---Returns a function that calls `fn` with the same arguments and returns what it returns. Where a call
---submits exactly what the call before it submitted, a graph is launched in its place. `fn` runs at
---each call all the same, so the values are always those of `fn`. What a call makes holds until the
---next call: clone() what has to outlive it. mr.graph.why(f) says why a call was no launch.
---docs/graphs.md explains it.
---@param fn function
---@return function f
function mr.graph.auto(fn) end

---Says why the last call of a function of mr.graph.auto was no launch of a graph: nil if it was one,
---else the first difference from the call before, or what no graph can do, with its line. `counts`:
---{calls=, launches=, captures= (graphs that were made), nodes= (of the graph)}.
---@param f function
---@return string? why
---@return table counts
function mr.graph.why(f) end

---Makes a pool for graphs of the current device (torch.cuda.graph_pool_handle). Graphs that are
---captured with {pool = p} share memory: a capture uses again what earlier graphs of the pool made and
---no tensor of the script refers to any more. Such graphs must not run at once, which the hazard
---checker reports. After the launch of another graph that has its memory, a tensor cannot be used
---until its own graph is launched again (R44).
---@return millrace.Graph_pool p
function mr.graph.pool() end

---Launches the graph on the stream, or on the current one (cudaGraphLaunch): after the earlier work of
---the stream, after earlier launches of `g` on any stream, and before the later work of the stream
---(R42). The host does not wait. On a capturing stream, the graph becomes a part of what is captured.
---@param s? millrace.Stream
function Graph:launch(s) end

---Makes a second executable of the same graph (cudaGraphInstantiate). Launches of `g` wait for each
---other, and launches of `other` do not wait for them (R42). A graph that allocates memory has one
---executable only (R44).
---@return millrace.Graph other
function Graph:instantiate() end

---Captures `fn()` and lets later launches of `g` carry that out (cudaGraphExecUpdate); launches of
---before are not affected (R43). Nodes and edges must be the same; what they read and write, and their
---numbers, may differ. Else the error 910 names the first difference, and `g` is as it was. Returns
---what `fn` returned.
---@param fn function
---@param opts? { stream?: millrace.Stream, mode?: string, auto_free?: boolean, pool?: millrace.Graph_pool }
---@return any ...
function Graph:update(fn, opts) end

---Whether later launches carry out node `i` (cudaGraphNodeSetEnabled). Its place in the order stays
---(R43).
---@param i integer
---@param on? boolean
function Graph:enable(i, on) end

---Gives node `i` other tensors and numbers in later launches of `g` (cudaGraphExecKernelNodeSetParams,
---cudaGraphExecMemcpyNodeSetParams and their like): those of the one operation, copy or launch that
---`fn()` submits. It is captured and not carried out. The node keeps its operation and its place in
---the order; launches of before are not affected (R43).
---@param i integer
---@param fn function
function Graph:set(i, fn) end

---Returns a table for each node, in the order of their capture: {index=, kind= ("kernel", "copy",
---"host function", "alloc", "free"), name=, where=, stream= (on which it was captured); after= (the
---numbers of the nodes that it comes after), reads=, writes= (names of tensors), enabled=}.
---@return table[] nodes
function Graph:nodes() end

---Prints the nodes, a line for each, and returns the text.
---@return string text
function Graph:print() end

---Writes the graph to a file. The ending of its name says how: .dot (Graphviz), .svg (a picture),
---.json, .txt (what print shows).
---@param path string
function Graph:save(path) end

---Gives up the graph. Returns at once; launches that are pending still run, and the memory of the
---graph goes after them, unless a tensor refers to it.
function Graph:close() end

---Names inputs of the graph, and gives them values. `tensors`: {name = tensor}. A name that is new is
---that of a tensor of before the capture, which nodes read. For a name that there is, the values of
---another tensor of the same shape and dtype are copied to the input, by the next launch and on its
---stream. Returns the inputs by name.
---@param tensors? table
---@return table inputs
function Graph:inputs(tensors) end

---Sets and returns what decides the next step of the device where CUDA leaves a choice: "timed"
---(follows the cost model; only then do times have a meaning), "adversarial" (runs consumers as early
---as the rules allow, so that races show), "random:SEED", or "manual" (you call mr.machine.step; while
---the host waits, the oldest ready work runs until the wait ends). Returns the previous chooser.
---@param name? string
---@return string before
function mr.machine.chooser(name) end

---Lets the device take `n` steps: of this stream, or those that the chooser picks. Returns what the
---last step was, with its line, its number (the `seq` of queues()), and which part of how many. If
---fewer than `n` steps were possible, `why` says what the stream waits for, and `what` is nil if there
---was none. `done` is the number of steps. Each step can be undone: see mr.machine.back.
---@param s? millrace.Stream
---@param n? integer
---@return string? what
---@return string? why
---@return integer done
function mr.machine.step(s, n) end

---Undoes the last `n` steps (mr.machine.step, mr.machine.pass): the bytes of all tensors, events,
---queues and clocks are as before. Returns how many steps were undone; if fewer than `n`, `why` says
---what the history begins with. Steps are kept under the chooser "manual". A call of the host cannot
---be undone, so nothing before it can: a submission, a synchronization, a query that said true, a new
---stream, a write to an older host tensor, a setting. Reads, new host tensors and t:peek() do not
---matter. What a host function did in Lua stays, and the function runs again with its step. Reported
---hazards stay.
---@param n? integer
---@return integer undone
---@return string? why
function mr.machine.back(n) end

---Lets so many milliseconds go by on the host's clock. Under the chooser "timed" the device does
---meanwhile what it has time for.
---@param ms number
function mr.machine.pass(ms) end

---Sets how many steps mr.machine.back can undo at most, and how much memory of the host they may take;
---steps=0 keeps none. With always=true they are kept under every chooser, not only "manual". Returns
---{steps=, bytes=, always=, kept=, why=}: the limits, how many steps can be undone now, and what the
---history begins with.
---@param options? { steps?: integer, bytes?: integer, always?: boolean }
---@return table history
function mr.machine.history(options) end

---Returns how far the devices have advanced, in virtual milliseconds. The device does not advance.
---@return number ms
function mr.machine.time() end

---Returns the pending work: for each stream with work {stream=, pending={{op=, seq=, where=, state=,
---part=, parts=, waits_for=, why=}, ...}}, oldest first. `state` is "running", "ready" or "waiting".
---`part` of `parts` steps of it are done. `waits_for` is the seq of an operation of another stream.
---`why` is a sentence that says what it waits for. The device does not advance.
---@return table[] queues
function mr.machine.queues() end

---Sets and returns the device model: "h200", "h100", "a100", "rtx4090", "t4", or the path of a model
---file. It can be changed only while nothing is pending and no device memory is in use. Returns the
---previous model.
---@param name? string
---@return string before
function mr.machine.model(name) end

---Returns the settings: what CUDA leaves open, and how this machine decides it. docs/semantics.md
---lists the names. With a table, changes these settings first. The largest integer, math.maxinteger,
---means no limit; math.huge is accepted for it.
---@param changes? table
---@return table settings
function mr.machine.settings(changes) end

---Submits an operation that fails with this code when it runs ("illegal-address", "assert", ...). It
---shows how a device failure is reported later than its cause (R49, R50).
---@param code string
---@param s? millrace.Stream
function mr.machine.fault(code, s) end

---Begins to trace each operation from now on: its line, the time of the host's call, and the time at
---which the device carried it out. Pending work is traced when it runs. When there are more than `max`
---operations, the oldest are forgotten. An error if a trace is under way.
---@param options? { max?: integer }
function mr.trace.start(options) end

---Ends the trace that mr.trace.start began, and returns it. Waits for nothing: pending work is in the
---trace without times. Call mr.synchronize() first to have all.
---@return millrace.Trace trace
function mr.trace.stop() end

---Prints the timeline: a lane for the host and for each stream, a bar for each operation, and what
---waited for what. `width` is in columns, at least 60; the terminal decides where no option is given.
---`before`: another trace, which is printed above it on the same axis.
---@param options? { width?: integer, ascii?: boolean, color?: boolean, before?: millrace.Trace }
function Trace:print(options) end

---Writes the trace to a file. The ending of its name says how: .html (a page to look at), .json (for
---Chrome and Perfetto), .svg, .dot (the order as a graph), .csv and .spans.json (the spans). `before`:
---another trace to compare with (.html, .svg). The file appears complete or not at all.
---@param path string
---@param options? { before?: millrace.Trace }
function Trace:save(path, options) end

---Returns for how long both streams carried out kernels or copies at the same time. A stream or its
---name; with the same one twice, how long it was busy.
---@param a millrace.Stream|string
---@param b millrace.Stream|string
---@return number ms
function Trace:overlap(a, b) end

---Returns how long the stream carried out nothing before its last operation, and the gaps: each
---{start=, finish=, ms=, next=, cause=, holder=}. `next` is the span that ended it, `cause` what that
---waited for, `holder` the span that it was.
---@param s millrace.Stream|string
---@return number ms
---@return table[] gaps
function Trace:idle(s) end

---Returns what decided the end of the trace, the first first: spans on the device and calls of the
---host, of which none could have been shorter without the whole being shorter. Each is {span=, host=,
---start=, finish=, ms=, cause=, name=, where=}; `host` is true for the time of a call, and `cause`
---says why it began no sooner.
---@return table[] links
function Trace:critical_path() end

---Says why two operations did not run at the same time: spans of tr.spans, their indices, or names of
---operations (the first of that name). Returns {overlapped=, ms=, share=, cause=, text=, where=,
---holder=, saves_ms=, needed_by=, exact=}: `text` is the answer in words, `where` the line that is the
---cause, `saves_ms` how much earlier the later one could have begun without that. `exact` is true
---where a run without it shows just that. Where the cause must stay, `needed_by` has two spans whose
---data need it, and there is no `saves_ms`. If the two overlapped, `share` is the part of the shorter
---one. The cause is told where that is less than 0.9.
---@param a table|integer|string
---@param b table|integer|string
---@return table why
function Trace:why(a, b) end

---Compares with another trace of the same script: another device model, or a GPU beside the virtual
---one, or an edited script. Returns a list with a row for each line and operation: {name=, where=,
---after_where=, before_count=, after_count=, before_ms=, after_ms=, before_start=, after_start=}. The
---rows are in the order of the script; the list has `before_ms` and `after_ms` of the whole. print
---shows it as a table; later:print{before=tr} shows the timelines.
---@param later millrace.Trace
---@return table rows
function Trace:compare(later) end

---The negative of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:neg(options) end

---The negative of each element.
---@return millrace.Tensor
function Tensor:neg_() end

---The negative of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.neg(x, options) end

---The absolute value of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:abs(options) end

---The absolute value of each element.
---@return millrace.Tensor
function Tensor:abs_() end

---The absolute value of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.abs(x, options) end

---The sign of each element: -1, 0 or 1 (0 for NaN).
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sign(options) end

---The sign of each element: -1, 0 or 1 (0 for NaN).
---@return millrace.Tensor
function Tensor:sign_() end

---The sign of each element: -1, 0 or 1 (0 for NaN).
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.sign(x, options) end

---e to the power of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:exp(options) end

---e to the power of each element.
---@return millrace.Tensor
function Tensor:exp_() end

---e to the power of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.exp(x, options) end

---The natural logarithm of each element: NaN below 0, -inf at 0.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:log(options) end

---The natural logarithm of each element: NaN below 0, -inf at 0.
---@return millrace.Tensor
function Tensor:log_() end

---The natural logarithm of each element: NaN below 0, -inf at 0.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.log(x, options) end

---The square root of each element: NaN below 0.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sqrt(options) end

---The square root of each element: NaN below 0.
---@return millrace.Tensor
function Tensor:sqrt_() end

---The square root of each element: NaN below 0.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.sqrt(x, options) end

---1 divided by the square root of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:rsqrt(options) end

---1 divided by the square root of each element.
---@return millrace.Tensor
function Tensor:rsqrt_() end

---1 divided by the square root of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.rsqrt(x, options) end

---The hyperbolic tangent of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:tanh(options) end

---The hyperbolic tangent of each element.
---@return millrace.Tensor
function Tensor:tanh_() end

---The hyperbolic tangent of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.tanh(x, options) end

---1 / (1 + exp(-x)) of each element x.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sigmoid(options) end

---1 / (1 + exp(-x)) of each element x.
---@return millrace.Tensor
function Tensor:sigmoid_() end

---1 / (1 + exp(-x)) of each element x.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.sigmoid(x, options) end

---Each element, or 0 if it is negative.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:relu(options) end

---Each element, or 0 if it is negative.
---@return millrace.Tensor
function Tensor:relu_() end

---Each element, or 0 if it is negative.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.relu(x, options) end

---x times the standard normal distribution function of x: the erf form, PyTorch's default.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:gelu(options) end

---x times the standard normal distribution function of x: the erf form, PyTorch's default.
---@return millrace.Tensor
function Tensor:gelu_() end

---x times the standard normal distribution function of x: the erf form, PyTorch's default.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.gelu(x, options) end

---The greatest integer that is less than or equal to each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:floor(options) end

---The greatest integer that is less than or equal to each element.
---@return millrace.Tensor
function Tensor:floor_() end

---The greatest integer that is less than or equal to each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.floor(x, options) end

---The least integer that is greater than or equal to each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:ceil(options) end

---The least integer that is greater than or equal to each element.
---@return millrace.Tensor
function Tensor:ceil_() end

---The least integer that is greater than or equal to each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.ceil(x, options) end

---The integer nearest to each element. If two are equally near, the even one.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:round(options) end

---The integer nearest to each element. If two are equally near, the even one.
---@return millrace.Tensor
function Tensor:round_() end

---The integer nearest to each element. If two are equally near, the even one.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.round(x, options) end

---1 divided by each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:reciprocal(options) end

---1 divided by each element.
---@return millrace.Tensor
function Tensor:reciprocal_() end

---1 divided by each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.reciprocal(x, options) end

---Each element times itself.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:square(options) end

---Each element times itself.
---@return millrace.Tensor
function Tensor:square_() end

---Each element times itself.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.square(x, options) end

---True where an element is 0.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:logical_not(options) end

---True where an element is 0.
---@return millrace.Tensor
function Tensor:logical_not_() end

---True where an element is 0.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.logical_not(x, options) end

---2 to the power of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:exp2(options) end

---2 to the power of each element.
---@return millrace.Tensor
function Tensor:exp2_() end

---2 to the power of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.exp2(x, options) end

---exp(x) - 1 of each element x, exact also near 0.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:expm1(options) end

---exp(x) - 1 of each element x, exact also near 0.
---@return millrace.Tensor
function Tensor:expm1_() end

---exp(x) - 1 of each element x, exact also near 0.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.expm1(x, options) end

---The logarithm to base 2 of each element: NaN below 0, -inf at 0.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:log2(options) end

---The logarithm to base 2 of each element: NaN below 0, -inf at 0.
---@return millrace.Tensor
function Tensor:log2_() end

---The logarithm to base 2 of each element: NaN below 0, -inf at 0.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.log2(x, options) end

---The logarithm to base 10 of each element: NaN below 0, -inf at 0.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:log10(options) end

---The logarithm to base 10 of each element: NaN below 0, -inf at 0.
---@return millrace.Tensor
function Tensor:log10_() end

---The logarithm to base 10 of each element: NaN below 0, -inf at 0.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.log10(x, options) end

---log(1 + x) of each element x, exact also near 0.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:log1p(options) end

---log(1 + x) of each element x, exact also near 0.
---@return millrace.Tensor
function Tensor:log1p_() end

---log(1 + x) of each element x, exact also near 0.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.log1p(x, options) end

---The arc sine of each element, in radians: NaN outside -1 to 1.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:asin(options) end

---The arc sine of each element, in radians: NaN outside -1 to 1.
---@return millrace.Tensor
function Tensor:asin_() end

---The arc sine of each element, in radians: NaN outside -1 to 1.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.asin(x, options) end

---The arc cosine of each element, in radians: NaN outside -1 to 1.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:acos(options) end

---The arc cosine of each element, in radians: NaN outside -1 to 1.
---@return millrace.Tensor
function Tensor:acos_() end

---The arc cosine of each element, in radians: NaN outside -1 to 1.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.acos(x, options) end

---The arc tangent of each element, in radians.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:atan(options) end

---The arc tangent of each element, in radians.
---@return millrace.Tensor
function Tensor:atan_() end

---The arc tangent of each element, in radians.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.atan(x, options) end

---The hyperbolic sine of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sinh(options) end

---The hyperbolic sine of each element.
---@return millrace.Tensor
function Tensor:sinh_() end

---The hyperbolic sine of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.sinh(x, options) end

---The hyperbolic cosine of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:cosh(options) end

---The hyperbolic cosine of each element.
---@return millrace.Tensor
function Tensor:cosh_() end

---The hyperbolic cosine of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.cosh(x, options) end

---The error function of each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:erf(options) end

---The error function of each element.
---@return millrace.Tensor
function Tensor:erf_() end

---The error function of each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.erf(x, options) end

---Each element without its fraction: rounded towards 0.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:trunc(options) end

---Each element without its fraction: rounded towards 0.
---@return millrace.Tensor
function Tensor:trunc_() end

---Each element without its fraction: rounded towards 0.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.trunc(x, options) end

---The fraction of each element, with its sign: x - trunc(x).
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:frac(options) end

---The fraction of each element, with its sign: x - trunc(x).
---@return millrace.Tensor
function Tensor:frac_() end

---The fraction of each element, with its sign: x - trunc(x).
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.frac(x, options) end

---x * sigmoid(x) of each element x.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:silu(options) end

---x * sigmoid(x) of each element x.
---@return millrace.Tensor
function Tensor:silu_() end

---x * sigmoid(x) of each element x.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.silu(x, options) end

---log(1 + exp(x)) of each element x; above 20, x itself.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:softplus(options) end

---log(1 + exp(x)) of each element x; above 20, x itself.
---@return millrace.Tensor
function Tensor:softplus_() end

---log(1 + exp(x)) of each element x; above 20, x itself.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.softplus(x, options) end

---True where an element is NaN.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:isnan(options) end

---True where an element is NaN.
---@return millrace.Tensor
function Tensor:isnan_() end

---True where an element is NaN.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.isnan(x, options) end

---True where an element is inf or -inf.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:isinf(options) end

---True where an element is inf or -inf.
---@return millrace.Tensor
function Tensor:isinf_() end

---True where an element is inf or -inf.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.isinf(x, options) end

---True where an element is neither NaN nor inf nor -inf.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:isfinite(options) end

---True where an element is neither NaN nor inf nor -inf.
---@return millrace.Tensor
function Tensor:isfinite_() end

---True where an element is neither NaN nor inf nor -inf.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.isfinite(x, options) end

---Each bit inverted; for bools, the other value. Also ~x.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:bitwise_not(options) end

---Each bit inverted; for bools, the other value. Also ~x.
---@return millrace.Tensor
function Tensor:bitwise_not_() end

---Each bit inverted; for bools, the other value. Also ~x.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.bitwise_not(x, options) end

---The sine of each element, in radians.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sin(options) end

---The sine of each element, in radians.
---@return millrace.Tensor
function Tensor:sin_() end

---The sine of each element, in radians.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.sin(x, options) end

---The cosine of each element, in radians.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:cos(options) end

---The cosine of each element, in radians.
---@return millrace.Tensor
function Tensor:cos_() end

---The cosine of each element, in radians.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.cos(x, options) end

---The tangent of each element, in radians.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:tan(options) end

---The tangent of each element, in radians.
---@return millrace.Tensor
function Tensor:tan_() end

---The tangent of each element, in radians.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.tan(x, options) end

---The sum. For bools: whether at least one is true. Integers wrap.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:add(y, options) end

---The sum. For bools: whether at least one is true. Integers wrap.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:add_(y) end

---The sum. For bools: whether at least one is true. Integers wrap.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.add(x, y, options) end

---The difference. Integers wrap.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sub(y, options) end

---The difference. Integers wrap.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:sub_(y) end

---The difference. Integers wrap.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.sub(x, y, options) end

---The product. For bools: whether both are true. Integers wrap.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:mul(y, options) end

---The product. For bools: whether both are true. Integers wrap.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:mul_(y) end

---The product. For bools: whether both are true. Integers wrap.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.mul(x, y, options) end

---The quotient. Integers are converted to f32 first.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:div(y, options) end

---The quotient. Integers are converted to f32 first.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:div_(y) end

---The quotient. Integers are converted to f32 first.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.div(x, y, options) end

---The greater of two elements. NaN if one of them is NaN.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:maximum(y, options) end

---The greater of two elements. NaN if one of them is NaN.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:maximum_(y) end

---The greater of two elements. NaN if one of them is NaN.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.maximum(x, y, options) end

---The lesser of two elements. NaN if one of them is NaN.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:minimum(y, options) end

---The lesser of two elements. NaN if one of them is NaN.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:minimum_(y) end

---The lesser of two elements. NaN if one of them is NaN.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.minimum(x, y, options) end

---The gradient of relu: 0 where its result y is 0, x elsewhere, also where y is NaN. x is the gradient
---of the result.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:relu_backward(y, options) end

---The gradient of relu: 0 where its result y is 0, x elsewhere, also where y is NaN. x is the gradient
---of the result.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:relu_backward_(y) end

---The gradient of relu: 0 where its result y is 0, x elsewhere, also where y is NaN. x is the gradient
---of the result.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.relu_backward(x, y, options) end

---The gradient of tanh, x * (1 - y * y), where y is its result and x the gradient of the result.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:tanh_backward(y, options) end

---The gradient of tanh, x * (1 - y * y), where y is its result and x the gradient of the result.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:tanh_backward_(y) end

---The gradient of tanh, x * (1 - y * y), where y is its result and x the gradient of the result.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.tanh_backward(x, y, options) end

---The gradient of sigmoid, x * y * (1 - y), where y is its result and x the gradient of the result.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sigmoid_backward(y, options) end

---The gradient of sigmoid, x * y * (1 - y), where y is its result and x the gradient of the result.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:sigmoid_backward_(y) end

---The gradient of sigmoid, x * y * (1 - y), where y is its result and x the gradient of the result.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.sigmoid_backward(x, y, options) end

---The angle of the point with height x and abscissa y, in radians from -pi to pi.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:atan2(y, options) end

---The angle of the point with height x and abscissa y, in radians from -pi to pi.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:atan2_(y) end

---The angle of the point with height x and abscissa y, in radians from -pi to pi.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.atan2(x, y, options) end

---The bits that both have. Also x & y.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:bitwise_and(y, options) end

---The bits that both have. Also x & y.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:bitwise_and_(y) end

---The bits that both have. Also x & y.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.bitwise_and(x, y, options) end

---The bits that at least one has. Also x | y.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:bitwise_or(y, options) end

---The bits that at least one has. Also x | y.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:bitwise_or_(y) end

---The bits that at least one has. Also x | y.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.bitwise_or(x, y, options) end

---The bits that exactly one has. Also x ~ y.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:bitwise_xor(y, options) end

---The bits that exactly one has. Also x ~ y.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:bitwise_xor_(y) end

---The bits that exactly one has. Also x ~ y.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.bitwise_xor(x, y, options) end

---x shifted to the left by y bits. All bits go if y is below 0 or not below their number. Also x << y.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:bitwise_left_shift(y, options) end

---x shifted to the left by y bits. All bits go if y is below 0 or not below their number. Also x << y.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:bitwise_left_shift_(y) end

---x shifted to the left by y bits. All bits go if y is below 0 or not below their number. Also x << y.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.bitwise_left_shift(x, y, options) end

---x shifted to the right by y bits, keeping its sign, as in PyTorch and unlike Lua's >> on numbers.
---All bits go if y is below 0 or not below their number. Also x >> y.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:bitwise_right_shift(y, options) end

---x shifted to the right by y bits, keeping its sign, as in PyTorch and unlike Lua's >> on numbers.
---All bits go if y is below 0 or not below their number. Also x >> y.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:bitwise_right_shift_(y) end

---x shifted to the right by y bits, keeping its sign, as in PyTorch and unlike Lua's >> on numbers.
---All bits go if y is below 0 or not below their number. Also x >> y.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.bitwise_right_shift(x, y, options) end

---Each element, times `slope` if it is negative (default: 0.01).
---@param slope? any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:leaky_relu(slope, options) end

---Each element, times `slope` if it is negative (default: 0.01).
---@param slope? any
---@return millrace.Tensor
function Tensor:leaky_relu_(slope) end

---Each element, times `slope` if it is negative (default: 0.01).
---@param x millrace.Tensor
---@param slope? any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.leaky_relu(x, slope, options) end

---Each element x, or alpha * (exp(x) - 1) if it is negative (default: alpha is 1).
---@param alpha? number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:elu(alpha, options) end

---Each element x, or alpha * (exp(x) - 1) if it is negative (default: alpha is 1).
---@param alpha? number
---@return millrace.Tensor
function Tensor:elu_(alpha) end

---Each element x, or alpha * (exp(x) - 1) if it is negative (default: alpha is 1).
---@param x millrace.Tensor
---@param alpha? number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.elu(x, alpha, options) end

---x to the power of y. Integers stay integers and wrap. A negative power of an integer from a tensor
---is truncated to 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:pow(y, options) end

---x to the power of y. Integers stay integers and wrap. A negative power of an integer from a tensor
---is truncated to 0.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:pow_(y) end

---x to the power of y. Integers stay integers and wrap. A negative power of an integer from a tensor
---is truncated to 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.pow(x, y, options) end

---The remainder of x divided by y, with the sign of y, like Lua's %. For integers, the remainder
---modulo 0 is 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:remainder(y, options) end

---The remainder of x divided by y, with the sign of y, like Lua's %. For integers, the remainder
---modulo 0 is 0.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:remainder_(y) end

---The remainder of x divided by y, with the sign of y, like Lua's %. For integers, the remainder
---modulo 0 is 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.remainder(x, y, options) end

---The remainder of x divided by y, with the sign of x, like C's fmod. For integers, the remainder
---modulo 0 is 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:fmod(y, options) end

---The remainder of x divided by y, with the sign of x, like C's fmod. For integers, the remainder
---modulo 0 is 0.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:fmod_(y) end

---The remainder of x divided by y, with the sign of x, like C's fmod. For integers, the remainder
---modulo 0 is 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.fmod(x, y, options) end

---The greatest integer that is not above the quotient, like Lua's //. For integers, a division by 0
---gives 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:floor_divide(y, options) end

---The greatest integer that is not above the quotient, like Lua's //. For integers, a division by 0
---gives 0.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:floor_divide_(y) end

---The greatest integer that is not above the quotient, like Lua's //. For integers, a division by 0
---gives 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.floor_divide(x, y, options) end

---True where two elements are equal.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:eq(y, options) end

---True where two elements are equal.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.eq(x, y, options) end

---True where two elements differ. NaN differs from everything.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:ne(y, options) end

---True where two elements differ. NaN differs from everything.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.ne(x, y, options) end

---True where x is less than y.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:lt(y, options) end

---True where x is less than y.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.lt(x, y, options) end

---True where x is less than y or equal.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:le(y, options) end

---True where x is less than y or equal.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.le(x, y, options) end

---True where x is greater than y.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:gt(y, options) end

---True where x is greater than y.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.gt(x, y, options) end

---True where x is greater than y or equal.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:ge(y, options) end

---True where x is greater than y or equal.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.ge(x, y, options) end

---True where neither element is 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:logical_and(y, options) end

---True where neither element is 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.logical_and(x, y, options) end

---True where at least one element is not 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:logical_or(y, options) end

---True where at least one element is not 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.logical_or(x, y, options) end

---True where exactly one element is not 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:logical_xor(y, options) end

---True where exactly one element is not 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.logical_xor(x, y, options) end

---Each element, limited to the range from least to greatest. The bounds are numbers or tensors.
---@param least millrace.Tensor|number
---@param greatest millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:clamp(least, greatest, options) end

---Each element, limited to the range from least to greatest. The bounds are numbers or tensors.
---@param least millrace.Tensor|number
---@param greatest millrace.Tensor|number
---@return millrace.Tensor
function Tensor:clamp_(least, greatest) end

---Each element, limited to the range from least to greatest. The bounds are numbers or tensors.
---@param x millrace.Tensor
---@param least millrace.Tensor|number
---@param greatest millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.clamp(x, least, greatest, options) end

---The point between x and y at weight w: x + w * (y - x).
---@param y millrace.Tensor|number
---@param w millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:lerp(y, w, options) end

---The point between x and y at weight w: x + w * (y - x).
---@param y millrace.Tensor|number
---@param w millrace.Tensor|number
---@return millrace.Tensor
function Tensor:lerp_(y, w) end

---The point between x and y at weight w: x + w * (y - x).
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param w millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.lerp(x, y, w, options) end

---The element of y where the condition is true, and of z elsewhere.
---@param y millrace.Tensor|number
---@param z millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:where(y, z, options) end

---The element of y where the condition is true, and of z elsewhere.
---@param condition millrace.Tensor
---@param y millrace.Tensor|number
---@param z millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.where(condition, y, z, options) end

---`value`, a number or a tensor without dims, where `mask` is true, and the element of x elsewhere.
---The dtype is that of x.
---@param mask any
---@param value number|boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:masked_fill(mask, value, options) end

---`value`, a number or a tensor without dims, where `mask` is true, and the element of x elsewhere.
---The dtype is that of x.
---@param mask any
---@param value number|boolean
---@return millrace.Tensor
function Tensor:masked_fill_(mask, value) end

---`value`, a number or a tensor without dims, where `mask` is true, and the element of x elsewhere.
---The dtype is that of x.
---@param x millrace.Tensor
---@param mask any
---@param value number|boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.masked_fill(x, mask, value, options) end

---Sets every element to `value`.
---@param value number|boolean
---@return millrace.Tensor
function Tensor:fill_(value) end

---Sets every element to 0.
---@return millrace.Tensor
function Tensor:zero_() end

---Sets each element to a uniform random number from `low` (default: 0) up to, but not including,
---`high` (default: 1).
---@param low? number
---@param high? number
---@return millrace.Tensor
function Tensor:uniform_(low, high) end

---Sets each element to a random number from the normal distribution with this mean (default: 0) and
---standard deviation (default: 1).
---@param mean? number
---@param std? number
---@return millrace.Tensor
function Tensor:normal_(mean, std) end

---Sets each element to 1 with probability `p` (default: 0.5), otherwise to 0.
---@param p? number
---@return millrace.Tensor
function Tensor:bernoulli_(p) end

---The sum. For integers and bools it is i64. Floats are added in double precision.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sum(dim, keepdim, options) end

---The sum. For integers and bools it is i64. Floats are added in double precision.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.sum(x, dim, keepdim, options) end

---The mean.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:mean(dim, keepdim, options) end

---The mean.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.mean(x, dim, keepdim, options) end

---The product. For integers and bools it is i64.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:prod(dim, keepdim, options) end

---The product. For integers and bools it is i64.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.prod(x, dim, keepdim, options) end

---The greatest element. NaN if any element is NaN. With one dim, the positions (from 1) are the second
---result, as from argmax.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:max(dim, keepdim, options) end

---The greatest element. NaN if any element is NaN. With one dim, the positions (from 1) are the second
---result, as from argmax.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.max(x, dim, keepdim, options) end

---The least element. NaN if any element is NaN. With one dim, the positions (from 1) are the second
---result, as from argmin.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:min(dim, keepdim, options) end

---The least element. NaN if any element is NaN. With one dim, the positions (from 1) are the second
---result, as from argmin.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.min(x, dim, keepdim, options) end

---Whether at least one element is not 0.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:any(dim, keepdim, options) end

---Whether at least one element is not 0.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.any(x, dim, keepdim, options) end

---Whether all elements are not 0.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:all(dim, keepdim, options) end

---Whether all elements are not 0.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.all(x, dim, keepdim, options) end

---The position (from 1) of the first greatest element: in the dim, or in row-major order over all
---elements. NaN counts as greatest.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:argmax(dim, keepdim, options) end

---The position (from 1) of the first greatest element: in the dim, or in row-major order over all
---elements. NaN counts as greatest.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.argmax(x, dim, keepdim, options) end

---The position (from 1) of the first least element: in the dim, or in row-major order over all
---elements. NaN counts as least.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:argmin(dim, keepdim, options) end

---The position (from 1) of the first least element: in the dim, or in row-major order over all
---elements. NaN counts as least.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.argmin(x, dim, keepdim, options) end

---The square root of the sum of squares. The number in parentheses is a dim, as in sum: x:norm(2) has
---one norm for each index of the other dims. The option p asks for another norm: {p=1} for the sum of
---absolute values, {p=math.huge} for the greatest of them.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { p?: number, out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:norm(dim, keepdim, options) end

---The square root of the sum of squares. The number in parentheses is a dim, as in sum: x:norm(2) has
---one norm for each index of the other dims. The option p asks for another norm: {p=1} for the sum of
---absolute values, {p=math.huge} for the greatest of them.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { p?: number, out?: millrace.Tensor }
---@return millrace.Tensor
function mr.norm(x, dim, keepdim, options) end

---The variance of a sample. With {correction=0}: of the whole population.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { correction?: integer, out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:var(dim, keepdim, options) end

---The variance of a sample. With {correction=0}: of the whole population.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { correction?: integer, out?: millrace.Tensor }
---@return millrace.Tensor
function mr.var(x, dim, keepdim, options) end

---The standard deviation. {correction=} as in var.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { correction?: integer, out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:std(dim, keepdim, options) end

---The standard deviation. {correction=} as in var.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { correction?: integer, out?: millrace.Tensor }
---@return millrace.Tensor
function mr.std(x, dim, keepdim, options) end

---exp(x) of each element x, divided by the sum of exp over the dim.
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:softmax(dim, options) end

---exp(x) of each element x, divided by the sum of exp over the dim.
---@param x millrace.Tensor
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.softmax(x, dim, options) end

---The logarithm of softmax. It is exact also where softmax itself underflows to 0.
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:log_softmax(dim, options) end

---The logarithm of softmax. It is exact also where softmax itself underflows to 0.
---@param x millrace.Tensor
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.log_softmax(x, dim, options) end

---The slices of x along `dim` at the positions in `index`, an i64 or i32 tensor with at most one dim;
---the result has one for each of them. On a device, an index out of range is an error that is noticed
---later, and after which the device must be reset (R50).
---@param dim integer|integer[]
---@param index any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:index_select(dim, index, options) end

---The slices of x along `dim` at the positions in `index`, an i64 or i32 tensor with at most one dim;
---the result has one for each of them. On a device, an index out of range is an error that is noticed
---later, and after which the device must be reset (R50).
---@param x millrace.Tensor
---@param dim integer|integer[]
---@param index any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.index_select(x, dim, index, options) end

---For each element of `index` the element of x at the same place, but at that position in `dim`.
---`index` has as many dims as x, and the result has its shape. An index out of range is an error as in
---index_select.
---@param dim integer|integer[]
---@param index any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:gather(dim, index, options) end

---For each element of `index` the element of x at the same place, but at that position in `dim`.
---`index` has as many dims as x, and the result has its shape. An index out of range is an error as in
---index_select.
---@param x millrace.Tensor
---@param dim integer|integer[]
---@param index any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.gather(x, dim, index, options) end

---The rows of the matrix `table` at the positions in `index`. The result has the shape of `index`,
---with the columns as one dim more. An index out of range is an error as in index_select.
---@param index any
---@param table any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.embedding(index, table, options) end

---For each element of `index`, sets the element of x at the same place, but at that position in `dim`,
---to the element of `source` there, or to the number `source`. If several are set to one place, the
---last one along `dim` stays. An index out of range is an error as in index_select.
---@param dim integer|integer[]
---@param index any
---@param source any
---@return millrace.Tensor
function Tensor:scatter_(dim, index, source) end

---Like scatter_, but adds. Sums are made in the order of the index along `dim`, so they are the same
---in each run and on each backend. On a GPU this costs a sort of the index, and of all that is added
---to one element a chain of additions.
---@param dim integer|integer[]
---@param index any
---@param source any
---@return millrace.Tensor
function Tensor:scatter_add_(dim, index, source) end

---Adds the slices of `source` along `dim` to those of x at the positions in `index`, which has at most
---one dim. Sums are made in the order of the index, as by scatter_add_. An index out of range is an
---error as in index_select.
---@param dim integer|integer[]
---@param index any
---@param source any
---@return millrace.Tensor
function Tensor:index_add_(dim, index, source) end

---The sums of the elements up to each one along the dim. For integers and bools they are i64. Floats
---are added in double precision.
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:cumsum(dim, options) end

---The sums of the elements up to each one along the dim. For integers and bools they are i64. Floats
---are added in double precision.
---@param x millrace.Tensor
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.cumsum(x, dim, options) end

---The products of the elements up to each one along the dim. For integers and bools they are i64.
---Floats are multiplied in double precision.
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:cumprod(dim, options) end

---The products of the elements up to each one along the dim. For integers and bools they are i64.
---Floats are multiplied in double precision.
---@param x millrace.Tensor
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.cumprod(x, dim, options) end

---The elements along the dim (default: the last) in order, and their positions (from 1). Equal
---elements stay in their order. NaN is greater than all others.
---@param dim? integer|integer[]
---@param descending? any
---@param options? { dim?: integer|integer[], descending?: any }
---@return values
---@return positions
function Tensor:sort(dim, descending, options) end

---The elements along the dim (default: the last) in order, and their positions (from 1). Equal
---elements stay in their order. NaN is greater than all others.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param descending? any
---@param options? { dim?: integer|integer[], descending?: any }
---@return values
---@return positions
function mr.sort(x, dim, descending, options) end

---The positions that sort gives.
---@param dim? integer|integer[]
---@param descending? any
---@param options? { dim?: integer|integer[], descending?: any }
---@return positions
function Tensor:argsort(dim, descending, options) end

---The positions that sort gives.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param descending? any
---@param options? { dim?: integer|integer[], descending?: any }
---@return positions
function mr.argsort(x, dim, descending, options) end

---The k greatest elements along the dim (default: the last), the greatest first, and their positions
---(from 1); with largest=false, the k least. Of equal elements the first come first. On a GPU it costs
---as much as sort.
---@param k any
---@param dim? integer|integer[]
---@param largest? any
---@param options? { dim?: integer|integer[], largest?: any }
---@return values
---@return positions
function Tensor:topk(k, dim, largest, options) end

---The k greatest elements along the dim (default: the last), the greatest first, and their positions
---(from 1); with largest=false, the k least. Of equal elements the first come first. On a GPU it costs
---as much as sort.
---@param x millrace.Tensor
---@param k any
---@param dim? integer|integer[]
---@param largest? any
---@param options? { dim?: integer|integer[], largest?: any }
---@return values
---@return positions
function mr.topk(x, k, dim, largest, options) end

---The elements in reverse order along these dims: a copy.
---@param dims any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:flip(dims, options) end

---The elements in reverse order along these dims: a copy.
---@param x millrace.Tensor
---@param dims any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.flip(x, dims, options) end

---Moves the elements along a dim by a number of places, around the end: a negative one moves them
---towards the front. Both can be lists of the same length. Without dims, the elements move as if all
---dims were one.
---@param shifts any
---@param dims? any
---@return millrace.Tensor
function Tensor:roll(shifts, dims) end

---Moves the elements along a dim by a number of places, around the end: a negative one moves them
---towards the front. Both can be lists of the same length. Without dims, the elements move as if all
---dims were one.
---@param x millrace.Tensor
---@param shifts any
---@param dims? any
---@return millrace.Tensor
function mr.roll(x, shifts, dims) end

---The lower triangle of a matrix or of each matrix of a batch: elements above diagonal k are 0
---(default: k is 0, the main diagonal; 1 is the one above it).
---@param k? any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:tril(k, options) end

---The lower triangle of a matrix or of each matrix of a batch: elements above diagonal k are 0
---(default: k is 0, the main diagonal; 1 is the one above it).
---@param x millrace.Tensor
---@param k? any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.tril(x, k, options) end

---The upper triangle of a matrix or of each matrix of a batch: elements below diagonal k are 0
---(default: k is 0, the main diagonal; 1 is the one above it).
---@param k? any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:triu(k, options) end

---The upper triangle of a matrix or of each matrix of a batch: elements below diagonal k are 0
---(default: k is 0, the main diagonal; 1 is the one above it).
---@param x millrace.Tensor
---@param k? any
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.triu(x, k, options) end

---The positions (from 1) of the elements that are not 0, in row-major order: an i64 tensor with a row
---for each of them and a column for each dim. The host waits for their number; mr.sync_debug shows
---that.
---@return positions
function Tensor:nonzero() end

---The positions (from 1) of the elements that are not 0, in row-major order: an i64 tensor with a row
---for each of them and a column for each dim. The host waits for their number; mr.sync_debug shows
---that.
---@param x millrace.Tensor
---@return positions
function mr.nonzero(x) end

---The elements of x where the bool tensor `mask` is true, in row-major order, as a vector. Both
---broadcast. The host waits for their number; mr.sync_debug shows that.
---@param mask any
---@return millrace.Tensor
function Tensor:masked_select(mask) end

---The elements of x where the bool tensor `mask` is true, in row-major order, as a vector. Both
---broadcast. The host waits for their number; mr.sync_debug shows that.
---@param x millrace.Tensor
---@param mask any
---@return millrace.Tensor
function mr.masked_select(x, mask) end

---The matrix product. Dims before the last two are batch dims, and broadcast. A vector counts as a row
---on the left and as a column on the right.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:matmul(y, options) end

---The matrix product. Dims before the last two are batch dims, and broadcast. A vector counts as a row
---on the left and as a column on the right.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.matmul(x, y, options) end

---The product of two matrices.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:mm(y, options) end

---The product of two matrices.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.mm(x, y, options) end

---The product of a matrix and a vector.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:mv(y, options) end

---The product of a matrix and a vector.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.mv(x, y, options) end

---The dot product of two vectors.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:dot(y, options) end

---The dot product of two vectors.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.dot(x, y, options) end

---The matrix products of two batches of matrices.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:bmm(y, options) end

---The matrix products of two batches of matrices.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.bmm(x, y, options) end

---The convolution of images (images, channels, rows, columns) with weights (outputs, channels /
---groups, rows, columns); `bias` is added to each output channel. Options are a number or {rows,
---columns}. With padding="same" the result has as many rows and columns as x; "valid" is no padding.
---@param w millrace.Tensor|number
---@param bias? any
---@param options? { bias?: any, stride?: any, padding?: any, dilation?: any, groups?: any }
---@return millrace.Tensor
function Tensor:conv2d(w, bias, options) end

---The convolution of images (images, channels, rows, columns) with weights (outputs, channels /
---groups, rows, columns); `bias` is added to each output channel. Options are a number or {rows,
---columns}. With padding="same" the result has as many rows and columns as x; "valid" is no padding.
---@param x millrace.Tensor
---@param w millrace.Tensor|number
---@param bias? any
---@param options? { bias?: any, stride?: any, padding?: any, dilation?: any, groups?: any }
---@return millrace.Tensor
function mr.conv2d(x, w, bias, options) end

---The gradient of conv2d with respect to its input, from that of its result.
---@param input_shape any
---@param w millrace.Tensor|number
---@param gradient any
---@param options? { stride?: any, padding?: any, dilation?: any, groups?: any }
---@return millrace.Tensor
function mr.conv2d_input(input_shape, w, gradient, options) end

---The gradient of conv2d with respect to its weights, from that of its result. The positions are added
---in an order that depends on the shapes alone.
---@param x any
---@param weight_shape any
---@param gradient any
---@param options? { stride?: any, padding?: any, dilation?: any, groups?: any }
---@return millrace.Tensor
function mr.conv2d_weight(x, weight_shape, gradient, options) end

---The greatest element of each window of images (images, channels, rows, columns); NaN if one is NaN.
---With return_indices also its position in the rows and columns of its channel, from 1.
---@param size any
---@param options? { stride?: any, padding?: any, dilation?: any, ceil_mode?: any, return_indices?: any }
---@return millrace.Tensor
---@return positions
function Tensor:max_pool2d(size, options) end

---The greatest element of each window of images (images, channels, rows, columns); NaN if one is NaN.
---With return_indices also its position in the rows and columns of its channel, from 1.
---@param x millrace.Tensor
---@param size any
---@param options? { stride?: any, padding?: any, dilation?: any, ceil_mode?: any, return_indices?: any }
---@return millrace.Tensor
---@return positions
function mr.max_pool2d(x, size, options) end

---The gradient of max_pool2d, from that of its result and the positions that it returned.
---@param input_shape any
---@param gradient any
---@param positions any
---@param size any
---@param options? { stride?: any, padding?: any, dilation?: any, ceil_mode?: any }
---@return millrace.Tensor
function mr.max_pool2d_backward(input_shape, gradient, positions, size, options) end

---The mean of each window of images (images, channels, rows, columns).
---@param size any
---@param options? { stride?: any, padding?: any, ceil_mode?: any, count_include_pad?: any, divisor_override?: any }
---@return millrace.Tensor
function Tensor:avg_pool2d(size, options) end

---The mean of each window of images (images, channels, rows, columns).
---@param x millrace.Tensor
---@param size any
---@param options? { stride?: any, padding?: any, ceil_mode?: any, count_include_pad?: any, divisor_override?: any }
---@return millrace.Tensor
function mr.avg_pool2d(x, size, options) end

---The gradient of avg_pool2d, from that of its result.
---@param input_shape any
---@param gradient any
---@param size any
---@param options? { stride?: any, padding?: any, ceil_mode?: any, count_include_pad?: any, divisor_override?: any }
---@return millrace.Tensor
function mr.avg_pool2d_backward(input_shape, gradient, size, options) end

---The means of as many rows and columns of windows, of about equal size, as `size` says.
---@param size any
---@return millrace.Tensor
function Tensor:adaptive_avg_pool2d(size) end

---The means of as many rows and columns of windows, of about equal size, as `size` says.
---@param x millrace.Tensor
---@param size any
---@return millrace.Tensor
function mr.adaptive_avg_pool2d(x, size) end

---The gradient of adaptive_avg_pool2d, from that of its result.
---@param input_shape any
---@param gradient any
---@return millrace.Tensor
function mr.adaptive_avg_pool2d_backward(input_shape, gradient) end

---The negative of x (items, classes, ...) at each target, which counts from 1: the loss of
---log-probabilities. Reductions: none, mean, sum; the mean divides by the sum of the targets' weights.
---@param target any
---@param options? { weight?: any, ignore_index?: any, reduction?: any, return_total_weight?: any }
---@return millrace.Tensor
function Tensor:nll_loss(target, options) end

---The negative of x (items, classes, ...) at each target, which counts from 1: the loss of
---log-probabilities. Reductions: none, mean, sum; the mean divides by the sum of the targets' weights.
---@param x millrace.Tensor
---@param target any
---@param options? { weight?: any, ignore_index?: any, reduction?: any, return_total_weight?: any }
---@return millrace.Tensor
function mr.nll_loss(x, target, options) end

---The gradient of nll_loss, from that of its result, and, with a reduction, its total weight.
---@param input_shape any
---@param gradient any
---@param target any
---@param options? { weight?: any, ignore_index?: any, reduction?: any, total_weight?: any }
---@return millrace.Tensor
function mr.nll_loss_backward(input_shape, gradient, target, options) end

return mr
