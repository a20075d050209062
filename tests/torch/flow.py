"""Records PyTorch's answers to cond, while_loop, map and scan, values and gradients:
`python flow.py > ../golden/flow.jsonl`.

A line a case: its name, inputs (name, sizes, values), results, and gradients of the sum of the results' squares, each
weighted by its place; null where there is none. tests/features/test_flow.c has the same functions in
C, by the names of the cases, and compares eager's and compiled answers with these.
"""
import json

import torch
from torch._higher_order_ops import map as torch_map
from torch._higher_order_ops import scan, while_loop

torch.set_default_dtype(torch.float64)


def cond_plain(x, w, v):
    return (torch.cond(x.sum() > 0, lambda x: x.sin() * w, lambda x: x + v * 2, (x,)),)


def cond_two(x, w, v):
    def yes(y):
        return y.sin() * w, y.exp()

    def no(y):
        return y + v, y * y

    one, two = torch.cond(x.sum() > 0, yes, no, (x * 0.5,))
    return one * x, two


def cond_nested(x, w, v):
    def inner(x):
        return torch.cond(x.sum() > 3, lambda x: (x * w).neg(), lambda x: (x * x + v).neg(), (x,))

    return (torch.cond(x.sum() > 0, inner, lambda x: x.cos() * v, (x,)),)


def map_plain(x, w, v):
    return (torch_map(lambda item, w: item.sin() * w + v, x, w),)


def map_two(x, w, v):
    def one(item, w):
        return item * w, (item * v).sum()

    return torch_map(one, x, w)


def scan_plain(x, w, v):
    def step(carry, item):
        after = carry * v + item.sin()
        return after, after * item

    return scan(step, w, x)


def scan_back(x, w, v):
    def step(carry, item):
        after = carry * v + item
        return after, after.exp()

    return scan(step, w, x, dim=1, reverse=True)


def while_plain(x, w, v):
    return while_loop(lambda y, n: y.sum() < 40, lambda y, n: (y * 2 + w * v, n + 1), (x, torch.tensor(0.0)))


CASES = [(cond_plain, (3,), 0.5), (cond_plain, (3,), -5), (cond_two, (3,), 0.5), (cond_two, (3,), -5),
         (cond_nested, (3,), 2), (cond_nested, (3,), 0.25), (cond_nested, (3,), -5), (map_plain, (4, 3), 0.5),
         (map_two, (4, 3), -1), (scan_plain, (4, 3), 0.5), (scan_back, (3, 4), -0.5), (while_plain, (3,), 0.5),
         (while_plain, (3,), 50)]


def filled(sizes, first):
    n = 1
    for s in sizes:
        n *= s
    return (torch.tensor([first + 0.25 * (i * 5 % 7) for i in range(n)])).reshape(sizes)


def flat(t):
    return None if t is None else [float(v) for v in t.detach().reshape(-1)]


def record(fn, sizes, first):
    has_gradients = fn is not while_plain
    inputs = [filled(sizes, first), filled((3,), 1.0), filled((3,), 0.5)]
    for t in inputs:
        t.requires_grad_(has_gradients)
    out = fn(*inputs)
    line = {"case": fn.__name__, "first": first, "sizes": list(sizes), "results": [flat(t) for t in out],
            "shapes": [list(t.shape) for t in out]}
    if has_gradients:
        loss = sum((i + 1) * (t * t).sum() for i, t in enumerate(out))
        line["grads"] = [flat(g) for g in torch.autograd.grad(loss, inputs, allow_unused=True)]
    print(json.dumps(line))


for case in CASES:
    record(*case)
