"""Each rule of captured calls (tests/rules.def) is shown by a test function that bears its number: c3_2_..., c7_...

A function counts when a CMocka program of `make check` lists it among its tests. With the word `table` as argument it
prints which functions show which rule.
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


def rules(text):
    """[(number, what it says)]; a line that is no rule is an error."""
    found = [re.fullmatch(r"(C\d(?:\.\d)?) (\S.*)", line) for line in text.splitlines()]
    if None in found: sys.exit(f"tests/rules.def:{found.index(None) + 1}: a line is `C1.1 what the rule says`")
    return [m.groups() for m in found]


def tests_in(text):
    """Names of test functions that a program defines and lists."""
    defined = set(re.findall(r"^static void (c\d\w+)\(void \*\*\w+\)$", text, re.M))
    defined |= set(re.findall(r"^[A-Z]+\((c\d\w+),", text, re.M))
    listed = set(re.findall(r"^ +(?:T|cmocka_unit_test\w*)\((c\d\w+)", text, re.M))
    return defined & listed


def shown(number, tests):
    start = number.lower().replace(".", "_") + "_"
    return sorted(t for t in tests if t.startswith(start))


def programs():
    """Sources of the programs that `make check` runs."""
    mk = "".join(read(p) for p in glob.glob(os.path.join(top, "tests", "**", "local.mk"), recursive=True))
    return [p for p in sorted(glob.glob(os.path.join(top, "tests", "**", "test_*.c"), recursive=True))
            if re.search(r"%D%\S*/" + os.path.basename(p)[:-2] + r"\b", mk)]


def planted():
    """The check sees what it is for."""
    text = ("static void c1_1_one(void **state)\n{\n}\nstatic void c1_2_unlisted(void **state)\n{\n}\n"
            "        T(c1_1_one),\n        T(c1_3_undefined),\n")
    tests = tests_in(text)
    report(tests == {"c1_1_one"}, "a function counts that is defined and listed", [str(tests)])
    report(not shown("C1.2", tests) and not shown("C1", {"c10_1_x"}), "a rule without a function is missed")


def main():
    tests = {t for p in programs() for t in tests_in(read(p))}
    listed = rules(read(os.path.join(top, "tests", "rules.def")))
    if sys.argv[1:] == ["table"]:
        for number, says in listed: print(f"{number} {says}\n    " + "\n    ".join(shown(number, tests)))
        return
    planted()
    for number, says in listed:
        report(bool(shown(number, tests)), f"{number}: {says}", ["no test function that is run bears this number"])
    known = {number for number, _ in listed}
    contract = {t for t in tests if re.match(r"c1[147]_", t)}  # rows of tests/rows.def, and the edge cases beside them
    strange = sorted(t for t in tests - contract if not any(t in shown(number, tests) for number in known))
    report(not strange, "each test that bears a number bears a rule's", strange)
    plan()


main()
