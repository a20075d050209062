"""Writes docs/features.md from features.def and from results of tests/driver, or checks that it is what it should be.

usage: features.py write|check TOP_SRCDIR RESULT.trs...
A feature counts when a test function named after its id (F012_...) passed and none so named failed. check prints TAP:
each row of the word `host` is shown, and the committed page is the one that these results give.
"""
import os
import re
import sys

FIRST = "host"  # rows of this word must be shown
HEAD = """# Features

A row a capability. It is shown by the test functions that bear its id; this page is written from those that passed
(`make features`), so what has no test here is not there yet. The last column names the stage that brings it.
"""


def rows(path):
    """features.def as [(id, words, text)], a title as (None, None, title)."""
    found = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            title = re.fullmatch(r"== (.+)", line)
            row = re.fullmatch(r"(F\d{3}) ([^:]+): (.+)", line)
            if title:
                found.append((None, None, title[1]))
            elif row:
                found.append((row[1], row[2], row[3]))
            elif line and not line.startswith("#"):
                sys.exit(f"{path}:{number}: neither a row nor a title: {line}")
    return found


def results(paths):
    """{id: (passed functions, failed functions)}"""
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line in f:
                match = re.match(r":test-result: (\w+) ((F\d{3})_\w+)", line)
                if match:
                    passed, failed = found.setdefault(match[3], (set(), set()))
                    (passed if match[1] == "PASS" else failed).add(match[2])
    return found


def shown(got, key):
    passed, failed = got.get(key, ((), ()))
    return sorted(passed) if not failed else []


def page(table, got):
    text, shown_count = [HEAD], 0
    for key, words, what in table:
        if key is None:
            text += ["", f"## {what}", "", "| id | feature | test | stage |", "|---|---|---|---|"]
            continue
        tests = shown(got, key)
        shown_count += bool(tests)
        names = ", ".join(f"`{t}`" for t in tests)
        text.append(f"| {key} | {what.replace('|', chr(92) + '|')} | {names} | {words} |")
    text += ["", f"{shown_count} of {sum(1 for k, _, _ in table if k)} are shown."]
    return "\n".join(text).replace("\n\n\n", "\n\n") + "\n"


def check(table, got, want, path):
    count = 0

    def report(ok, name, why=""):
        nonlocal count
        count += 1
        print(f"{'ok' if ok else 'not ok'} {count} - {name}" + ("" if ok else f"\n# {why}"))

    for key, words, what in table:
        if key and FIRST in re.findall(r"\w+", words):
            failed = sorted(got.get(key, ((), ()))[1])
            why = "failed: " + " ".join(failed) if failed else "no test"
            report(shown(got, key), f"{key} is shown", f"{what}: {why}")
    unknown = sorted(set(got) - {k for k, _, _ in table})
    report(not unknown, "each id of a test is a row", " ".join(unknown))
    have = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
    report(have == want, "docs/features.md is what the results say", "it is stale: run make features and commit it")
    print(f"1..{count}")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    table, got = rows(os.path.join(sys.argv[2], "tests/features.def")), results(sys.argv[3:])
    path = os.path.join(sys.argv[2], "docs/features.md")
    want = page(table, got)
    if sys.argv[1] == "check":
        check(table, got, want, path)
    else:
        with open(path, "w", encoding="utf-8") as f:
            f.write(want)


main()
