"""Cases of differentiate.py that rules want beside those of operators' samples."""
import torch

D, C = torch.float64, torch.complex128


def r(*sizes, dtype=D):
    return torch.randn(*sizes, dtype=dtype)


def ints(*v):
    return torch.tensor(v)


def strided():
    """Results and inputs that reach an element twice, or skip some."""
    yield "as_strided", [r(3, 4), [3, 3], [1, 2], 1], {}
    yield "as_strided", [r(3, 4), [2, 3, 2], [1, 1, 0]], {}
    yield "as_strided", [r(3, 1).expand(3, 4), [2, 2], [1, 1]], {}
    yield "as_strided", [r(4, 3).t(), [5], [2], 1], {}
    yield "slice.Tensor", [r(4, 6), 0, -3, 100, 2], {}
    yield "slice.Tensor", [r(4, 6), 0, 3, 1, 2], {}
    yield "narrow_copy", [r(4, 6), 1, -2, 2], {}
    yield "unsafe_split_with_sizes", [r(5, 3), [2, 3], 0], {}


def indexed():
    """Repeated indices, masks, ties and zeros."""
    yield "_unsafe_index.Tensor", [r(4, 5), [None, ints([0, 1], [1, 4])]], {}
    for accumulate in (False, True):
        yield "_unsafe_index_put", [r(4, 5), [ints(0, 0), ints(2, 2)], r(2), accumulate], {}
        yield "put", [r(4, 5), ints(0, 7, 7), r(3), accumulate], {}
    yield "index_put", [r(4, 5), [ints(0, 0, 1), ints(2, 2, 3)], r(1)], {}
    yield "index_put", [r(4, 5), [r(4, 5) > 0], r(1)], {}
    yield "index_put", [r(4, 5), [r(4) > 0], r(5), True], {}
    yield "index_put", [r(3, 4, 5), [None, r(4) > 0], r(3, 1, 1)], {}
    yield "index_put", [r(3, 4, 5), [r(3, 4) > 0], torch.tensor(0.5, dtype=D)], {}
    yield "index.Tensor", [r(4, 5), [r(4) > 0]], {}
    yield "index_fill.int_Tensor", [r(4, 5), 1, ints(1, 1, 3), torch.tensor(2.0, dtype=D)], {}
    yield "scatter.value", [r(4, 5), 1, ints([0, 1], [2, 2]), 2.5], {}
    for padding in (-1, 1):
        yield "embedding_dense_backward", [r(5, 3), ints(0, 1, 1, 2, 0), 4, padding, False], {}
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            for whole in (False, True):
                self, source = (t.round() if whole else t for t in (r(3, 5), r(4, 5)))
                named = {"include_self": include}
                yield "scatter_reduce.two", [self, 0, torch.randint(0, 3, (4, 5)), source, how], named
                yield "index_reduce", [self, 0, ints(0, 2, 2, 0), source, how], named


def spectra():
    """Halves of even and odd spectra."""
    yield "_fft_c2r", [r(3, 5, dtype=C), [0, 1], 2, 8], {}
    yield "_fft_c2r", [r(3, 4, dtype=C), [1], 1, 7], {}
    yield "_fft_r2c", [r(3, 7), [0, 1], 2, True], {}
    yield "_fft_r2c", [r(3, 8), [1], 0, False], {}


def products(dtype):
    scaled = {"beta": 0.5, "alpha": 2}
    yield "addmm", [r(2, 4, dtype=dtype), r(2, 3, dtype=dtype), r(3, 4, dtype=dtype)], scaled
    yield "addbmm", [r(2, 4, dtype=dtype), r(5, 2, 3, dtype=dtype), r(5, 3, 4, dtype=dtype)], scaled
    yield "baddbmm", [r(1, 4, dtype=dtype), r(5, 2, 3, dtype=dtype), r(5, 3, 4, dtype=dtype)], scaled
    yield "addmv", [r(2, dtype=dtype), r(2, 3, dtype=dtype), r(3, dtype=dtype)], scaled
    yield "addr", [r(2, 3, dtype=dtype), r(2, dtype=dtype), r(3, dtype=dtype)], scaled
    yield "vdot", [r(3, dtype=dtype), r(3, dtype=dtype)], {}
    yield "linalg_cross", [r(2, 3, dtype=dtype), r(2, 3, dtype=dtype)], {}


def factors(dtype):
    """Square, tall and wide; each option."""
    for m, n in ((3, 3), (4, 3), (3, 5)):
        yield "linalg_lu_factor_ex", [r(2, m, n, dtype=dtype)], {}
        yield "linalg_lu", [r(m, n, dtype=dtype)], {}
        yield "linalg_qr", [r(2, m, n, dtype=dtype)], {}
        yield "linalg_pinv.atol_rtol_tensor", [r(2, m, n, dtype=dtype)], {}
        yield "linalg_lstsq", [r(2, m, n, dtype=dtype), r(2, m, 2, dtype=dtype)], {}
    h = r(2, 3, 3, dtype=dtype)
    lower = torch.linalg.cholesky(h @ h.mH + torch.eye(3, dtype=dtype))
    for upper in (True, False):
        factor = lower.mH.contiguous() if upper else lower
        yield "cholesky_solve", [r(2, 3, 2, dtype=dtype), factor, upper], {}
        yield "cholesky_inverse", [factor, upper], {}
        yield "linalg_cholesky_ex", [lower @ lower.mH], {"upper": upper}
    for m, n, k in ((4, 3, 3), (5, 4, 2), (3, 3, 3)):
        kept, tau = r(2, m, n, dtype=dtype), r(2, k, dtype=dtype)
        yield "linalg_householder_product", [kept, tau], {}
        for transpose in (False, True):
            yield "ormqr", [kept[..., :k].contiguous(), tau, r(2, m, 2, dtype=dtype), True, transpose], {}
            yield "ormqr", [kept[..., :k].contiguous(), tau, r(2, 2, m, dtype=dtype), False, transpose], {}
    yield "linalg_matrix_exp", [r(2, 3, 3, dtype=dtype)], {}


def systems(dtype):
    a = r(2, 3, 3, dtype=dtype)
    lu, pivots = torch.linalg.lu_factor(a)
    for left in (True, False):
        yield "_linalg_solve_ex", [a, r(2, 3, 3, dtype=dtype)], {"left": left}
        for adjoint in (True, False):
            named = {"left": left, "adjoint": adjoint}
            yield "linalg_lu_solve", [lu, pivots, r(2, 3, 3, dtype=dtype)], named
            yield "linalg_lu_solve", [lu[0], pivots[0], r(2, 3, 3, dtype=dtype)], named
    yield "_linalg_solve_ex", [a, r(2, 3, dtype=dtype)], {}
    yield "_linalg_solve_ex", [a, r(3, dtype=dtype)], {}
    yield "_linalg_det", [a], {}
    yield "_linalg_slogdet", [a], {}
    for upper in (True, False):
        for other in (True, False):
            for unit in (True, False):
                yield "triangular_solve", [r(2, 3, 2, dtype=dtype), a, upper, other, unit], {}
                named = {"upper": upper, "left": other, "unitriangular": unit}
                yield "linalg_solve_triangular", [a, r(2, 3, 3, dtype=dtype)], named


def images():
    """Gradients of gradients: convolutions of every kind, samples at all places that a grid can say."""
    for transposed in (False, True):
        for groups in (1, 2):
            x, w = r(2, 4, 5, 5), r(4, 4 // groups, 2, 2)
            rest = [[2, 1], [1, 0], [1, 2], transposed, [1, 0] if transposed else [0, 0], groups]
            out = torch.ops.aten.convolution.default(x, w, None, *rest)
            yield "convolution", [x, w, r(out.shape[1]), *rest], {}
            yield "convolution_backward", [r(*out.shape), x, w, [out.shape[1]], *rest, [True, True, True]], {}
    for mode in (0, 1, 2):
        for padding in (0, 1, 2):
            for align in (True, False):
                places = torch.rand(2, 3, 3, 2, dtype=D) * 2.4 - 1.2
                rest = [mode, padding, align, [True, True]]
                yield "grid_sampler_2d_backward", [r(2, 2, 3, 3), r(2, 2, 4, 5), places, *rest], {}
                if mode < 2:
                    places = torch.rand(1, 3, 2, 2, 3, dtype=D) * 2.4 - 1.2
                    yield "grid_sampler_3d_backward", [r(1, 2, 3, 2, 2), r(1, 2, 4, 5, 3), places, *rest], {}
    yield "replication_pad3d_backward", [r(1, 2, 6, 5, 5), r(1, 2, 3, 3, 3), [1, 1, 2, 0, 1, 2]], {}
    yield "reflection_pad3d_backward", [r(1, 2, 6, 5, 5), r(1, 2, 3, 3, 3), [1, 1, 2, 0, 1, 2]], {}


def squared(g, name):
    """|name|^2, which no sign or phase changes."""
    g.call(name + "_c", "aten.conj_physical.default", [{"node": name}], {})
    g.call(name + "_2", "aten.mul.Tensor", [{"node": name}, {"node": name + "_c"}], {})
    return name + "_2"


def invariant(graph, target, a, args, results, vectors):
    """A factorization, of which vectors are squared."""
    g = graph(target)
    g.call("call", target, [g.given(a), *args], {})
    for i, name in enumerate(results):
        g.item(name, "call", i)
    return g.finish([squared(g, n) if n in vectors else n for n in results])


def free_factors(graph):
    for dtype in (D, C):
        for m, n in ((3, 3), (5, 3), (3, 5)):
            yield invariant(graph, "aten._linalg_svd.default", r(2, m, n, dtype=dtype), [False, True], "usv", "uv")
        a = r(2, 4, 4, dtype=dtype)
        for side in "LU":
            yield invariant(graph, "aten._linalg_eigh.default", a + a.mH, [side, True], "lv", "v")
        yield invariant(graph, "aten.linalg_eig.default", a + a.mH + r(2, 4, 4, dtype=dtype) * 0.1, [], "lv", "v")


def own(graph, single):
    for found in (strided(), indexed(), spectra(), products(D), products(C), factors(D), factors(C), systems(D),
                  systems(C), images()):
        for name, args, kwargs in found:
            yield single(f"aten.{name}" if "." in name else f"aten.{name}.default", args, kwargs)
    yield from free_factors(graph)
