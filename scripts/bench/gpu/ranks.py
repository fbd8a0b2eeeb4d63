"""The rows of ranks.sh with PyTorch: lines of name, value, unit. By torchrun: ranks; with `threads`: DataParallel."""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

GIB, BATCH = 1 << 30, 64
SIZES = (("1 GiB", GIB, 4), ("16 MiB", 16 << 20, 50), ("1 KiB", 1024, 200))


def say(name, value, unit):
    print("%s\t%.6g\t%s" % (name, value, unit), flush=True)


def seconds(work, calls, wait):
    """Seconds a call, with the devices' work: the median and the least of batches. `wait` waits for all of it, and
    for the other ranks."""
    times = []
    for batch in range(11 + 3):
        wait()
        began = time.perf_counter()
        for _ in range(calls):
            work()
        wait()
        if batch >= 3:
            times.append((time.perf_counter() - began) / calls)
    return statistics.median(times), min(times)


class TwoBranches(torch.nn.Module):
    """As in scripts/examples/two_branch_net.lua."""

    def __init__(self):
        super().__init__()
        self.image, self.motion = self.branch(), self.branch()

    @staticmethod
    def branch():
        nn = torch.nn
        return nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128 * 8 * 8, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10))

    def forward(self, image, motion):
        return self.image(image) + self.motion(motion)


def step_of(wrap, batch):
    model = wrap(TwoBranches().cuda())
    image, motion = (torch.rand(batch, 3, 32, 32, device="cuda") for _ in range(2))
    labels = torch.randint(0, 10, (batch,), device="cuda")
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(image, motion), labels).backward()
        optimiser.step()

    return step


def threads():
    def wait():
        for k in range(2):
            torch.cuda.synchronize(k)

    say("step, one device", 1e3 * seconds(step_of(lambda net: net, BATCH), 20, wait)[0], "ms")
    step = step_of(lambda net: torch.nn.DataParallel(net, [0, 1]), 2 * BATCH)
    say("step, DataParallel", 1e3 * seconds(step, 20, wait)[0], "ms")


def share_under_backward(step):
    """Which part of the all-reduces' time lies before the end of backward, by the profiler: as in ranks.lua."""
    from torch.autograd import DeviceType

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    reductions, others = [], []
    for event in profile.events():
        if event.device_type == DeviceType.CUDA and event.time_range.end > event.time_range.start:
            (reductions if "AllReduce" in event.name else others).append(event.time_range)
    if not reductions:
        return None
    last = max(r.end for r in reductions)
    backward = max((o.end for o in others if o.start < last), default=0)
    total = sum(r.end - r.start for r in reductions)
    return sum(max(0, min(r.end, backward) - r.start) for r in reductions) / total


def ranks():
    rank = int(os.environ["LOCAL_RANK"])
    half = max(1, os.cpu_count() // 2)
    os.sched_setaffinity(0, range(half * rank, half * (rank + 1)))  # as in ranks.sh
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    torch.ones(1, device="cuda").add_(1).item()
    began = time.perf_counter()
    dist.init_process_group("nccl", device_id=device)
    dist.all_reduce(torch.rand(256, device="cuda"))
    torch.cuda.synchronize()
    start = time.perf_counter() - began
    token = torch.zeros(1, device="cuda")

    def wait():
        dist.all_reduce(token)
        torch.cuda.synchronize()

    def tell(*row):
        if rank == 0:
            say(*row)

    for name, size, calls in SIZES:
        x = torch.rand(size // 4, device="cuda")
        taken = seconds(lambda: dist.all_reduce(x, op=dist.ReduceOp.AVG), calls, wait)[0]
        row = "all-reduce " + name
        tell(*((row, 1e6 * taken, "us") if size < 1 << 20 else (row, size / taken * 1e-9, "GB/s")))
        del x
    alone = seconds(step_of(lambda net: net, BATCH), 20, wait)[0]
    step = step_of(lambda net: torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank]), BATCH)
    together, least = seconds(step, 20, wait)
    tell("step, each rank alone", 1e3 * alone, "ms")
    tell("step, DDP", 1e3 * together, "ms")
    tell("step, DDP, least batch", 1e3 * least, "ms")
    tell("start beyond contexts", 1e3 * start, "ms")
    shares = []
    for turn in range(7):
        wait()
        share = share_under_backward(step)
        if turn >= 2 and share is not None:
            shares.append(share)
    if shares:
        tell("all-reduce under backward", 100 * statistics.median(shares), "%")
    dist.destroy_process_group()


torch.backends.cudnn.allow_tf32 = False
threads() if sys.argv[1:] == ["threads"] else ranks()
