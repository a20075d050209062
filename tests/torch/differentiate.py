"""Writes differentiated.jsonl.gz: PyTorch's gradients of single operators, in the format of tests/golden/FORMAT.md
(graphs of one call), in float64 and complex128. Arguments are those of the shortest handed and recorded cases, and of
differentiate_own.py where a rule wants its own: overlaps, repeated indices, all shapes of a factor, gradients of
gradients.

usage: python3 differentiate.py    with PyTorch 2.15
"""
import gzip
import json
import os
import re
import sys

import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from record import HANDED, bare, packet, read, rows, top, value  # noqa: E402

FLOATS = (torch.float64, torch.complex128)
LIFTED = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64,
          torch.complex64: torch.complex128}
A_ROW = 2
# Factors are free in their signs, and what is random differs; differentiate_own.py asks for what does not depend on
# them.
LEFT_OUT = re.compile(r"^(_?linalg_(svd|eig|eigh)$|svd$|pca_|svd_|.*dropout|rrelu|rand|normal|bernoulli|multinomial|"
                      r"poisson|binomial|exponential|geometric|cauchy|log_normal|uniform|_sample_|_standard_gamma|"
                      r"linalg_pinv$|pinverse$)")
# What PyTorch only finds out when it goes backward.
STATISTICS = {"native_layer_norm_backward": ("mean", "rstd"),
              "native_batch_norm_backward": ("running_mean", "running_var", "save_mean", "save_invstd"),
              "batch_norm_backward": ("running_mean", "running_var", "save_mean", "save_var", "reserve"),
              # Its answer for self is the gradient of what src overwrites: see host/grad/strided.c.
              "as_strided_scatter": ("self",)}


def lifted(v):
    """The same in double precision."""
    if isinstance(v, torch.Tensor):
        if v.dtype not in LIFTED or 0 in v.stride():
            return v.to(LIFTED.get(v.dtype, v.dtype))
        return torch.empty_strided(v.shape, v.stride(), dtype=LIFTED[v.dtype]).copy_(v)
    if isinstance(v, torch.dtype):
        return LIFTED.get(v, v)
    return [lifted(x) for x in v] if isinstance(v, (list, tuple)) else v


class Graph:
    """One call after another, as a golden case."""

    def __init__(self, name):
        self.name, self.nodes, self.inputs, self.values = name, [], [], {}

    def node(self, op, name, target, args=(), kwargs=None):
        self.nodes.append({"op": op, "name": name, "target": target, "args": list(args), "kwargs": kwargs or {}})

    def input(self, t, wanted=True):
        name = f"arg{len(self.inputs)}_1"
        t = t.detach().clone(memory_format=torch.preserve_format) if 0 not in t.stride() else t.detach()
        self.inputs.append(t.requires_grad_(wanted and t.dtype in FLOATS))
        self.node("placeholder", name, name)
        self.values[name] = self.inputs[-1]
        return name

    def given(self, v, wanted=True):
        """A value of Python as one of the graph; tensors become inputs."""
        if isinstance(v, torch.Tensor):
            return {"node": self.input(v, wanted)}
        if isinstance(v, (list, tuple)):
            return [self.given(x, wanted) for x in v]
        if isinstance(v, torch.layout):
            return {"layout": "strided"}
        return {"node": v} if isinstance(v, str) and v in self.values else value(v)

    def real(self, j):
        if isinstance(j, list):
            return [self.real(x) for x in j]
        return self.values[j["node"]] if isinstance(j, dict) and "node" in j else read(j)

    def call(self, name, target, args, kwargs):
        self.node("call_function", name, target, args, kwargs)
        self.values[name] = packet(target)(*self.real(args), **{k: self.real(v) for k, v in kwargs.items()})
        return self.values[name]

    def item(self, name, of, i):
        self.node("call_function", name, "<built-in function getitem>", [{"node": of}, i])
        self.values[name] = self.values[of][i]

    def finish(self, outputs):
        """The case; None: nothing flows."""
        outs = [self.values[o] for o in outputs]
        self.node("output", "output", "output", [[{"node": o} for o in outputs]])
        roots = [i for i, t in enumerate(outs) if t.requires_grad and t.numel()]
        wanted = [i for i, t in enumerate(self.inputs) if t.requires_grad]
        if not roots:
            return None
        grads = [torch.randn(outs[i].shape, dtype=outs[i].dtype) for i in roots]
        found = torch.autograd.grad([outs[i] for i in roots], [self.inputs[i] for i in wanted], grads,
                                    allow_unused=True)
        found = [g.to_dense() if g is not None and g.is_sparse else g for g in found]
        return {"name": self.name, "dtype": "float64", "nodes": self.nodes,
                "inputs": [plain(t) for t in self.inputs], "outputs": [plain(t) for t in outs],
                "differentiable_outputs": roots, "grad_outputs": [plain(g) for g in grads],
                "grad_inputs_of": wanted, "grad_inputs": [None if g is None else plain(g) for g in found]}


def plain(t):
    return bare(t.detach().resolve_conj().resolve_neg())


def single(target, args, kwargs, refused=()):
    """The case of one call; None where PyTorch has no gradient for it."""
    op, g = packet(target), Graph(target)
    if op is None:
        return None
    names = [a.name for a in op._schema.arguments]
    fixed = set(refused) | set(STATISTICS.get(target.split(".")[1], ()))
    pos = [g.given(lifted(v), n not in fixed) for n, v in zip(names, args)]
    named = {k: g.given(lifted(v), k not in fixed) for k, v in kwargs.items()}
    try:
        out = g.call("call", target, pos, named)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        if any(not isinstance(t, torch.Tensor) for t in outs):
            return None
        for i in range(len(outs)) if isinstance(out, (list, tuple)) else ():
            g.item(f"getitem_{i}", "call", i)
        return g.finish([f"getitem_{i}" for i in range(len(outs))] if isinstance(out, (list, tuple)) else ["call"])
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as e:
        m = re.search(r"not differentiable with respect to argument '(\w+)'", str(e))
        return single(target, args, kwargs, (*refused, m.group(1))) if m and m.group(1) not in refused else None


def shapes(j):
    """What makes two cases alike."""
    text = re.sub(r'"(data|stride)": ("[^"]*"|\[[^]]*\])', "", json.dumps([j["args"], j["kwargs"]]))
    return re.sub("float32|float16|bfloat16", "float64", text).replace("complex64", "complex128")


def known():
    """The shortest cases of each operator that differ in more than numbers."""
    found = {}
    for path in (HANDED[0], os.path.join(here, "recorded.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            for line in f:
                j = json.loads(line)
                if "float" in line or "complex" in line:
                    found.setdefault(j["op"], {}).setdefault(shapes(j), (len(line), line))
    return {op: [json.loads(line) for _, line in sorted(of.values())] for op, of in found.items()}


def recorded():
    cases = known()
    for target, (kind, _, schema, _) in sorted(rows(top).items()):
        if kind == "INPLACE" or LEFT_OUT.match(target.split(".")[1]) or "Tensor" not in schema.split("->")[1]:
            continue
        found = []
        for j in cases.get(target, [])[:40]:
            c = single(target.replace("::", "."), [read(a) for a in j["args"]],
                       {k: read(v) for k, v in j["kwargs"].items()})
            if c and len(json.dumps(c)) < 6000:
                c["nodes"] = [{**n, "target": target} if n["name"] == "call" else n for n in c["nodes"]]
                found.append(c)
            if len(found) == A_ROW:
                break
        yield from found


def main():
    from differentiate_own import own  # noqa: PLC0415
    torch.manual_seed(0)
    cases = [c for c in (*recorded(), *own(Graph, single)) if c]
    with open(os.path.join(here, "differentiated.jsonl.gz"), "wb") as raw:
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as f:
            f.write("".join(json.dumps(c) + "\n" for c in cases).encode())
    print(f"{len(cases)} cases of {len({c['name'] for c in cases})} operators from PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
