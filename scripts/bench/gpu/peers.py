"""The rows of run.sh with PyTorch and CuPy: lines of program, name, value, unit. Times as in raw.cu."""
import statistics
import sys
import time

began = time.perf_counter()
import torch

torch.ones(1, device="cuda").add_(1).item()
print("pytorch\tcontext\t%.6g\tms" % (1e3 * (time.perf_counter() - began)))

GIB = 1 << 30
N = GIB // 4
SETS = 3


def per_call(work, synchronize, calls=500):
    times = []
    for batch in range(41 + 3):
        began = time.perf_counter()
        for _ in range(calls):
            work()
        if batch >= 3:
            times.append((time.perf_counter() - began) / calls)
    synchronize()
    return statistics.median(times)


def on_device(work, calls=6):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for round in range(21 + 3):
        start.record()
        for i in range(calls):
            work(i % SETS)
        end.record()
        end.synchronize()
        if round >= 3:
            times.append(start.elapsed_time(end) * 1e-3 / calls)
    return statistics.median(times)


def say(program, name, value, unit):
    print("%s\t%s\t%.6g\t%s" % (program, name, value, unit), flush=True)


def torch_small():
    x, y = torch.rand(1024, device="cuda"), torch.rand(1024, device="cuda")
    p, q, r = (torch.rand(64, 64, device="cuda") for _ in range(3))
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    e, f = torch.cuda.Event(), torch.cuda.Event()
    done = torch.cuda.synchronize

    def both_ways():
        with torch.cuda.stream(a):
            y.add_(x)
        e.record(a)
        b.wait_event(e)
        with torch.cuda.stream(b):
            y.add_(x)
        f.record(b)
        a.wait_event(f)

    def record_and_wait():
        e.record(a)
        b.wait_event(e)

    say("pytorch", "small kernel", 1e6 * per_call(lambda: y.add_(x), done), "us")
    say("pytorch", "allocate and compute", 1e6 * per_call(lambda: x * 2, done), "us")
    say("pytorch", "64x64 matmul", 1e6 * per_call(lambda: torch.mm(p, q, out=r), done), "us")
    say("pytorch", "event record", 1e6 * per_call(lambda: e.record(a), done), "us")
    say("pytorch", "record and wait", 1e6 * per_call(record_and_wait, done), "us")
    say("pytorch", "op, record, wait, both ways", 1e6 * per_call(both_ways, done), "us")


def torch_halves(dtype, word):
    x, y, z = ([torch.rand(N, device="cuda").sub_(0.5).to(dtype) for _ in range(SETS)] for _ in range(3))

    def rate(name, arrays, work):
        say("pytorch", word + " " + name, arrays * 1e-9 * N * 2 / on_device(work), "GB/s")

    rate("add 512 MiB", 3, lambda i: torch.add(x[i], y[i], out=z[i]))
    rate("add a row 512 MiB", 2, lambda i: torch.add(x[i].view(-1, 1024), y[0][:1024], out=z[i].view(-1, 1024)))
    rate("relu_ 512 MiB", 2, lambda i: x[i].relu_())
    rate("copy 512 MiB", 2, lambda i: z[i].copy_(x[i]))
    rate("sum 512 MiB", 1, lambda i: x[i].sum())
    rate("softmax rows of 1024", 2, lambda i: torch.softmax(x[i].view(-1, 1024), 1, out=z[i].view(-1, 1024)))
    del x, y, z
    torch.cuda.empty_cache()


def torch_autograd():
    x = torch.rand(1024, device="cuda", requires_grad=True)

    def forward():
        y = x
        for _ in range(500):
            y = y * 1.001 + 0.1
        return y.sum()

    def row(name, work):
        times = []
        for round in range(21 + 3):
            x.grad = None
            torch.cuda.synchronize()
            began = time.perf_counter()
            work()
            torch.cuda.synchronize()
            if round >= 3:
                times.append(time.perf_counter() - began)
        say("pytorch", name, 1e3 * statistics.median(times), "ms")

    row("1000 operations, recorded", forward)
    row("1000 operations, and backward", lambda: forward().backward())


def torch_convolutions():
    """In f32, as ours; and, as PyTorch does by default, in TF32."""
    back = torch.ops.aten.convolution_backward
    for channels, size, outputs in ((3, 32, 64), (64, 16, 128)):
        x, w = torch.randn(64, channels, size, size, device="cuda"), torch.randn(outputs, channels, 3, 3, device="cuda")
        bias, g = torch.randn(outputs, device="cuda"), torch.randn(64, outputs, size, size, device="cuda")

        def gradient(*wanted):
            return back(g, x, w, [outputs], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [*wanted, False])

        for tf32 in (False, True):
            torch.backends.cudnn.allow_tf32 = tf32

            def row(name, work):
                name = "%s %d to %d, %dx%d%s" % (name, channels, outputs, size, size, " tf32" if tf32 else "")
                say("pytorch", name, 1e6 * on_device(work, 20), "us")

            row("conv2d", lambda i: torch.nn.functional.conv2d(x, w, bias, padding=1))
            row("conv2d_input", lambda i: gradient(True, False))
            row("conv2d_weight", lambda i: gradient(False, True))
    pool, back = torch.ops.aten.max_pool2d_with_indices, torch.ops.aten.max_pool2d_with_indices_backward
    for channels, size in ((64, 32), (128, 16)):
        x = torch.randn(64, channels, size, size, device="cuda")
        g = torch.randn(64, channels, size // 2, size // 2, device="cuda")
        _, at = pool(x, [2, 2], [2, 2])
        where = "of %d, %dx%d" % (channels, size, size)
        seconds = on_device(lambda i: pool(x, [2, 2], [2, 2]), 20)
        say("pytorch", "max_pool2d " + where, 1e6 * seconds, "us")
        seconds = on_device(lambda i: back(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, at), 20)
        say("pytorch", "max_pool2d_backward " + where, 1e6 * seconds, "us")


def torch_order():
    n = 10000000
    x = [torch.rand(n, device="cuda") for _ in range(SETS)]
    at, wide = torch.randint(0, n // 10, (n,), device="cuda"), torch.rand(n // 10, 64, device="cuda")
    rows, sums = torch.randint(0, n // 10, (n // 10,), device="cuda"), torch.zeros(n // 10, device="cuda")
    lines = x[0].view(-1, 100)

    def row(name, work):
        say("pytorch", name, 1e3 * on_device(work), "ms")

    row("index_select 10^6 rows of 64", lambda i: wide.index_select(0, rows))
    row("gather 10^7", lambda i: x[i].gather(0, at))
    row("index_add_ 10^7 to 10^6", lambda i: sums.index_add_(0, at, x[i]))
    row("cumsum 10^7", lambda i: x[i].cumsum(0))
    row("sort 10^7", lambda i: x[i].sort(stable=True))
    row("sort 10^5 lines of 100", lambda i: lines.sort(stable=True))
    row("topk 100 of 10^7", lambda i: x[i].topk(100))
    row("nonzero of 10^7", lambda i: (x[i] > 0.5).nonzero())


def torch_large():
    x, y, z = ([torch.rand(N, device="cuda") - 0.5 for _ in range(SETS)] for _ in range(3))
    gib = 1e-9 * GIB

    def rate(name, arrays, work):
        say("pytorch", name, arrays * gib / on_device(work), "GB/s")

    rate("add 1 GiB", 3, lambda i: torch.add(x[i], y[i], out=z[i]))
    rate("mul 1 GiB", 3, lambda i: torch.mul(x[i], y[i], out=z[i]))
    rate("relu_ 1 GiB", 2, lambda i: x[i].relu_())
    rate("copy 1 GiB", 2, lambda i: z[i].copy_(x[i]))
    rate("sum 1 GiB", 1, lambda i: x[i].sum())
    rate("sum of columns 1 GiB", 1, lambda i: x[i].view(-1, 1024).sum(0))
    rate("sum of rows 1 GiB", 1, lambda i: x[i].view(-1, 1024).sum(1))
    rate("exp 1 GiB", 2, lambda i: torch.exp(x[i], out=z[i]))
    rate("add a row 1 GiB", 2, lambda i: torch.add(x[i].view(-1, 1024), y[0][:1024], out=z[i].view(-1, 1024)))
    rate("fill_ 1 GiB", 1, lambda i: z[i].fill_(1.5))
    rate("uniform_ 1 GiB", 1, lambda i: z[i].uniform_())
    rate("normal_ 1 GiB", 1, lambda i: z[i].normal_())
    rate("transposed copy 16384", 2, lambda i: z[i].view(16384, 16384).copy_(x[i].view(16384, 16384).t()))
    rate("softmax rows of 1024", 2, lambda i: torch.softmax(x[i].view(-1, 1024), 1, out=z[i].view(-1, 1024)))
    del x, y, z
    torch.cuda.empty_cache()
    for dtype, word in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
        torch_halves(dtype, word)
    n = 8192
    a, b = ([torch.rand(n, n, device="cuda") - 0.5 for _ in range(SETS)] for _ in range(2))
    c = torch.empty(n, n, device="cuda")
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        seconds = on_device(lambda i: torch.mm(a[i], b[i], out=c), 3)
        say("pytorch", "matmul 8192 tf32" if tf32 else "matmul 8192 fp32", 2e-12 * n**3 / seconds, "TFLOP/s")
    for dtype, word in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
        a, b, c = [t.to(dtype) for t in a], [t.to(dtype) for t in b], c.to(dtype)
        seconds = on_device(lambda i: torch.mm(a[i], b[i], out=c), 3)
        say("pytorch", "matmul 8192 " + word, 2e-12 * n**3 / seconds, "TFLOP/s")
    del a, b, c
    torch.cuda.empty_cache()
    torch_order()
    size = (256 << 20) // 4
    host, device = torch.empty(size, pin_memory=True), torch.rand(size, device="cuda")
    say("pytorch", "H2D pinned 256 MiB", 4e-9 * size / on_device(lambda i: device.copy_(host, non_blocking=True), 3), "GB/s")
    say("pytorch", "D2H pinned 256 MiB", 4e-9 * size / on_device(lambda i: host.copy_(device, non_blocking=True), 3), "GB/s")


def branch():
    """As in scripts/examples/two_branch_net.lua."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128 * 8 * 8, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10)).cuda()


def networks():
    """A network of two branches, batch 64: host time of a step with the streams kept fed, on one stream and on two."""
    torch.backends.cudnn.allow_tf32 = False
    image, motion = torch.rand(64, 3, 32, 32, device="cuda"), torch.rand(64, 3, 32, 32, device="cuda")
    labels = torch.randint(0, 10, (64,), device="cuda")
    left, right = branch(), branch()
    optimiser = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=0.01, momentum=0.9)
    side = torch.cuda.Stream()

    def forward(two):
        if not two:
            return left(image) + right(motion)
        here = torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            b = right(motion)
        a = left(image)
        here.wait_stream(side)
        b.record_stream(here)
        return a + b

    def infer(two):
        with torch.no_grad():
            forward(two)

    def train(two):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(forward(two), labels).backward()
        optimiser.step()

    for two in (False, True):
        streams = "two streams" if two else "one stream"
        for name, work in (("forward", infer), ("step", train)):
            say("pytorch", "network %s, %s" % (name, streams), 1e3 * whole(lambda: work(two)), "ms")


def whole(work, calls=20):
    """Seconds a call, the device's work included."""
    times = []
    for batch in range(11 + 3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(calls):
            work()
        torch.cuda.synchronize()
        if batch >= 3:
            times.append((time.perf_counter() - began) / calls)
    return statistics.median(times)


def cupy_rows():
    import cupy

    def on_device_cupy(work, calls=6):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        times = []
        for round in range(21 + 3):
            start.record()
            for i in range(calls):
                work(i % SETS)
            end.record()
            end.synchronize()
            if round >= 3:
                times.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3 / calls)
        return statistics.median(times)

    done = cupy.cuda.Device().synchronize
    kernel = cupy.RawKernel(
        'extern "C" __global__ void k(float *y, const float *x, int n) {'
        " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += x[i]; }", "k")
    x, y = cupy.random.rand(1024).astype("f4"), cupy.random.rand(1024).astype("f4")
    say("cupy", "small kernel", 1e6 * per_call(lambda: kernel((4,), (256,), (y, x, 1024)), done), "us")
    say("cupy", "allocate and compute", 1e6 * per_call(lambda: x * 2, done), "us")
    e = cupy.cuda.Event(disable_timing=True)
    say("cupy", "event record", 1e6 * per_call(lambda: e.record(), done), "us")
    x, y, z = ([cupy.random.rand(N, dtype="f4") for _ in range(SETS)] for _ in range(3))
    gib = 1e-9 * GIB
    say("cupy", "add 1 GiB", 3 * gib / on_device_cupy(lambda i: cupy.add(x[i], y[i], out=z[i])), "GB/s")
    say("cupy", "mul 1 GiB", 3 * gib / on_device_cupy(lambda i: cupy.multiply(x[i], y[i], out=z[i])), "GB/s")
    say("cupy", "sum 1 GiB", gib / on_device_cupy(lambda i: x[i].sum()), "GB/s")
    say("cupy", "copy 1 GiB", 2 * gib / on_device_cupy(lambda i: cupy.copyto(z[i], x[i])), "GB/s")


torch_small()
torch_autograd()
torch_large()
torch_convolutions()
torch.cuda.empty_cache()
networks()
try:
    cupy_rows()
except ImportError:
    print("peers.py: no CuPy here", file=sys.stderr)
