#!/usr/bin/env python3
"""Executable model of the rules of captured calls: breaks, replay, handed-on values, guards (docs/capture.md).

    python3 capture_model.py --programs 300 --seed 1           random programs by the model against eager
    python3 capture_model.py --holes                           each doubtful rule, as amended and taken literally
    python3 capture_model.py --emit FILE --programs N --seed S --calls K      program texts for tests/model/harness.c

A captured function is a Python function prog(c, f) that stands for C code: the host cannot enter it in its middle and
does not see its variables. Names in LITERAL choose a wording of the rules that turned out to be wrong or silent;
without them the model obeys the rules as they are written. Of other threads it knows that one may be capturing.
Not modelled: training, symbolic scalars and sizes, backends that take inputs. Needs numpy.
"""
import sys
import numpy as np
from eager import (BackendFailed, CHEAP, CHECKS, Ctx, DataError, Frame, Generator, H, Impure, KERNEL, LIMITS, LITERAL,
                   Limit, NoAnswer, OPAQUE, RANDOM, Stop, Storage, T, UserError, bits, const, const_array, k_sum, meta,
                   unbits)


# ---- capture: fake handles on functionalized storages ----------------------------------------------------
class FS:
    """A fake storage: cur is its current SSA value; None for one of several overlapping inputs until one is written."""
    def __init__(self, name, cur, n, dtype, comp=()):
        self.name, self.cur, self.init, self.n, self.dtype, self.comp = name, cur, cur, n, dtype, comp
        self.guarded = False


def overlap(a, b): return a.storage is b.storage and a.span()[0] < b.span()[1] and b.span()[0] < a.span()[1]


def component(args, i):
    """The inputs that overlap input i, directly or through others."""
    comp, more = set(), {i}
    while comp != more:
        comp, more = more, more | {j for j, a in enumerate(args) if any(overlap(a, args[k]) for k in more)}
    return tuple(sorted(comp))


def one_object(args, comp): return all(args[j] is args[comp[0]] for j in comp)


def base_of(args, comp):
    """The range of the storage under a component's inputs."""
    lo, hi = min(args[j].span()[0] for j in comp), max(args[j].span()[1] for j in comp)
    return T(args[comp[0]].storage, lo, hi - lo)


def layout(args, i):
    """The alias guard of a written input i: who overlaps it, and where."""
    comp = component(args, i)
    return tuple((j, args[j].off - min(args[k].off for k in comp)) for j in comp)


class Tracer:
    """One run of the C function on fakes. mode capture: goes on past the log, by slices. mode resume: switches to real
    tensors when the log is used up. mode check: only replays what the log covers."""
    def __init__(self, call, mode):
        self.call, self.mode, self.log, self.expect = call, mode, list(call.log), call.items
        self.items, self.guards, self.incs, self.guesses, self.answers = [], [{}], [0], [], []
        self.memo, self.asked, self.views, self.handles, self.args = {}, {}, {}, [], []
        self.nfs = self.nbreaks = self.inc = 0
        self.ctx = Ctx(call.host.world, self, None, call.host)
        self.ctx.said, self.grads = self.answers, [call.grad]
        self.inputs = call.args[:call.nargs]
        self.lay_out()
        for i in range(call.nargs): self.args.append(self.input(i))
    def lay_out(self):
        """Fake storages of the inputs, as they overlap now: a component of them is one."""
        fss, self.fs_of = {}, []
        for i, a in enumerate(self.inputs):
            comp = component(self.inputs, i)
            cur = ("a", self.first(i)) if one_object(self.inputs, comp) else None
            self.fs_of.append(fss.setdefault(comp, FS(("A", comp[0]), cur, a.n, a.dtype, comp)))
    def first(self, i): return next(j for j, b in enumerate(self.inputs) if b is self.inputs[i])
    def input(self, i):
        """The handle of input i: of the first that is the same object."""
        known, a = [h for h in self.handles if h.t is self.inputs[i]], self.inputs[i]
        return known[0] if known else self.handle(self.fs_of[i], i, 0, a.n, a.stride, a)
    def handle(self, fs, root, off, n, stride, t=None, parent=None, at=None):
        self.handles.append(H(len(self.handles), fs, root, (off, n, stride), t, parent, at))
        return self.handles[-1]
    def new(self, ref, m):
        self.nfs += 1
        return self.handle(FS(("m", self.nfs), ref, m[1], m[0]), None, 0, m[1], m[2])
    def emit(self, item):
        k = len(self.items)
        if k < len(self.expect) and self.expect[k] != item: raise Impure(f"item {k}: was {self.expect[k]}, is {item}")
        self.items.append(item)
        return "n", k
    def node(self, op, ins, at):
        m = meta(op, at, [self.meta(r) for r in ins])
        if op == "rand": at, self.inc = (at[0], self.inc), self.inc + at[0]
        return self.emit(("node", op, tuple(ins), at) + m)
    def meta(self, ref):
        if ref[0] in "nc": return self.items[ref[1]][4:7] if ref[0] == "n" else (ref[1], 1, 1)
        t = self.inputs[ref[1]] if ref[0] == "a" else base_of(self.inputs, component(self.inputs, ref[1]))
        return t.dtype, t.n, t.stride
    def operand(self, h): return self.read(h) if isinstance(h, H) else const(h)
    def place(self, h):
        """Geometry of a handle in the range under its component."""
        a, lo = self.inputs[h.root], base_of(self.inputs, h.fs.comp).off
        return a.off - lo + h.off, h.n, h.stride
    def seen(self, op, base, at):
        """A view of a value, recorded once a segment."""
        if (op, base, at) not in self.views: self.views[op, base, at] = self.node(op, [base], at)
        return self.views[op, base, at]
    def read(self, h):
        if h.parent is not None:
            p = self.read(h.parent)
            _, n, stride = self.meta(p)
            if stride != h.parent.stride and n > 1 and stride != 1: p = self.node("contig", [p], ())
            return self.seen("view", p, h.at)
        fs = h.fs
        if fs.cur is None: return "a", h.root       # overlapping inputs, none of them written yet: its own placeholder
        return self.seen("part", fs.cur, self.place(h)) if fs.init is None else fs.cur
    def store(self, h, ref):
        """What eager stores in h: cast and expanded to the tensor that is written."""
        d, n, _ = self.meta(ref)
        if d != h.dtype: ref = self.node("cast", [ref], (h.dtype,))
        if n != h.n: ref = self.node("expand", [ref], (h.n,))
        self.write(h, ref)
    def guard(self, fs):
        if fs.name[0] == "A" and not fs.guarded:
            fs.guarded = True
            self.guards[-1][fs.name[1]] = layout(self.inputs, fs.name[1])
    def write(self, h, ref):
        fs = h.fs
        self.guard(fs)
        while h.parent is not None:
            ref, h = self.node("scatter", [self.read(h.parent), ref], h.at), h.parent
        if fs.comp and fs.init is None: ref = self.node("put", [fs.cur or ("g", fs.name[1]), ref], self.place(h))
        fs.cur = ref
    def cut(self):
        self.views.clear()                          # only bases cross a break
        self.guards.append({})
        self.incs.append(self.inc)
        self.grads.append(self.ctx.world.grad)
    def folds(self, ref):
        if ref[0] != "n": return ref[0] == "c"
        return self.items[ref[1]][1] != "rand" and all(map(self.folds, self.items[ref[1]][2]))
    def slice(self, ref):
        """The value of ref by reference kernels, from what this call handed on and from its inputs; memoized."""
        if ref not in self.memo:
            v = self.call.have(ref)
            if v is None:
                behind = ref[1] < self.call.floor and not self.folds(ref)
                assert not behind or "handon" in LITERAL, "a slice reaches behind a commit"
                _, op, ins, at = self.items[ref[1]][:4]
                v = Generator.draw(self.ctx.world.gen.seed, self.call.base + at[1], at[0]) if op == "rand" else \
                    KERNEL[op](at, *map(self.slice, ins))
            self.memo[ref] = v
        return self.memo[ref]
    def ask(self, kind, h):
        ref = self.read(h)
        if self.folds(ref): out = bits(kind, self.slice(ref))
        elif (kind, ref) in self.asked: out = self.asked[kind, ref]
        else:
            self.emit(("break", kind, ref))
            self.cut()
            self.nbreaks += 1
            if self.log: out = self.log.pop(0)
            elif self.mode == "check" or self.nbreaks > LIMITS["breaks"]: raise Stop("open")
            else:
                try: self.guesses.append(bits(kind, self.slice(ref)))
                except DataError: raise Stop("data")        # says nothing about the path: the break stays without child
                out = self.guesses[-1]
            if self.mode == "resume" and not self.log: self.switch()
            self.asked[kind, ref] = out
        self.answers.append(unbits(out))
        return self.answers[-1]
    def state(self, every=True, only=()):
        """What a commit must write: written inputs, and (all) storages made in the frame that a
        scope still owns."""
        alive = {h.fs.name for h in self.handles if not h.dead}
        def wanted(fs):
            if fs.name[0] == "m": return every and fs.name in alive or fs.name in only
            return fs.cur not in (None, fs.init)
        return tuple(sorted({h.fs.name: (h.fs.name, h.fs.cur) for h in self.handles if wanted(h.fs)}.values()))
    def spec(self, h): return h.hid, h.fs.name if h.root is None else ("a", h.root), h.off, h.n, h.stride
    def opaque(self, name, hs):
        state = self.state("handon" not in LITERAL, {h.fs.name for h in hs})
        self.emit(("opaque", name, tuple(map(self.spec, hs)), state, self.inc, len(self.handles), self.ctx.world.grad))
        self.cut()
        self.nbreaks += 1                           # a path holds at most 64 breaks, steps among them
        if not self.log: raise Stop("open" if self.nbreaks > LIMITS["breaks"] else "opaque")
        out = self.rebase(self.log.pop(0))
        if self.mode == "resume" and not self.log: self.switch()
        return out
    def rebase(self, step):
        """After a commit every storage is real and may have been written. What the frame made and a scope still owns is
        an input from now on, and so are results; all values start anew."""
        self.inc, self.incs[-1], self.memo, self.asked = 0, 0, {}, {}
        self.inputs = self.call.args[:step.ninputs]
        self.lay_out()
        for h in self.handles:
            if h.root is None: h.root = step.made.get(h.fs.name)
            if h.root is None: continue             # dead; or "handon" is taken literally
            h.t, h.fs, h.source = h.t or step.tensors.get(h.hid), self.fs_of[h.root], self.inputs[h.root]
        return [self.input(i) if known is None else self.handles[known] for i, known in step.results]
    def switch(self):
        """Eager resumption: commit what this call has up to here; from now on every operator runs for real."""
        for _, ref in self.state(): self.call.env[ref] = self.slice(ref)    # before the inputs change
        self.rebase(self.call.go_on(self.call.commit(self.state(), self.inc)))
        self.ctx.tr = None
    def run(self):
        """Returns (why it ended, outputs)."""
        world, grad = self.ctx.world, self.ctx.world.grad
        try:
            world.grad = self.call.grad
            if self.mode == "resume" and not self.log: self.switch()
            outs = self.call.host.prog(self.ctx, Frame(self.args))
            if self.ctx.tr:
                specs = tuple(map(self.spec, outs))
                self.emit(("end", specs, self.state(False, {s[1] for s in specs}), self.inc))
            return "end", outs
        except Stop as e: return str(e), None
        except UserError:
            if not self.ctx.tr: raise
            if len(self.items) < len(self.expect) or self.mode == "resume":
                raise Impure("an error before the replay's end")
            while self.items and self.items[-1][0] == "node": self.items.pop()
            return "error", None
        finally: world.grad = grad


def term_refs(term):
    """The values that the end of a segment asks of it, in order."""
    if term[0] == "break": return [term[2]]
    if term[0] == "opaque":             # what it is given, what else was made, what is written
        state = dict(term[3])
        return [state[s[1]] for s in term[2] if s[1][0] == "m"] + [r for n, r in term[3] if n[0] == "m"] + \
            [r for n, r in term[3] if n[0] != "m"]
    state = dict(term[2])
    return [state[s[1]] for s in term[1] if s[1][0] == "m"] + [r for name, r in term[2] if name[0] != "m"]


# ---- backends --------------------------------------------------------------------------------------------
class Link:
    """One backend of a chain. plain: float sums round otherwise; elide: clone returns its input's own buffer."""
    def __init__(self, plain=False, elide=False, fail_compile=None, fail_run=None):
        self.plain, self.elide, self.fail_compile, self.fail_run = plain, elide, fail_compile, fail_run
        self.compiles = self.runs = 0
    def compile(self, nodes, outs):
        self.compiles += 1
        if self.compiles == self.fail_compile: raise BackendFailed("compile")
        own = all(op != "rand" for op, _, _ in nodes)       # what draws is left to the reference
        def run(inputs, seed, offset):
            self.runs += 1
            if self.runs == self.fail_run: raise BackendFailed("run")
            val = {("i", k): v for k, v in enumerate(inputs)}
            for k, (op, ins, at) in enumerate(nodes):
                xs = [const_array(r) if r[0] == "c" else val[r] for r in ins]
                val["t", k] = Generator.draw(seed, offset + at[1], at[0]) if op == "rand" else xs[0] if \
                    op == "clone" and self.elide and own else k_sum(xs[0], self.plain and own) if op == "sum" else \
                    KERNEL[op](at, *xs)
            return [val["t", k] for k in outs]
        return run


# ---- the host: tree, segments, transaction ---------------------------------------------------------------
class List:
    """What nodes of one canonical graph hand on: positions, in the order in which they came."""
    def __init__(self): self.at, self.growths, self.built = [], 0, False
    def add(self, k): self.at += [k] * (k not in self.at)


class Node:
    """A tree node: the items of one segment and the item that ends it; children by outcome."""
    def __init__(self, parent, items, start, inc, grad, guards, term):
        self.parent, self.items, self.start, self.inc, self.grad = parent, items, start, inc, grad
        self.guards, self.term, self.open, self.key, self.use, self.code = guards, term, False, None, None, None
        self.extras, self.children = [], {}         # extras: nodes of the prefix that it recomputes
    def makes(self, ref): return self.start <= ref[1] < self.start + len(self.items)
    def position(self, ref):
        if self.makes(ref): return len(self.extras) + ref[1] - self.start
        return self.extras.index(ref[1]) if ref[1] in self.extras else None
    def handed(self, ref): return self.position(ref) in self.list.at


class Step:
    """A commit in a call's log: which inputs storages became, tensors of handles, how many inputs there are then,
    results as inputs or handles."""
    def __init__(self, made, tensors, ninputs):
        self.made, self.tensors, self.ninputs, self.results = made, tensors, ninputs, []


class Call:
    """The transaction of one call."""
    def __init__(self, host, args):
        self.host, self.args, self.nargs = host, list(args), len(args)      # args: and what steps added
        self.base, self.floor, self.commits = host.world.gen.offset, 0, 0
        self.log, self.items, self.nodes, self.env, self.objects = [], [], [], {}, set()
        self.fresh, self.guesses = [], []           # the path that a capture gave, not published before it has run
        self.captured, self.grad = False, host.world.grad
        self.mark = 0, 0                            # lengths of log and items at the last commit
        self.tensors = dict(enumerate({id(a): a for a in args}.values()))      # handle number -> the very object
    def key(self):
        """What is guarded at the root and behind a step."""
        first = lambda a: next(j for j, b in enumerate(self.args) if b is a)
        return self.grad, tuple((a.dtype, a.n, a.stride, first(a)) for a in self.args)
    def source(self, ref):
        return self.args[ref[1]] if ref[0] == "a" else base_of(self.args, component(self.args, ref[1]))
    def have(self, ref):
        if ref in self.env or ref[0] == "c": return self.env[ref] if ref in self.env else const_array(ref)
        return self.source(ref).arr() if ref[0] in "ag" else None
    def get(self, ref):
        """A handed-on value; one that a list got only after this call ran its segment comes from a slice."""
        v = self.have(ref)
        if v is None:
            t = Tracer(self, "check")
            t.items = self.items
            v = self.env[ref] = t.slice(ref)
        return v
    def commit(self, state, inc):
        """The epilogue: every source is read before the first write; then inputs in order, then the others."""
        keep = (lambda v: v) if "epilogue" in LITERAL else np.copy
        vals, made = [(name, keep(self.get(ref)), ref) for name, ref in state], {}
        for name, v, ref in vals:
            if name[0] == "A" and name[1] >= self.nargs and "escaped" in LITERAL: continue
            if name[0] == "A":
                comp = component(self.args, name[1])
                (self.args[name[1]] if one_object(self.args, comp) else base_of(self.args, comp)).arr()[:] = v
            else: made[name] = Storage(self.get(ref) if "share" in LITERAL else v)  # never a shared buffer
        self.host.world.gen.offset = self.base + inc
        self.commits += 1
        return made
    def go_on(self, made):
        """What was made for a step is an input behind it."""
        at = {name: len(self.args) + k for k, name in enumerate(made)}
        self.args += [T(s, 0, len(s.data)) for s in made.values()]
        return Step(at, self.tensors, len(self.args))
    def tensor(self, spec, made):
        """The real tensor of a handle: the very object if it has one already."""
        hid, name, off, n, stride = spec
        if hid not in self.tensors and name[0] == "a":
            a = self.args[name[1]]
            self.tensors[hid] = T(a.storage, a.off + off, n, stride)
        elif hid not in self.tensors:
            self.tensors[hid] = T(made[name], off, n, stride)
        return self.tensors[hid]


STATS = "captures disagreements resumed opened growths eager restarts commits hits calls".split()


class Host:
    """One callable. chain: its links; one that always answers stands behind them, unless they are alone. buffers: how
    many arguments, the last ones, are buffers of a module."""
    def __init__(self, prog, world, chain=None, check=False, limit=256, alone=False, buffers=0):
        self.prog, self.world, self.check, self.limit, self.buffers = prog, world, check, limit, buffers
        self.chain = (chain or [Link()]) + [Link()] * (not alone)
        self.roots, self.store, self.lists, self.subs = [], {}, {}, {}
        self.eager_only, self.reports, self.retired, self.last, self.path_answers = False, [], set(), None, None
        self.stats = dict.fromkeys(STATS, 0)
    def count(self, what, n=1): self.stats[what] += n
    def nested(self, which, sub):
        if which not in self.subs: self.subs[which] = Host(sub, self.world, self.chain[:-1], self.check, self.limit)
        return self.subs[which]
    def everybody(self): return [self] + [h for s in self.subs.values() for h in s.everybody()]
    def __call__(self, args):
        call, self.path_answers = Call(self, args), None
        self.last, _ = call, self.count("calls")
        if self.eager_only: return self.eager(args)
        try:
            try:
                outs = self.walk(call)
                self.count("hits", not call.captured)
                return outs
            except Limit: return self.resume(call) if call.log else self.eager(args)
            except NoAnswer:                        # start again from untouched inputs, or go on behind the last commit
                self.count("restarts")
                if call.commits and "final" in LITERAL: raise
                return self.resume(call) if call.commits else self.eager(args)
        except Impure as e:
            self.reports.append(str(e))
            self.eager_only = True
            return self.resume(call, *call.mark) if call.commits else self.eager(args)   # Impure again: the call fails
    def answers(self):
        """What the last call answered to each query, for an oracle that must take the same way."""
        if self.path_answers is None:
            t = Tracer(self.last, "check")
            t.run()
            self.path_answers = t.answers
        return self.path_answers
    def eager(self, args):
        self.count("eager")
        ctx = Ctx(self.world, None, None, self)
        self.path_answers = ctx.said
        return self.prog(ctx, Frame(args))
    def resume(self, call, nlog=None, nitems=None):
        call.log, call.items = call.log[:nlog], call.items[:nitems]
        t = Tracer(call, "resume")
        self.path_answers = t.answers
        try: _, outs = t.run()
        finally: self.count("resumed", t.ctx.tr is None)        # else it turned out to be impure
        return [t.ctx.real(h) for h in outs]
    def fits(self, call, node):
        return node.key in (None, call.key()) and all(layout(call.args, i) == g for i, g in node.guards.items())
    def walk(self, call):
        kids, parent, out = self.roots, None, None
        while True:
            node = call.fresh[0] if call.fresh and call.fresh[0].parent is parent else None
            node = node or next((n for n in kids if self.fits(call, n)), None) or self.miss(call, parent, out, kids)
            try:
                if node.term[0] != "resume": self.run_segment(call, node)
            finally:
                if node in call.fresh:              # it has run, if only into bad data: other calls may find it now
                    call.fresh.pop(0)
                    (self.roots if parent is None else parent.children.setdefault(out, [])).insert(0, node)
            if node.term[0] == "resume": raise Limit
            call.nodes.append(node)
            call.items = call.items + node.items + [node.term]
            if node.term[0] == "end":
                self.verify(call)
                made = call.commit(*node.term[2:])
                return [call.tensor(s, made) for s in node.term[1]]
            out = self.step(call, node.term) if node.term[0] == "opaque" else self.outcome(call, node)
            kids, parent = node.children.get(out, []), node
            if "open" in LITERAL and node.open: raise Limit
    def outcome(self, call, node):
        """What the compiled segment computed decides; a guess of the slice that nobody confirmed is dropped."""
        out = bits(node.term[1], call.get(node.term[2]))
        call.log.append(out)
        if call.fresh and call.fresh[0].parent is node:
            guess = call.guesses.pop(0)
            if guess != out:
                self.count("disagreements")
                if "kept" in LITERAL: node.children[guess] = [call.fresh[0]]    # nobody has run that branch
                call.fresh = []
        return out
    def miss(self, call, parent, out, kids):
        """An outcome or a call that nobody has seen: limits, then a capture."""
        if parent and parent.term[0] == "break" and not kids and parent.term[1] != "b" and not parent.open:
            if out not in parent.children and len(parent.children) >= LIMITS["outcomes"]:
                parent.open = True
                self.count("opened")
        if parent and parent.open: raise Limit          # known outcomes still match
        if len(kids) >= LIMITS["variants"] or len(self.store) >= self.limit: raise Limit
        if self.stats["captures"] >= LIMITS["captures"] or self.world.busy: raise Limit
        return self.capture(call, parent)
    def verify(self, call):
        """check_capture = always: replay and compare, before each commit."""
        if self.check:
            t = Tracer(call, "check")
            t.run()
            if len(t.items) < len(call.items): raise Impure(f"ends after {len(t.items)} of {len(call.items)} items")
            self.path_answers = t.answers
    def step(self, call, term):
        """An opaque step: commit, run it once, keep what it gave in the log. Returns the outcome: which results are
        what. A result that was an argument of a step is that handle, every other one is a new input."""
        self.verify(call)
        _, name, specs, state, inc, hid, grad = term
        made = call.commit(state, inc)
        self.count("commits")
        objects = [call.tensor(s, made) for s in specs]
        call.objects |= {s[0] for s in specs}
        step = call.go_on(made)
        self.world.grad = grad                      # as it is where the step was called
        try: results = OPAQUE[name](self.world, *objects)
        finally: self.world.grad = call.grad
        for t in results:
            known = next((h for h in call.objects if call.tensors[h] is t), None)
            step.results.append((len(call.args), known))
            if known is None:
                call.args.append(t)
                if all(x is not t for x in call.tensors.values()): call.tensors[hid], hid = t, hid + 1
        step.ninputs, call.env = len(call.args), {}
        call.base = call.base + inc if "rng" in LITERAL else self.world.gen.offset      # read again: it may have drawn
        call.log.append(step)
        call.mark, call.floor = (len(call.log), len(call.items)), len(call.items)
        return "o", tuple(step.results)
    def capture(self, call, parent):
        """Replays the log, records what follows, cuts it at its breaks; the new nodes wait to be run."""
        self.count("captures")
        call.captured = True
        t, new, items = Tracer(call, "capture"), [], []
        why, _ = t.run()
        if why == "error" and "error" in LITERAL: raise NoAnswer("error in capture")
        def add(items, start, term):
            s = len(call.nodes) + len(new)
            new.append(Node(new[-1] if new else parent, items, start, t.incs[s], t.grads[s], t.guards[s], term))
        for k in range(len(call.items), len(t.items)):
            items.append(t.items[k])
            if items[-1][0] != "node":
                add(items[:-1], k + 1 - len(items), items[-1])
                items = []
        if why == "error": add([], len(t.items), ("resume",))       # only metadata decide: a leaf
        else: new[-1].open = why == "open" or why == "data" and "leaf" in LITERAL
        self.count("opened", why == "open")
        if parent is None or parent.term[0] == "opaque": new[0].key = call.key()
        self.supply(call, new, t.items)
        call.fresh, call.guesses = list(new), list(t.guesses)
        return new[0]
    # -- where the values of new segments come from
    def supply(self, call, new, items):
        asked, cheap = set(), {}
        for n in reversed(call.nodes):              # what breaks were told, and what that was made of
            asked.update(r[1] for r in term_refs(n.term) if r[0] == "n" and n.term[0] == "break")
            for k in reversed(range(n.start, n.start + len(n.items))):
                if k in asked: asked.update(r[1] for r in items[k][2] if r[0] == "n")
        for n in call.nodes:
            for k in range(n.start, n.start + len(n.items)):
                again = items[k][1] in CHEAP and (k not in asked or "told" in LITERAL)
                again = again and all(cheap[r[1]] for r in items[k][2] if r[0] == "n")
                cheap[k] = again or n.handed(("n", k))
        for n in new:
            if n.term[0] != "resume": self.supply_node(call, n, new, items, cheap)
        for n in new:                               # lists that nothing was compiled for yet: in the order of recording
            if n.term[0] == "break" and not n.list.built: n.list.at.sort()
    def supply_node(self, call, node, new, items, cheap):
        """Makes every value that a new segment needs come from somewhere, then fixes its canonical graph."""
        todo = [r for item in node.items for r in item[2]] + term_refs(node.term)
        while todo:
            r = todo.pop()
            maker = next((n for n in call.nodes + new if n.makes(r)), None) if r[0] == "n" else None
            if maker in (None, node) or maker.handed(r) or r[1] in node.extras: continue
            if r[1] in cheap and cheap[r[1]]:       # recomputed from inputs and handed-on values
                node.extras.append(r[1])
                todo += items[r[1]][2]
                continue
            maker.list.add(maker.position(r))
            if maker not in new:                    # handed-on list grew
                self.count("growths")
                maker.list.growths += 1
                if maker.list.growths > LIMITS["growths"]:
                    for k in range(len(maker.items)): maker.list.add(len(maker.extras) + k)
        node.extras.sort()
        node.order = node.extras + list(range(node.start, node.start + len(node.items)))
        self.name(call, node, items)
        for r in term_refs(node.term):
            if r[0] == "n" and node.position(r) is not None: node.list.add(node.position(r))
    def name(self, call, node, items):
        """The canonical text: local names, metadata of inputs, random offsets from the segment's own start."""
        node.inputs, node.graph, node.metas = [], [], []
        def name(r):
            if r[0] == "c": return r
            if r[0] == "n" and node.position(r) is not None: return "t", node.position(r)
            if r not in node.inputs:
                node.inputs.append(r)
                source = call.source(r) if r[0] in "ag" else None
                node.metas.append((source.dtype, source.n, source.stride) if source else items[r[1]][4:7])
            return "i", node.inputs.index(r)
        inc = 0 if "baked" in LITERAL else node.inc
        for _, op, ins, at, *_ in (items[k] for k in node.order):
            node.graph.append((op, tuple(map(name, ins)), (at[0], at[1] - inc) if op == "rand" else at))
        node.base = inc
        key = repr((node.graph, node.metas, node.grad, node.start if "lists" in LITERAL else 0))
        node.list = self.lists.setdefault(key, List())
    # -- running
    def run_segment(self, call, node):
        outs = tuple(node.list.at)
        if node.use is not None and len(node.use) < len(outs) and len(self.store) >= self.limit:
            if "grown" in LITERAL: raise NoAnswer("the longer list is beyond the limit")
            outs = node.use                         # a list that grew must not lose what worked: the old code serves
        if node.use is not None and self.world.busy: outs = node.use
        if node.use is None or node.use != outs: self.build(node, outs, call)
        if node.code: self.run_code(call, node)     # else nothing that anybody needs
    def build(self, node, outs, call):
        """What the node calls from now on: the store's segment of that content, its inputs and outputs."""
        node.list.built, node.use = True, outs
        live, todo = set(), list(outs)
        never_dead = RANDOM | (CHECKS if "dead" not in LITERAL else set())
        todo += [k for k, (op, _, _) in enumerate(node.graph) if op in never_dead]
        while todo:
            live.add(todo[-1])
            todo += [r[1] for r in node.graph[todo.pop()][1] if r[0] == "t" and r[1] not in live]
        used = list(dict.fromkeys(r[1] for k in sorted(live) for r in node.graph[k][1] if r[0] == "i"))
        pos = {k: j for j, k in enumerate(sorted(live))}
        local = lambda r: ("t", pos[r[1]]) if r[0] == "t" else ("i", used.index(r[1])) if r[0] == "i" else r
        nodes = [(op, tuple(map(local, ins)), at) for op, ins, at in (node.graph[k] for k in sorted(live))]
        alias, mine = [], [(j, call.args[node.inputs[k][1]]) for j, k in enumerate(used) if node.inputs[k][0] == "a"]
        for j, a in mine: alias += [(j, i, a.off - b.off) for i, b in mine if i < j and a.storage is b.storage]
        results, mode = [pos[k] for k in outs], node.grad and "modes" not in LITERAL
        roles = [node.inputs[k][0] == "a" and call.nargs > node.inputs[k][1] >= call.nargs - self.buffers
                 for k in used]
        key = repr((nodes, [node.metas[k] for k in used], roles, results, alias, mode))
        node.code = live and (self.store.setdefault(key, {}), nodes, [node.inputs[k] for k in used], results)
    def run_code(self, call, node):
        seg, nodes, inputs, results = node.code
        inputs, failed = [call.get(r) for r in inputs], set()
        for i, link in enumerate(self.chain):
            if i in self.retired or seg.get(i) == "declined": continue
            try:
                if i not in seg: seg[i] = link.compile(nodes, results)
            except BackendFailed:
                seg[i] = "declined"
                continue
            try: vals = seg[i](inputs, self.world.gen.seed, call.base + node.base)
            except DataError as e:                  # eager will say it again in its own words: no link is blamed
                if "blame" in LITERAL: self.retired.add(i)
                raise NoAnswer(str(e))
            except BackendFailed:
                failed.add(i)
                continue
            self.retired |= failed                  # another one did what they did not
            call.env.update({("n", node.order[k]): v for k, v in zip(node.use, vals)})
            return
        raise NoAnswer("chain used up")


def main():
    import programs
    return programs.main(sys.argv[1:])


if __name__ == "__main__": sys.exit(main())
