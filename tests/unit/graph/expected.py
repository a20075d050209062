"""Writes expected/: what torch.fx prints of the graphs that test_print.c builds, and the names that it gives.

Needs PyTorch and tabulate; the files are committed, so that tests need neither.
usage: python3 expected.py
"""
import contextlib
import io
import operator
import os

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, GraphModule
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

aten = torch.ops.aten
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected")


def placeholder(g, name, target=None):
    node = g.create_node("placeholder", target or name, name=name)
    return node


def call(g, op, *args, **kwargs):
    base = op.overloadpacket.__name__ if hasattr(op, "overloadpacket") else op.__name__
    return g.create_node("call_function", op, args, kwargs, name=g._target_to_str(base))


def save(name, text):
    with open(os.path.join(here, name), "w", encoding="utf-8") as f:
        f.write(text)


def table(g):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        g.print_tabular()
    return out.getvalue()


def readable(g, inputs):
    root = torch.nn.Module()
    for node in g.nodes:
        if node.op == "get_attr":
            setattr(root, node.target, torch.zeros(5))
    gm = GraphModule(root, g)
    if inputs:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            FakeTensorProp(gm, mode).propagate(*inputs)
    return gm.print_readable(print_output=False)


def write(name, build, inputs=()):
    save(name + ".table", table(build(lambda source: source)))
    # torch.compile calls the parameter of an argument a L_a_; the host's target is a itself.
    save(name + ".readable", readable(build(lambda source: f"L_{source}_"), inputs))


def toy_0(target):
    g = Graph()
    a, b = placeholder(g, "a", target("a")), placeholder(g, "b", target("b"))
    x = call(g, aten.div.Tensor, a, call(g, aten.add.Scalar, call(g, aten.abs.default, a), 1))
    g.output((x, call(g, aten.lt.Scalar, call(g, aten.sum.default, b), 0)))
    return g


def toy_1(target):
    g = Graph()
    b, div = placeholder(g, "b", target("b")), placeholder(g, "div", target("div"))
    mul = call(g, aten.mul.Scalar, b, -1)
    g.output((call(g, aten.mul.Tensor, div, mul),))
    return g


def toy_2(target):
    g = Graph()
    b, div = placeholder(g, "b", target("b")), placeholder(g, "div", target("div"))
    g.output((call(g, aten.mul.Tensor, div, b),))
    return g


def relu_cos(target):
    g = Graph()
    g.output((call(g, aten.relu.default, call(g, aten.cos.default, placeholder(g, "x", target("x")))),))
    return g


def cos_sin(target):
    g = Graph()
    x, y = placeholder(g, "x", target("x")), placeholder(g, "y", target("y"))
    g.output((call(g, aten.add.Tensor, call(g, aten.cos.default, x), call(g, aten.sin.default, y)),))
    return g


def mixed(target):
    """A value of each kind, an unused node, a constant, a list, an in-place operator."""
    g = Graph()
    a = placeholder(g, "a", target("a"))
    w = g.create_node("get_attr", "w")
    s = call(g, aten.split_with_sizes.default, a, [5, 5])
    i = call(g, operator.getitem, s, 0)
    j = call(g, aten._to_copy.default, i, dtype=torch.float64, device=torch.device("cpu"),
             memory_format=torch.preserve_format)
    k = call(g, aten.full.default, [2, 3], float("inf"), layout=torch.strided, pin_memory=False)
    e = call(g, aten.mul_.Tensor, j, w)
    call(g, aten.mul_.Tensor, j, 1e-05)
    call(g, aten.mul.Scalar, k, 1 + 2j)
    call(g, aten.mul.Scalar, k, complex(0.0, -2.0))
    call(g, aten.mul.Scalar, k, complex(-0.0, float("nan")))
    call(g, aten.gelu.default, k, approximate="ta\"n'h\n")
    call(g, aten.clone.default, k, memory_format=torch.channels_last)
    call(g, aten.index.Tensor, k, [None, w])
    g.output((e, None, e))
    return g


def names():
    """Candidates and the names that one graph gives them, a pair a line."""
    g, lines = Graph(), []
    wishes = ["add", "add", "abs", "abs", "sum", "max", "x", "x_1", "x", "x", "arg0_1", "arg0_1", "y_7", "y_7", "y",
              "a.b", "a.b", "3d", "a b!c", "_", "_1", "_1", "__x__", "mul_", "mul_", "mul", "mul", "if", "inf",
              "getitem", "getitem", "z_01", "z_1", "z", "output", "len_1", "len", "len", "torch", "device", "t_1_2",
              "t_1", "t_1", "pow_2", "pow", "pow"]
    for wish in wishes:
        lines.append(f"{wish}\t{g._graph_namespace.create_name(wish, None)}\n")
    save("names", "".join(lines))
    g, lines = Graph(), []
    for target in ["aten.add.Scalar", "aten.add.Tensor", "aten.abs.default", "aten.__and__.Scalar",
                   "aten.numpy_T.default", "aten.mH.default", "aten._to_copy.default", "aten.add_.Tensor",
                   "aten.any.dim", "aten.any.dims"]:
        op = getattr(aten, target.split(".")[1])
        name = g._graph_namespace.create_name(g._target_to_str(op.__name__), None)
        lines.append(f"{target}\t{name}\n")
    save("target_names", "".join(lines))


os.makedirs(here, exist_ok=True)
ten = torch.zeros(10)
write("toy_0", toy_0, (ten, ten))
write("toy_1", toy_1, (ten, ten))
write("toy_2", toy_2, (ten, ten))
write("relu_cos", relu_cos, (torch.zeros(3, 4),))
write("cos_sin", cos_sin, (ten, ten))
write("mixed", mixed)
names()
