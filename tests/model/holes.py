"""Each doubtful rule on its smallest program: as the rules are, and as a wording was taken literally.

tests/model/test_holes.c has the same programs in C, with the numbers that `capture_model.py --holes` prints.
"""
import numpy as np
import capture_model as model
from capture_model import Host, Link
from eager import LITERAL, World
from programs import compare


def loop(c, f, body, k=0):
    s, y = c.sum(f.arg(0)), f.arg(1)
    while c.is_true(c.lt(s, 60)): s, y, k = c.add(s, 1), body(s, y), k + 1
    return s, y, k


def toy(c, f):
    a, b = f.arg(0), f.arg(1)
    return [c.mul(c.add(a, 1), c.mul(b, -1) if c.is_true(c.lt(c.sum(b), 0)) else b)]


def ifs(c, f, x=1):
    y = f.arg(0)
    for i in range(10): y = c.mul(y, i + 2) if c.is_true(c.lt(c.view(f.arg(x), i, 1), 0)) else y
    return [y]


def ifs_on_y(c, f): return ifs(c, f, 0)             # y is the value asked about until the first branch is taken
def rounds(c, f): return [loop(c, f, lambda s, y: c.add(y, 0.5))[1]]
def dropout(c, f): return [loop(c, f, lambda s, y: c.add(y, c.rand(1)))[1]]


def late(c, f):                                     # z is wanted only after the last round, now and then
    z = []
    s, y, k = loop(c, f, lambda s, y: z.append(c.cumsum(s)) or c.add(y, 0.5))
    return [c.mul(y, z[-1])] if k % 2 else [y]


def swap(c, f):
    old = c.clone(f.arg(1))
    c.copy_(f.arg(1), f.arg(0))
    c.copy_(f.arg(0), old)
    return []


def escaped(c, f):
    y = c.add(f.arg(0), 1)
    c.disabled("stash", y)
    c.add_(y, 5)
    return []


def drawn(c, f):
    c.disabled("draw", c.rand(2))
    return [c.rand(2)]


def error(c, f):
    c.add_(f.arg(0), 1)
    return [c.view(f.arg(0), c.item_int(c.sum(f.arg(0))), 1)]


def gather(c, f): return [c.index(f.arg(0), c.cast(c.view(f.arg(1), 0, 1), "i"))]
def dead(c, f): return gather(c, f) and []


def lookup(c, f):
    x = gather(c, f)[0]
    return [x] if c.is_true(c.lt(x, 2)) else []


def printed(c, f):
    c.print(c.add_(f.arg(0), 1))
    return [c.cumsum(f.arg(0))]


def unlucky(c, f):                                  # what fails behind a commit goes on there: it prints once
    c.print(c.add_(f.arg(0), 1))
    return gather(c, f)


def behind(c, f):                                   # z is wanted behind a commit that changes what z is made of
    x = f.arg(0)
    z = c.cumsum(x)
    c.print(c.add_(x, 1))
    return [c.mul(z, 2)] if c.is_true(c.lt(c.sum(x), 9)) else []


def item(c, f): return [c.mul(f.arg(0), c.item_float(c.sum(f.arg(0))))]


def twins(c, f):
    y = c.add(f.arg(0), 1)
    return [y, c.clone(y)]


def copied(c, f): return [c.copy_(c.full(2, 0.5), f.arg(0))]


def grown(c, f):                                    # the second path wants more from two segments of the first
    z = c.cumsum(f.arg(0))
    c.is_true(c.lt(c.sum(f.arg(0)), 0))
    w = c.cumsum(f.arg(1))
    return [c.mul(z, w)] if c.is_true(c.lt(c.sum(f.arg(1)), 9)) else [c.cumsum(c.sum(f.arg(0)))]


def opens(c, f): return [c.mul(f.arg(0), c.item_int(c.sum(f.arg(0))))]      # known outcomes of an open break match


def told(c, f):                                     # what was asked is handed on, though it is cheap
    y = c.mul(f.arg(0), 0.5)
    return [f.arg(0)] if c.is_true(c.lt(c.view(y, 0, 1), 0)) else [c.add(y, 1)]


def modes(c, f):                                    # the same code without grad and with it
    y = f.arg(0)
    for on in (False, True):
        old = c.set_grad(on)
        y = c.mul(y, -1) if c.is_true(c.lt(c.sum(y), 0)) else y
        c.set_grad(old)
    return [y]


def inner(c, f): return [c.mul(f.arg(0), 2) if c.is_true(c.lt(c.sum(f.arg(0)), 0)) else c.add(f.arg(0), 1)]


def nested(c, f):                                   # one inlined callable, called twice
    y = c.call(inner, 1, f.arg(0))[0]
    return [c.call(inner, 1, y)[0]]


def own(*vs): return [np.array(v) for v in vs], [(k, 0, len(v), 1, k) for k, v in enumerate(vs)]


def rows():
    """(program, calls, name of the literal reading, the link, limit of segments)"""
    signs, one = [[1. - 2 * (n >> i & 1) for i in range(10)] for n in range(1024)], [own((1., 2.), (3., 4.))] * 3
    trips = [own([60 - k], (.5, 1.)) for k in (3, 9, 1, 5, 60, 0, 30)]
    two = [own((1., 2.), (9. * k, 2.)) for k in (1, 0) * 3]
    bad = [own((1., 2.), (k, 0.)) for k in (2., 0., 0., 1., 2., 0.)]
    halves = [own((s, 2.)) for s in (-1., 1., -3., 3.)] * 3
    tenths = [own((.1, .2, .3 + k)) for k in range(8)] * 2
    return (
        (toy, [own((1., 2.), (s, 3.)) for s in (-9., 9.)] * 50, "", {}, 256),
        (ifs, [own([2.] * 10, s) for s in signs], "", {}, 256), (ifs_on_y, [own(s) for s in signs], "", {}, 256),
        (rounds, trips, "", {}, 256), (rounds, [own([-40], (.5,))] * 3, "", {}, 256), (late, trips, "lists", {}, 256),
        (dropout, trips, "baked", {}, 256), (swap, one, "epilogue", {}, 256), (escaped, one, "escaped", {}, 256),
        (drawn, one, "rng", {}, 256), (behind, [own((k, 2.)) for k in (9., 0.) * 3], "handon", {}, 256),
        (error, [own([k, 0]) for k in (7, 8, 9) * 5], "error", {}, 256), (lookup, bad, "leaf", {}, 256),
        (gather, bad, "blame", {}, 256), (dead, bad, "dead", {}, 256), (printed, one, "final", {"fail_run": 2}, 256),
        (unlucky, bad, "final", {}, 256), (item, tenths, "kept", {"plain": True}, 256),
        (twins, one, "share", {"elide": True}, 256), (copied, one, "share", {}, 256), (grown, two, "grown", {}, 4),
        (opens, [own([k, 1]) for k in range(10)] * 2, "open", {}, 256), (told, halves, "told", {}, 256),
        (modes, halves, "modes", {}, 256), (nested, halves, "", {}, 256))


def main():
    stats = list(model.STATS)
    print("program    reading   wrong segments", *stats)
    for prog, specs, literal, link, limit in rows():
        for reading in ("", literal) if literal else ("",):
            LITERAL.clear()
            LITERAL.update({reading} - {""})
            host, world = Host(prog, World(1), [Link(**link)], limit=limit, alone=prog is printed), World(1)
            wrong = sum(compare(host, world, spec, "plain" in link)[2] is not None for spec in specs)
            print(f"{prog.__name__:10} {reading or 'amended':9} {wrong:5} {len(host.store):8}",
                  *(f"{host.stats[k]:{len(k)}}" for k in stats))
    return 0
