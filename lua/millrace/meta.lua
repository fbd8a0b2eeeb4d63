---@meta millrace
-- For lua-language-server; never run. Written by `make docs`.

---@class millrace
---@field backend "virtual"|"cuda"
local mr = {}

---One GPU. mr.device(i) and mr.current_device() give it.
---@class millrace.Device
---@field index integer CUDA's ordinal; counts from 0.
---@field name string What the device is.
---@field backend string "virtual" or "cuda".
---@field sm_count integer Streaming multiprocessors.
---@field total_memory integer Bytes of device memory.
---@field compute_capability string "9.0" on an H200.
---@field max_threads_per_block integer Threads.
---@field max_threads_per_sm integer Threads resident on one SM.
---@field max_blocks_per_sm integer Blocks resident on one SM.
---@field max_resident_grids integer Kernels that can run at once (R53).
---@field registers_per_sm integer 32-bit registers of one SM.
---@field shared_per_sm integer Bytes of shared memory of one SM.
---@field shared_per_block integer Bytes of shared memory that one block can have.
---@field warp_size integer Threads of a warp.
---@field async_engine_count integer Copies that can run beside kernels (R25).
---@field l2_bytes integer Bytes of L2 cache.
---@field memory_bandwidth number Bytes per second, read and write together.
local Device = {}

---A queue of one device: its work runs in the order of submission (R1), and in no order with that of
---other streams (R2) unless an event, the default stream or the host makes one.
---@class millrace.Stream
---@field device millrace.Device The device that it belongs to.
---@field priority integer As clamped at creation (R8).
---@field nonblocking boolean Whether the default stream's barrier leaves it out (R4).
---@field name string? As given at creation; "default" and "per-thread" for those.
---@field id integer A number that no other stream has.
---@field closed boolean Whether it has been given up.
local Stream = {}

---A name for everything that was in a stream when it was recorded.
---@class millrace.Event
---@field device millrace.Device? Of its first record; nil before (R14).
---@field timing boolean Whether it takes time stamps.
---@field name string? As given at creation.
---@field id integer A number that no other event has.
---@field recorded boolean Whether it has been recorded; a wait for one that has not delays nothing (R13).
---@field closed boolean Whether it has been given up.
---@operator sub(millrace.Event): number
local Event = {}

---A typed, strided view of device or host memory. Shapes, dims and elements count from 1. `==`
---compares identity; mr.equal compares values.
---Facts about a tensor can be read at any time, also after it was freed.
---Views of a tensor share its memory: what is written to one is seen in the other.
---Copies run on the current stream of the device. Only those between device and host wait for it, and
---not with non_blocking.
---Operators broadcast and promote dtypes as the methods do. `==` compares identity; `<` and the like
---do not exist, as Lua makes one boolean of their result: use lt, le, gt, ge, eq, ne.
---Linear algebra.
---@class millrace.Tensor
---@field data_ptr integer The address of the first element.
---@field storage_id integer Which memory it shows: views of one tensor have the same.
---@field shape integer[] The sizes of its dims, a new table each time.
---@field stride integer[] Elements from one index to the next, for each dim.
---@field dtype string "f32" "f64" "i32" "i64" "u8" or "bool".
---@field device millrace.Device|string The device that it lives on, or "cpu" for host memory.
---@field numel integer How many elements it has.
---@field ndim integer How many dims; 0 for a single value.
---@field itemsize integer Bytes of an element.
---@field nbytes integer Bytes of all elements.
---@field pinned boolean Host memory that the device can reach by itself.
---@field contiguous boolean Row-major, without gaps.
---@operator len: integer
---@operator add(millrace.Tensor|number): millrace.Tensor
---@operator sub(millrace.Tensor|number): millrace.Tensor
---@operator mul(millrace.Tensor|number): millrace.Tensor
---@operator div(millrace.Tensor|number): millrace.Tensor
---@operator pow(millrace.Tensor|number): millrace.Tensor
---@operator mod(millrace.Tensor|number): millrace.Tensor
---@operator unm: millrace.Tensor
local Tensor = {}

---What is allocated. Freed device memory stays in the pool, in stream order, until it is used again or given back.
mr.memory = {}

---The hazard checker: finds accesses to the same bytes that nothing orders, says why, and what to add. docs/hazards.md explains each kind and reason.
mr.hazard = {}

---The virtual GPU itself: who decides, what is pending, what CUDA leaves open. nil on a real GPU.
mr.machine = {}

---How many devices there are.
---@return integer count
function mr.device_count() end

---The device of that ordinal; ordinals count from 0, as CUDA prints them.
---@param ordinal integer
---@return millrace.Device device
function mr.device(ordinal) end

---The device on which new tensors, streams and events are made (R57).
---@return millrace.Device device
function mr.current_device() end

---Makes a device current; waits for nothing (R57).
---@param device millrace.Device|integer
function mr.set_device(device) end

---Runs `fn(...)` with that stream or device current and returns its results; what was current before
---is put back, also on error. Waits for nothing at either edge.
---@param where millrace.Stream|millrace.Device
---@param fn function
---@param ... any
---@return any ...
function mr.with(where, fn, ...) end

---The host waits for all streams of one device, the current one if none is named; other devices go on
---(R10).
---@param device? millrace.Device|integer
function mr.synchronize(device) end

---The host's clock in milliseconds; virtual time on the virtual GPU, where the host's own computing
---takes none.
---@return number ms
function mr.clock() end

---Restarts the random numbers (Philox): the same seed and the same calls give the same numbers on
---every backend.
---@param seed integer
function mr.manual_seed(seed) end

---With true, every operation and copy is waited for where it is called, like CUDA_LAUNCH_BLOCKING=1
---(R52): failures name their own line, and races hide. Returns what was set before.
---@param on? boolean
---@return boolean before
function mr.launch_blocking(on) end

---With true, products of f32 matrices may be computed in TF32 on a GPU that has it: faster, and with
---10 bits of mantissa. The virtual GPU always computes in f32. Returns what was set before; off at the
---start.
---@param on? boolean
---@return boolean before
function mr.allow_tf32(on) end

---A fresh device, also after a failure that made every call fail (R50): pending work is dropped,
---device memory is gone; streams, events and device tensors of before answer every use with an error.
---Host tensors keep their values. On a real GPU the driver gives the process no new context after some
---failures (an illegal address); the error then says to start again.
function mr.reset() end

---A new stream on the current device or the one named. Non-blocking by default, as in PyTorch: it
---takes no part in the default stream's barrier (R4). Lower priority numbers go first; values out of
---range are clamped (R8).
---@param opts? { priority?: integer, nonblocking?: boolean, device?: millrace.Device|integer, name?: string }
---@return millrace.Stream stream
function mr.stream(opts) end

---The legacy default stream: its work waits for all earlier work of the blocking streams of its
---device, and their later work waits for it (R3).
---@param device? millrace.Device|integer
---@return millrace.Stream stream
function mr.default_stream(device) end

---The per-thread default stream: an ordinary blocking stream with a fixed handle (R6).
---@param device? millrace.Device|integer
---@return millrace.Stream stream
function mr.per_thread_stream(device) end

---Where operations go when no stream is named: at the start, the default stream.
---@param device? millrace.Device|integer
---@return millrace.Stream stream
function mr.current_stream(device) end

---Makes a stream current on its device, and its device current; waits for nothing.
---@param s millrace.Stream
function mr.set_stream(s) end

---The priorities that streams of the current device can have; the greatest is the smaller number (R8).
---@return integer least
---@return integer greatest
function mr.priority_range() end

---Later work of each of these streams waits for what has been submitted to all of them so far; the
---host waits for nothing.
---@param streams millrace.Stream[]
function mr.barrier(streams) end

---A new event. It belongs to the device of the stream that it is first recorded on (R14). `timing`
---makes it usable for elapsed_time; `blocking` lets the host sleep rather than spin while it waits,
---which changes no order (R18).
---@param opts? { timing?: boolean, blocking?: boolean, name?: string }
---@return millrace.Event e
function mr.event(opts) end

---A tensor of these values: nested tables, each as long as its neighbours, or a single value. Integers
---give i64, numbers with a fraction (or written 1.0) f32, booleans bool, unless dtype says otherwise.
---On a device the values are copied there and the copy is waited for, as by copy_.
---@param values table|number|boolean
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.tensor(values, options) end

---A tensor whose values are whatever the memory held. Sizes also as one table. Memory of the device
---comes in the order of `stream`, or of the current one.
---@param ... integer|{ dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.empty(...) end

---Zeros, f32 unless dtype says otherwise. Sizes also as one table.
---@param ... integer|{ dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.zeros(...) end

---Ones, f32 unless dtype says otherwise. Sizes also as one table.
---@param ... integer|{ dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.ones(...) end

---The same value everywhere. Integers give i64, other numbers f32, booleans bool, unless dtype says
---otherwise. Sizes also as arguments before the value.
---@param sizes integer[]
---@param value number|boolean
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.full(sizes, value, options) end

---As mr.empty, with the shape of t, and its dtype and device unless the options say otherwise.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.empty_like(t, options) end

---Zeros, with the shape of t, and its dtype and device unless the options say otherwise.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.zeros_like(t, options) end

---Ones, with the shape of t, and its dtype and device unless the options say otherwise.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.ones_like(t, options) end

---The same value everywhere, with the shape of t, and its dtype and device unless the options say
---otherwise.
---@param t millrace.Tensor
---@param value number|boolean
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.full_like(t, value, options) end

---The numbers from start up to, and without, stop: mr.arange(3) is 0 1 2. i64 if all three are
---integers, else f32, unless dtype says otherwise.
---@param start? number
---@param stop number
---@param step? number
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.arange(start, stop, step, options) end

---`count` numbers at equal distances, both ends among them; f32 unless dtype says otherwise.
---@param first number
---@param last number
---@param count integer
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.linspace(first, last, count, options) end

---Ones on the diagonal, zeros elsewhere; f32 unless dtype says otherwise.
---@param rows integer
---@param columns? integer
---@param options? { dtype?: string, device?: millrace.Device|integer|string, pinned?: boolean, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.eye(rows, columns, options) end

---Random numbers from 0 up to, and without, 1; f32 or f64. Sizes also as one table.
---@param ... integer|{ dtype?: string, device?: millrace.Device, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.rand(...) end

---Random numbers of the normal distribution with mean 0 and deviation 1; f32 or f64. Sizes also as one
---table.
---@param ... integer|{ dtype?: string, device?: millrace.Device, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.randn(...) end

---As mr.rand, with the shape of t, and its dtype and device unless the options say otherwise.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device }
---@return millrace.Tensor
function mr.rand_like(t, options) end

---As mr.randn, with the shape of t, and its dtype and device unless the options say otherwise.
---@param t millrace.Tensor
---@param options? { dtype?: string, device?: millrace.Device }
---@return millrace.Tensor
function mr.randn_like(t, options) end

---Random integers from low up to, and without, high; i64 unless dtype says otherwise. After two
---bounds, sizes also as arguments.
---@param low? integer
---@param high integer
---@param sizes integer[]
---@param options? { dtype?: string, device?: millrace.Device, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.randint(low, high, sizes, options) end

---As mr.randint, with the shape of t, and its dtype and device unless the options say otherwise.
---@param t millrace.Tensor
---@param low? integer
---@param high integer
---@param options? { dtype?: string, device?: millrace.Device }
---@return millrace.Tensor
function mr.randint_like(t, low, high, options) end

---The integers from 1 to n in random order, to be used as indices; i64 unless dtype says otherwise.
---@param n integer
---@param options? { dtype?: string, device?: millrace.Device, name?: string, stream?: millrace.Stream }
---@return millrace.Tensor
function mr.randperm(n, options) end

---beta * x + alpha * (a @ b): a matrix product to which x, broadcast, is added. With beta=0 the values
---of x do not count, not even NaN.
---@param a millrace.Tensor
---@param b millrace.Tensor
---@param options? { beta?: number, alpha?: number }
---@return millrace.Tensor
function mr.addmm(a, b, options) end

---The tensors one after the other along a dim; all other sizes must agree. The dtype is the one that
---they promote to.
---@param tensors millrace.Tensor[]
---@param dim? integer
---@return millrace.Tensor
function mr.cat(tensors, dim) end

---The tensors, all of one shape, side by side along a new dim. The dtype is the one that they promote
---to.
---@param tensors millrace.Tensor[]
---@param dim? integer
---@return millrace.Tensor
function mr.stack(tensors, dim) end

---Whether both have the same shape and the same values; NaN equals nothing. Of device tensors the
---values are copied to the host in the current stream, which is waited for.
---@param a millrace.Tensor
---@param b millrace.Tensor
---@return boolean
function mr.equal(a, b) end

---Whether |a - b| <= atol + rtol * |b| for all elements, broadcast. Of device tensors the values are
---copied to the host in the current stream, which is waited for.
---@param a millrace.Tensor
---@param b millrace.Tensor
---@param options? { rtol?: number, atol?: number, equal_nan?: boolean }
---@return boolean
function mr.allclose(a, b, options) end

---The values as text, as print shows them: long dims are shortened, and a line with dtype, shape and
---place ends it. Copies to the host in the current stream and waits for it.
---@param t millrace.Tensor
---@return string
function mr.format(t) end

---Lua's print, but of tensors it shows the values, which are copied to the host in the current stream
---and waited for; a freed one raises. Loading the module makes it the global print.
---@param ... any
function mr.print(...) end

---cudaMemcpy, on the legacy default stream. The host waits until it is done; for a pageable source
---only until that is staged, and between device tensors not at all (R20, R21). Both contiguous, of
---equal bytes and dtype.
---@param destination millrace.Tensor
---@param source millrace.Tensor
function mr.memcpy(destination, source) end

---cudaMemcpyAsync, on `stream` or the current one of the source's device (from the host: of the
---destination's). Returns at once if host memory on either side is pinned; with pageable memory a copy
---to the host waits (R22, R23). Both contiguous, of equal bytes and dtype.
---@param destination millrace.Tensor
---@param source millrace.Tensor
---@param options? { stream?: millrace.Stream }
function mr.memcpy_async(destination, source, options) end

---cudaMemset, on the legacy default stream: every byte becomes `byte` (0 to 255). The host does not
---wait, unless t is pinned host memory (R24). t must be contiguous.
---@param t millrace.Tensor
---@param byte integer
function mr.memset(t, byte) end

---cudaMemsetAsync, on `stream` or the current one: every byte becomes `byte`; the host never waits
---(R24). t must be contiguous.
---@param t millrace.Tensor
---@param byte integer
---@param options? { stream?: millrace.Stream }
function mr.memset_async(t, byte, options) end

---An abstract operation, to sketch a program with: takes `ms` milliseconds on the device, occupies
---`blocks` multiprocessors, and reads and writes exactly these tensors (views count as the bytes that
---they cover; pinned host tensors may be among them). Each element written becomes a fixed mix of what
---was read and of the name, so other orders give other values.
---@param options { name?: string, reads?: millrace.Tensor[], writes?: millrace.Tensor[], ms?: number, stream?: millrace.Stream, blocks?: integer }
function mr.op(options) end

---Keeps a stream (the current one if none is named) busy for that many milliseconds, and touches no
---memory: the way to make overlap and races visible. Also mr.spin(ms).
---@param options { ms?: number, stream?: millrace.Stream }
function mr.spin(options) end

---Prints what there is to know about a function, an object, or a name such as "add_", "stream",
---"mr.memory" or "one-way" (a word of the hazard checker); without an argument, where to begin. Lines
---are as long as the terminal is wide, or COLUMNS says.
---@param what? any
function mr.help(what) end

---The documentation as data: {owner=, name=, kind=, usage= or type=, text=, part=} for everything, in
---the order of the reference page; then {name=, text=} for each class and table; then {name=, kind=,
---text=} for each word of the hazard checker: a "kind" of hazard, a "reason", or a kind of "advice".
---@return table[] entries
---@return table[] classes
---@return table[] words
function mr.docs() end

---The host waits for all streams of this device (R10); as mr.synchronize(d).
function Device:synchronize() end

---Whether kernels of this device could use memory of the other directly (R59).
---@param peer millrace.Device|integer
---@return boolean possible
function Device:can_access_peer(peer) end

---Lets this device use the other's memory directly, one way: copies between them no longer go through
---the host. Twice is an error, peer-access-already-enabled (R59).
---@param peer millrace.Device|integer
function Device:enable_peer_access(peer) end

---Later work of `s` waits for the event's most recent record; the host does not wait (R12, R15). An
---event that was never recorded delays nothing (R13).
---@param e millrace.Event
function Stream:wait_event(e) end

---Later work of `s` waits for what has been submitted to `other` so far.
---@param other millrace.Stream
function Stream:wait_stream(other) end

---wait_event or wait_stream, by what `x` is.
---@param x millrace.Event|millrace.Stream
function Stream:wait(x) end

---Records the event, or a new one, behind what `s` has been given so far, and returns it (R11).
---@param e? millrace.Event
---@return millrace.Event e
function Stream:record_event(e) end

---The host waits for everything submitted to `s` so far (R10); on the default stream, for the blocking
---streams of its device too.
function Stream:synchronize() end

---Whether all submitted work is done; never waits. `true` orders like synchronize (R10).
---@return boolean done
function Stream:query() end

---The same as mr.with(s, fn, ...).
---@param fn function
---@param ... any
---@return any ...
function Stream:run(fn, ...) end

---Makes `s` current until the variable that holds the scope is closed: `local _ <close> = s:scope()`.
---@return scope scope
function Stream:scope() end

---Runs `fn()` in the order of the stream: after its earlier work, before its later work, on the Lua
---thread, while the host waits or asks (R46). `fn` may not use the device. If it fails, the call that
---waited raises the error.
---@param fn function
function Stream:host_func(fn) end

---Gives the stream up: returns at once, pending work completes (R9). Later use of `s` is an error;
---closing again is not.
function Stream:close() end

---Captures what has been submitted to `s` (the current stream if none is named) so far; replaces the
---record of before (R11, R12).
---@param s? millrace.Stream
---@return millrace.Event e
function Event:record(s) end

---Later work of `s` (the current stream if none is named) waits for the most recent record; the host
---does not wait (R12, R15).
---@param s? millrace.Stream
function Event:wait(s) end

---The host waits for the most recent record; at once if there is none (R13).
function Event:synchronize() end

---Whether what the most recent record captured is done; true if it was never recorded (R13). Never
---waits; `true` orders like synchronize.
---@return boolean done
function Event:query() end

---Milliseconds on the device between the two records. Three different errors: not made with
---timing=true, never recorded, not complete yet (R17).
---@param later millrace.Event
---@return number ms
function Event:elapsed_time(later) end

---Gives the event up: returns at once; waits already submitted stay valid (R19).
function Event:close() end

---Frees the memory now, under this tensor and all its views; any later use of them raises. In the
---order of the stream that it was made on, or of `stream` (cudaFreeAsync); with sync as cudaFree does
---it, which may wait (R27). Freeing twice is an error.
---@param options? { stream?: millrace.Stream, sync?: boolean }
function Tensor:free(options) end

---Says that work on `s` uses the memory: when it is freed, it is given out again only after the work
---that `s` has been given up to then (R33). Without it, a tensor that was used on another stream than
---its own may be overwritten under that work. Returns t.
---@param s millrace.Stream
---@return millrace.Tensor
function Tensor:record_stream(s) end

---The name that messages and reports use, or nil; with an argument sets it and returns t. A storage
---goes by the name that was given last to a tensor on it.
---@param name? string
---@return string
function Tensor:name(name) end

---The size of a dim (from 1; negative from the end), or all sizes as a table.
---@param dim? integer
---@return integer|integer[]
function Tensor:size(dim) end

---The same elements in another shape; one size may be -1 and is worked out. Raises where the strides
---allow no view: reshape copies then.
---@param ... integer
---@return millrace.Tensor
function Tensor:view(...) end

---The same elements in another shape; one size may be -1 and is worked out. A view where the strides
---allow it, else a copy.
---@param ... integer
---@return millrace.Tensor
function Tensor:reshape(...) end

---Makes one dim of the dims from `first` to `last`. A view where the strides allow it, else a copy.
---@param first? integer
---@param last? integer
---@return millrace.Tensor
function Tensor:flatten(first, last) end

---The transposed matrix, a view; a tensor of fewer than 2 dims stays as it is.
---@return millrace.Tensor
function Tensor:t() end

---A view with two dims exchanged.
---@param dim1 integer
---@param dim2 integer
---@return millrace.Tensor
function Tensor:transpose(dim1, dim2) end

---A view with its dims in another order: each of them once.
---@param ... integer
---@return millrace.Tensor
function Tensor:permute(...) end

---A view of `length` elements of a dim, from element `start` on (from 1; negative from the end).
---@param dim integer
---@param start integer
---@param length integer
---@return millrace.Tensor
function Tensor:narrow(dim, start, length) end

---A view of one index of a dim, without that dim.
---@param dim integer
---@param index integer
---@return millrace.Tensor
function Tensor:select(dim, index) end

---A view without that dim if its size is 1, or without all dims of size 1.
---@param dim? integer
---@return millrace.Tensor
function Tensor:squeeze(dim) end

---A view with a new dim of size 1 in that place: 1 puts it first, -1 last.
---@param dim integer
---@return millrace.Tensor
function Tensor:unsqueeze(dim) end

---A view in which dims of size 1, and new ones in front, repeat; -1 keeps a size. Several elements of
---the view are one in memory, so it cannot be written to.
---@param ... integer
---@return millrace.Tensor
function Tensor:expand(...) end

---A list of at most `count` views of equal size along a dim; the last may be smaller, and there may be
---fewer.
---@param count integer
---@param dim? integer
---@return millrace.Tensor[]
function Tensor:chunk(count, dim) end

---A list of views of that size along a dim (the last may be smaller), or of the sizes listed, which
---must add up.
---@param size integer|integer[]
---@param dim? integer
---@return millrace.Tensor[]
function Tensor:split(size, dim) end

---A contiguous copy in memory of its own, on the same device, made in its current stream; of host
---memory in pageable memory.
---@return millrace.Tensor
function Tensor:clone() end

---t itself if it is row-major without gaps, else a copy that is.
---@return millrace.Tensor
function Tensor:contiguous() end

---Copies the values of `source`, broadcast and converted to t's dtype, between any two memories. Runs
---on the current stream of the device; where the host is on one side, then waits for that stream,
---unless non_blocking. Between two devices it runs on the current stream of the source's; that of the
---other waits for it, and is waited for first. Returns t.
---@param source millrace.Tensor
---@param options? { non_blocking?: boolean }
---@return millrace.Tensor
function Tensor:copy_(source, options) end

---The tensor on a device (an object, an ordinal, "cuda", "cuda:1"), on the host ("cpu"), in a dtype
---("f64"), or as another tensor is; two of these may be given. t itself when nothing changes, else a
---copy, made as copy_ does it. With non_blocking to the host the copy is in pinned memory, and its
---values are there once the stream has been waited for.
---@param ... millrace.Device|integer|string|millrace.Tensor|{ non_blocking?: boolean }
---@return millrace.Tensor
function Tensor:to(...) end

---t:to("cpu"): the values in host memory, which are waited for unless non_blocking.
---@param options? { non_blocking?: boolean }
---@return millrace.Tensor
function Tensor:cpu(options) end

---The tensor on that device, or on the current one; t itself when it is there already.
---@param device? millrace.Device|integer
---@param options? { non_blocking?: boolean }
---@return millrace.Tensor
function Tensor:cuda(device, options) end

---A copy of a host tensor in pinned memory, which copies to and from the device without the host; t
---itself if it is pinned already.
---@return millrace.Tensor
function Tensor:pin_memory() end

---The value of a tensor of one element: an integer, a float or a boolean, by its dtype. From a device
---it is copied in the current stream, which is waited for.
---@return number|boolean
function Tensor:item() end

---The values as nested tables of integers, floats or booleans; of a 0-dim tensor the value itself.
---From a device they are copied in the current stream, which is waited for.
---@return table
function Tensor:totable() end

---beta * x + alpha * (a @ b): a matrix product to which x, broadcast, is added. With beta=0 the values
---of x do not count, not even NaN.
---@param a millrace.Tensor
---@param b millrace.Tensor
---@param options? { beta?: number, alpha?: number }
---@return millrace.Tensor
function Tensor:addmm(a, b, options) end

---Bytes and counts of one device: `live` (of tensors that the script holds), `reserved` (what the pool
---has from the device), `peak` (the highest `live`), `allocations` (live ones) and
---`total_allocations`. With no device the sums over all, a list `devices` with those of each (the
---first is device 0) and `host`, with live, peak and allocations of host memory.
---@param device? millrace.Device|integer
---@return table
function mr.memory.stats(device) end

---Bytes of device memory that the script's tensors hold, on one device or on all.
---@param device? millrace.Device|integer
---@return integer
function mr.memory.allocated(device) end

---Bytes that the pool has from the device, used or not, on one device or on all.
---@param device? millrace.Device|integer
---@return integer
function mr.memory.reserved(device) end

---The highest that allocated() has been, on one device, or the sum of these over all.
---@param device? millrace.Device|integer
---@return integer
function mr.memory.max_allocated(device) end

---Gives memory that no tensor uses back to the system, on one device or on all.
---@param device? millrace.Device|integer
function mr.memory.empty_cache(device) end

---"off" (costs nothing), "warn" (each new report goes to standard error), "error" (the call that makes
---a hazard raises, and is not carried out), "collect" (for reports()). Switching on starts from a
---state in which all earlier work counts as ordered; inside check(fn) the new mode holds from its end
---on. Returns the mode of before.
---@param mode? string
---@return string before
function mr.hazard.mode(mode) end

---What has been found so far, one table for each pair of places: kind, reason, tensor, bytes, first,
---second (op, access, stream, where, seq), fix (the lines to add, as text), fixes (the same as a list,
---with their places), count, stream_pairs (between how many pairs of streams), amended, why, message.
---@return table[] reports
function mr.hazard.reports() end

---Forgets the reports and begins a new summary; the order of the work remains. The verdict and the
---exit status of --check still count what was forgotten.
function mr.hazard.clear() end

---Runs `fn(...)` from a state in which all earlier work is ordered and returns the hazards in it.
---Works in every mode and puts it back; an error in `fn` is raised after that. Not inside another
---check.
---@param fn function
---@param ... any
---@return table[] reports
function mr.hazard.check(fn, ...) end

---Reports that match all that is given are counted and not shown: by the tensor's name, the kind, and
---a place ("file.lua" or "file.lua:12", either side). Without an argument: no rule any more.
---@param what? { tensor?: string, kind?: string, where?: string }
function mr.hazard.ignore(what) end

---What is not wrong and could be better: waits that add nothing, records that nobody waits for, a
---device synchronise where an event would do, asynchronous copies of pageable memory. The first call
---asks for it; it is given for what is done from then on, while the checker is on.
---@param on? boolean
---@return table[] reports
function mr.hazard.advice(on) end

---Prints and returns the chain that orders two operations, or that there is none. Each is a side of a
---report, "file.lua:12" (":12": of any file) for the last operation of that line (if it has none, the
---last record, wait or synchronise), or the operation's seq. The last 4096 actions are remembered,
---also after the checker is switched off or a check has ended.
---@param first table|string|integer
---@param second table|string|integer
---@return string text
---@return boolean ordered
function mr.hazard.why(first, second) end

---"no hazards: every legal schedule ..." or how many there were, and what was ignored; and the
---numbers, since the last clear(): operations, hazards, reports (pairs of places), follow_ups
---(accesses that the same cures order), unspecified (uses of pageable memory under asynchronous
---copies), ignored, dropped, forgotten, checked_apart (operations inside check()), cleared (hazards
---that clear() forgot).
---@return string text
---@return table totals
function mr.hazard.summary() end

---Who decides what the device does next where CUDA leaves a choice: "timed" (by the cost model; only
---then do times mean something), "adversarial" (consumers as early as the rules allow, so that races
---show), "random:SEED", or "manual" (mr.machine.step; a wait of the host runs the oldest first, until
---what it waits for holds). Returns the one of before.
---@param name? string
---@return string before
function mr.machine.chooser(name) end

---Lets the device take one step, of that stream or as the chooser picks. Returns a description of what
---moved, or nil when nothing could.
---@param s? millrace.Stream
---@return string? what
function mr.machine.step(s) end

---What is pending: for each stream with work {stream=, pending={{op=, seq=, where=, state=,
---waits_for=}, ...}}, oldest first; state is "running", "ready" or "waiting", waits_for the seq of the
---operation of another stream that it waits for. Moves nothing.
---@return table[] queues
function mr.machine.queues() end

---How far the devices have got, in virtual milliseconds. Moves nothing.
---@return number ms
function mr.machine.time() end

---The device model: "h200", "a100", "rtx4090", "t4", or the path of a model file. Can be changed while
---nothing is pending and no device memory is in use.
---@param name? string
---@return string before
function mr.machine.model(name) end

---What CUDA leaves open, and how this machine decides it: docs/semantics.md lists the names. With a
---table, changes those; returns all values as they are then. The largest integer, math.maxinteger,
---stands for no bound; math.huge may be given for it.
---@param changes? table
---@return table settings
function mr.machine.settings(changes) end

---Submits an operation that fails with that code when its turn comes ("illegal-address", "assert",
---...): to see how a failure of the device shows later than its cause (R49, R50).
---@param code string
---@param s? millrace.Stream
function mr.machine.fault(code, s) end

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

----1, 0 or 1, as each element is below, equal to or above 0 (NaN gives 0).
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sign(options) end

----1, 0 or 1, as each element is below, equal to or above 0 (NaN gives 0).
---@return millrace.Tensor
function Tensor:sign_() end

----1, 0 or 1, as each element is below, equal to or above 0 (NaN gives 0).
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

---Each element, or 0 where it is negative.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:relu(options) end

---Each element, or 0 where it is negative.
---@return millrace.Tensor
function Tensor:relu_() end

---Each element, or 0 where it is negative.
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

---The greatest integer that is not above each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:floor(options) end

---The greatest integer that is not above each element.
---@return millrace.Tensor
function Tensor:floor_() end

---The greatest integer that is not above each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.floor(x, options) end

---The least integer that is not below each element.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:ceil(options) end

---The least integer that is not below each element.
---@return millrace.Tensor
function Tensor:ceil_() end

---The least integer that is not below each element.
---@param x millrace.Tensor
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.ceil(x, options) end

---The integer nearest to each element; of two equally near, the even one.
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:round(options) end

---The integer nearest to each element; of two equally near, the even one.
---@return millrace.Tensor
function Tensor:round_() end

---The integer nearest to each element; of two equally near, the even one.
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

---The sum; of bools, whether one is true. Integers wrap.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:add(y, options) end

---The sum; of bools, whether one is true. Integers wrap.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:add_(y) end

---The sum; of bools, whether one is true. Integers wrap.
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

---The product; of bools, whether both are true. Integers wrap.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:mul(y, options) end

---The product; of bools, whether both are true. Integers wrap.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:mul_(y) end

---The product; of bools, whether both are true. Integers wrap.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.mul(x, y, options) end

---The quotient. Of integers too it is f32.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:div(y, options) end

---The quotient. Of integers too it is f32.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:div_(y) end

---The quotient. Of integers too it is f32.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.div(x, y, options) end

---x to the power of y. Integers stay integers and wrap; a tensor's negative powers of them are cut off
---to 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:pow(y, options) end

---x to the power of y. Integers stay integers and wrap; a tensor's negative powers of them are cut off
---to 0.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:pow_(y) end

---x to the power of y. Integers stay integers and wrap; a tensor's negative powers of them are cut off
---to 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.pow(x, y, options) end

---The greater of two elements, NaN if one is.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:maximum(y, options) end

---The greater of two elements, NaN if one is.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:maximum_(y) end

---The greater of two elements, NaN if one is.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.maximum(x, y, options) end

---The lesser of two elements, NaN if one is.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:minimum(y, options) end

---The lesser of two elements, NaN if one is.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:minimum_(y) end

---The lesser of two elements, NaN if one is.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.minimum(x, y, options) end

---What is left of x after taking y a whole number of times, with the sign of y, as Lua's %. Integers
---modulo 0 are 0.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:remainder(y, options) end

---What is left of x after taking y a whole number of times, with the sign of y, as Lua's %. Integers
---modulo 0 are 0.
---@param y millrace.Tensor|number
---@return millrace.Tensor
function Tensor:remainder_(y) end

---What is left of x after taking y a whole number of times, with the sign of y, as Lua's %. Integers
---modulo 0 are 0.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.remainder(x, y, options) end

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

---True where two elements differ; NaN differs from all.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:ne(y, options) end

---True where two elements differ; NaN differs from all.
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

---Each element, or the bound that it is beyond. Bounds are numbers or tensors.
---@param least millrace.Tensor|number
---@param greatest millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:clamp(least, greatest, options) end

---Each element, or the bound that it is beyond. Bounds are numbers or tensors.
---@param least millrace.Tensor|number
---@param greatest millrace.Tensor|number
---@return millrace.Tensor
function Tensor:clamp_(least, greatest) end

---Each element, or the bound that it is beyond. Bounds are numbers or tensors.
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

---Elements of y where the condition is true, of z elsewhere.
---@param y millrace.Tensor|number
---@param z millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:where(y, z, options) end

---Elements of y where the condition is true, of z elsewhere.
---@param condition millrace.Tensor
---@param y millrace.Tensor|number
---@param z millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.where(condition, y, z, options) end

---Makes every element `value`.
---@param value number|boolean
---@return millrace.Tensor
function Tensor:fill_(value) end

---Makes every element 0.
---@return millrace.Tensor
function Tensor:zero_() end

---Random numbers from `low` (0) up to and not including `high` (1).
---@param low? number
---@param high? number
---@return millrace.Tensor
function Tensor:uniform_(low, high) end

---Random numbers of the normal distribution with this mean (0) and standard deviation (1).
---@param mean? number
---@param std? number
---@return millrace.Tensor
function Tensor:normal_(mean, std) end

---Each element 1 with probability `p` (0.5), else 0.
---@param p? number
---@return millrace.Tensor
function Tensor:bernoulli_(p) end

---The sum. Of integers and bools it is i64; floats are added in double precision.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:sum(dim, keepdim, options) end

---The sum. Of integers and bools it is i64; floats are added in double precision.
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

---The product. Of integers and bools it is i64.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:prod(dim, keepdim, options) end

---The product. Of integers and bools it is i64.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.prod(x, dim, keepdim, options) end

---The greatest element, NaN if there is one. With one dim there is a second result: the positions,
---from 1, as argmax has them.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:max(dim, keepdim, options) end

---The greatest element, NaN if there is one. With one dim there is a second result: the positions,
---from 1, as argmax has them.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.max(x, dim, keepdim, options) end

---The least element, NaN if there is one. With one dim there is a second result: the positions, from
---1, as argmin has them.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:min(dim, keepdim, options) end

---The least element, NaN if there is one. With one dim there is a second result: the positions, from
---1, as argmin has them.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.min(x, dim, keepdim, options) end

---Whether an element is not 0.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:any(dim, keepdim, options) end

---Whether an element is not 0.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.any(x, dim, keepdim, options) end

---Whether no element is 0.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:all(dim, keepdim, options) end

---Whether no element is 0.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.all(x, dim, keepdim, options) end

---The position, from 1, of the first greatest element: in the dimension, or in row-major order over
---everything. NaN counts as greatest.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:argmax(dim, keepdim, options) end

---The position, from 1, of the first greatest element: in the dimension, or in row-major order over
---everything. NaN counts as greatest.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.argmax(x, dim, keepdim, options) end

---The position, from 1, of the first least element: in the dimension, or in row-major order over
---everything. NaN counts as least.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:argmin(dim, keepdim, options) end

---The position, from 1, of the first least element: in the dimension, or in row-major order over
---everything. NaN counts as least.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.argmin(x, dim, keepdim, options) end

---The square root of the sum of squares.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:norm(dim, keepdim, options) end

---The square root of the sum of squares.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.norm(x, dim, keepdim, options) end

---The variance; with {correction=0} of the whole population, else of a sample.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:var(dim, keepdim, options) end

---The variance; with {correction=0} of the whole population, else of a sample.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.var(x, dim, keepdim, options) end

---The standard deviation; {correction=} as in var.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:std(dim, keepdim, options) end

---The standard deviation; {correction=} as in var.
---@param x millrace.Tensor
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.std(x, dim, keepdim, options) end

---e to the power of each element, divided by the sum of these in the dimension.
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:softmax(dim, options) end

---e to the power of each element, divided by the sum of these in the dimension.
---@param x millrace.Tensor
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.softmax(x, dim, options) end

---The logarithm of softmax, also where softmax itself is too small for a number.
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:log_softmax(dim, options) end

---The logarithm of softmax, also where softmax itself is too small for a number.
---@param x millrace.Tensor
---@param dim integer|integer[]
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.log_softmax(x, dim, options) end

---The matrix product. Dimensions before the last two are a batch and broadcast; a vector counts as a
---row on the left and as a column on the right.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:matmul(y, options) end

---The matrix product. Dimensions before the last two are a batch and broadcast; a vector counts as a
---row on the left and as a column on the right.
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

---The sum of the products of two vectors' elements.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:dot(y, options) end

---The sum of the products of two vectors' elements.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.dot(x, y, options) end

---The products of two batches of matrices, one by one.
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function Tensor:bmm(y, options) end

---The products of two batches of matrices, one by one.
---@param x millrace.Tensor
---@param y millrace.Tensor|number
---@param options? { out?: millrace.Tensor }
---@return millrace.Tensor
function mr.bmm(x, y, options) end

return mr
