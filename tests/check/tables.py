"""The table of operators is whole: each row has a doc line, a sample, and a test against PyTorch's recorded answer to
it (the golden cases and tests/torch) or one of its own (rows.own).

Each row that may give a tensor which requires grad has one derivative, a reason why it has none, or is a composite.

And public names are unique: what aten.h defines is defined nowhere else, and once.

The generator refuses equal names when it runs; this reads what users read. A function behind a macro of the same name
in one hand-written header (bp_is_true) is that header's own affair.
"""
import collections
import glob
import gzip
import json
import os
import re
import subprocess
import sys

top, build = os.environ["top_srcdir"], os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from rows import ROW, TEXT, parse, rows  # noqa: E402
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


CASES = ("tests/golden/ops_handed", "tests/golden/graphs_handed", "tests/torch/recorded")


def sampled():
    """Targets of which PyTorch's answers are recorded."""
    found = set()
    for name in CASES:
        with gzip.open(os.path.join(top, name + ".jsonl.gz"), "rt", encoding="utf-8") as f:
            for line in f:
                start = re.match(r'\{"op": "([^"]+)"', line)
                found.update([start[1]] if start else (n["target"] for n in json.loads(line)["nodes"]))
    return found


def own_tests(lines):
    """{target: what is wrong with its test, or None} of the lines of rows.own."""
    found = {}
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        target, path, function = line.split()
        with open(os.path.join(top, path), encoding="utf-8") as f:
            body = re.search(rf"^static void {function}\(.*?^}}", f.read(), re.S | re.M)
        says = body and (target in body[0] or "targets[i]" in body[0])
        found[target] = None if says else f"{path} has no {function} with {target}"
    return found


def incomplete(table, known, own):
    """What each row lacks."""
    for target, (_, _, _, doc) in table.items():
        if not doc.endswith("."):
            yield f"{target} has no doc line"
        if target not in known and target not in own:
            yield f"{target} has no sample and no test: see tests/torch/record.py"


GRADS = ("GRAD", "GRAD_FN", "GRAD_ZERO", "GRAD_NONE")


def differentiated(folder, macros):
    """{row: macros that name it} of the .def files of a folder."""
    found = collections.defaultdict(list)
    for path in sorted(glob.glob(os.path.join(top, folder, "*.def"))):
        with open(path, encoding="utf-8") as f:
            for macro, name in re.findall(r"^(\w+)\((\w+)", re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S), re.M):
                if macro.startswith(macros):
                    found[name].append(macro)
    return found


def needing(text):
    """Rows of a file's text that may give a tensor which requires grad."""
    for kind, name, schema, flags, _ in ROW.findall(re.sub(r"/\*.*?\*/", " ", text, flags=re.S)):
        takes, _, gives = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', schema)).partition(") -> ")
        tensors = "Tensor" in takes.split("(", 1)[1] and "Tensor" in gives
        if kind != "INPLACE" and "OP_NO_GRAD_OUT" not in flags and tensors:
            yield name


def underived(names, rows, composites):
    """Rows that have not exactly one of a row of derivatives and a composite decomposition."""
    for name in names:
        have = rows.get(name, []) + composites.get(name, [])
        if len(have) != 1:
            yield f"{name} has {' and '.join(have) or 'no derivative'}: see host/grad/derivative.h"


def check_derivatives():
    rows, composites = differentiated("host/grad/rows", GRADS), differentiated("host/pass/decomps", "COMPOSITE")
    planted = """OP(bare_default, "bare(Tensor self) -> Tensor", OP_CORE, unary, bare, "Bare.")
OP(twice_default, "twice(Tensor self) -> Tensor", 0, unary, twice, "Twice.")
OP(told_default, "told(Tensor self) -> Tensor", OP_NO_GRAD_OUT, unary, told, "Told.")
OP(made_default, "made(int size) -> Tensor", 0, made, made, "Made.")
"""
    wrong = list(underived(needing(planted), {"twice_default": ["GRAD"]}, {"twice_default": ["COMPOSITE"]}))
    report(wrong == ["bare_default has no derivative: see host/grad/derivative.h",
                     "twice_default has GRAD and COMPOSITE: see host/grad/derivative.h"],
           "planted: a row without a derivative, and one with two, are named", wrong)
    names = []
    for path in glob.glob(os.path.join(top, "host/op/ops/*.def")):
        with open(path, encoding="utf-8") as f:
            names += needing(f.read())
    wrong = list(underived(names, rows, composites))
    report(len(names) > 700 and not wrong, "each row that gives gradients has one derivative, or is a composite", wrong)


def check_rows():
    table, known = rows(top), sampled()
    with open(os.path.join(top, "tests/check/rows.own"), encoding="utf-8") as f:
        own = own_tests(f)
    planted = parse('OP(bad_default, "bad(Tensor self) -> Tensor", 0, bad, bad, "")\n')
    report(list(incomplete(planted, known, own)) == ["aten.bad.default has no doc line",
           "aten.bad.default has no sample and no test: see tests/torch/record.py"],
           "planted: a row without doc line, sample or test is named")
    report(list(own_tests(["aten.neg.default tests/unit/op/test_own.c empty_ones_have_their_form"]).values()) ==
           ["tests/unit/op/test_own.c has no empty_ones_have_their_form with aten.neg.default"],
           "planted: a test that does not hold the row is named")
    with open(os.path.join(build, "host/op/aten_calls.c"), encoding="utf-8") as f:
        compiled_ids = set(re.findall(r"\bROW_(\w+)", f.read()))
    unread = sorted(compiled_ids - {name for _, name, _, _ in table.values()})
    report(len(compiled_ids) > 1000 and not unread, "all rows that are compiled were read", unread)
    wrong = list(incomplete(table, known, own))
    report(not wrong, "each row has a doc line, a sample and a test", wrong)
    report(not [w for w in own.values() if w], "tests of their own hold their rows", [w for w in own.values() if w])
    stale = sorted(set(own) & known) + sorted(set(own) - set(table))
    report(not stale, "no row has both, and none is gone", stale)


def functional(text):
    """{id: is it core ATen} of a file's rows that stand for themselves."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    found = re.findall(rf"^(?:OP|VIEW)\(\s*(\w+)\s*,(?:\s*{TEXT})+\s*,(.*?),", text, re.S | re.M)
    return {name: "OP_CORE" in flags for name, flags in found}


def decompositions(text):
    """(id, macro) of a file's rows."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return [(name, macro) for macro, name in re.findall(r"^(DECOMP|COMPOSITE|KEPT)\w*\(\s*(\w+)\s*,", text, re.M)]


def undecided(core, rows):
    """Operators that are not exactly one of core, decomposed and KEPT; a core one may be a composite as well."""
    for name, is_core in core.items():
        macros = [m for i, m in rows if i == name]
        if len(macros) + is_core != 1 and not (is_core and macros == ["COMPOSITE"]):
            yield f"{name} is {'core' if is_core else 'not core'}, and has {', '.join(macros) or 'no row'}"
    yield from (f"{name} is no operator that stands for itself" for name, _ in rows if name not in core)


def read_all(folder):
    return "".join(open(p, encoding="utf-8").read() for p in sorted(glob.glob(os.path.join(top, folder, "*.def"))))


def check_decompositions():
    rows_of = 'DECOMP(a_default, "b(self)")\nKEPT(a_default, "why")\nCOMPOSITE_FN(c_default, c)\nKEPT(e_default, "x")\n'
    planted = "".join(f'OP({n}_default, "{n}(Tensor self) -> Tensor", {f}, u, v, "x.")\n'
                      for n, f in (("a", "0"), ("b", "0"), ("c", "OP_CHEAP | OP_CORE"), ("d", "OP_CORE")))
    report(list(undecided(functional(planted), decompositions(rows_of))) ==
           ["a_default is not core, and has DECOMP, KEPT", "b_default is not core, and has no row",
            "e_default is no operator that stands for itself"],
           "planted: an operator with two decompositions, one with none, and a row of nobody are named")
    core = functional(read_all("host/op/ops") + read_all("host/op"))
    rows_of = decompositions(read_all("host/pass/decomps"))
    report(sum(core.values()) > 150 and len(rows_of) > 700, "the decompositions were read", [f"{len(rows_of)} rows"])
    wrong = list(undecided(core, rows_of))
    report(not wrong, "each functional row is core, has a decomposition, or is KEPT", wrong)


def main():
    check_rows()
    check_derivatives()
    check_decompositions()
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
