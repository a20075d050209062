"""Makes a failing program small: drops statements, blocks, functions and calls while the harness still fails on it."""
import copy
import subprocess
import sys
import programs


def fails(harness, session):
    """What the harness says of the program: its first failure, or None. The model must agree with eager throughout."""
    try:
        if session.run(): return None
    except Exception: return None
    text = programs.text_of(session)
    got = subprocess.run([harness, "/dev/stdin"], input=text.encode(), capture_output=True, timeout=120, check=False)
    lines = got.stdout.decode(errors="replace").split("\n")
    bad = [i for i, line in enumerate(lines) if line.startswith("not ok")]
    if got.returncode < 0: return "it crashes"
    return lines[bad[0] + 1] if bad and "can be read" not in lines[bad[0]] else None


def smaller(session):
    """Sessions that lack a part of this one."""
    def variant(change):
        other = copy.copy(session)
        other.p, other.plan = copy.deepcopy(session.p), list(session.plan)
        change(other)
        return other
    n = len(session.plan)
    for size in (n // 2, n // 4, n // 8, 1):
        for at in range(0, n, size or 1):
            if 0 < size < n: yield variant(lambda o, at=at, size=size: o.plan.__delitem__(slice(at, at + size)))
    def paths(block, at=()):
        for i, s in enumerate(block):
            yield at + (i,)
            for j, b in enumerate(s.blocks): yield from paths(b, at + (i, j))
    def reach(block, path):
        for i, j in zip(path[::2], path[1::2]): block = block[i].blocks[j]
        return block
    for f, (_, block, _) in enumerate(session.p.fns):
        for path in paths(block):
            def drop(o, f=f, path=path): del reach(o.p.fns[f][1], path[:-1])[path[-1]]
            def lift(o, f=f, path=path):
                inside = reach(o.p.fns[f][1], path[:-1])
                inside[path[-1]:path[-1] + 1] = [s for b in inside[path[-1]].blocks for s in b]
            yield variant(drop)
            if reach(block, path[:-1])[path[-1]].blocks: yield variant(lift)
        for i in range(len(session.p.fns[f][2]) * (f == 0)):
            if len(session.p.fns[f][2]) > 1: yield variant(lambda o, i=i: o.p.fns[0][2].pop(i))


def main(harness, session):
    why = fails(harness, session)
    if not why:
        print("it does not fail", file=sys.stderr)
        return 1
    again = True
    while again:
        again = False
        for other in smaller(session):
            said = fails(harness, other)
            if said:
                session, why, again = other, said, True
                break
    session.run()
    sys.stdout.write(programs.text_of(session))
    print(why, file=sys.stderr)
    return 0
