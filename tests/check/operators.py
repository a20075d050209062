"""docs/operators.md names each overload of the golden files that is not there, with a reason, and no other; they are at
most 5 % of the cases. And each report of users on operators (A002 to A114, A16) has a test that bears its id.
"""
import glob
import os
import re
import subprocess
import sys

top, command = os.environ["top_srcdir"], os.environ["BP_CLI"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402

FILES = [os.path.join(top, "tests/golden", f"{f}_handed.jsonl.gz") for f in ("ops", "graphs")]
# Ids are even numbers; A16 is a section of lines without ids.
REPORTS = {f"A{n:03}": 1 for n in range(2, 115, 2)} | {"A16": 11}


def listed(page):
    """{overload: reason} of the first table behind "What is not there"."""
    table = page.split("## What is not there", 1)[1].split("\n\nBeyond", 1)[0]
    return {name: why.strip() for name, why in re.findall(r"^\| `([^`]+)` \| (.*) \|$", table, re.M)}


def refused():
    """({overload: cases}, all cases) of the golden files; an operator that is there is named by its label."""
    found, cases = {}, 0
    for path in FILES:
        said = subprocess.run([command, "golden", "--list-unsupported", path], capture_output=True, text=True).stdout
        for count, why in re.findall(r"^unsupported: (\d+): (.*)$", said, re.M):
            missing = re.match(r"operator (\S+) is not in the table", why)
            name = missing[1] if missing else why.split(":")[0]
            found[name] = found.get(name, 0) + int(count)
        cases += sum(map(int, re.search(r"^(\d+) passed, (\d+) failed, (\d+) unsupported$", said, re.M).groups()))
    return found, cases


def differing(page, found):
    yield from (f"{name} is not in docs/operators.md" for name in sorted(set(found) - set(page)))
    yield from (f"{name} is there, and docs/operators.md says not" for name in sorted(set(page) - set(found)))
    yield from (f"{name} has no reason" for name, why in page.items() if len(why) < 8)


def tested(sources):
    names = re.findall(r"^static void (A\d+)_\w+\(void \*\*state\)", "\n".join(sources), re.M)
    return [f"{r}: {names.count(r)} tests of {n}" for r, n in REPORTS.items() if names.count(r) < n]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def main():
    page = listed(read(os.path.join(top, "docs/operators.md")))
    report(list(differing({"aten.a.b": "a reason"}, {"aten.c.d": 1})) ==
           ["aten.c.d is not in docs/operators.md", "aten.a.b is there, and docs/operators.md says not"],
           "planted: what the page lacks, and what it has too much, are named")
    found, cases = refused()
    report(cases > 19000, "the golden files were run", [f"{cases} cases"])
    report(not [*differing(page, found)], "the page is what the runner refuses", list(differing(page, found)))
    report(sum(found.values()) <= cases * 0.05, "at most 5 % are refused", [str(found)])
    report(tested(["static void A002_x(void **state)"])[0] == "A004: 0 tests of 1",
           "planted: a report without a test is named")
    sources = [read(p) for p in glob.glob(os.path.join(top, "tests/unit/op/*.c"))]
    report(not tested(sources), "each report of users has a test that names it", tested(sources))
    plan()


main()
