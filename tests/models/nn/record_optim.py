"""Records PyTorch's steps of the optimizers of backplane/nn.h: optim.safetensors.

start.P are the parameters, grad.N.P the gradients of step N; c never has one, and d has its first in step 1.
CASE.N.P is parameter P behind step N of a case; the learning rate is halved before step 3. The cases are those of
tests/unit/nn/test_optim.c. Run with PyTorch 2.9 or newer: python3 record_optim.py
"""
from pathlib import Path

import torch
from safetensors.torch import save_file

STEPS, NEW_RATE = 5, 3
CASES = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.2)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
    "sgd_dampening": (torch.optim.SGD, dict(lr=0.1, momentum=0.8, dampening=0.3, weight_decay=0.1)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.7, nesterov=True, weight_decay=0.1)),
    "sgd_maximize": (torch.optim.SGD, dict(lr=0.1, momentum=0.5, maximize=True, weight_decay=0.1)),
    "adam": (torch.optim.Adam, dict(lr=0.05)),
    "adam_betas": (torch.optim.Adam, dict(lr=0.05, betas=(0.7, 0.95), eps=1e-3, weight_decay=0.3)),
    "adam_amsgrad": (torch.optim.Adam, dict(lr=0.05, betas=(0.5, 0.6), amsgrad=True)),
    "adam_maximize": (torch.optim.Adam, dict(lr=0.05, maximize=True, weight_decay=0.1)),
    "adamw": (torch.optim.AdamW, dict(lr=0.05)),
    "adamw_amsgrad": (torch.optim.AdamW, dict(lr=0.05, betas=(0.5, 0.6), weight_decay=0.4, amsgrad=True)),
}

torch.manual_seed(11)
SHAPES = {"a": (3, 4), "b": (5,), "c": (2,), "d": (2, 2)}
start = {name: torch.randn(shape) for name, shape in SHAPES.items()}
# The scale falls, so that amsgrad's maximum is not the last average.
grads = [{name: torch.randn(shape) * 3.0 ** (1 - step) for name, shape in SHAPES.items()
          if name != "c" and (name != "d" or step > 0)} for step in range(STEPS)]

out = {f"start.{name}": t for name, t in start.items()}
out |= {f"grad.{step}.{name}": g for step in range(STEPS) for name, g in grads[step].items()}
for case, (kind, options) in CASES.items():
    params = {name: torch.nn.Parameter(t.clone()) for name, t in start.items()}
    optimizer = kind(params.values(), **options)
    for step in range(STEPS):
        if step == NEW_RATE:
            optimizer.param_groups[0]["lr"] /= 2
        for name, p in params.items():
            p.grad = grads[step][name].clone() if name in grads[step] else None
        optimizer.step()
        out |= {f"{case}.{step}.{name}": p.detach().clone() for name, p in params.items()}
save_file(out, Path(__file__).parent / "optim.safetensors")
print(f"{len(out)} tensors")
