"""Tensors, reference kernels and the context of the model: everything that eager needs, and what a fake handle is.

Tensors are 1-d views (offset, length, stride) of a storage. Kernels take and give numpy arrays.
"""
import functools
import struct
import numpy as np

LITERAL = set()
# how many: outcomes of a break, breaks of a path, growths of a list, variants of a node, captures
LIMITS = {"outcomes": 8, "breaks": 64, "growths": 4, "variants": 8, "captures": 1024}


class UserError(Exception): "the captured function's own mistake, for example an index beyond a size"
class DataError(UserError): "such a mistake that depends on values, for example an index out of range"
class Impure(Exception): "a replayed prefix differs from the recorded one"
class BackendFailed(Exception): "one link failed"
class NoAnswer(Exception): "no link answers this segment"
class Limit(Exception): "an open break, or a limit that forbids another capture"
class Stop(Exception): "ends a capture: at an opaque step not yet run, at break 65, at a value that cannot be had"


# ---- tensors and reference kernels -----------------------------------------------------------------------
DTYPE = {"b": np.bool_, "i": np.int64, "f": np.float64}


class Storage:
    def __init__(self, data): self.data, self.dtype = data, data.dtype.kind


class T:
    """A real tensor: a strided view of a storage."""
    def __init__(self, storage, off, n, stride=1):
        self.storage, self.off, self.n, self.stride, self.dtype = storage, off, n, stride, storage.dtype
    def span(self): return self.off, self.off + (self.n - 1) * self.stride + 1
    def arr(self): return self.storage.data[self.span()[0]:self.span()[1]:self.stride]


@functools.lru_cache(maxsize=None)
def philox(seed, offset):
    """Philox4x32-10: number `offset` of a seed, in [0, 1)."""
    mask = 0xffffffff
    k0, k1, x0, x1, x2, x3 = seed & mask, seed >> 32, offset & mask, offset >> 32, 0, 0
    for _ in range(10):
        a, b = 0xd2511f53 * x0, 0xcd9e8d57 * x2
        x0, x1, x2, x3 = b >> 32 ^ x1 ^ k0, b & mask, a >> 32 ^ x3 ^ k1, a & mask
        k0, k1 = k0 + 0x9e3779b9 & mask, k1 + 0xbb67ae85 & mask
    return (x0 << 32 | x1) >> 11


class Generator:
    """Number k of a seed depends on (seed, k) only."""
    def __init__(self, seed): self.seed, self.offset = seed, 0
    @staticmethod
    def draw(seed, offset, n): return np.array([philox(seed, offset + i) for i in range(n)]) * 2.0 ** -53


def num(a): return a.astype(np.int64) if a.dtype.kind == "b" else a


def k_sum(a, plain=False):
    """The reference carries rounding errors along (Neumaier); another backend just adds."""
    if a.dtype.kind != "f": return np.array([num(a).sum()])
    total = rest = 0.0
    for v in a.tolist():
        s = total + v
        rest += (total - s) + v if abs(total) >= abs(v) else (v - s) + total
        total = s
    return np.array([total if plain else total + rest])


def k_view(at, a): return a[at[0]:at[0] + (at[1] - 1) * at[2] + 1:at[2]]


def k_scatter(at, base, val):
    out = base.copy()
    k_view(at, out)[:] = val
    return out


def k_index(at, a, i):
    if not 0 <= i[0] < len(a): raise DataError("index out of range")
    return num(a[i[0]:i[0] + 1].copy())


KERNEL = {  # op -> function of (attributes, arrays...)
    "add": lambda at, a, b: num(a) + num(b), "mul": lambda at, a, b: num(a) * num(b), "lt": lambda at, a, b: a < b,
    "where": lambda at, p, a, b: np.where(p, num(a), num(b)), "sum": lambda at, a: k_sum(a), "index": k_index,
    "cast": lambda at, a: a.astype(DTYPE[at[0]]), "to": lambda at, a: a.astype(DTYPE[at[0]]),
    "cumsum": lambda at, a: np.cumsum(num(a)) + 0,
    "clone": lambda at, a: a.copy(), "contig": lambda at, a: a.copy(), "scatter": k_scatter, "put": k_scatter,
    "expand": lambda at, a: np.broadcast_to(a, (at[0],)).copy(), "view": lambda at, a: k_view(at, a).copy(),
    "part": lambda at, a: k_view(at, a).copy(),
    "full": lambda at: np.full(at[0], float(at[1]) if at[2] == "f" else int(at[1]), DTYPE[at[2]])}
# row flags: may be recomputed; may fail on data; draws random numbers. The last two are never dead.
CHEAP = set("add mul lt where clone contig cast to expand full view part scatter put".split())
CHECKS, RANDOM = {"index"}, {"rand"}


def meta(op, at, ms):
    """Shape and dtype rule of an operator: ms and the result are (dtype, n, stride)."""
    if op in ("add", "mul", "lt", "where"):
        sizes = {n for _, n, _ in ms if n != 1}
        if len(sizes) > 1: raise UserError(f"{op}: sizes {sorted(sizes)}")
        d = max((d for d, _, _ in ms[-2:]), key="bif".index)
        return ("b" if op == "lt" else "i" if d == "b" else d), (sizes.pop() if sizes else 1), 1
    if op in ("sum", "index", "cumsum"):
        return ("f" if ms[0][0] == "f" else "i"), ms[0][1] if op == "cumsum" else 1, 1
    if op == "full": return at[2], at[0], 1
    if op == "rand": return "f", at[0], 1
    d, n, stride = ms[0]
    if op in ("view", "part"): return d, at[1], stride * at[2]
    if op == "expand": return d, at[0], 0
    keeps = op == "scatter" and stride or n == 1 and op not in ("contig", "put")    # one element is dense anyhow
    return (at[0] if op in ("cast", "to") else d), n, (stride if keeps else 1)


def bits(kind, v):
    """A typed outcome: bool, int, or float by its bits with one NaN."""
    v = {"b": bool, "i": int, "f": float}[kind](v.item())
    return kind, v if kind != "f" else "nan" if v != v else struct.pack("d", v).hex()


def unbits(o):
    if o[0] != "f": return o[1]
    return float("nan") if o[1] == "nan" else struct.unpack("d", bytes.fromhex(o[1]))[0]


def const(v): return "c", "f" if isinstance(v, float) else "i", repr(v)
def const_array(ref): return np.array([float(ref[2]) if ref[1] == "f" else int(ref[2])])


class H:
    """A fake handle: a view of a fake storage, of handle `parent` by `at`. root: the input that it is a view of; its
    offset then counts from that input. dead: the scope that owned it has ended."""
    def __init__(self, hid, fs, root, geometry, t, parent, at):
        self.hid, self.fs, self.root, self.t, self.parent, self.at, self.dtype = hid, fs, root, t, parent, at, fs.dtype
        (self.off, self.n, self.stride), self.dead = geometry, False
    def bind(self):
        self.t = self.t or T(self.source.storage, self.source.off + self.off, self.n, self.stride)
        return self.t


# ---- the context: every operator, eager or recorded ------------------------------------------------------
class World:
    """What a call can touch besides its inputs: generator, effects, things stashed by disabled functions, a global
    flag, and the grad mode."""
    def __init__(self, seed):
        self.gen, self.effects, self.stash, self.flag, self.grad = Generator(seed), [], [], False, True
        self.inside = None                          # the nested callable that a disabled function may call
        self.busy = False                           # another thread captures or compiles in this callable


class Ctx:
    """host: whose nested callables are called; None: their functions run as they are."""
    def __init__(self, world, tracer=None, answers=None, host=None):
        self.world, self.tr, self.answers, self.host, self.peak, self.said = world, tracer, answers, host, 1.0, []
    def real(self, h): return h.bind() if isinstance(h, H) else h
    def meta(self, h): return (h.dtype, h.n, h.stride) if isinstance(h, (T, H)) else (const(h)[1], 1, 1)
    def op(self, name, ins, at=()):
        m = meta(name, at, [self.meta(h) for h in ins])
        if self.tr:
            return self.tr.new(self.tr.node(name, [self.tr.operand(h) for h in ins], at), m)
        ts = [self.real(h) for h in ins]
        v = draw(self.world, at[0])[0].arr() if name == "rand" else \
            KERNEL[name](at, *[t.arr() if isinstance(t, T) else np.array([t]) for t in ts])
        if v.dtype.kind != "b": self.peak = max(self.peak, float(np.abs(v).max()))
        return T(Storage(v), 0, len(v), m[2])
    def view(self, a, off, n, step=1):
        if off < 0 or n < 1 or off + (n - 1) * step >= a.n: raise UserError("view out of range")
        if not self.tr:
            a = self.real(a)
            return T(a.storage, a.off + off * a.stride, n, step * a.stride)
        h = self.tr.handle(a.fs, a.root, a.off + off * a.stride, n, step * a.stride, parent=a, at=(off, n, step))
        self.tr.read(h)                             # recorded where it was called
        return h
    def copy_(self, a, v):
        if v.n not in (1, a.n): raise UserError("in place: size")
        self.check_apart(a, v)
        if self.tr: self.tr.store(a, self.tr.read(v))
        else: self.real(a).arr()[:] = self.real(v).arr().astype(DTYPE[a.dtype])
        return a
    def inplace(self, name, a, b):
        """An in-place row: its functional row and a write; eager writes at once."""
        m = meta(name, (), [self.meta(a), self.meta(b)])
        if m[0] != a.dtype: return self.copy_(a, self.op(name, [a, b]))
        if m[1] != a.n: raise UserError("in place: size")
        self.check_apart(a, b)
        if self.tr: self.tr.store(a, self.tr.node(name, [self.tr.operand(h) for h in (a, b)], ()))
        else: self.copy_(a, self.op(name, [a, b]))
        return a
    def check_apart(self, a, b):
        """Eager refuses to write a in place from what shares some of its memory, unless they are laid out alike."""
        if not isinstance(b, (T, H)): return
        (x, *g), (y, *h) = self.whereabouts(a), self.whereabouts(b)
        if x is y and g != h and g[0] <= h[0] + (h[1] - 1) * h[2] and h[0] <= g[0] + (g[1] - 1) * g[2]:
            if self.tr: self.tr.guard(a.fs)         # the error depends on it
            raise UserError("an operand shares some of the memory that is written")
    def whereabouts(self, h):
        if not self.tr: h = self.real(h)
        if isinstance(h, T): return h.storage, h.off, h.n, h.stride
        if h.root is None: return h.fs, h.off, h.n, h.stride
        a = self.tr.inputs[h.root]
        return a.storage, a.off + h.off, h.n, h.stride
    def ask(self, kind, a):
        if a.n != 1: raise UserError("item of a tensor with more than one element")
        if self.tr: return self.tr.ask(kind, a)
        self.said.append(self.answers.pop(0) if self.answers else unbits(bits(kind, self.real(a).arr())))
        return self.said[-1]
    def disabled(self, name, *hs):
        """An opaque step: a disabled function, an effectful or a refused operator. Returns a list of tensors."""
        return self.tr.opaque(name, hs) if self.tr else OPAQUE[name](self.world, *[self.real(h) for h in hs])
    def call(self, sub, which, *hs):
        """A nested callable: inlined under capture; elsewhere its own host runs it, or eager its function."""
        if self.tr or not self.host: return self.scope(lambda: sub(self, Frame(hs)))
        nested = self.host.nested(which, sub)
        try: return nested([self.real(h) for h in hs])
        finally: self.said += nested.answers()
    def scope(self, run):
        """What run makes and does not give back dies with its scope."""
        mark = len(self.tr.handles) if self.tr else 0
        outs = run()
        for h in self.tr.handles[mark:] if self.tr else (): h.dead = h.dead or all(h is not o for o in outs)
        return outs
    def set_grad(self, on): self.world.grad, old = on, self.world.grad; return old
    def cast(self, a, d): return a if a.dtype == d else self.op("to", [a], (d,))
    def rand(self, n): return self.op("rand", [], (n,))
    def full(self, n, v): return self.op("full", [], (n, repr(v), const(v)[1]))
    def add_(self, a, b): return self.inplace("add", a, b)
    def mul_(self, a, b): return self.inplace("mul", a, b)
    def print(self, a): self.disabled("print", a)


for _op in "add mul lt where index sum cumsum clone".split():
    setattr(Ctx, _op, lambda self, *ins, op=_op: self.op(op, ins))
for _op in ("is_true", "item_int", "item_float"):
    setattr(Ctx, _op, lambda self, a, kind={"is_true": "b"}.get(_op, _op[5]): self.ask(kind, a))


def fresh(v): return [T(Storage(v), 0, len(v))]
def bump(t): return t is not None and t.dtype != "b" and np.add(t.arr(), 1, out=t.arr()) is None or []
def draw(w, n): w.gen.offset += n; return fresh(Generator.draw(w.gen.seed, w.gen.offset - n, n))


OPAQUE = {"print": lambda w, a: w.effects.append(("print", a.arr().tolist())) or [],
          "count": lambda w, a: w.effects.append(("count",)) or fresh(num(a.arr()) + 1),
          "mutate": lambda w, a: bump(a), "alias": lambda w, a: [T(a.storage, a.off, (a.n + 1) // 2, a.stride)],
          "same": lambda w, a: [a],
          "stash": lambda w, a: w.stash.append(a) or w.stash.__delitem__(slice(0, -3)) or [],
          "getstash": lambda w, a: [w.stash[-1]] if w.stash else [a], "draw": lambda w, a: draw(w, a.n),
          "poke": lambda w, a: bump(w.stash[-1] if w.stash else None), "inside": lambda w, a: w.inside([a, a])[:1]}


class Frame:
    def __init__(self, args): self.args = args
    def arg(self, i): return self.args[i]
