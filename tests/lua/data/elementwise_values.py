"""Writes elementwise_values.txt: what PyTorch's CPU operations give for hostile arguments.

    python3 tests/lua/data/elementwise_values.py > tests/lua/data/elementwise_values.txt

A line is `row dtype-of-the-inputs dtype-of-the-result way arguments... : values`. The arguments are names of lists
of that dtype at the beginning of the file, or numbers. Two lists are combined by
broadcasting, the first as a column and the second as a row. Values are hexadecimal floats or integers. The way says how they were found, and so how close a
result must be:

    exact    by PyTorch in that dtype; for f16 and bf16 in f32 and then rounded
    wide     by PyTorch in f64, not rounded
"""

import numpy
import torch

inf, nan = float("inf"), float("nan")
FLOATS = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
INTEGERS = {"u8": torch.uint8, "i32": torch.int32, "i64": torch.int64}
BOOL = {"bool": torch.bool}
NAMES = {v: k for group in (FLOATS, INTEGERS, BOOL) for k, v in group.items()}

numpy.seterr(all="ignore")
generator = torch.Generator().manual_seed(7)


def random_floats(count, scale):
    return (torch.randn(count, generator=generator, dtype=torch.float64) * scale).tolist()


def float_inputs(dtype):
    info = torch.finfo(dtype)
    x = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-3, -1e-3, 20.25, -20.25, 88.5, -103.0,
         1000.0, info.tiny, -info.tiny / 4, info.eps, info.max, -info.max, inf, -inf, nan]
    x += random_floats(6, 1) + random_floats(6, 8) + random_floats(2, 1e4)
    y = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.0, -3.3, 1e-3, 7.0, info.max, inf, -inf, nan] + random_floats(3, 3)
    z = [0.0, 1.0, 0.25, -0.75, 2.0, inf, nan]
    return {"x": x, "y": y, "z": z}


def integer_inputs(dtype):
    info = torch.iinfo(dtype)
    if dtype == torch.uint8:
        return {"x": [0, 1, 2, 3, 7, 8, 100, 127, 128, 200, 254, 255], "y": [1, 2, 3, 7, 128, 255], "z": [0, 1, 2, 3, 5],
                "divisor": [1, 2, 3, 7, 128, 255]}
    x = [0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100, 46341, info.max, info.min, info.max - 1, info.min + 1]
    return {"x": x, "y": [1, -1, 2, -2, 3, -3, 7, 10, info.max, info.min], "z": [0, 1, 2, 3, 5],
            "divisor": [1, 2, -2, 3, -3, 7, 10, info.max, info.min]}


INPUTS = {name: float_inputs(dtype) for name, dtype in FLOATS.items()}
INPUTS.update({name: integer_inputs(dtype) for name, dtype in INTEGERS.items()})
INPUTS["bool"] = {"x": [False, True], "y": [False, True], "z": [True, False]}


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "nan"
    if value in (inf, -inf):
        return "inf" if value > 0 else "-inf"
    mantissa, exponent = value.hex().split("p")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + "p" + exponent


def tensor_of(dtype, name):
    """The list as a tensor of the dtype, in f32 for the half types, which PyTorch's CPU computes little in."""
    kind = {**FLOATS, **INTEGERS, **BOOL}[dtype]
    return torch.tensor(INPUTS[dtype][name], dtype=torch.float64 if dtype in FLOATS else kind).to(kind)


def shaped(arguments, dtype):
    ndim = len([a for a in arguments if isinstance(a, str)])
    out, d = [], 0
    for a in arguments:
        if not isinstance(a, str):
            out.append(a)
            continue
        shape = [1] * ndim
        shape[d] = -1
        out.append(tensor_of(dtype, a).reshape(shape))
        d += 1
    return out


def write(row, dtype, result, way, arguments, values):
    words = [text(v) for v in values.flatten().tolist()]
    print(row, dtype, result, way, *[a if isinstance(a, str) else text(a) for a in arguments], ":", *words)


def case(row, function, arguments, dtypes, wide=False):
    for dtype in dtypes:
        given = shaped(arguments, dtype)
        tensors = [a for a in given if torch.is_tensor(a)]
        if dtype in FLOATS:
            kind = torch.float64 if wide else torch.promote_types(torch.float32, FLOATS[dtype]) \
                if dtype in ("f16", "bf16") else FLOATS[dtype]
            given = [a.to(kind) if torch.is_tensor(a) else a for a in given]
            out = function(*given)
            result = NAMES[out.dtype] if not out.dtype.is_floating_point else dtype
            if out.dtype.is_floating_point and not wide:
                out = out.to(FLOATS[dtype])
            if out.dtype.is_floating_point:
                out = out.to(torch.float64)
            write(row, dtype, result, "wide" if wide and result == dtype else "exact", arguments, out)
        else:
            out = function(*given)
            result = NAMES[out.dtype]
            way = "exact"
            if out.dtype.is_floating_point and wide:
                out, way = function(*[a.to(torch.float32).to(torch.float64) if torch.is_tensor(a) else a for a in given]), "wide"
            if out.dtype.is_floating_point:
                out = out.to(torch.float64)
            write(row, dtype, result, way, arguments, out)
        assert tensors


def fmod(a, b):
    """The C library's, which is exact; PyTorch's vectors give NaN where the quotient is too large."""
    return torch.from_numpy(numpy.fmod(a.numpy(), b.numpy()))


def remainder(a, b):
    rest = fmod(a, b)
    return torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def floor_divide(a, b):
    return torch.from_numpy(numpy.floor_divide(a.numpy(), b.numpy()))


def elu(a):
    """PyTorch's loses the digits of small numbers, since it takes 1 from exp."""
    return torch.where(a > 0, a, torch.expm1(a))


def log1p(a):
    return torch.from_numpy(numpy.log1p((a if a.is_floating_point() else a.float()).numpy()))


def power(a, b):
    """The C library's: PyTorch's vectors give inf for the greatest number to the power of 1."""
    return torch.from_numpy(numpy.power(a.numpy(), b.numpy()))


ALL_FLOATS, ALL_INTEGERS, ALL_BOOL = list(FLOATS), list(INTEGERS), ["bool"]
NUMBERS, EVERYTHING = ALL_FLOATS + ALL_INTEGERS, ALL_FLOATS + ALL_INTEGERS + ALL_BOOL

for dtype, lists in INPUTS.items():
    for name in lists:
        values = tensor_of(dtype, name)
        print("input", dtype, name, ":", *[text(v) for v in (values.to(torch.float64) if dtype in FLOATS else values).tolist()])

F = torch.nn.functional
for row, function in {
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "sin": torch.sin, "cos": torch.cos, "reciprocal": torch.reciprocal,
    "log2": torch.log2, "log10": torch.log10, "exp2": torch.exp2, "log1p": log1p, "expm1": torch.expm1,
    "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "sinh": torch.sinh,
    "cosh": torch.cosh, "erf": torch.erf,
}.items():
    case(row, function, ["x"], EVERYTHING, wide=True)


def gelu(x):
    """F.gelu is x times 1 + erf, which has no digits left of negative numbers beyond -8."""
    return 0.5 * x * torch.special.erfc(x * -(0.5**0.5))


for row, function in {"gelu": gelu, "silu": F.silu, "softplus": F.softplus, "elu": elu}.items():
    case(row, function, ["x"], ALL_FLOATS, wide=True)
case("leaky_relu", F.leaky_relu, ["x"], ALL_FLOATS, wide=True)
for row in ("abs", "square"):
    case(row, getattr(torch, row), ["x"], NUMBERS)
for row in ("neg", "sign", "relu"):
    case(row, getattr(torch, row), ["x"], NUMBERS)
for row in ("floor", "ceil", "round", "trunc"):
    case(row, getattr(torch, row), ["x"], ALL_FLOATS)
case("frac", torch.frac, ["x"], ALL_FLOATS)
case("logical_not", torch.logical_not, ["x"], EVERYTHING)
for row in ("isnan", "isinf", "isfinite"):
    case(row, getattr(torch, row), ["x"], NUMBERS)
case("bitwise_not", torch.bitwise_not, ["x"], ALL_INTEGERS + ALL_BOOL)

for row in ("add", "mul"):
    case(row, getattr(torch, row), ["x", "y"], EVERYTHING)
case("sub", torch.sub, ["x", "y"], NUMBERS)
case("remainder", remainder, ["x", "y"], ALL_FLOATS)
case("fmod", fmod, ["x", "y"], ALL_FLOATS)
case("floor_divide", floor_divide, ["x", "y"], ALL_FLOATS)
for row in ("remainder", "fmod", "floor_divide"):
    case(row, getattr(torch, row), ["x", "divisor"], ALL_INTEGERS)  # not the least integer by -1: PyTorch stops there
for row in ("maximum", "minimum"):
    case(row, getattr(torch, row), ["x", "y"], EVERYTHING)
case("div", torch.div, ["x", "y"], EVERYTHING)
case("pow", power, ["x", "y"], ALL_FLOATS, wide=True)
case("pow", torch.pow, ["x", "z"], ALL_INTEGERS)
case("atan2", torch.atan2, ["x", "y"], ALL_FLOATS, wide=True)
for row in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"):
    case(row, getattr(torch, row), ["x", "y"], EVERYTHING)
for row in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    case(row, getattr(torch, row), ["x", "y"], ALL_INTEGERS + ALL_BOOL)
for row in ("bitwise_left_shift", "bitwise_right_shift"):
    case(row, getattr(torch, row), ["x", "z"], ALL_INTEGERS)
for number in (2, 0.5, -3):
    case("mul", torch.mul, ["x", number], ALL_FLOATS)
    case("add", torch.add, ["x", number], ALL_FLOATS)
case("add", torch.add, ["x", 300], ALL_INTEGERS)
case("mul", torch.mul, ["x", 7], ALL_INTEGERS)
case("clamp", torch.clamp, ["x", -1.5, 2.25], ALL_FLOATS)
case("clamp", torch.clamp, ["x", 2, 100], ALL_INTEGERS)
