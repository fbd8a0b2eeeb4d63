"""The rows of bodies.lua in NumPy and in PyTorch.

Reads lines `LIBRARY ROW DTYPE N SECONDS` and answers each with the seconds of one call, or with `-` where the library
lacks the function. `LIBRARY` alone is answered with its version, or with `-`. PyTorch uses THREADS threads, the first
argument; NumPy has threads in its matrix product only. The second is the clock: `wall`, or `processor`, whose time is
divided by the number of threads. Results go to arrays that exist, as far as a library can do it.
"""
import sys
import time

threads = int(sys.argv[1])
of_processor = sys.argv[2] == "processor"
clock = time.process_time if of_processor else time.perf_counter
libraries = {}
try:
    import numpy as np

    libraries["numpy"] = np
except ImportError:
    np = None
try:
    import torch

    torch.set_num_threads(threads)
    libraries["torch"] = torch
except ImportError:
    torch = None


def side_of(n):
    """The side of the square matrix that a row of n elements is measured with."""
    return int(n**0.5)


def numpy_work(row, dtype, n):
    kind = {"f32": np.float32, "f64": np.float64, "i64": np.int64}[dtype]
    source = np.random.default_rng(1)
    s = side_of(n)

    def normal(*shape):
        return source.standard_normal(shape, dtype=kind)

    if row in ("matmul",):
        a, b, c = normal(n, n), normal(n, n), np.zeros((n, n), kind)
        return lambda: np.matmul(a, b, out=c)
    if row in ("add", "mul", "div", "maximum", "remainder", "fmod", "floor_divide"):
        f = getattr(np, {"add": "add", "mul": "multiply", "div": "divide"}.get(row, row))
        x, y, z = normal(n), normal(n), np.zeros(n, kind)
        return lambda: f(x, y, out=z)
    if row in ("pow", "pow number"):
        x, z = source.random(n, dtype=kind), np.zeros(n, kind)
        y = normal(n) if row == "pow" else kind(2.5)
        return lambda: np.power(x, y, out=z)
    if row == "pow 3":
        x, z = normal(n), np.zeros(n, kind)
        return lambda: np.power(x, kind(3), out=z)
    if row == "clamp":
        x, z = normal(n), np.zeros(n, kind)
        return lambda: np.clip(x, -0.5, 0.5, out=z)
    if row in ("equal", "allclose"):
        x, f = normal(n), {"equal": np.array_equal, "allclose": np.allclose}[row]
        y = x.copy()
        return lambda: f(x, y)
    if row == "relu_":
        x = normal(n)
        return lambda: np.maximum(x, 0, out=x)
    if row in ("exp", "sqrt", "sin", "cos", "tan", "tanh", "log"):
        x, z = np.abs(normal(n)) if row in ("sqrt", "log") else normal(n), np.zeros(n, kind)
        f = getattr(np, row)
        return lambda: f(x, out=z)
    if row == "where":
        c, x, y = normal(n) > 0, normal(n), normal(n)
        return lambda: np.where(c, x, y)
    if row == "to f64":
        x, z = normal(n), np.zeros(n, np.float64)
        return lambda: np.copyto(z, x)
    if row == "copy_":
        x, z = normal(n), np.zeros(n, kind)
        return lambda: np.copyto(z, x)
    if row == "copy_ transposed":
        x, z = normal(s, s), np.zeros((s, s), kind)
        return lambda: np.copyto(z, x.T)
    if row == "add transposed":
        x, y, z = normal(s, s), normal(s, s), np.zeros((s, s), kind)
        return lambda: np.add(x, y.T, out=z)
    if row == "add row":
        x, y, z = normal(s, s), normal(s), np.zeros((s, s), kind)
        return lambda: np.add(x, y, out=z)
    if row == "add column":
        x, y, z = normal(s, s), normal(s, 1), np.zeros((s, s), kind)
        return lambda: np.add(x, y, out=z)
    if row == "add strided":
        x, y, z = normal(s, 2 * s)[:, ::2], normal(s, 2 * s)[:, ::2], np.zeros((s, s), kind)
        return lambda: np.add(x, y, out=z)
    what, _, length = row.partition(" of ")
    if length and what in ("sum", "mean", "max", "argmax", "var", "cumsum"):
        x = normal(n // int(length), int(length))
        f = getattr(np, what)
        if what == "max":
            return lambda: (f(x, axis=1), np.argmax(x, axis=1))
        return lambda: f(x, axis=1)
    if row == "sort":  # with the positions, as the others give them
        x = normal(n)
        return lambda: (np.argsort(x, kind="stable"), np.sort(x))
    if row == "unique":
        x = source.integers(0, 1000, n) if kind is np.int64 else normal(n)
        return lambda: np.unique(x)
    if what == "multinomial":
        p = source.random(int(length))
        p /= p.sum()
        return lambda: source.choice(int(length), n, p=p)
    reductions = {"sum": np.sum, "mean": np.mean, "max": np.max, "argmax": np.argmax, "var": np.var, "norm": np.linalg.norm}
    what, _, where = row.partition(" ")
    if what in reductions:
        x, f = normal(s, s), reductions[what]
        axis = {"": None, "1": 0, "2": 1}[where]
        if what == "max" and axis is not None:  # with the positions, as the others give them
            return lambda: (f(x, axis=axis), np.argmax(x, axis=axis))
        if what == "norm" and axis is None:
            return lambda: f(x.reshape(-1))
        return lambda: f(x, axis=axis)
    if row == "uniform_":
        z = np.zeros(n, kind)
        return lambda: source.random(out=z, dtype=kind)
    if row == "normal_":
        z = np.zeros(n, kind)
        return lambda: source.standard_normal(out=z, dtype=kind)
    if row == "randperm":
        return lambda: source.permutation(n)
    return None


def torch_work(row, dtype, n):
    kind = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64}[dtype]
    s = side_of(n)

    def normal(*shape):
        return torch.randn(*shape, dtype=kind)

    if row == "matmul":
        a, b, c = normal(n, n), normal(n, n), torch.zeros(n, n, dtype=kind)
        return lambda: torch.matmul(a, b, out=c)
    if row in ("add", "mul", "div", "maximum", "remainder", "fmod", "floor_divide"):
        x, y, z, f = normal(n), normal(n), torch.zeros(n, dtype=kind), getattr(torch, row)
        return lambda: f(x, y, out=z)
    if row in ("pow", "pow number"):
        x, z = torch.rand(n, dtype=kind), torch.zeros(n, dtype=kind)
        y = normal(n) if row == "pow" else 2.5
        return lambda: torch.pow(x, y, out=z)
    if row == "pow 3":
        x, z = normal(n), torch.zeros(n, dtype=kind)
        return lambda: torch.pow(x, 3, out=z)
    if row == "clamp":
        x, z = normal(n), torch.zeros(n, dtype=kind)
        return lambda: torch.clamp(x, -0.5, 0.5, out=z)
    if row in ("equal", "allclose"):
        x, f = normal(n), getattr(torch, row)
        y = x.clone()
        return lambda: f(x, y)
    if row == "relu_":
        x = normal(n)
        return lambda: x.relu_()
    if row in ("exp", "sqrt", "sin", "cos", "tan", "tanh", "log", "sigmoid"):
        x, z = normal(n).abs() if row in ("sqrt", "log") else normal(n), torch.zeros(n, dtype=kind)
        f = getattr(torch, row)
        return lambda: f(x, out=z)
    if row in ("gelu", "softplus"):
        x, f = normal(n), getattr(torch.nn.functional, row)
        return lambda: f(x)
    if row == "where":
        c, x, y = normal(n) > 0, normal(n), normal(n)
        return lambda: torch.where(c, x, y)
    if row == "to f64":
        x, z = normal(n), torch.zeros(n, dtype=torch.float64)
        return lambda: z.copy_(x)
    if row == "copy_":
        x, z = normal(n), torch.zeros(n, dtype=kind)
        return lambda: z.copy_(x)
    if row == "copy_ transposed":
        x, z = normal(s, s), torch.zeros(s, s, dtype=kind)
        return lambda: z.copy_(x.T)
    if row == "add transposed":
        x, y, z = normal(s, s), normal(s, s), torch.zeros(s, s, dtype=kind)
        return lambda: torch.add(x, y.T, out=z)
    if row == "add row":
        x, y, z = normal(s, s), normal(s), torch.zeros(s, s, dtype=kind)
        return lambda: torch.add(x, y, out=z)
    if row == "add column":
        x, y, z = normal(s, s), normal(s, 1), torch.zeros(s, s, dtype=kind)
        return lambda: torch.add(x, y, out=z)
    if row == "add strided":
        x, y, z = normal(s, 2 * s)[:, ::2], normal(s, 2 * s)[:, ::2], torch.zeros(s, s, dtype=kind)
        return lambda: torch.add(x, y, out=z)
    what, _, length = row.partition(" of ")
    if length and what in ("sum", "mean", "max", "argmax", "var", "softmax", "cumsum"):
        x, f = normal(n // int(length), int(length)), getattr(torch, what)
        return lambda: f(x, dim=1)
    if what == "layer_norm":
        x = normal(n // int(length), int(length))
        return lambda: torch.nn.functional.layer_norm(x, (int(length),))
    if row == "sort":
        x = normal(n)
        return lambda: torch.sort(x, stable=True)
    if row == "unique":
        x = torch.randint(1000, (n,)) if kind is torch.int64 else normal(n)
        return lambda: torch.unique(x)
    if what == "multinomial":
        p = torch.rand(int(length), dtype=kind)
        return lambda: torch.multinomial(p, n, True)
    what, _, where = row.partition(" ")
    if what in ("sum", "mean", "max", "argmax", "var", "norm"):
        x, f = normal(s, s), getattr(torch, what)
        if not where:
            return lambda: f(x)
        dim = int(where) - 1
        return lambda: f(x, dim=dim)
    if what in ("softmax", "log_softmax"):
        x, f, dim = normal(s, s), getattr(torch, what), int(where) - 1
        return lambda: f(x, dim)
    if row in ("uniform_", "normal_", "bernoulli_"):
        z = torch.zeros(n, dtype=kind)
        return getattr(z, row)
    if row == "randperm":
        return lambda: torch.randperm(n)
    if what.startswith("conv2d"):
        shapes = {"3 to 64": (3, 32, 64, 1), "64 to 128": (64, 16, 128, 1), "256 to 256": (256, 16, 256, 1),
                  "64 to 64 by 64": (64, 32, 64, 64)}
        channels, size, outputs, groups = shapes[where]
        x, w, bias = normal(n, channels, size, size), normal(outputs, channels // groups, 3, 3), normal(outputs)
        if what == "conv2d":
            return lambda: torch.nn.functional.conv2d(x, w, bias, padding=1, groups=groups)
        wanted = [what == "conv2d_input", what == "conv2d_weight", False]
        g, back = normal(n, outputs, size, size), torch.ops.aten.convolution_backward
        return lambda: back(g, x, w, [outputs], [1, 1], [1, 1], [1, 1], False, [0, 0], groups, wanted)
    return None


def seconds_of(work, seconds, workers):
    """As in bodies.lua: the best call in processor time, or the mean of the time that passes."""
    work()
    calls, best, began = 0, float("inf"), clock()
    while True:
        before = clock()
        work()
        now = clock()
        calls, best = calls + 1, min(best, now - before)
        if now - began >= seconds:
            return best / workers if of_processor else (now - began) / calls


made = {}  # the arrays of the last row: it is measured several times by turns
for line in sys.stdin:
    fields = line.rstrip("\n").split("\t")
    library = libraries.get(fields[0])
    if library is None or len(fields) == 1:
        print(library.__version__ if library else "-", flush=True)
        continue
    key = tuple(fields[:4])
    if key not in made:
        if len(made) > 1:
            made.clear()
        make = numpy_work if fields[0] == "numpy" else torch_work
        made[key] = make(fields[1], fields[2], int(fields[3]))
    work = made[key]
    workers = threads if fields[0] == "torch" or fields[1] == "matmul" else 1
    print("-" if work is None else "%.9g" % seconds_of(work, float(fields[4]), workers), flush=True)
