"""Each row of tests/rows.def has its test, or is out of a C program's reach and says so in docs/scope.md.

A test function counts when a CMocka program of `make check` defines and lists it; it shows the row whose id its name
begins with. A row marked `scope` is an entry of docs/scope.md, in bold, and every such entry is a row.
"""
import glob
import os
import re
import sys

top = os.environ.get("top_srcdir", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402


def read(path):
    with open(path, encoding="utf-8") as f: return f.read()


def rows(text):
    """[(id, out of scope, what it is)]; another line is an error."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = [re.fullmatch(r"(c1[14]_\w+)( scope)?: (\S.*)", line) for line in lines]
    if None in found: sys.exit(f"tests/rows.def: `ID: ROW` or `ID scope: ROW`, got {lines[found.index(None)]!r}")
    return [(m[1], bool(m[2]), m[3]) for m in found]


def tests_in(text):
    """Names of row tests that a program defines and lists."""
    defined = set(re.findall(r"^static void (c1[14]_\w+)\(void \*\*\w+\)$", text, re.M))
    listed = set(re.findall(r"^ +(?:T|cmocka_unit_test\w*)\((c1[14]_\w+)", text, re.M))
    return defined & listed


def programs():
    """Sources of the programs that `make check` runs."""
    mk = "".join(read(p) for p in glob.glob(os.path.join(top, "tests", "**", "local.mk"), recursive=True))
    return [p for p in sorted(glob.glob(os.path.join(top, "tests", "**", "test_*.c"), recursive=True))
            if re.search(r"%D%\S*/" + os.path.basename(p)[:-2] + r"\b", mk)]


def entries(text):
    return re.findall(r"^- \*\*(.+?)\*\*: \S", text, re.M)


def missing(listed, tests, scope):
    """Rows without a test or an entry; entries without a row."""
    lost = [f"{n}: {says}" for n, out, says in listed
            if (says not in scope if out else not any(t == n or t.startswith(n + "_") for t in tests))]
    return lost, [e for e in scope if e not in [says for _, out, says in listed if out]]


def planted():
    listed = rows("c14_one: one\nc14_two: two\nc14_far scope: far away\nc11_lost scope: nowhere\n")
    text = "static void c14_one_is_shown(void **state)\n{\n}\n        T(c14_one_is_shown),\n        T(c14_two),\n"
    lost, entry = missing(listed, tests_in(text), entries("- **far away**: x\n- **else**: y\n"))
    report(lost == ["c14_two: two", "c11_lost: nowhere"], "a row without its test or entry is missed", lost)
    report(entry == ["else"], "an entry without a row is strange", entry)


def main():
    planted()
    tests = {t for p in programs() for t in tests_in(read(p))}
    lost, entry = missing(rows(read(os.path.join(top, "tests", "rows.def"))), tests,
                          entries(read(os.path.join(top, "docs", "scope.md"))))
    report(not lost, "every row has its test, or is out of scope with a reason", lost)
    report(not entry, "every entry of docs/scope.md is a row", entry)
    plan()


main()
