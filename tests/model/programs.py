"""Random programs for the model: making, running, checking against eager, writing them as texts (README.md).

A program is a C function, or a few, over a pool of registers: r0 .. r7 hold tensors, k0 and k1 numbers. The host does
not see the registers. At the start register i holds argument i modulo the number of arguments, and numbers are 2.
"""
import argparse
import gzip
import os
import random
import sys
import numpy as np
import capture_model as model
from capture_model import Host, Link
from eager import Ctx, DTYPE, Frame, Generator, LIMITS, LITERAL, NoAnswer, OPAQUE, Storage, T, UserError, World

REGISTERS, NUMBERS = 8, 2
BOUND = 2.0 ** 36       # larger numbers are not tried: they would overflow sooner or later
DEFAULTS = dict(LIMITS)


# ---- statements ------------------------------------------------------------------------------------------
class Stmt:
    """words of one line, and the blocks that hang below it."""
    def __init__(self, words, *blocks): self.words, self.blocks = words.split(), list(blocks)


class Program:
    def __init__(self, mode="exact"):
        self.mode, self.fns, self.links = mode, [], []      # fns: (arguments, block, registers given back)
        self.limits, self.segments, self.buffers = dict(DEFAULTS), 256, 0
    def statements(self): return [s for _, block, _ in self.fns for s in each(block)]
    def words(self):
        return {s.words[2] if len(s.words) > 2 and s.words[1] == "=" else s.words[0] for s in self.statements()}


def each(block):
    for s in block:
        yield s
        for b in s.blocks: yield from each(b)


def literal(x): return float(x) if set(x) & set(".en") else int(x)
def register(x): return int(x[1:]) if x[0] == "r" else None


class Run:
    """One run of function `which`: the interpreter that harness.c has in C."""
    def __init__(self, p, which, c, f):
        self.p, self.c, self.which = p, c, which
        nargs = p.fns[which][0]
        self.r, self.k = [f.arg(i % nargs) for i in range(REGISTERS)], [2] * NUMBERS
    def number(self, x): return self.k[int(x[1:])] if x[0] == "k" else literal(x)
    def operand(self, x, a, into=False):
        """A register that does not fit beside a stands for a itself. c3 is a copy of r3, and so is r3 beside what is
        written where their elements lie apart."""
        if x[0] not in "rc": return self.number(x)
        b = self.r[int(x[1:])]
        if not into: return b if b.n in (1, a.n) or a.n == 1 else a
        b = b if b.n in (1, a.n) else a
        return self.c.clone(b) if x[0] == "c" or b.stride != 1 and b.n > 1 or a.stride != 1 and a.n > 1 else b
    def mid(self, a): return a if a.n == 1 else self.c.view(a, a.n // 2, 1)
    def small(self, how, a): return self.c.sum(a) if how == "sum" else self.mid(a)
    def go(self):
        _, block, given = self.p.fns[self.which]
        grad = self.c.world.grad
        try: self.block(block)
        finally: self.c.world.grad = grad
        return [self.r[i] for i in given]
    def block(self, block):
        for s in block:
            w = s.words
            if len(w) > 1 and w[1] == "=": self.assign(w, s)
            else: getattr(self, "do_" + w[0].rstrip("_") + "_in" * w[0].endswith("_"))(w, s)
    def assign(self, w, s):
        if w[0][0] == "k": self.k[int(w[0][1:])] = getattr(self, "ask_" + w[2])(w, s)
        elif len(w) == 3: self.r[register(w[0])] = self.r[register(w[2])]
        else: self.r[register(w[0])] = getattr(self, "make_" + w[2])(self.tensor(w[3]), w[3:])
    def tensor(self, x): return self.r[register(x)] if x[0] == "r" else None
    # -- values
    def make_add(self, a, w): return self.c.add(a, self.operand(w[1], a))
    def make_mul(self, a, w): return self.c.mul(a, self.operand(w[1], a))
    def make_sum(self, a, w): return self.c.sum(a)
    def make_cumsum(self, a, w): return self.c.cumsum(a)
    def make_clone(self, a, w): return self.c.clone(a)
    def make_int(self, a, w): return self.c.cast(a, "i")
    def make_view(self, a, w):
        off, step = int(w[1]) % a.n, int(w[2]) % 2 + 1
        return self.c.view(a, off, (a.n - off - 1) // step + 1, step)
    def make_risky(self, a, w):
        k = self.number(w[1])
        return self.c.view(a, k % 5 if isinstance(k, int) else 0, 1)
    def make_where(self, a, w): return self.c.where(self.c.lt(a, self.number(w[1])), a, self.operand(w[2], a))
    def make_index(self, a, w): return self.c.index(a, self.c.cast(self.c.view(self.r[register(w[1])], 0, 1), "i"))
    def make_rand(self, a, w): return self.c.rand(int(w[0]))
    def make_full(self, a, w): return self.c.full(a.n, self.number(w[1]))
    def make_call(self, a, w):
        which, args = int(w[0]), [self.r[register(x)] for x in w[1:]]
        return self.c.call(function(self.p, which), which, *args)[0]
    def make_opaque(self, a, w):
        outs = self.c.disabled(w[0], self.r[register(w[1])])
        return outs[0] if outs else self.r[register(w[1])]
    # -- writes
    def do_add_in(self, w, s): a = self.tensor(w[1]); self.c.add_(a, self.operand(w[2], a, True))
    def do_mul_in(self, w, s): a = self.tensor(w[1]); self.c.mul_(a, self.operand(w[2], a, True))
    def do_copy_in(self, w, s): a = self.tensor(w[1]); self.c.copy_(a, self.operand(w[2], a, True))
    def do_swap(self, w, s):
        a, b = self.tensor(w[1]), self.tensor(w[2])
        if a.n != b.n: return
        old = self.c.clone(a)
        self.c.copy_(a, self.c.clone(b))
        self.c.copy_(b, old)
    # -- questions
    def do_if(self, w, s):
        p = self.c.lt(self.small(w[1], self.tensor(w[2])), literal(w[4]))
        self.block(s.blocks[0] if self.c.is_true(p) else s.blocks[1])
    def do_again(self, w, s):                       # the same version asked twice; a constant asked
        a = self.tensor(w[2])
        p = self.c.lt(self.mid(a), 0.25)
        if self.c.is_true(p) and self.c.is_true(p) and self.c.is_true(self.c.lt(self.c.full(1, 0.5), 1)):
            self.r[register(w[1])] = self.c.mul(a, -1)
    def do_loop(self, w, s):
        t, k = self.c.sum(self.tensor(w[2])), 0
        while k < int(w[3]) and self.c.is_true(self.c.lt(t, 3)):
            t, k = self.c.add(self.c.mul(t, 2), 1), k + 1
            self.block(s.blocks[0])
        self.r[register(w[1])] = t
    def ask_item(self, w, s): return self.c.item_int(self.c.cast(self.small(w[3], self.tensor(w[4])), "i"))
    def ask_float(self, w, s):
        x = self.c.item_float(self.c.mul(self.small(w[3], self.tensor(w[4])), 1.0))
        return x if abs(x) < 8 else 1.5
    def do_switch(self, w, s): k = self.number(w[1]); self.block(s.blocks[int(k) % 2])
    def do_times(self, w, s):
        for _ in range(int(self.number(w[1])) % 3): self.block(s.blocks[0])
    # -- the world
    def do_flag(self, w, s):
        if self.c.world.flag: self.block(s.blocks[0])       # an impure function
    def do_nograd(self, w, s):
        old = self.c.set_grad(False)
        self.block(s.blocks[0])
        self.c.set_grad(old)
    def do_scope(self, w, s):                       # what is made inside dies, and registers are what they were
        self.r, old = list(self.r), self.r
        self.c.scope(lambda: self.block(s.blocks[0]) or [])
        self.r = old
    def do_print(self, w, s): self.c.print(self.tensor(w[1]))


def function(p, which=0): return lambda c, f: Run(p, which, c, f).go()


# ---- random programs -------------------------------------------------------------------------------------
class Maker:
    """Statements at random. In mode another sums are compared with numbers that rounding decides."""
    def __init__(self, r, mode):
        self.r, self.mode, self.depth = r, mode, 0
        kinds = "bin bin scalar sum cumsum clone view view assign inplace inplace inplace if if if".split()
        for extra in "rand full swap loop item float times opaque opaque again risky nograd scope call".split():
            if r.random() < 0.35: kinds += [extra] * r.randint(1, 3)
        if mode != "another": kinds += (["where", "int"] + ["index"] * r.randint(0, 2)) * (r.random() < 0.5)
        else: kinds += ["float"] * r.randint(0, 2) + ["if"] * 2
        self.kinds, self.calls = kinds + ["flag"] * 2 * (mode == "impure"), "call" in kinds
        self.limit = (0.30000000000000004, 0, 0.6000000000000001) if mode == "another" else (0.25, 0, 0.5)
    def reg(self): return f"r{self.r.randrange(REGISTERS)}"
    def how(self): return "sum" if self.mode == "another" else self.r.choice(("mid", "mid", "sum"))
    def number(self): return self.r.choice(("-1", "2", "0.5", f"k{self.r.randrange(NUMBERS)}"))
    def read(self): return self.reg() if self.r.random() < 0.3 else "c" + self.reg()[1:]
    def block(self, depth):
        out = []
        for _ in range(self.r.choice((1, 2, 2, 3, 4)) if depth else self.r.randint(4, 10)):
            kind = self.r.choice(self.kinds)
            nested = kind in ("if", "loop", "times", "flag", "nograd", "scope")
            if depth < 3 or not nested: out += getattr(self, "a_" + kind)(*[self.block(depth + 1)] if nested else ())
            if kind == "if" and depth < 3 and self.r.random() < 0.5: out[-1].blocks[1] = self.block(depth + 1)
        return out
    def put(self, words): return [Stmt(f"{self.reg()} = {words}")]
    def a_bin(self): return self.put(f"{self.r.choice(('add', 'add', 'mul'))} {self.reg()} {self.reg()}")
    def a_scalar(self): return self.put(f"{self.r.choice(('add', 'mul'))} {self.reg()} {self.number()}")
    def a_sum(self): return self.put(f"sum {self.reg()}")
    def a_cumsum(self): return self.put(f"cumsum {self.reg()}")
    def a_clone(self): return self.put(f"clone {self.reg()}")
    def a_int(self): return self.put(f"int {self.reg()}")
    def a_view(self): return self.put(f"view {self.reg()} {self.r.randrange(4)} {self.r.randrange(2)}")
    def a_assign(self): return self.put(self.reg())
    def a_risky(self): return self.put(f"risky {self.reg()} k{self.r.randrange(NUMBERS)}")
    def a_where(self): return self.put(f"where {self.reg()} 0.25 {self.reg()}")
    def a_index(self): return self.put(f"index {self.reg()} {self.reg()}")
    def a_rand(self): return self.put(f"rand {self.r.randint(1, 3)}")
    def a_full(self): return self.put(f"full {self.reg()} {self.r.choice(('1', '0.5', 'k0'))}")
    def a_call(self): return self.put(f"call 1 {self.reg()} {self.reg()}") if self.depth == 0 else self.a_bin()
    def a_inplace(self):
        op = self.r.choice(("add_", "add_", "mul_", "copy_"))
        return [Stmt(f"{op} {self.reg()} {self.read() if op == 'copy_' or self.r.random() < 0.6 else self.number()}")]
    def a_swap(self): return [Stmt(f"swap {self.reg()} {self.reg()}")]
    def a_if(self, block): return [Stmt(f"if {self.how()} {self.reg()} < {self.r.choice(self.limit)}", block, [])]
    def a_again(self): return [Stmt(f"again {self.reg()} {self.reg()}")] if self.mode != "another" else self.a_bin()
    def a_loop(self, block): return [Stmt(f"loop {self.reg()} {self.reg()} {self.r.randint(1, 6)}", block[:1])]
    def a_item(self):
        k = self.r.randrange(NUMBERS)
        asked = [Stmt(f"k{k} = item {self.how()} {self.reg()}")]
        return asked + ([Stmt(f"switch k{k}", self.block(3), self.block(3))] if self.r.random() < 0.5 else [])
    def a_float(self): return [Stmt(f"k{self.r.randrange(NUMBERS)} = float {self.how()} {self.reg()}")]
    def a_times(self, block):
        k = self.r.randrange(NUMBERS)
        return [Stmt(f"k{k} = item {self.how()} {self.reg()}"), Stmt(f"times k{k}", block)]
    def a_flag(self, block): return [Stmt("flag", block)]
    def a_nograd(self, block): return [Stmt("nograd", block)]
    def a_scope(self, block): return [Stmt("scope", block)]
    def a_opaque(self):
        name = self.r.choice(sorted(OPAQUE))
        if name == "inside" and (self.depth or self.mode == "another"): name = "count"
        self.calls = self.calls or name == "inside"
        return [Stmt(f"print {self.reg()}")] if name == "print" else self.put(f"opaque {name} {self.reg()}")


def make_program(r, quiet):
    """quiet: without opaque steps."""
    p = Program(r.choice(("exact", "exact", "elide", "another", "fail", "impure")))
    p.buffers = int(r.random() < 0.3)
    maker, nargs = Maker(r, p.mode), r.randint(1, 3) + p.buffers
    if quiet: maker.kinds = [k for k in maker.kinds if k != "opaque"]
    given = r.sample(range(REGISTERS), r.randint(1, 3))
    p.fns.append((nargs, maker.block(0), given))
    if maker.calls:
        maker.depth = 1
        p.fns.append((2, maker.block(1), [r.randrange(REGISTERS)]))
    if p.mode == "fail":
        p.links = [(r.randint(1, 9), r.randint(1, 40)), (r.choice((0, 3)), r.choice((0, 20)))]
    if r.random() < 0.33: p.limits.update(outcomes=3, variants=2, captures=40)
    p.segments = r.choice((256, 256, 256, 6))
    return p


def chain_of(p):
    if p.links: return [Link(False, False, c or None, k or None) for c, k in p.links]
    return [Link(p.mode == "another", p.mode == "elide")]


# ---- arguments -------------------------------------------------------------------------------------------
def make_args(r, p, dtypes, wild):
    """(buffers, views, grad mode). Aliasing, sizes, strides, dtypes change now and then; equal views: one handle."""
    floats = (.1, .2, .3) * 3 + (-.1, .6, 1.1) if p.mode == "another" else (.125, .25, .375, -.125, -.5, .625, 1.25, .5)
    mk = lambda size, d: np.array([r.choice(floats) if d == "f" else r.randint(-2, 3) for _ in range(size)], DTYPE[d])
    grad = not (wild and r.random() < 0.2)
    if wild and r.random() < 0.15: dtypes = [r.choice("fi") for _ in dtypes]
    size, pattern = 3, "own"
    if wild: size, pattern = r.choice((3, 3, 3, 4)), r.choice("own own own same over near step".split())
    shared, step, bufs, views = pattern in ("over", "near", "step"), 2 if pattern == "step" else 1, [], []
    for i, d in enumerate(dtypes):
        if i >= len(dtypes) - p.buffers:                    # has memory of its own
            bufs.append(mk(size, d))
            views.append((len(bufs) - 1, 0, size, 1, i))
        elif i and pattern == "same" and r.random() < 0.7: views.append(views[0][:4] + (r.choice((0, 0, i)),))
        elif i and shared: views.append((0, i * size if pattern == "near" else i, size, step, i))
        else:
            bufs.append(mk(size * 3 + 3 if shared else size + (wild and i), d))
            views.append((len(bufs) - 1, 0, size, step, i))
    return bufs, views, grad


def build_args(spec):
    ss, made = [Storage(b.copy()) for b in spec[0]], {}
    return ss, [made.setdefault(v, T(ss[v[0]], *v[1:4])) for v in spec[1]]


# ---- what a caller sees ----------------------------------------------------------------------------------
class Seen:
    """Everything a caller can see after a call. A tensor's place: which object, whose memory (both by the first tensor
    that has them), offset, size, stride, type."""
    def __init__(self, fn, spec, world):
        ss, args = build_args(spec)
        self.err, outs, before = None, [], world.gen.offset
        try: outs = fn(args)
        except UserError as e: self.err = str(e)
        except NoAnswer: self.err = "no answer"
        ts = list(args) + list(outs) + world.stash
        def first(t, eq): return next(i for i, u in enumerate(ts) if eq(u, t))
        one, memory = lambda u, t: u is t, lambda u, t: np.may_share_memory(u.storage.data, t.storage.data)
        self.where = [(first(t, one), first(t, memory), t.off, t.n, t.stride, t.dtype) for t in ts]
        self.nargs, self.nouts, self.gen, self.grad = len(args), len(outs), world.gen.offset, world.grad
        self.drew, self.effects = world.gen.offset - before, list(world.effects)
        self.bufs, self.nums = [s.data.copy() for s in ss], [t.arr().copy() for t in ts]
        world.effects.clear()
    def shape(self): return self.err, self.nouts, self.gen, self.grad, [e[0] for e in self.effects], self.where
    def numbers(self): return [x.tolist() for x in self.bufs + self.nums] + [e[1] for e in self.effects if len(e) > 1]


def differ(a, b, tol=0):
    """None, or what differs."""
    if a.shape() != b.shape(): return f"got {a.shape()}, want {b.shape()}"
    for x, y in zip(sum(a.numbers(), []), sum(b.numbers(), [])):
        if not (x == y or x != x and y != y or tol and (not tol < 1e3 or abs(x - y) <= tol)):
            return f"got {a.numbers()}, want {b.numbers()}"
    return None


def compare(host, world, spec, rounded=False):
    """One call by the host and by eager; with another rounding eager must take the way the compiled code decided.
    Returns (what the host's caller sees, the largest number met, what is wrong)."""
    host.world.grad = world.grad = spec[2] if len(spec) > 2 else True
    got = Seen(host, spec, host.world)
    ctx = Ctx(world, None, list(host.answers()) if rounded else None)
    want = Seen(lambda a: host.prog(ctx, Frame(a)), spec, world)
    return got, ctx.peak, differ(got, want, 1e-9 * ctx.peak * rounded)


# ---- one program, many calls -----------------------------------------------------------------------------
class Session:
    """A program with its calls, each checked as it is made. plan: (argument set, flag, starts a pass, another thread
    captures) a call."""
    def __init__(self, seed, ncalls, quiet=False):
        r = random.Random(seed)
        self.seed, self.p = seed, make_program(r, quiet)
        self.mode, self.wild = self.p.mode, r.random() < 0.4
        dtypes = [r.choice("ffi") for _ in range(self.p.fns[0][0])]
        passes = {"fail": 1, "impure": 1, "another": 3}.get(self.mode, 2)
        self.specs = self.draw_specs(r, dtypes, max(1, ncalls // passes))
        busy = 0.1 * (r.random() < 0.2)
        self.plan = [(k, self.flag(r), not k, r.random() < busy) for _ in range(passes) for k in range(len(self.specs))]
        self.begin()
    def flag(self, r): return self.mode == "impure" and r.random() < 0.3
    def draw_specs(self, r, dtypes, count):
        """Arguments on which eager stays within bounds."""
        specs = []
        for _ in range(4 * count):
            spec, world = make_args(r, self.p, dtypes, self.wild), World(self.seed % 1000)
            ctx, world.grad, world.flag = Ctx(world), spec[2], self.flag(r)
            world.inside = lambda args, c=ctx: function(self.p, 1)(c, Frame(args))
            Seen(lambda a: function(self.p)(ctx, Frame(a)), spec, world)
            if ctx.peak < BOUND: specs.append(spec)
            if len(specs) == count: break
        return specs
    def begin(self):
        self.chain, self.calls = chain_of(self.p), []
        LIMITS.update(self.p.limits)
        self.host = Host(function(self.p), World(self.seed % 1000), self.chain, self.mode == "impure", self.p.segments,
                         buffers=self.p.buffers)
        self.world = World(self.seed % 1000)
        sub = function(self.p, 1)
        self.world.inside = lambda args: sub(Ctx(self.world), Frame(args))
        self.host.world.inside = lambda args: self.host.nested(1, sub)(args)
    def totals(self):
        """Counts of the callable and those nested in it."""
        hosts = self.host.everybody()
        out = {k: sum(h.stats[k] for h in hosts) for k in model.STATS}
        out["segments"] = sum(len(h.store) for h in hosts)
        return out
    def run(self):
        """Makes the calls. Returns None or what went wrong."""
        self.begin()
        rounded = self.mode == "another"
        for k, flag, starts, busy in self.plan:
            self.host.world.busy = busy
            for w in (self.host.world, self.world):
                if starts: w.gen, w.stash = Generator(self.seed % 1000), []
                w.flag = flag
            before = self.totals()
            got, _, wrong = compare(self.host, self.world, self.specs[k], rounded)
            if wrong: return f"mode {self.mode}, call {len(self.calls)}: {wrong}"
            did = {w: n - before[w] for w, n in self.totals().items() if n != before[w]}
            self.calls.append((k, flag, starts, busy, got, did, self.host.answers() if rounded else []))
        return self.check()
    def traits(self):
        """tame: equal graphs are equal segments."""
        return {"tame": not self.wild and "nograd" not in self.p.words()}
    def check(self):
        t, last = self.totals(), max(i for i, c in enumerate(self.plan) if c[2])
        late = sum(c[5].get("captures", 0) for c in self.calls[last:]) if last else 0
        if self.mode in ("exact", "elide") and t["disagreements"]: return "a slice disagrees with an exact backend"
        if self.mode != "fail" and self.chain[0].compiles > t["segments"]: return "a segment was compiled twice"
        busy = any(c[3] for c in self.plan)
        if self.mode in ("exact", "elide", "another") and late and not busy: return f"{self.mode}: captures without end"
        return None


# ---- texts -----------------------------------------------------------------------------------------------
def write_block(block, depth, out):
    for s in block:
        out.append("  " * depth + " ".join(s.words))
        for i, b in enumerate(s.blocks):
            if i and b: out.append("  " * depth + "else")
            write_block(b, depth + 1, out)
        if s.blocks: out.append("  " * depth + "end")


def show(x): return repr(x)[:-2] if isinstance(x, float) and repr(x).endswith(".0") else repr(x)
def show_all(a): return " ".join(show(x) for x in a.tolist())


def write_args(k, spec, out):
    out.append(f"args {k}")
    for b in spec[0]: out.append(f" {b.dtype.kind} {show_all(b)}")
    for i, v in enumerate(spec[1]):
        first = spec[1].index(v)
        out.append(f" same {first}" if first < i else f" of {v[0]} {v[1]}*{v[2]}/{v[3]}")


def write_seen(s, spec, out):
    if s.err: out.append(" error")
    for i in range(s.nargs, len(s.where)):
        obj, mem, off, n, stride, dtype = s.where[i]
        word = " out" if i < s.nargs + s.nouts else " kept"
        if obj < i: out.append(f"{word} is {obj}")
        elif mem < i: out.append(f"{word} in {mem} {off}*{n}/{stride}")
        else: out.append(f"{word} {dtype} {off}*{n}/{stride} {show_all(s.nums[i])}")
    for i, (b, was) in enumerate(zip(s.bufs, spec[0])):
        if not np.array_equal(b, was) or (np.signbit(b) != np.signbit(was)).any(): out.append(f" buf {i} {show_all(b)}")
    for e in s.effects: out.append(" effect " + " ".join([e[0]] + [show(x) for x in (e[1] if len(e) > 1 else [])]))
    if s.drew: out.append(f" drew {s.drew}")


def text_of(session):
    p, out = session.p, [f"program {session.seed}", f"mode {session.mode}"]
    out.append("limits " + " ".join(f"{k} {v}" for k, v in sorted(p.limits.items())) + f" segments {p.segments}")
    if p.buffers: out.append(f"buffers {p.buffers}")
    out.append("traits" + "".join(f" {k}" for k, v in session.traits().items() if v))
    for c, k in p.links: out.append(f"link {c} {k}")
    for i, (nargs, block, given) in enumerate(p.fns):
        out.append(f"fn {i} takes {nargs}")
        write_block(block, 1, out)
        out.append("  give " + " ".join(f"r{g}" for g in given))
    written, seen = set(), {}
    for k, flag, starts, busy, got, did, told in session.calls:
        if k not in written: write_args(k, session.specs[k], out)
        written.add(k)
        words = ["call", str(k)] + ["seed"] * starts + ["flag"] * flag + ["busy"] * busy
        words += ["nograd"] * (not session.specs[k][2])
        out.append(" ".join(words))
        lines = []
        write_seen(got, session.specs[k], lines)
        if told: lines.append(" told " + " ".join(show(float(x) if isinstance(x, bool) else x) for x in told))
        body = "\n".join(lines)
        if lines: out.append(f" as {seen[k][1]}" if k in seen and seen[k][0] == body else body)
        seen.setdefault(k, (body, len([c for c in out if c.startswith("call ")]) - 1))
        if did: out.append(" did " + " ".join(f"{w} {n}" for w, n in sorted(did.items())))
    out.append("compiles " + " ".join(str(link.compiles) for link in session.chain))
    return "\n".join(out) + "\nend\n"


# ---- the command -----------------------------------------------------------------------------------------
def add(totals, session):
    t = session.totals()
    t.update(programs=1, compiled=t["calls"] - t["eager"] - t["resumed"], reported=len(session.host.reports[:1]))
    t["mode " + session.mode] = 1
    for k, v in t.items(): totals[k] = totals.get(k, 0) + v


def seeds(a):
    first = a.first or a.seed * 1000000
    return a.only or range(first, first + a.programs)




def try_session(a, seed):
    session = Session(seed, a.calls, a.quiet)
    try: return session, session.run()
    except Exception as e:
        if a.only: raise
        return session, f"{type(e).__name__}: {e}"


def main(argv):
    ap = argparse.ArgumentParser(description=model.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, what in (("programs", 200, "how many"), ("calls", 50, "calls of each"),
                                ("seed", 1, "in millions, of the first"), ("stop", 5, "after that many failures")):
        ap.add_argument("--" + name, type=int, default=default, help=what)
    ap.add_argument("--only", type=lambda x: [int(n) for n in x.split(",")], help="numbers of programs, by commas")
    ap.add_argument("--first", type=int, help="the seed of the first program")
    ap.add_argument("--quiet", action="store_true", help="without opaque steps")
    ap.add_argument("--literal", default="", help="names of literal readings, by commas")
    ap.add_argument("--holes", action="store_true", help="each doubtful rule on its smallest program")
    ap.add_argument("--shrink", metavar="HARNESS", help="with --only: a smaller program on which that still fails")
    ap.add_argument("--emit", help="a file (.gz: packed) or - for the texts of all programs")
    a = ap.parse_args(argv)
    np.seterr(all="ignore")
    if a.holes:
        import holes
        return holes.main()
    if a.shrink:
        import shrink
        return shrink.main(a.shrink, Session(a.only[0], a.calls, a.quiet))
    LITERAL.update(set(a.literal.split(",")) - {""})
    totals, bad, texts = {}, 0, []
    for s in seeds(a):
        session, wrong = try_session(a, s)
        if wrong:
            bad += 1
            print(f"program {s}: {wrong[:600]}", file=sys.stderr)
        else:
            add(totals, session)
            if a.emit: texts.append(text_of(session))
        if bad >= a.stop: break
    if a.emit: write_out(a.emit, "".join(texts))
    print(", ".join(f"{k} {v}" for k, v in sorted(totals.items())) + f"; mismatches {bad}", file=sys.stderr)
    return bad > 0


def write_out(path, text):
    if path == "-": sys.stdout.write(text)
    elif path.endswith(".gz"):
        with open(path, "wb") as f: f.write(gzip.compress(text.encode(), 9, mtime=0))
    else:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as f: f.write(text)
