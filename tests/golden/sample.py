"""Writes derivatives.jsonl: cases for the proof of derivatives of operators that the recorded ones show nothing of (no
float arguments, empty ones, none where a gradient flows). They have no recorded results: differences judge them.
usage: python3 sample.py
"""
import base64
import json
import os
import random
import struct

draw = random.Random(20)


def tensor(shape, values, dtype="float64"):
    """An argument of these values, one or (complex) two an element."""
    stride, n = [], 1
    for size in reversed(shape):
        stride.insert(0, n)
        n *= size
    data = struct.pack(f"<{len(values)}{'q' if dtype == 'int64' else 'i' if dtype == 'int32' else 'd'}", *values)
    return {"tensor": {"dtype": dtype, "shape": shape, "stride": stride, "data": base64.b64encode(data).decode()}}


def floats(*shape, low=-1.0, high=1.0, dtype="float64"):
    n = 2 if dtype == "complex128" else 1
    for size in shape:
        n *= size
    return tensor(list(shape), [round(draw.uniform(low, high), 3) for _ in range(n)], dtype)


def matrix(n, symmetric=False):
    """Far from singular."""
    a = [[round(draw.uniform(-1, 1), 3) + (4 if i == k else 0) for k in range(n)] for i in range(n)]
    return tensor([n, n], [a[max(i, k)][min(i, k)] if symmetric else a[i][k] for i in range(n) for k in range(n)])


def number(x):
    return {"float": repr(float(x))}


def cases():
    yield "angle.default", [floats(4, dtype="complex128")], {}
    for name in "div", "divide":
        yield name + ".Tensor_mode", [floats(3, 2), floats(3, 1, low=1, high=2)], {"rounding_mode": None}
        yield name + ".Scalar_mode", [floats(3, 2), number(1.5)], {"rounding_mode": None}
    yield "remainder.Scalar", [floats(5, low=-3, high=3), number(1.25)], {}
    yield "fmod.Scalar", [floats(5, low=-3, high=3), number(1.25)], {}
    yield "arccosh.default", [floats(5, low=1.5, high=3)], {}
    yield "clip.default", [floats(7), number(-0.5), number(0.5)], {}
    yield "prod.default", [floats(2, 3, low=0.5, high=2)], {}
    yield "to.other", [floats(3), floats(2), False, True], {}
    yield "scatter.value", [floats(3, 3), 1, tensor([3, 1], [2, 0, 1], "int64"), number(2.5)], {}
    yield "linalg_cholesky.default", [matrix(3, True)], {}
    yield "linalg_cholesky.default", [matrix(3, True)], {"upper": True}
    yield "cholesky.default", [matrix(3, True)], {}
    yield "cholesky.default", [matrix(3, True), True], {}
    yield "lu_solve.default", [floats(3, 2), matrix(3), tensor([3], [2, 2, 3], "int32")], {}
    yield "linalg_svdvals.default", [floats(3, 2)], {}
    yield "svd.default", [floats(3, 2)], {}
    yield "linalg_pinv.atol_rtol_float", [floats(3, 2)], {"rtol": number(1e-12)}
    yield "cosine_embedding_loss.default", [floats(4, 3), floats(4, 3), tensor([4], [1.0, -1, 1, -1]), number(-0.9)], {}
    yield "log_sigmoid_forward.default", [floats(5, low=-3, high=3)], {}
    yield "transformers.grouped_mm_fallback.default", [floats(5, 2), floats(3, 2, 3),
                                                       tensor([3], [2, 2, 4], "int32")], {}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "derivatives.jsonl"), "w", encoding="utf-8") as f:
        for op, args, kwargs in cases():
            target = op if op.count(".") == 2 else "aten." + op
            f.write(json.dumps({"op": target, "args": args, "kwargs": kwargs}) + "\n")


main()
