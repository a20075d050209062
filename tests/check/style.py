"""What the house asks of every file, as far as a machine can see it.

Files of at most 800 lines, lines of at most 120 columns without tabs or trailing blanks, functions of at most 60 lines,
an opening comment, no file named util, nothing unfinished, no library code that prints, exits or aborts on its own.
style.allow lists the exceptions, a reason each; an entry that excuses nothing is a failure too.
"""
import os
import re
import sys
import tempfile

top = os.environ["top_srcdir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402

FOLDERS = ("host", "sdk", "plugins", "tests", "docs", "conf", ".ci")
FILES = ("bootstrap", "configure.ac", "Makefile.am", "README.md")
C_LIKE = (".c", ".h", ".cc", ".cpp", ".hpp", ".cu")
TEXT = C_LIKE + (".def", ".md", ".sh", ".py", ".mk", ".am", ".ac", ".ini", ".in", ".allow")
GENERATED = ("conf/build-aux/", "conf/m4/lt", "conf/m4/libtool.m4", "docs/operators.md", "docs/features.md")
LIBRARY = ("host/", "sdk/base/", "sdk/loop/", "plugins/")
PROGRAMS = ("host/cli/",)
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK|for n" r"ow)\b")
CALLS = re.compile(r"(?<![\w.>])(?:(?:exit|_exit|abort|printf|puts|perror)\s*\(|fprintf\s*\(\s*std(?:out|err)\b)")
LONG_FILE, LONG_LINE, LONG_FUNCTION = 800, 120, 60


def bare(text):
    """C text with comments and literals blanked, line by line the same."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def functions(lines):
    """(name, first line, length) of each function, by the house's braces: { and } alone in the first column."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{") and start is None:
            start = number
        elif line.startswith("}") and start is not None:
            head = " ".join(lines[max(0, start - 4):start - 1])
            names = re.findall(r"(\w+)\s*\(", head.split("}")[-1].split(";")[-1])
            yield (names[0] if names else "?"), start - 1, number - start + 2
            start = None


def check(file, text):
    """Faults of one file: (rule, key for style.allow, what)."""
    lines = text.split("\n")
    if lines[-1] != "":
        yield "form", file, f"{file}: does not end with a line's end"
    if "\n\n\n" in text and file.endswith(C_LIKE):
        yield "form", file, f"{file}: two blank lines in a row"
    make = file.endswith((".mk", ".am")) or file == "Makefile.am"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield "form", file, f"{file}:{number}: trailing blanks"
        if "\t" in line and not make and not file.endswith(".ac"):
            yield "form", file, f"{file}:{number}: a tab"
        row = file.endswith(".def") or (file.endswith(".md") and line.startswith("|"))
        if len(line) > LONG_LINE and not row:  # a row of a table is not broken
            yield "form", file, f"{file}:{number}: {len(line)} columns, {LONG_LINE} at most"
        if UNFINISHED.search(line):
            yield "finished", file, f"{file}:{number}: reads as unfinished: {line.strip()[:60]}"
    if len(lines) - 1 > LONG_FILE:
        yield "size", file, f"{file}: {len(lines) - 1} lines, {LONG_FILE} at most"
    if re.search(r"(^|[/_])utils?[._]", file):
        yield "form", file, f"{file}: say what it knows, not util"
    if not file.endswith(C_LIKE):
        return
    if not text.startswith("/*"):
        yield "form", file, f"{file}: does not open with a comment that says what it does"
    code = bare(text).split("\n")
    for name, line, length in functions(code):
        if length > LONG_FUNCTION:
            yield "size", f"{file}:{name}", f"{file}:{line}: {name} has {length} lines, {LONG_FUNCTION} at most"
    if file.startswith(LIBRARY) and not file.startswith(PROGRAMS):
        for number, line in enumerate(code, 1):
            if CALLS.search(line):
                yield "quiet", file, f"{file}:{number}: library code speaks or ends by itself: {line.strip()[:60]}"


def sources(root):
    for folder in FOLDERS:
        for at, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                yield os.path.relpath(os.path.join(at, name), root)
    yield from FILES


def scan(root, allowed):
    """(rule, text) of all faults that are not allowed, and the entries that excused one."""
    found, used = [], set()
    for file in sources(root):
        full = os.path.join(root, file)
        if not (file.endswith(TEXT) or file in FILES) or file.startswith(GENERATED) or not os.path.isfile(full):
            continue
        with open(full, encoding="utf-8") as f:
            for rule, key, text in check(file, f.read()):
                (used.add(key) if key in allowed else found.append((rule, text)))
    return found, used


def allow_table():
    table = {}
    with open(os.path.join(top, "tests/check/style.allow"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                key, _, reason = line.strip().partition(" ")
                table[key] = reason.strip()
    return table


RULES = {
    "form": "files are laid out as the house asks", "size": "files and functions can be seen whole",
    "finished": "nothing reads as unfinished", "quiet": "the library neither speaks nor exits",
}
LONG = "\n".join(["int f(void)", "{"] + ["    f();"] * 60 + ["}", ""])
PLANTED = [
    ("size", "host/base/a.c", "/* a */\n" + LONG), ("size", "host/base/a.c", "/* a */\n" + "int x;\n" * 800),
    ("form", "host/base/a.c", "/* a */\nint x; \n"), ("form", "host/base/a.c", "/* a */\n\tint x;\n"),
    ("form", "host/base/a.c", "int x;\n"), ("form", "docs/a.md", "x" * 121 + "\n"),
    ("form", "host/base/str_util.c", "/* a */\n"), ("finished", "host/base/a.c", "/* TO" "DO: more */\n"),
    ("quiet", "host/base/a.c", "/* a */\nvoid f(void)\n{\n    abort();\n}\n"),
    ("quiet", "plugins/x/a.c", "/* a */\nvoid f(void)\n{\n    fprintf(stderr, \"x\");\n}\n"),
    ("", "host/cli/a.c", "/* a */\nvoid f(void)\n{\n    printf(\"x\");\n}\n"),
    ("", "host/base/a.c", "/* a */\nvoid f(void)\n{\n    g(\"call exit() yourself\"); /* not abort() */\n}\n"),
]


def planted(file, text):
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, os.path.dirname(file)))
        with open(os.path.join(root, file), "w", encoding="utf-8") as f:
            f.write(text)
        return {rule for rule, _ in scan(root, {})[0]}


def main():
    wrong = [f"{file} {text[:40]!r}: expected {rule or 'nothing'}, found {planted(file, text)}"
             for rule, file, text in PLANTED if planted(file, text) != ({rule} if rule else set())]
    report(not wrong, "planted faults of style are found", wrong)
    allowed = allow_table()
    found, used = scan(top, allowed)
    for rule, name in RULES.items():
        report(not [t for r, t in found if r == rule], name, [t for r, t in found if r == rule])
    report(all(allowed.values()), "each exception has its reason", [k for k, v in allowed.items() if not v])
    report(used == set(allowed), "each exception excuses something", sorted(set(allowed) - used))
    plan()


main()
