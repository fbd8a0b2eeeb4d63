#!/usr/bin/env python3
"""What PyTorch computes with modules and optimisers, for tests/lua/nn.lua and tests/lua/optim.lua: writes
layers.safetensors and optim.safetensors. Needs NumPy and PyTorch.

layers.safetensors: for each module NAME.x (the input), NAME.y (the output) and NAME.p.PARAMETER; for some also NAME.g (the
gradient of the sum of y * NAME.w with respect to x) and NAME.d.PARAMETER (with respect to a parameter). optim.safetensors:
for each optimiser NAME.a and NAME.b, two parameters after 20 steps from start.a and start.b."""
import sys

import torch

sys.path.insert(0, "../files")
from make import write_safetensors  # noqa: E402

TAGS = {torch.float32: "F32", torch.int64: "I64", torch.float64: "F64"}


def pieces(tensors):
    return {name: (TAGS[t.dtype], list(t.shape), t.detach().contiguous().numpy().tobytes()) for name, t in tensors.items()}


def layers():
    torch.manual_seed(1)
    out = {}

    def add(name, module, x, times=1, train=True):
        module.train(train)
        x = x.clone()
        if x.is_floating_point():
            x.requires_grad_()
        out[f"{name}.x"] = x
        for key, value in module.state_dict().items():
            out[f"{name}.p.{key}"] = value.clone()
        for _ in range(times):
            y = module(x)
        out[f"{name}.y"] = y
        if x.is_floating_point():
            w = torch.randn(y.shape)
            module.zero_grad()
            (y * w).sum().backward()
            out[f"{name}.w"], out[f"{name}.g"] = w, x.grad
            for key, p in module.named_parameters():
                out[f"{name}.d.{key}"] = p.grad.clone()
        for key, value in module.named_buffers():
            out[f"{name}.after.{key}"] = value.clone()

    nn = torch.nn
    add("linear", nn.Linear(5, 3), torch.randn(4, 5))
    add("linear_3d", nn.Linear(5, 3, bias=False), torch.randn(2, 4, 5))
    add("conv", nn.Conv2d(2, 4, 3, stride=2, padding=1), torch.randn(2, 2, 6, 5))
    add("conv_groups", nn.Conv2d(4, 6, (1, 3), padding=(0, 1), groups=2, dilation=(1, 2), bias=False),
        torch.randn(1, 4, 3, 7))
    norm = nn.BatchNorm2d(3)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(3))
        norm.bias.copy_(torch.randn(3))
    add("batch_norm", norm, torch.randn(4, 3, 2, 5) * 3 + 1)
    add("batch_norm_eval", norm, torch.randn(2, 3, 2, 2), train=False)
    add("batch_norm_average", nn.BatchNorm2d(2, momentum=None), torch.randn(3, 2, 2, 2))
    layer = nn.LayerNorm([3, 4])
    with torch.no_grad():
        layer.weight.copy_(torch.randn(3, 4))
        layer.bias.copy_(torch.randn(3, 4))
    add("layer_norm", layer, torch.randn(2, 5, 3, 4))
    add("embedding", nn.Embedding(6, 3), torch.tensor([[0, 5, 2], [1, 1, 4]]))
    add("max_pool", nn.MaxPool2d(2), torch.randn(2, 3, 5, 6))
    add("avg_pool", nn.AvgPool2d(3, stride=2, padding=1), torch.randn(1, 2, 6, 5))
    add("adaptive", nn.AdaptiveAvgPool2d((2, 3)), torch.randn(2, 2, 5, 7))
    for name, module in [("relu", nn.ReLU()), ("gelu", nn.GELU()), ("tanh", nn.Tanh()), ("sigmoid", nn.Sigmoid()),
                         ("softmax", nn.Softmax(1)), ("log_softmax", nn.LogSoftmax(1)), ("flatten", nn.Flatten())]:
        add(name, module, torch.randn(2, 3, 4))
    scores, classes, weight = torch.randn(5, 4), torch.tensor([0, 3, 1, 1, 2]), torch.rand(4)
    target = torch.randn(5, 4)
    out["scores"], out["classes"], out["class_weight"], out["target"] = scores, classes, weight, target
    for reduction in ["mean", "sum", "none"]:
        out[f"mse.{reduction}"] = nn.MSELoss(reduction=reduction)(scores, target)
        out[f"cross_entropy.{reduction}"] = nn.CrossEntropyLoss(reduction=reduction)(scores, classes)
        out[f"nll.{reduction}"] = nn.NLLLoss(weight=weight, reduction=reduction)(scores, classes)
    torch.manual_seed(3)
    add("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), torch.randn(2, 4, 9))
    add("batch_norm_rows", nn.BatchNorm1d(3), torch.randn(5, 3) * 2 - 1)
    add("batch_norm_sequences", nn.BatchNorm1d(2, momentum=0.3), torch.randn(3, 2, 4))
    add("batch_norm_plain", nn.BatchNorm1d(2, affine=False, track_running_stats=False), torch.randn(3, 2), train=False)
    pair_losses(out)
    write_safetensors("layers.safetensors", pieces(out))


def nested(out):
    """The state of a module of containers under its own names, and what it computes."""
    nn = torch.nn
    net = nn.Module()
    net.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4)), nn.BatchNorm1d(4))
    net.heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 2)])
    for key, value in net.state_dict().items():
        out[f"nested.p.{key}"] = value
    out["nested.x"] = torch.randn(5, 3)
    y = net.eval().body(out["nested.x"])
    out["nested.y"] = torch.cat([head(y) for head in net.heads], 1)


def recurrent(out):
    """NAME.p.*, .x, the first state .h0 (and .c0), the results .y, the last state .h (and .c), the gradient of sum(y * w)."""
    nn = torch.nn
    cases = {
        "lstm": nn.LSTM(3, 4),
        "lstm_deep": nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
        "gru": nn.GRU(3, 4, bias=False),
        "gru_deep": nn.GRU(3, 4, num_layers=2, bidirectional=True),
    }
    for name, module in cases.items():
        x = torch.randn(2, 5, 3) if module.batch_first else torch.randn(5, 2, 3)
        x.requires_grad_()
        layers = module.num_layers * (2 if module.bidirectional else 1)
        h0, c0 = torch.randn(layers, 2, 4), torch.randn(layers, 2, 4)
        lstm = name.startswith("lstm")
        y, last = module(x, (h0, c0) if lstm else h0)
        w = torch.randn(y.shape)
        (y * w).sum().backward()
        for key, value in module.state_dict().items():
            out[f"{name}.p.{key}"] = value
        out.update({f"{name}.{k}": v for k, v in dict(x=x, h0=h0, y=y, w=w, g=x.grad).items()})
        out[f"{name}.h"] = last[0] if lstm else last
        if lstm:
            out[f"{name}.c0"], out[f"{name}.c"] = c0, last[1]
        for key, p in module.named_parameters():
            out[f"{name}.d.{key}"] = p.grad


def resampled(out):
    f = torch.nn.functional
    x, w, b = torch.randn(2, 4, 3, 5), torch.randn(4, 3, 3, 2), torch.randn(6)
    out["up.x"], out["up.w"], out["up.b"] = x, w, b
    out["up.transposed"] = f.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=(1, 0), groups=2)
    out["up.transposed_dilated"] = f.conv_transpose2d(x, w[:, :2], stride=(1, 3), dilation=2)
    out["up.nearest"] = f.interpolate(x, scale_factor=2.5)
    out["up.nearest_size"] = f.interpolate(x, size=(2, 7))
    out["up.bilinear"] = f.interpolate(x, scale_factor=2, mode="bilinear")
    out["up.bilinear_size"] = f.interpolate(x, size=(2, 8), mode="bilinear", align_corners=True)
    out["up.linear"] = f.interpolate(x[0], size=9, mode="linear")
    for mode in ["constant", "reflect", "replicate", "circular"]:
        out[f"pad.{mode}"] = f.pad(x, (2, 1, 1, 2), mode=mode)
    out["pad.value"] = f.pad(x, (1, -2, -1, 3), value=1.5)
    q, k, v = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5), torch.randn(2, 3, 6, 2)
    out["attention.q"], out["attention.k"], out["attention.v"] = q, k, v
    scores = q @ k.transpose(-2, -1) / 5**0.5
    causal = torch.full((4, 6), -float("inf")).triu(1)
    out["attention.mask"] = torch.randn(4, 6)
    out["attention.plain"] = scores.softmax(-1) @ v
    out["attention.causal"] = (scores + causal).softmax(-1) @ v
    out["attention.masked"] = (scores + out["attention.mask"]).softmax(-1) @ v
    p = torch.tensor([[0.0, 1.0, 0.3], [0.999, 1e-30, 0.5]], requires_grad=True)
    target = torch.tensor([[1.0, 0.0, 0.25], [1.0, 1.0, 0.5]])
    loss = f.binary_cross_entropy(p, target, reduction="none")
    loss.sum().backward()
    out["bce.p"], out["bce.target"], out["bce.y"], out["bce.g"] = p, target, loss, p.grad


def more():
    torch.manual_seed(4)
    out = {}
    nested(out)
    recurrent(out)
    resampled(out)
    write_safetensors("more.safetensors", pieces(out))


def pair_losses(out):
    """loss.KIND.REDUCTION of loss.x and loss.target, and its gradient .g; x has 0, and values at which exp overflows."""
    nn = torch.nn
    x = torch.cat([torch.randn(4, 3) * 2, torch.tensor([[0.0, 200.0, -200.0]])])
    target, weight, pos_weight = torch.rand(5, 3), torch.rand(3), torch.rand(3) * 3
    target[0, 0] = x[0, 0]
    out["loss.x"], out["loss.target"], out["loss.weight"], out["loss.pos_weight"] = x, target, weight, pos_weight
    kinds = {
        "l1": lambda r: nn.L1Loss(reduction=r),
        "huber": lambda r: nn.HuberLoss(reduction=r),
        "huber_wide": lambda r: nn.HuberLoss(reduction=r, delta=2.5),
        "smooth_l1": lambda r: nn.SmoothL1Loss(reduction=r),
        "smooth_l1_narrow": lambda r: nn.SmoothL1Loss(reduction=r, beta=0.25),
        "bce": lambda r: nn.BCEWithLogitsLoss(reduction=r),
        "bce_weighted": lambda r: nn.BCEWithLogitsLoss(reduction=r, weight=weight, pos_weight=pos_weight),
    }
    for kind, make in kinds.items():
        for reduction in ["mean", "sum", "none"]:
            leaf = x.clone().requires_grad_()
            loss = make(reduction)(leaf, target)
            loss.sum().backward()
            out[f"loss.{kind}.{reduction}"], out[f"loss.{kind}.{reduction}.g"] = loss, leaf.grad


def optimisers():
    torch.manual_seed(2)
    out = {"start.a": torch.randn(3, 4), "start.b": torch.randn(5), "goal.a": torch.randn(3, 4), "goal.b": torch.randn(5)}
    o = torch.optim
    cases = {
        "sgd": (o.SGD, dict(lr=0.1)),
        "sgd_decay": (o.SGD, dict(lr=0.1, weight_decay=0.05)),
        "momentum": (o.SGD, dict(lr=0.05, momentum=0.9)),
        "dampened": (o.SGD, dict(lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.01)),
        "nesterov": (o.SGD, dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.01)),
        "adam": (o.Adam, dict(lr=0.05)),
        "adam_decay": (o.Adam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
        "rmsprop": (o.RMSprop, dict(lr=0.02)),
        "rmsprop_momentum": (o.RMSprop, dict(lr=0.02, alpha=0.9, eps=1e-6, momentum=0.8, weight_decay=0.05)),
        "adamw": (o.AdamW, dict(lr=0.05)),
        "adamw_decay": (o.AdamW, dict(lr=0.05, betas=(0.8, 0.95), weight_decay=0.3)),
    }
    for name, (make, options) in cases.items():
        a, b = (out[f"start.{k}"].clone().requires_grad_() for k in "ab")
        optimiser = make([a, b], **options)
        for step in range(20):
            optimiser.zero_grad(set_to_none=True)
            loss = ((a - out["goal.a"]) ** 2).sum() * 0.5
            if step % 3 != 1:  # b has no gradient in every third step
                loss = loss + ((b - out["goal.b"]) ** 4).sum() * 0.1
            loss.backward()
            optimiser.step()
        out[f"{name}.a"], out[f"{name}.b"] = a, b
    schedulers = {
        "step": lambda s: o.lr_scheduler.StepLR(s, 3, gamma=0.5),
        "cosine": lambda s: o.lr_scheduler.CosineAnnealingLR(s, 5, eta_min=0.01),
        "lambda": lambda s: o.lr_scheduler.LambdaLR(s, lambda epoch: 1 / (1 + epoch)),
    }
    for name, make in schedulers.items():
        optimiser = o.SGD([dict(params=[torch.zeros(1, requires_grad=True)], lr=0.1),
                           dict(params=[torch.zeros(1, requires_grad=True)], lr=0.4)], lr=0.1)
        scheduler, rates = make(optimiser), []
        for _ in range(12):
            rates.append(scheduler.get_last_lr())
            optimiser.step()
            scheduler.step()
        out[f"rates.{name}"] = torch.tensor(rates, dtype=torch.float64)
    gradients = [torch.randn(3, 4), torch.randn(7)]
    for i, g in enumerate(gradients):
        out[f"clip.g{i}"] = g.clone()
    for kind, norm in [("two", 2.0), ("inf", float("inf")), ("one", 1.0), ("three", 3.0)]:
        parameters = [torch.zeros_like(g).requires_grad_() for g in gradients]
        for p, g in zip(parameters, gradients):
            p.grad = g.clone()
        out[f"clip.{kind}"] = torch.nn.utils.clip_grad_norm_(parameters, 0.7, norm)
        for i, p in enumerate(parameters):
            out[f"clip.{kind}{i}"] = p.grad
    for i, g in enumerate(gradients):
        p = torch.zeros_like(g).requires_grad_()
        p.grad = g.clone()
        torch.nn.utils.clip_grad_value_([p], 0.4)
        out[f"clip.value{i}"] = p.grad
    write_safetensors("optim.safetensors", pieces(out))


layers()
more()
optimisers()
