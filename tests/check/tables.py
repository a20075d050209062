"""Public names are unique: what aten.h defines is defined nowhere else, and once.

The generator refuses equal names when it runs; this reads what users read. A function behind a macro of the same name
in one hand-written header (bp_is_true) is that header's own affair.
"""
import collections
import os
import re
import subprocess
import sys

top, build = os.environ["top_srcdir"], os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402

HAND_WRITTEN = ("types.h", "plugin.h", "args.h", "backplane.h")


def code(text):
    """The text without comments and string literals."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)


def names_of(text):
    """(kind, name) of each macro, type and function that a header's code defines or declares, C++ parts left out."""
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#(?:else|endif)", "", code(text), flags=re.S | re.M)
    yield from (("macro", m) for m in re.findall(r"^#\s*define\s+((?:bp|BP)_\w+)", text, re.M))
    yield from (("type", m) for m in re.findall(r"^(?:typedef\b[^;{]*|\})\s*\b(bp_\w+)\s*;", text, re.M))
    heads = r"^(?:BP_EXPORT|static inline)\b[^;{(]*?\b(bp_\w+)\s*\("
    yield from (("function", m) for m in re.findall(heads, text, re.M))


def repeated(named):
    count = collections.Counter(name for _, name in named)
    return sorted(name for name, n in count.items() if n > 1)


def services():
    """bp_<row> of each row of host_api.def."""
    with open(os.path.join(top, "sdk/include/backplane/host_api.def"), encoding="utf-8") as f:
        rows = re.findall(r"^BP_API_ROW\([^,]*,[^,]*,\s*(\w+)|^BP_API_VOID\([^,]*,\s*(\w+)", f.read(), re.M)
    return {"bp_" + (a or b) for a, b in rows}


def read(name, folder):
    with open(os.path.join(folder, "sdk/include/backplane", name), encoding="utf-8") as f:
        return f.read()


def compiled():
    """Functions as the compiler sees them, so that nothing hides from the patterns above."""
    text = "#include <backplane/plugin.h>\n#include <backplane/backplane.h>\n"
    done = subprocess.run(["gcc", "-std=c11", f"-I{top}/sdk/include", f"-I{build}/sdk/include", "-fsyntax-only",
                           "-aux-info", "/dev/stdout", "-x", "c", "-"],
                          input=text, capture_output=True, text=True, check=True)
    return set(re.findall(r"\b(bp_\w+) \(", done.stdout))


def main():
    planted = "BP_EXPORT int bp_same(int a);\n#define bp_same(...) 1\ntypedef struct {\n    int a;\n} bp_other;\n"
    report(repeated(names_of(planted)) == ["bp_same"], "planted: a macro that takes a function's name is found")
    aten = list(names_of(read("aten.h", build)))
    report(len(aten) > 2000, "aten.h was read", [f"{len(aten)} names"])
    report(not repeated(aten), "no two names of aten.h are equal", repeated(aten))
    others = {name for h in HAND_WRITTEN for _, name in names_of(read(h, top))} | services()
    own = {name for _, name in aten}
    report(len(others) > 100 and not own & others, "aten.h takes no name of another public header",
           sorted(own & others))
    functions = {name for kind, name in aten if kind == "function"}
    report(functions <= compiled(), "the compiler sees each function of aten.h", sorted(functions - compiled())[:20])
    plan()


main()
