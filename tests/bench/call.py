"""What a call that hits costs. Without an argument: the limits, in instructions, as tests. With `show`: a table of
times beside PyTorch's, where this Python has one.

A dispatch is bp_call_at from entry to exit, without what the compiled object's own run takes (which makes its output).
The samples of what a plugin may only read (host/backend/watch.c) are part of it.
The cost of a tensor is the growth from 10 to 100 inputs, by one. Limits hold for builds at -O2, the default."""
import os
import re
import subprocess
import sys
import time

top, build = os.environ["top_srcdir"], os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
sys.path.insert(0, os.path.join(top, "tests", "bench"))
import instructions  # noqa: E402
from tap import plan, report, skip  # noqa: E402

DISPATCH, GUARD = 1200, 100
PROGRAM, PLUGIN = os.path.join(build, "tests/bench/call"), os.path.join(build, "tests/bench/plugin.so")
SLOW = os.path.join(build, "tests/bench/call_slow")
CALLS = 100
LOCKS = re.compile(r"pthread_(mutex|rwlock|spin)_(try|timed)?(lock|rdlock|wrlock)|lll_lock|futex|epoch_retire")


def hits(inputs, entries=1, breaks=0, program=PROGRAM):
    """The profile of a hundred calls that hit."""
    return instructions.run([program, PLUGIN, "count", str(inputs), str(entries), str(breaks)])


def dispatch(p):
    """Instructions of one dispatch."""
    return (p.of("bp_call_at") - p.of("bench_run")) / CALLS


def makefile_value(name):
    with open(os.path.join(build, "Makefile"), encoding="utf-8") as f:
        return re.search(rf"^{name} = ?(.*)$", f.read(), re.M)[1]


def not_counted():
    """Why this build's instructions say nothing, or None."""
    flags = makefile_value("CFLAGS").split() + makefile_value("BP_SAN").split()
    if any(f.startswith("-fsanitize") for f in flags):
        return "this build is sanitized, and limits are for builds without"
    levels = [f for f in flags if f.startswith("-O")]
    if not levels or levels[-1] not in ("-O2", "-O3"):
        return f"this build is at {levels[-1] if levels else '-O0'}, and limits are for -O2"
    return None


def limit(name, count, most):
    report(count <= most, f"{name}: {count:.0f} instructions, at most {most}", [f"{count:.1f} > {most}"])


def locks(p):
    return sorted(f for f in p.functions() if LOCKS.search(f))


def check_planted():
    """A fault that is too small to be seen in time must be seen here."""
    plain, slow = hits(2), hits(2, program=SLOW)
    report(dispatch(slow) > max(DISPATCH, dispatch(plain) + 100), "planted: a loop of a hundred turns breaks the limit",
           [f"{dispatch(plain)} and {dispatch(slow)}"])
    report("pthread_mutex_lock" in " ".join(locks(slow)), "planted: a lock is seen", locks(slow))


def check():
    if not instructions.valgrind():
        report(False, "valgrind counts instructions", ["valgrind is not found: ./bootstrap tools installs it"])
        plan()
        return
    check_planted()
    one, two, ten, hundred = (hits(n) for n in (1, 2, 10, 100))
    tensor = (hundred.of("guard_check") - ten.of("guard_check")) / 90 / CALLS
    whole = (dispatch(hundred) - dispatch(ten)) / 90
    samples = two.of("watch_samples") / CALLS
    report(samples > 0, f"the samples of 2 inputs are part of a dispatch: {samples:.0f} instructions")
    why = not_counted()
    if why:
        skip(f"a dispatch of 2 inputs: {dispatch(two):.0f} instructions, a tensor guard {tensor:.0f}", why)
    else:
        limit("a dispatch of 1 input", dispatch(one), DISPATCH)
        limit("a dispatch of 2 inputs", dispatch(two), DISPATCH)
        limit("a tensor guard, one more of 100 inputs", tensor, GUARD)
        limit("a tensor in all of a call: argument, guard, identity, hand-over", whole, 1.5 * GUARD)
    for name, p in (("2 inputs", two), ("100 inputs", hundred), ("2 breaks", hits(2, breaks=2)),
                    ("4 entries by turns", hits(2, entries=4))):
        report(not locks(p), f"a hit takes no lock: {name}", locks(p))
    plan()


# -- the table ---------------------------------------------------------------------------------------------------------

REFERENCE = {"inputs.1": 5700, "inputs.2": 5900, "inputs.10": 7300, "inputs.100": 22000, "cold.2": 77000}


def figures():
    said = subprocess.run([PROGRAM, PLUGIN, "time"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: float(value) for name, value in (line.split() for line in said.splitlines())}


def least(body, n=2000, rounds=7):
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter_ns()
        for _ in range(n):
            body()
        best = min(best, (time.perf_counter_ns() - began) / n)
    return best


def torch_figures():
    """The same by PyTorch, in this process; the call of a compiled function whose backend gives back one tensor."""
    try:
        import torch
    except ImportError:
        return None, "PyTorch's published figures of another machine: this Python has none"
    torch.set_num_threads(1)
    out = torch.ones(2, 3)
    found = {}

    def nearly_empty(gm, inputs):
        return lambda *args: (out,)

    for n in (1, 2, 10, 100):
        torch._dynamo.reset()
        source = f"def f({', '.join(f'x{i}' for i in range(n))}): return {' + '.join(f'x{i}' for i in range(n))} + 1\n"
        space = {}
        exec(source, space)  # noqa: S102 # a function of n arguments
        f, args = torch.compile(space["f"], backend=nearly_empty), [torch.ones(2, 3) for _ in range(n)]
        for _ in range(5):
            f(*args)
        found[f"inputs.{n}"] = least(lambda: f(*args), 500 if n == 100 else 2000)
    return found, f"PyTorch {torch.__version__} in the same run"


def show():
    why = not_counted()
    if why:
        print(f"Note: {why}.")
    ours = figures()
    theirs, source = torch_figures()
    theirs = theirs or REFERENCE
    tensor = (ours["inputs.100"] - ours["inputs.10"]) / 90
    print(f"{'a call that hits':34}{'ns':>10}{'floor':>9}{'over':>8}{'PyTorch':>10}{'ratio':>8}")

    def row(name, key, ns, floor=None):
        other = theirs.get(key)
        print(f"{name:34}{ns:10.1f}" + (f"{floor:9.1f}{ns / floor:7.0f}x" if floor else f"{'':17}") +
              (f"{other:10.0f}{other / ns:7.0f}x" if other else ""))

    for n in (1, 2, 10, 100, 1000):
        row(f"{n} inputs", f"inputs.{n}", ours[f"inputs.{n}"], ours["floor.call"] + n * ours["floor.tensor"])
    row("a tensor more, of 10 to 100", "tensor", tensor, ours["floor.tensor"])
    for n in (1, 2, 4, 8):
        row(f"{n} entries, by turns", f"entries.{n}", ours[f"entries.{n}"])
    for n in range(4):
        row(f"{n} breaks", f"breaks.{n}", ours[f"breaks.{n}"])
    for n in (2, 100):
        row(f"{n} inputs, caches evicted", f"cold.{n}", ours[f"cold.{n}"])
    for n in (1, 8):
        row(f"{n} threads, a processor's time", f"threads.{n}", ours[f"threads.{n}"])
    print(f"\nFloor: an indirect call ({ours['floor.call']:.1f} ns) and eight words compared a tensor "
          f"({ours['floor.tensor']:.1f} ns).\nA pair of scopes, "
          f"{ours['scope']:.1f} ns, is taken off.\nRight: {source}.")
    if not instructions.valgrind():
        print("Instructions are not counted: valgrind is not found (./bootstrap tools installs it).")
        return
    ten, hundred = hits(10), hits(100)
    print(f"Instructions: {dispatch(hits(2)):.0f} a dispatch of 2 inputs (at most {DISPATCH}), "
          f"{(hundred.of('guard_check') - ten.of('guard_check')) / 90 / CALLS:.0f} a tensor guard (at most {GUARD}), "
          f"{(dispatch(hundred) - dispatch(ten)) / 90:.0f} a tensor in all.")


if sys.argv[1:] == ["show"]:
    show()
else:
    check()
