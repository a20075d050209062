"""No rule reads the number of a size that may be a symbol.

A `.value` of a size, stride or offset is the hint of a symbol, and what is decided by it holds for that hint alone.
Rules ask (dim_eq and kin), compute (dim_add and kin) or make a number of it (dim_int). Lines that look whether it is a
constant are right; sizes.allow names the files and folders that see numbers only, a reason each; an entry that excuses
nothing is a failure too.
"""
import os
import re
import sys

top = os.environ["top_srcdir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402

READS = re.compile(r"\b(?:sizes?|strides?|dims?|offset|bytes|numel)(?:\[[^]]*\])?\.value\b(?!\s*=[^=])"
                   r"|\.v\.dim\.value\b(?!\s*=[^=])"
                   r"|\b(?:arg_dim|arg_list_dim|grad_size|tensor_numel)\([^;]*\)\.value\b")
LOOKS = re.compile(r"dim_is_const|\.sym\b")


def bare(text):
    """C text with comments blanked, line by line the same."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def reads(file, text):
    """Lines of one file that read a size's number without looking."""
    for number, line in enumerate(bare(text).split("\n"), 1):
        if READS.search(line) and not LOOKS.search(line):
            yield f"{file}:{number}: {line.strip()[:80]}"


def allow_table():
    table = {}
    with open(os.path.join(top, "tests/check/sizes.allow"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                key, _, reason = line.strip().partition(" ")
                table[key] = reason.strip()
    return table


def excuse(file, allowed):
    return next((k for k in allowed if file == k or (k.endswith("/") and file.startswith(k))), None)


def scan(allowed):
    found, used = [], set()
    for at, _, names in sorted(os.walk(os.path.join(top, "host"))):
        for name in sorted(names):
            file = os.path.relpath(os.path.join(at, name), top)
            if not name.endswith((".c", ".h")):
                continue
            with open(os.path.join(top, file), encoding="utf-8") as f:
                lines = list(reads(file, f.read()))
            key = excuse(file, allowed)
            if lines and key:
                used.add(key)
            elif lines:
                found += lines
    return found, used


PLANTED = [
    (1, "if (t->sizes[0].value == 1)\n"), (1, "n *= m->strides[d - 1].value;\n"), (1, "last = t->offset.value;\n"),
    (1, "n = arg_list_dim(s->args, 1, i).value;\n"), (1, "i = v->v.dim.value;\n"), (1, "f(t->sizes[d].value);\n"),
    (0, "if (dim_is_const(sizes[d]) && sizes[d].value < 0)\n"), (0, "/* sizes[d].value is a hint */\n"),
    (0, "out->v.dim.value = 3;\n"), (0, "print(kwargs[i].value);\n"), (0, "dim_int(c, t->sizes[d])\n"),
]


def main():
    wrong = [text for n, text in PLANTED if len(list(reads("a.c", text))) != n]
    report(not wrong, "planted readers of a size's number are found", wrong)
    allowed = allow_table()
    found, used = scan(allowed)
    report(not found, "no rule reads the number of a size", found)
    report(all(allowed.values()), "each exception has its reason", [k for k, v in allowed.items() if not v])
    report(used == set(allowed), "each exception excuses something", sorted(set(allowed) - used))
    plan()


main()
