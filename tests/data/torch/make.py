#!/usr/bin/env python3
"""Writes rows.lua: calls of operations with PyTorch's results, where the meaning of an operation is easily
mistaken: signs, NaN, equal elements, negative shifts and dims, sizes that depend on data.

    python3 tests/data/torch/make.py > tests/data/torch/rows.lua

It was run with PyTorch 1.13.1 on the CPU. Tests need only rows.lua (tests/lua/torch_rows.lua).
Positions in rows.lua count from 0, as PyTorch has them; the test adds 1 where a case says so."""
import math

import torch

NAN, INF = math.nan, math.inf
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.int32: "i32", torch.int64: "i64",
         torch.uint8: "u8", torch.bool: "bool"}


def number(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v) if v != -2**63 else "math.mininteger"
    if math.isnan(v):
        return "NAN"
    if math.isinf(v):
        return "INF" if v > 0 else "-INF"
    return repr(v)


def text(v):
    if isinstance(v, torch.Tensor):
        flat = ", ".join(number(x) for x in v.reshape(-1).tolist())
        shape = ", ".join(str(n) for n in v.shape)
        return 'T("%s", {%s}, {%s})' % (NAMES[v.dtype], shape, flat)
    if isinstance(v, dict):
        return "{" + ", ".join("%s = %s" % (k, text(x)) for k, x in v.items()) + "}"
    if isinstance(v, list):
        return "{" + ", ".join(text(x) for x in v) + "}"
    return number(v)


def case(name, inputs, results, **facts):
    facts = "".join(", %s = %s" % (k, text(v)) for k, v in facts.items())
    print('  {"%s", {%s}, {%s}%s},' % (name, ", ".join(text(x) for x in inputs),
                                       ", ".join(text(x) for x in results), facts))


def f32(*v):
    return torch.tensor(v, dtype=torch.float32)


def elementwise():
    a = f32(7, -7, 7, -7, 5.5, -5.5, 0, -0.0, 1, 9, 0.3, INF, NAN, 3)
    b = f32(3, 3, -3, -3, 2, 2, 3, 3, 0.1, 3, -0.1, 2, 1, INF)
    for name in ("fmod", "remainder", "floor_divide"):
        case(name, [a, b], [getattr(torch, name)(a, b)])
    i, j = torch.tensor([7, -7, 7, -7, 0, -1, 6]), torch.tensor([3, 3, -3, -3, 5, 5, 3])
    for name in ("fmod", "remainder", "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor"):
        case(name, [i, j], [getattr(torch, name)(i, j)])
        case(name, [i.int(), j.int()], [getattr(torch, name)(i.int(), j.int())])
    x, s = torch.tensor([1, -1, 5, -8, 2**62, 3]), torch.tensor([0, 1, 2, 3, 1, 62])
    case("bitwise_left_shift", [x, s], [torch.bitwise_left_shift(x, s)])
    case("bitwise_right_shift", [x, s], [torch.bitwise_right_shift(x, s)])
    case("bitwise_not", [i], [torch.bitwise_not(i)])
    case("bitwise_not", [i > 0], [torch.bitwise_not(i > 0)])
    y, z = f32(0, -0.0, 1, -1, INF, -INF, INF, NAN, 2), f32(-0.0, -1, 0, 0, INF, -INF, -1, 1, 3)
    case("atan2", [y, z], [torch.atan2(y, z)], near=True)
    special = f32(0, -0.0, 0.5, -0.5, 1, -1, 2, -2.5, 30, -30, 90, -90, INF, -INF, NAN)
    for name in ("exp2", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "sinh",
                 "cosh", "erf", "trunc", "frac", "isnan", "isinf", "isfinite"):
        case(name, [special], [getattr(torch, name)(special)], near=True)
    # PyTorch's silu of -90 is 0, as its exp overflows.
    case("silu", [special[:10]], [torch.nn.functional.silu(special[:10])], near=True)
    for name in ("softplus", "leaky_relu", "elu"):
        case(name, [special], [getattr(torch.nn.functional, name)(special)], near=True)
    case("leaky_relu", [special, 0.5], [torch.nn.functional.leaky_relu(special, 0.5)], near=True)
    case("elu", [special, 2.0], [torch.nn.functional.elu(special, 2.0)], near=True)
    m, n = f32(0, 1, NAN, 0), f32(0, 0, 2, -0.0)
    for name in ("logical_and", "logical_or", "logical_xor"):
        case(name, [m, n], [getattr(torch, name)(m, n)])
    t = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    case("masked_fill", [t, t > 2, 9], [t.masked_fill(t > 2, 9)])


def order():
    x = f32(3, NAN, -1, 0.0, -0.0, INF, 3, -INF, NAN, 2)
    for descending in (False, True):
        values, at = torch.sort(x, stable=True, descending=descending)
        case("sort", [x, 1, descending], [values, at], position=2)
        case("argsort", [x, 1, descending], [at], position=1)
    m = torch.tensor([[3, 1, 2], [1, 1, 0], [2, 3, 1]])
    for dim in (0, 1):
        case("sort", [m, dim + 1, False], list(torch.sort(m, dim=dim, stable=True)), position=2)
        case("topk", [m, 2, dim + 1, True],
             [torch.topk(m, 2, dim=dim)[0], torch.sort(m, dim=dim, stable=True, descending=True)[1]
              .narrow(dim, 0, 2)], position=2)
        case("cumsum", [m, dim + 1], [torch.cumsum(m, dim)])
        case("cumprod", [m, dim + 1], [torch.cumprod(m, dim)])
    case("sort", [torch.tensor([True, False, True]), -1, True],
         list(torch.sort(torch.tensor([True, False, True]), stable=True, descending=True)), position=2)
    y = f32(1, NAN, 2, INF)
    case("cumsum", [y, 1], [torch.cumsum(y, 0)])
    case("cumsum", [y > 1, -1], [torch.cumsum(y > 1, -1)])
    case("topk", [f32(1, NAN, 5, 2), 2, -1, True], [f32(NAN, 5), torch.tensor([1, 2])], position=2)
    case("topk", [f32(1, NAN, 5, 2), 2, -1, False], [f32(1, 2), torch.tensor([0, 3])], position=2)


def moving():
    m = torch.arange(1, 13).reshape(3, 4)
    for shift in (-5, -1, 0, 2, 7):
        case("roll", [m, shift], [torch.roll(m, shift)])
        case("roll", [m, shift, 1], [torch.roll(m, shift, 0)])
        case("roll", [m, shift, -1], [torch.roll(m, shift, -1)])
    case("roll", [m, [1, -2], [1, 2]], [torch.roll(m, (1, -2), (0, 1))])
    case("roll", [m, [1, 1], [2, 2]], [torch.roll(m, (1, 1), (1, 1))])
    for k in (-4, -1, 0, 1, 2, 9):
        case("tril", [m, k], [torch.tril(m, k)])
        case("triu", [m, k], [torch.triu(m, k)])
        cube = torch.arange(1, 13).reshape(2, 2, 3)
        case("tril", [cube, k], [torch.tril(cube, k)])
    case("flip", [m, 1], [torch.flip(m, (0,))])
    case("flip", [m, [1, 2]], [torch.flip(m, (0, 1))])
    case("flip", [m, []], [m])
    case("outer", [f32(1, 2, 3), f32(4, 5)], [torch.outer(f32(1, 2, 3), f32(4, 5))])


def choosing():
    m = torch.arange(1, 13).reshape(3, 4)
    i = torch.tensor([2, 0, 2])
    case("index_select", [m, 1, i], [torch.index_select(m, 0, i)], index=3)
    case("index_select", [m, 2, i], [torch.index_select(m, 1, i)], index=3)
    g = torch.tensor([[0, 2], [1, 1]])
    case("gather", [m, 1, g], [torch.gather(m, 0, g)], index=3)
    case("gather", [m, 2, g], [torch.gather(m, 1, g)], index=3)
    case("embedding", [g, m], [torch.nn.functional.embedding(g, m)], index=1)
    z, s = torch.zeros(3, 4), torch.arange(1., 13).reshape(3, 4)
    wide = torch.tensor([[0, 1, 2, 0], [2, 0, 0, 1]])
    case("scatter_add_", [z, 1, wide, s], [z.scatter_add(0, wide, s)], index=3)
    case("scatter_add_", [z, 2, wide, s], [z.scatter_add(1, wide, s)], index=3)
    case("scatter_", [z, 1, g, s], [z.scatter(0, g, s)], index=3)
    case("scatter_", [z, 2, wide[:, :2], 7.0], [z.scatter(1, wide[:, :2], 7.0)], index=3)
    case("index_add_", [z, 1, i, s], [z.index_add(0, i, s)], index=3)
    case("index_add_", [z, 2, i, s[:, :3]], [z.index_add(1, i, s[:, :3])], index=3)
    for name, rest in (("scatter", [wide[:, :2], 7.0]), ("scatter", [g, s]), ("scatter_add", [wide, s]),
                       ("index_add", [i, s]), ("index_add", [i, s[:, :3]])):
        dim = 2 if len(rest[0].shape) == 1 and rest[1].shape[1] == 3 or isinstance(rest[1], float) else 1
        case(name, [z, dim] + rest, [getattr(z, name)(dim - 1, *rest)], index=3)
    w = f32(0, NAN, 3, -0.0, INF, 0).reshape(2, 3)
    case("nonzero", [w], [w.nonzero()], position=1)
    case("nonzero", [torch.tensor(5)], [torch.tensor(5).nonzero()], position=1)
    case("nonzero", [torch.zeros(3)], [torch.zeros(3).nonzero()], position=1)
    case("masked_select", [m, m > 6], [torch.masked_select(m, m > 6)])
    case("masked_select", [m, torch.tensor([True, False, True, False])],
         [torch.masked_select(m, torch.tensor([True, False, True, False]))])


def different():
    for x in (torch.tensor([[3, 1, 2], [1, 1, 7]]), f32(3, -1, 3, INF, 0.5, -INF, -1), torch.tensor([True, False, True]),
              torch.tensor([4, 4]), torch.tensor(5), torch.tensor([], dtype=torch.int64)):
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        case("unique", [x], [values])
        case("unique", [x, {"return_inverse": True}], [values, inverse], position=2)
        case("unique", [x, {"return_counts": True}], [values, counts])
        case("unique", [x, {"return_inverse": True, "return_counts": True}], [values, inverse, counts], position=2)


print("-- Made by make.py; see there.")
print("return function(T, NAN, INF) return {")
elementwise()
order()
moving()
choosing()
different()
print("} end")
