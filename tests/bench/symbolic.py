"""What symbolic sizes cost, in instructions: shapes of symbols beside shapes of numbers, and guards on shapes.

A check of twenty conditions is to take less than 200 ns; at three instructions a ns, of which a loop of compares and
branches has two or so, that is the limit here. Limits hold for builds at -O2, the default."""
import os
import re
import sys

top, build = os.environ["top_srcdir"], os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
sys.path.insert(0, os.path.join(top, "tests", "bench"))
import instructions  # noqa: E402
from tap import plan, report, skip  # noqa: E402

PROGRAM = os.path.join(build, "tests/bench/symbolic")
CHECKS, NODES = 1000, 5000
GUARDS, SHAPES, COMPILE = 850, 1.75, 1.5


def counted(what, sizes, n):
    """Instructions of bench_measured."""
    return sum(instructions.run([PROGRAM, what, sizes, str(n)]).own.values())


def compiled(sizes):
    """Those of a compile, without the run that comes with it."""
    return counted("compile", sizes, NODES) - counted("call", sizes, NODES)


def optimized():
    with open(os.path.join(build, "Makefile"), encoding="utf-8") as f:
        text = f.read()
    flags = re.search(r"^CFLAGS = ?(.*)$", text, re.M)[1].split()
    levels = [f for f in flags if f.startswith("-O")]
    return bool(levels) and levels[-1] in ("-O2", "-O3")


def limit(name, value, most, unit):
    if optimized():
        report(value <= most, f"{name}: {value:.2f}{unit}, at most {most}", [f"{value:.3f} > {most}"])
    else:
        skip(f"{name}: {value:.2f}{unit}", "this build is not at -O2, and limits are for -O2")


if not instructions.valgrind():
    report(False, "valgrind counts instructions", ["valgrind is not found: ./bootstrap tools installs it"])
else:
    limit("twenty conditions on shapes", counted("guards", "static", CHECKS) / CHECKS, GUARDS, " instructions")
    limit(f"shapes of {NODES} nodes, of symbols over of numbers",
          counted("shapes", "dynamic", NODES) / counted("shapes", "static", NODES), SHAPES, " times")
    limit(f"a compile of {NODES} nodes, of symbols over of numbers", compiled("dynamic") / compiled("static"), COMPILE,
          " times")
plan()
