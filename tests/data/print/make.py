#!/usr/bin/env python3
"""How PyTorch shows tensors, for tests/lua/printing.lua: writes expected.lua. Needs PyTorch.

Each line of it has a dtype, a shape, the values (a list, or "arange / d" for the numbers from 0 divided by d), and the
text between the brackets of `tensor(...)`, as it is without the indentation that this word makes."""
import json
import random

import torch
from torch._tensor_str import _tensor_str

NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
         torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "bool"}
INF, NAN = float("inf"), float("nan")
lines = []


def lua(x):
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, float) and x != x:
        return "0/0"
    if x in (INF, -INF):
        return "math.huge" if x > 0 else "-math.huge"
    return str(x) if isinstance(x, int) else repr(x)


def add(t, values=None):
    shape = "{ " + ", ".join(map(str, t.shape)) + " }"
    if values is None:
        values = "{ " + ", ".join(lua(v) for v in t.flatten().tolist()) + " }"
    else:
        values = json.dumps(values)
    text = _tensor_str(t, 0).replace("True", "true").replace("False", "false")
    lines.append(f'  {{ "{NAMES[t.dtype]}", {shape},\n    {values},\n    {json.dumps(text)} }},')


def main():
    floats = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
    for values in [[NAN, INF, -INF], [1.0, -INF], [0.5, -INF, NAN], [0.0, -0.0], [0.0, 1e9], [1e-5, 1.0], [1e-4, 0.09],
                   [0.0999, 1e-4], [1.0, 1000.0], [1.0, 1001.0], [99999999.0], [1e8], [1.5e8], [-1.0, 2.0, 300.0],
                   [0.1, 100.0], [0.1, 101.0], [3.14159265], [1e30, -1e-30], [0.00005, 0.00004]]:
        for dtype in floats[:2]:
            add(torch.tensor(values, dtype=dtype))
    for dtype in floats:
        add(torch.tensor([1.0, 2.5, -60000.0], dtype=dtype))
        add(torch.tensor([6e-8, 0.1, 2.0], dtype=dtype))
        add(torch.tensor(2.5, dtype=dtype))
        add(torch.zeros(2, 2, dtype=dtype))
        add(torch.zeros(2, 0, dtype=dtype))
    for dtype in [torch.int32, torch.int64, torch.uint8]:
        add(torch.tensor([[1, 20, 3], [100, 5, 66]], dtype=dtype))
        add(torch.arange(50).to(dtype))
    add(torch.tensor([[-1, 2], [2**62, -2**63]]))
    add(torch.arange(24).reshape(2, 3, 4) % 5 == 3)
    add(torch.tensor(True))
    add(torch.zeros(0, 3, dtype=torch.bool))
    generator = random.Random(3)
    for _ in range(40):
        shape = [generator.randint(1, 4) for _ in range(generator.randint(1, 4))]
        scale = 10.0 ** generator.randint(-6, 8)
        t = torch.randn(shape, generator=torch.Generator().manual_seed(generator.randint(0, 10**6))) * scale
        if generator.random() < 0.3:
            t = t.round()
        add(t.to(generator.choice(floats)))
    for shape, dtype, divisor in [([2000], torch.int64, 1), ([1001], torch.float32, 1), ([3, 500], torch.float32, 7),
                                  ([100, 20], torch.int32, 1), ([1000], torch.float32, 3), ([7, 6, 30], torch.float64, 4),
                                  ([20, 10, 2, 4], torch.int64, 1), ([1200], torch.bfloat16, 1024),
                                  ([6, 300], torch.float64, 1), ([1, 1, 1500], torch.float16, 1)]:
        count = 1
        for n in shape:
            count *= n
        values = torch.arange(count, dtype=torch.float64) / divisor
        add(values.reshape(shape).to(dtype), f"arange / {divisor}")
    add((torch.arange(1600) % 2 == 0).reshape(40, 40), "arange / even")
    with open("expected.lua", "w") as f:
        f.write("-- Written by make.py: dtype, shape, values, and PyTorch's text.\n-- luacheck: ignore 631\nreturn {\n")
        f.write("\n".join(lines) + "\n}\n")


main()
