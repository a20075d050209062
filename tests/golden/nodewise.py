#!/usr/bin/env python3
"""Graphs of a golden file whose recorded outputs are not what their nodes compute.

The files record what the operator gave before it was decomposed. In half precision a decomposition may round at other
steps, so that PyTorch itself, running the graph node by node, misses the bound of FORMAT.md. For those graphs this
script prints PyTorch's own node-by-node outputs as rows of host/tools/golden_nodewise.def. The runner knows such a case
by the CRC and the length of its line, compares with these outputs at the same bounds, and counts it apart.

    python3 nodewise.py graphs_handed.jsonl.gz      (needs PyTorch)
"""
import base64
import gzip
import json
import operator
import sys
import zlib

import torch

BOUNDS = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5)}
ACCUMULATES = ("mm", "bmm", "conv", "sum", "mean", "norm", "softmax", "cumsum", "pool", "addmm", "addmv", "baddbmm",
               "var")


def tensor(t):
    dtype, raw = getattr(torch, t["dtype"]), bytearray(base64.b64decode(t["data"]))
    if not raw:
        return torch.empty_strided(t["shape"], t["stride"], dtype=dtype)
    return torch.as_strided(torch.frombuffer(raw, dtype=dtype), t["shape"], t["stride"])


def record(t):
    nbytes = t.untyped_storage().nbytes() and (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())))
    flat = torch.as_strided(t, (nbytes if t.numel() else 0,), (1,))
    data = bytes(flat.contiguous().view(torch.uint8).numpy()) if t.numel() else b""
    return {"dtype": str(t.dtype)[6:], "shape": list(t.shape), "stride": list(t.stride()),
            "data": base64.b64encode(data).decode()}


def value(v, env):
    if isinstance(v, list):
        return [value(x, env) for x in v]
    if not isinstance(v, dict):
        return v
    (kind, x), = v.items()
    return {"node": lambda: env[x], "tensor": lambda: tensor(x), "float": lambda: float(x), "int": lambda: int(x),
            "dtype": lambda: getattr(torch, x), "device": lambda: torch.device(x), "layout": lambda: torch.strided,
            "memory_format": lambda: getattr(torch, x.replace("torch.", ""))}[kind]()


def function(target):
    if target == "<built-in function getitem>":
        return operator.getitem
    space, name, overload = target.split(".")
    return getattr(getattr(getattr(torch.ops, space), name), overload)


def run(case):
    env, inputs = {}, iter(case["inputs"])
    for n in case["nodes"]:
        if n["op"] == "placeholder":
            env[n["name"]] = tensor(next(inputs))
        elif n["op"] == "get_attr":
            env[n["name"]] = tensor(case["constants"][n["name"]])
        elif n["op"] == "output":
            return value(n["args"][0], env)
        else:
            kwargs = {k: value(v, env) for k, v in n["kwargs"].items()}
            env[n["name"]] = function(n["target"])(*value(n["args"], env), **kwargs)


def differs(got, want, tenfold):
    if want.dtype not in BOUNDS or got.shape != want.shape or got.dtype != want.dtype:
        return False
    rtol, atol = (b * (10 if tenfold else 1) for b in BOUNDS[want.dtype])
    return not torch.allclose(got.double(), want.double(), rtol=rtol, atol=atol, equal_nan=True)


def print_row(raw, case, answer):
    text = json.dumps(answer, separators=(",", ":")).replace('"', '\\"')
    print(f'GOLDEN_NODEWISE(0x{zlib.crc32(raw):08x}, {len(raw)}, "{case["name"]} {case["dtype"]}",')
    pieces = [text[i:i + 110] for i in range(0, len(text), 110)]
    for i in range(len(pieces) - 1):  # no piece may end between a backslash and what it escapes
        if pieces[i].endswith("\\"):
            pieces[i], pieces[i + 1] = pieces[i][:-1], "\\" + pieces[i + 1]
    print("\n".join(f'    "{piece}"' for piece in pieces) + ")")


def main():
    torch.set_num_threads(1)
    for line, text in enumerate(gzip.open(sys.argv[1], "rt"), 1):
        case = json.loads(text)
        if case["dtype"] not in ("float16", "bfloat16"):
            continue
        tenfold = any(word in n["target"] for n in case["nodes"] if n["op"] == "call_function" for word in ACCUMULATES)
        try:
            outputs = run(case)
        except Exception as e:  # an operator of another build: nothing to say about this graph
            print(f"line {line}: {type(e).__name__}", file=sys.stderr)
            continue
        if any(differs(o, tensor(w), tenfold) for o, w in zip(outputs, case["outputs"])):
            print_row(text.rstrip("\n").encode(), case, {"outputs": [record(o) for o in outputs]})


main()
