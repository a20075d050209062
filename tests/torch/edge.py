"""Writes edges.jsonl.gz: PyTorch's gradients at the edges of operators, as graph cases of one call (the format of
tests/golden/FORMAT.md): at ties, bounds, zeros, infinities and NaN, which differences cannot judge.

usage: python3 edge.py    with a PyTorch of the version that record.py names
"""
import gzip
import itertools
import json
import os

import torch

from record import bare, value

# A NaN, and the sign of a zero, give what PyTorch gives there only in some places of a tensor: by its vectors, or not.
BY_PLACE = ["hardtanh", "hardshrink", "softshrink", "relu6", "elu", "celu", "selu", "hardswish", "logit"]
INF, NAN = float("inf"), float("nan")
EDGES = [-INF, -3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.2, 0.5, 1.0, 2.0, 3.0, 6.0, 30.0, INF, NAN]
FEW = [-INF, -1.0, 0.0, 0.5, 1.0, INF, NAN]
aten = torch.ops.aten

ONE = """abs sgn sign neg reciprocal floor ceil trunc round frac nan_to_num exp exp2 expm1 log log2 log10 log1p
sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma i0 sinc
deg2rad rad2deg angle logit special_i0e special_i1 special_i1e special_erfcx special_ndtri special_log_ndtr
special_entr special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_k0
special_modified_bessel_k1 special_modified_bessel_i0 special_modified_bessel_i1 relu silu mish hardswish hardsigmoid
elu celu selu gelu softplus softshrink hardshrink relu6 log_sigmoid square absolute leaky_relu hardtanh""".split()
TWO = """mul.Tensor div.Tensor remainder.Tensor fmod.Tensor pow.Tensor_Tensor ldexp.Tensor maximum fmax fmin minimum
atan2 hypot nextafter copysign.Tensor xlogy.Tensor special_xlog1py logaddexp logaddexp2 clamp_min.Tensor
clamp_max.Tensor add.Tensor rsub.Tensor max.other min.other mse_loss smooth_l1_loss huber_loss l1_loss
float_power.Tensor_Tensor sigmoid_backward tanh_backward silu_backward""".split()


def t(*values, shape=None):
    x = torch.tensor(values, dtype=torch.float64)
    return x if shape is None else x.reshape(shape)


def find(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default")


def pointwise():
    sure = [x for x in EDGES if x == x and str(x) != "-0.0"]
    for name in ONE:
        yield name, [t(*(sure if name in BY_PLACE else EDGES))], {}
    first, second = zip(*itertools.product(FEW, FEW))
    for name in TWO:
        yield name, [t(*first), t(*second)], {}
    for bounds in ((-1.0, 1.0), (None, 0.5), (-0.5, None), (2.0, 1.0), (0.5, 0.5)):
        yield "clamp", [t(*EDGES), *bounds], {}
    for name in "clamp_min", "clamp_max":
        yield name, [t(*EDGES), 0.5], {}
    low, high = zip(*itertools.product([0.0, 1.0, NAN], [0.0, 0.5, 1.0, NAN]))
    for x in (-1.0, 0.0, 0.5, 1.0, 2.0, NAN):
        yield "clamp.Tensor", [t(*[x] * len(low)), t(*low), t(*high)], {}
        yield "clamp.Tensor", [t(*[x] * len(low)), None, t(*high)], {}
    for p in (0, 1, 2, -1, 0.5, 3.0, -2.0, 0.0):
        yield "pow.Tensor_Scalar", [t(*EDGES), p], {}
        yield "pow.Scalar", [p, t(*EDGES)], {}
    for x in (0.0, -1.0, 2.0, NAN):
        yield "xlogy.Scalar_Other", [t(*EDGES), x], {}
        yield "xlogy.Scalar_Self", [x, t(*EDGES)], {}
        yield "special_xlog1py.other_scalar", [t(*EDGES), x], {}
        yield "copysign.Scalar", [t(*EDGES), x], {}
    yield "logit", [t(*sure), 0.2], {}
    yield "hardshrink", [t(*sure), 0.0], {}
    yield "softshrink", [t(*sure), 0.0], {}
    yield "threshold", [t(*EDGES), 0.5, 20.0], {}
    yield "elu", [t(*sure), 1.5, 2.0, 0.5], {}
    yield "softplus", [t(*EDGES), 2.0, 4.0], {}
    yield "hardtanh", [t(*sure), -0.5, 3.0], {}
    yield "gelu", [t(*EDGES)], {"approximate": "tanh"}
    yield "where.self", [t(*FEW) > 0, t(*FEW), t(*reversed(FEW))], {}
    yield "where.self", [t(*FEW) > 0, t(*FEW), t(NAN)], {}
    yield "masked_fill.Scalar", [t(*FEW), t(*FEW) > 0, NAN], {}
    yield "lerp.Tensor", [t(*FEW), t(*reversed(FEW)), t(*FEW)], {}
    yield "addcdiv", [t(*FEW), t(*reversed(FEW)), t(*FEW)], {}
    yield "addcmul", [t(*FEW), t(*reversed(FEW)), t(*FEW)], {"value": 2}
    yield "_prelu_kernel", [t(*EDGES), t(0.25)], {}
    yield "glu", [t(*EDGES)], {}
    yield "div.Tensor_mode", [t(*first), t(*second)], {"rounding_mode": "floor"}
    yield "div.Tensor_mode", [t(*first), t(*second)], {"rounding_mode": None}


LINES = [[1.0, 2.0, 2.0, 0.5], [0.0, 3.0, 2.0, 1.0], [0.0, 0.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.0], [1.0, NAN, 2.0, 3.0],
         [INF, 1.0, INF, 2.0], [-INF, -INF, -INF, -INF], [-1.0, 1.0, -1.0, 1.0], [2.0, 0.0, 3.0, 0.0]]


def reductions():
    for line in LINES:
        for name in ("sum", "mean", "prod", "max", "min", "median", "nanmedian", "nansum", "aminmax", "nanmean"):
            yield name, [t(*line)], {}
        for name in ("amax", "amin", "logsumexp"):
            yield name, [t(*line), [0]], {}
        for name in ("prod.dim_int", "median.dim", "max.dim", "min.dim", "nanmedian.dim", "mode"):
            yield name, [t(*line, *line, shape=(2, 4)), 1], {}
        for name in ("cumprod", "cumsum", "cummax", "cummin", "logcumsumexp"):
            yield name, [t(*line), 0], {}
        yield "sort", [t(*line)], {}
        yield "topk", [t(*line), 2], {}
        yield "kthvalue", [t(*line), 2], {}
        for name in ("var.correction", "std.correction", "var_mean.correction", "std_mean.correction"):
            yield name, [t(*line), [0]], {"correction": 1}
            yield name, [t(*line), [0]], {"correction": 4}
        for p in (0, 0.5, 1, 1.5, 2, 3, -1, INF, -INF):
            yield "linalg_vector_norm", [t(*line), p], {}
            yield "linalg_vector_norm", [t(*line, *line, shape=(2, 4)), p, [1], True], {}
            yield "norm.ScalarOpt_dim", [t(*line, *line, shape=(2, 4)), p, [0]], {}
            if p:
                yield "dist", [t(*line), t(*reversed(line)), p], {}
        for p in (1, 2, 3, INF):
            yield "renorm", [t(*line, *line, shape=(2, 4)), p, 0, 2.5], {}
        for p in (0.0, 1.0, 1.5, 2.0, 3.0, INF) if all(abs(x) < INF for x in line) else ():
            yield "_cdist_forward", [t(*line, *line, shape=(4, 2)), t(*line, shape=(2, 2)), p, None], {}
            yield "_pdist_forward", [t(*line, *line, shape=(4, 2)), p], {}
        yield "amax", [t(*line, *line, shape=(2, 4)), [], True], {}
    yield "cumprod", [t(*LINES[1], *LINES[8], *LINES[0], shape=(3, 4)), 1], {}
    yield "prod.dim_int", [t(*LINES[1], *LINES[8], *LINES[0], shape=(3, 4)), 0], {}


def losses():
    p = t(0.0, 1e-13, 0.25, 1.0, 0.5)
    for how in (0, 1, 2):
        yield "binary_cross_entropy", [p, t(0.0, 1.0, 0.5, 1.0, 0.0), None, how], {}
        yield "binary_cross_entropy_with_logits", [t(*FEW), t(0.0, 1.0, 0.5, 1.0, 0.0, 1.0, 1.0), None, None, how], {}
        yield "soft_margin_loss", [t(*FEW), t(1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0), how], {}
        yield "smooth_l1_loss", [t(0.0, 1.0, -1.0, 2.0), t(0.0, 0.0, 0.0, 0.0), how, 1.0], {}
        yield "smooth_l1_loss", [t(0.0, 1.0, -1.0, 2.0), t(0.0, 0.0, 0.0, 0.0), how, 0.0], {}
        yield "huber_loss", [t(0.0, 1.0, -1.0, 2.0), t(0.0, 0.0, 0.0, 0.0), how, 1.0], {}
        yield "multi_margin_loss", [t(0.0, 1.0, 1.0, 0.5, -1.0, 2.0, shape=(2, 3)), torch.tensor([1, 0]), 1, 1.0, None,
                                    how], {}


def differentiate(function, args, kwargs):
    """Results, and gradients for ones of other sizes; None where PyTorch refuses."""
    floats = [a.clone().requires_grad_() for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
    queue = list(floats)
    given = [queue.pop(0) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
    results = function(*given, **kwargs)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    flows = [i for i, r in enumerate(results) if r.requires_grad]
    grads = [torch.linspace(0.5, 2.0, max(results[i].numel(), 1), dtype=results[i].dtype)[:results[i].numel()]
             .reshape(results[i].shape) for i in flows]
    got = torch.autograd.grad([results[i] for i in flows], floats, grads, allow_unused=True)
    return results, flows, grads, got


def case(name, args, kwargs):
    function = find(name)
    try:
        results, flows, grads, got = differentiate(function, args, kwargs)
    except RuntimeError as e:
        print(name, str(e).split("\n")[0][:100])
        return None
    tensors = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
    names = {a: f"arg{k}_1" for k, a in enumerate(tensors)}
    nodes = [{"op": "placeholder", "name": n, "target": n, "args": [], "kwargs": {}} for n in names.values()]
    nodes.append({"op": "call_function", "name": "call", "target": str(function),
                  "args": [{"node": names[i]} if i in names else value(a) for i, a in enumerate(args)],
                  "kwargs": {k: value(v) for k, v in kwargs.items()}})
    outputs = [{"node": "call"}]
    if len(results) > 1:
        outputs = [{"node": f"part{i}"} for i in range(len(results))]
        nodes += [{"op": "call_function", "name": f"part{i}", "target": "<built-in function getitem>",
                   "args": [{"node": "call"}, i], "kwargs": {}} for i in range(len(results))]
    nodes.append({"op": "output", "name": "output", "target": "output", "args": [outputs], "kwargs": {}})
    return {"name": name, "dtype": "float64", "nodes": nodes, "inputs": [bare(args[i]) for i in tensors],
            "outputs": [bare(r) for r in results], "constants": {}, "differentiable_outputs": flows,
            "grad_outputs": [bare(g) for g in grads],
            "grad_inputs_of": [k for k, i in enumerate(tensors) if args[i].is_floating_point()],
            "grad_inputs": [None if g is None else bare(g) for g in got]}


def main():
    lines = []
    for name, args, kwargs in itertools.chain(pointwise(), reductions(), losses()):
        made = case(name, args, kwargs)
        if made:
            lines.append(json.dumps(made) + "\n")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "edges.jsonl.gz")
    data = gzip.compress("".join(lines).encode(), 9, mtime=0)
    with open(path, "wb") as f:
        f.write(data)
    print(len(lines), "cases,", len(data), "bytes")


main()
