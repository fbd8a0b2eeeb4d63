"""Writes cases.lua: operations of networks, and those that are made of several others, with their options and what
PyTorch makes of them, with the gradients of the sum of the result times fixed weights. Values are small multiples of
1/8, so that most sums are exact.

    python3 tests/data/network/make.py > tests/data/network/cases.lua      (PyTorch 1.13)
"""
import random
import textwrap

import torch
import torch.nn.functional as F

random.seed(5)
torch.manual_seed(5)


def values(*shape):
    return torch.randint(-16, 17, shape).double() / 8


def distinct(*shape):
    count = 1
    for size in shape:
        count *= size
    return (torch.randperm(count).double() / 8 - count / 16).reshape(shape)


def number(x):
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, int):
        return str(x)
    if x != x:
        return "NAN"
    if x in (float("inf"), float("-inf")):
        return "INF" if x > 0 else "-INF"
    return repr(float(x))


def lua(x):
    if x is None:
        return "nil"
    if isinstance(x, torch.Tensor):
        flat = ", ".join(number(v) for v in x.detach().flatten().tolist())
        dtype = "i64" if x.dtype == torch.int64 else "f64"
        return 'T("%s", {%s}, {%s})' % (dtype, ", ".join(map(str, x.shape)), flat)
    if isinstance(x, str):
        return '"%s"' % x
    if isinstance(x, dict):
        return "{" + ", ".join("%s = %s" % (k, lua(v)) for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        return "{" + ", ".join(lua(v) for v in x) + "}"
    return number(x)


def weights(t):
    return torch.sin(torch.arange(1, t.numel() + 1).double()).reshape(t.shape)


def write(name, inputs, extra, results, gradients):
    text = "{ name = %s, inputs = %s, extra = %s, results = %s, gradients = %s }," % tuple(
        map(lua, (name, inputs, extra, results, gradients)))
    print(textwrap.fill(text, 118, initial_indent="  ", subsequent_indent="    ", break_long_words=False,
                        break_on_hyphens=False))


def case(name, function, inputs, extra, grads):
    """inputs: tensors; extra: what our function gets behind them; grads: which inputs have a gradient."""
    leaves = [t.clone().requires_grad_() if i in grads else t for i, t in enumerate(inputs)]
    result = function(*leaves)
    first = result[0] if isinstance(result, tuple) else result
    if grads:
        (first * weights(first)).sum().backward()
    gradients = [leaves[i].grad if i in grads else False for i in range(len(leaves))]
    results = list(result) if isinstance(result, tuple) else [result]
    for i, r in enumerate(results):
        if r.dtype == torch.int64:
            results[i] = r + 1  # positions count from 1
    write(name, inputs, extra, results, gradients)


def both(low, high):
    return [random.randint(low, high), random.randint(low, high)]


def convolutions():
    for _ in range(12):
        groups = random.choice([1, 1, 2])
        size, kernel = both(4, 7), both(1, 3)
        o = dict(stride=both(1, 3), padding=both(0, 2), dilation=both(1, 2), groups=groups)
        x = values(random.randint(1, 2), 2 * groups, *size)
        w = values(groups * random.randint(1, 2), 2, *kernel)
        if any(s + 2 * p < d * (k - 1) + 1 for s, p, d, k in zip(size, o["padding"], o["dilation"], kernel)):
            continue
        case("conv2d", lambda x, w, b: F.conv2d(x, w, b, **o), [x, w, values(w.shape[0])], [o], [0, 1, 2])
    o = dict(stride=2, padding=1, dilation=2, groups=2)
    case("conv1d", lambda x, w, b: F.conv1d(x, w, b, **o), [values(2, 4, 9), values(6, 2, 3), values(6)], [o], [0, 1, 2])


def max_pools():
    for _ in range(14):
        size, kernel = both(3, 7), both(1, 3)
        o = dict(stride=both(1, 3), padding=[min(k // 2, 1) for k in kernel], dilation=both(1, 2),
                 ceil_mode=random.choice([False, True]))
        x = distinct(random.randint(1, 2), 2, *size)
        if any(s + 2 * p < d * (k - 1) + 1 for s, p, d, k in zip(size, o["padding"], o["dilation"], kernel)):
            continue
        case("max_pool2d", lambda x: F.max_pool2d(x, kernel, return_indices=True, **o), [x],
             [kernel, dict(o, return_indices=True)], [0])
    x = values(1, 1, 4, 4)
    x[0, 0, 1, 2] = float("nan")
    x[0, 0, 3, 0] = float("-inf")
    case("max_pool2d", lambda x: F.max_pool2d(x, 2, return_indices=True), [x], [2, dict(return_indices=True)], [])


def avg_pools():
    for _ in range(14):
        size, kernel = both(3, 7), both(1, 3)
        o = dict(stride=both(1, 3), padding=[min(k // 2, 1) for k in kernel], ceil_mode=random.choice([False, True]),
                 count_include_pad=random.choice([False, True]), divisor_override=random.choice([None, None, 3]))
        x = values(random.randint(1, 2), 2, *size)
        ours = {k: v for k, v in o.items() if v is not None}
        case("avg_pool2d", lambda x: F.avg_pool2d(x, kernel, **o), [x], [kernel, ours], [0])
    for size, out in (((5, 7), (3, 4)), ((3, 3), (5, 2)), ((6, 4), (1, 1)), ((4, 4), (4, 4))):
        case("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, out), [values(2, 2, *size)], [list(out)], [0])


def run(name, function, x, target, o):
    """Targets count from 1 with us."""
    torch_options = dict(o)
    if o.get("ignore_index", -100) > 0:
        torch_options["ignore_index"] = o["ignore_index"] - 1
    ours = torch.where(target >= 0, target + 1, target)
    case(name, lambda x, _: function(x, target, **torch_options), [x, ours], [o], [0])


def losses():
    for name, function in (("nll_loss", F.nll_loss), ("cross_entropy", F.cross_entropy)):
        for reduction in ("none", "mean", "sum"):
            target = torch.tensor([1, 0, 3, -100, 2])
            run(name, function, values(5, 4), target, dict(reduction=reduction))
            run(name, function, values(5, 4), target, dict(reduction=reduction, weight=values(4).abs() + 0.5))
            run(name, function, values(2, 3, 2, 2), torch.randint(0, 3, (2, 2, 2)),
                dict(reduction=reduction, ignore_index=2))
        run(name, function, values(4), torch.tensor(2), {})
    run("nll_loss", F.nll_loss, values(2, 3), torch.tensor([-100, -100]), dict(reduction="sum"))
    for reduction in ("none", "mean", "sum"):
        case("mse_loss", lambda x, y: F.mse_loss(x, y, reduction=reduction), [values(3, 4), values(3, 4)],
             [dict(reduction=reduction)], [0, 1])


def smoothed_losses():
    for reduction in ("none", "mean", "sum"):
        o = dict(reduction=reduction, label_smoothing=0.25)
        target = torch.tensor([1, 0, 3, -100, 2])
        run("cross_entropy", F.cross_entropy, values(5, 4), target, o)
        run("cross_entropy", F.cross_entropy, values(5, 4), target, dict(o, weight=values(4).abs() + 0.5))
        run("cross_entropy", F.cross_entropy, values(2, 3, 2, 2), torch.randint(0, 3, (2, 2, 2)),
            dict(o, ignore_index=2, weight=values(3).abs() + 0.5))
        run("cross_entropy", F.cross_entropy, values(4), torch.tensor(2), dict(o, label_smoothing=1.0))


def layers():
    case("linear", F.linear, [values(3, 4), values(5, 4), values(5)], [], [0, 1, 2])
    case("linear", F.linear, [values(4), values(5, 4)], [], [0, 1])
    case("linear", F.linear, [values(2, 3, 4), values(5, 4), values(5)], [], [0, 1, 2])
    for shape, own in (((3, 4), [4]), ((2, 3, 4), [3, 4]), ((2, 3, 4), [4])):
        case("layer_norm", lambda x: F.layer_norm(x, own), [values(*shape)], [own], [0])
        w, b = values(*own), values(*own)
        case("layer_norm", lambda x: F.layer_norm(x, own, w, b, 0.1), [values(*shape)],
             [own, dict(weight=w, bias=b, eps=0.1)], [0])


def batch_norms():
    """The running values after the call are results, too."""
    for shape in ((4, 3), (2, 3, 4), (2, 3, 2, 3)):
        for training in (True, False):
            for momentum in (0.1, 0.75):
                mean, var, w, b = values(3), values(3).abs() + 0.5, values(3), values(3)
                new_mean, new_var = mean.clone(), var.clone()
                x = values(*shape)
                y = F.batch_norm(x, new_mean, new_var, w, b, training, momentum, 1e-3)
                options = dict(weight=w, bias=b, training=training, momentum=momentum, eps=1e-3)
                write("batch_norm", [x, mean, var], [options], [y, new_mean, new_var], [])


def padded_by_word():
    for kernel, dilation in (((3, 3), (1, 1)), ((2, 4), (1, 1)), ((2, 3), (3, 2)), ((1, 4), (1, 3))):
        o = dict(padding="same", dilation=list(dilation))
        case("conv2d", lambda x, w, b: F.conv2d(x, w, b, **o), [values(2, 2, 6, 7), values(3, 2, *kernel), values(3)],
             [o], [0, 1, 2])
    o = dict(padding="same", groups=2)
    case("conv2d", lambda x, w: F.conv2d(x, w, **o), [values(4, 4, 5), values(2, 2, 2, 2)], [o], [0, 1])
    case("conv2d", lambda x, w: F.conv2d(x, w, padding="valid", stride=2), [values(1, 1, 5, 5), values(1, 1, 2, 2)],
         [dict(padding="valid", stride=2)], [0, 1])
    for size in (3, 4):
        o = dict(padding="same", dilation=3)
        case("conv1d", lambda x, w, b: F.conv1d(x, w, b, **o), [values(2, 2, 9), values(3, 2, size), values(3)], [o],
             [0, 1, 2])


def norms():
    """The dims of ours count from 1."""
    for p in (0, 0.5, 1, 1.5, 2, 3, float("inf"), float("-inf")):
        x = values(3, 4)
        x[1] = 0
        case("norm", lambda x: torch.linalg.vector_norm(x, p), [x], [dict(p=float(p))], [0] if p else [])
        if p != 0.5:  # PyTorch's gradient is NaN where a whole row is 0
            case("norm", lambda x: torch.linalg.vector_norm(x, p, 1), [x], [dict(p=float(p), dim=2)], [0] if p else [])
        case("norm", lambda x: torch.linalg.vector_norm(x, p, (0, 1), True), [values(2, 3)],
             [[1, 2], True, dict(p=float(p))], [0] if p else [])


def medians():
    for count in (1, 4, 5):
        case("median", lambda x: torch.median(x, 1), [distinct(3, count)], [2], [0])
        case("median", lambda x: torch.median(x, 0, True), [distinct(count, 2)], [-2, True], [0])
        case("median", torch.median, [distinct(count, 2)], [], [0])
    case("median", torch.median, [torch.tensor([2.0, 1, 2, 3, 2, 0])], [], [0])
    x = distinct(3, 4)
    x[1, 2] = x[1, 3] = x[2, 0] = float("nan")
    case("median", lambda x: torch.median(x, 1), [x], [2], [])
    case("median", torch.median, [x], [], [])


def einsums():
    """Operands that are broadcast, repeated letters, batches, and sums over one operand alone."""
    for equation, *shapes in (
            ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ki", (2, 3), (4, 3)),
            ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)), ("bij,jk->kb", (2, 3, 4), (4, 2)), ("i,j->ij", (3,), (4,)),
            ("i,i->", (4,), (4,)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ba", (2, 3)),
            ("ii", (3, 3)), ("ii->i", (3, 3)), ("iji->j", (3, 2, 3)), ("iij,jk->ik", (2, 2, 3), (3, 2)),
            ("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)), ("b...,b...->...", (2, 3, 2), (2, 1, 2)),
            ("...i,i->...", (2, 3, 4), (4,)), ("i...->...", (3, 2)), ("...", (2, 3)), ("i...", (2, 3)),
            ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("bhid,bhjd->bhij", (2, 2, 3, 4), (2, 2, 2, 4)),
            ("ij,ij,ij->i", (2, 3), (2, 3), (2, 3)), ("ij,jk->ik", (2, 1), (3, 2)), ("ab,cd->", (2, 3), (2, 2)),
            ("ij, jk -> k", (2, 3), (3, 2)), ("aB,Bc->ca", (2, 3), (3, 2)), ("i,->i", (3,), ())):
        case("einsum", lambda *t: torch.einsum(equation, *t), [values(*shape) for shape in shapes], [equation],
             list(range(len(shapes))))


def probable_targets():
    for reduction in ("none", "mean", "sum"):
        for smoothing in (0.0, 0.25):
            o = dict(reduction=reduction, label_smoothing=smoothing)
            for shape in ((4, 3), (2, 3, 2), (3,)):
                target = torch.softmax(values(*shape), 1 if len(shape) > 1 else 0)
                case("cross_entropy", lambda x, t: F.cross_entropy(x, t, **o), [values(*shape), target], [o], [0, 1])
            w = values(3).abs() + 0.5
            case("cross_entropy", lambda x, t: F.cross_entropy(x, t, w, **o), [values(4, 3), values(4, 3).abs()],
                 [dict(o, weight=w)], [0, 1])


torch.set_default_dtype(torch.float64)
print("-- Written by make.py: operations of networks and what PyTorch makes of them.")
print("return function(T, NAN, INF) return {")
convolutions()
max_pools()
avg_pools()
losses()
layers()
batch_norms()
smoothed_losses()
padded_by_word()
norms()
medians()
einsums()
probable_targets()
print("} end")
