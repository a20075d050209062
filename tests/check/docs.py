"""Runs what README.md and docs/ tell a reader to type.

In a document, a fenced block is one of
    ```sh            commands: run by one shell a block, in order and in one folder a document
    ```output        what the block before must print: these lines in this order; `...` stands for any lines
    ```LANG FILE     a file that the reader writes: it is made in the folder
    ``` or others    only shown
The folder looks like the top of the source tree, with `build` beside it. `./bootstrap VERB` is not run again
here (it runs these tests): its verb must be one that `./bootstrap help` lists.
"""
import os
import re
import subprocess
import sys
import tempfile

top, build = os.environ["top_srcdir"], os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402

FENCE = re.compile(r"^```(\S*)[ ]?(\S*)\s*$")
END = "-- end of block, status"


def blocks(text):
    """(line number, language, file name, lines) of each fenced block."""
    found, inside = [], None
    for number, line in enumerate(text.split("\n"), 1):
        match = FENCE.match(line)
        if match and inside is None:
            inside = (number, match[1], match[2], [])
        elif line.rstrip() == "```":
            found.append(inside)
            inside = None
        elif inside:
            inside[3].append(line)
    if inside:
        found.append((inside[0], "unclosed", "", []))
    return found


def matches(want, got):
    """Whether the lines of want occur in got in this order, next to each other unless `...` stands between."""
    pattern = "".join(".*" if w.strip() == "..." else re.escape(w.rstrip()) + "\n" for w in want)
    return re.search(r"(?:^|\n)" + pattern, "".join(g.rstrip() + "\n" for g in got), re.S) is not None


def make_tree(folder):
    for name in os.listdir(top):
        if not name.startswith("build"):
            os.symlink(os.path.join(top, name), os.path.join(folder, name))
    os.symlink(build, os.path.join(folder, "build"))


def verbs():
    said = subprocess.run([os.path.join(top, "bootstrap"), "help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (\w[\w-]*)  ", said, re.M))


def bootstrap_fault(lines):
    """What is wrong with a block that calls ./bootstrap, or None; the block is then not run."""
    known = verbs()
    for line in lines:
        match = re.match(r"\./bootstrap (\S+)\s*(#.*)?$", line)
        if not match or match[1] not in known:
            return f"{line!r} is not `./bootstrap VERB` with a verb of its help ({', '.join(sorted(known))})"
    return None


def run(lines, folder):
    """Exit status and output lines of one block."""
    done = subprocess.run(["sh", "-eu", "-c", "\n".join(lines)], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout.split("\n")


def check_document(name, text):
    """[(name of the test, faults)] of one document."""
    found, output = [], []
    with tempfile.TemporaryDirectory() as folder:
        make_tree(folder)
        for number, language, file, lines in blocks(text):
            where, faults = f"{name}:{number}", []
            if language == "unclosed":
                faults = ["the block is never closed"]
            elif language == "sh" and any("./bootstrap" in line for line in lines):
                fault = bootstrap_fault(lines)
                faults = [fault] if fault else []
            elif language == "sh":
                status, output = run(lines, folder)
                faults = [f"exit status {status}"] + output[-12:] if status else []
            elif language == "output":
                faults = [] if matches(lines, output) else ["the block before printed:"] + output[:40]
            elif file:
                with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                    f.write("\n".join(lines) + "\n")
                continue
            else:
                continue
            found.append((f"{where} {language} {lines[0] if lines else ''}", faults))
    return found


PLANTED = [
    ("```sh\ntrue\n```\n", True), ("```sh\nfalse\n```\n", False), ("```sh\nfalse\ntrue\n```\n", False),
    ("```c a.c\nint x;\n```\n```sh\ngrep -q 'int x' a.c\n```\n", True),
    ("```sh\nprintf 'a\\nb\\nc\\n'\n```\n```output\na\n...\nc\n```\n", True),
    ("```sh\nprintf 'a\\nb\\n'\n```\n```output\nb\na\n```\n", False),
    ("```sh\n./bootstrap check\n```\n", True), ("```sh\n./bootstrap chekc\n```\n", False),
    ("```sh\ntrue\n", False), ("```\nfalse\n```\n", True), ("```sh\ntest -d build -a -f bootstrap\n```\n", True),
]


def main():
    wrong = [text for text, good in PLANTED if any(f for _, f in check_document("planted", text)) is good]
    report(not wrong, "planted: blocks that fail are found", wrong)
    documents = ["README.md"] + sorted("docs/" + n for n in os.listdir(os.path.join(top, "docs")) if n.endswith(".md"))
    for name in documents:
        with open(os.path.join(top, name), encoding="utf-8") as f:
            for test, faults in check_document(name, f.read()):
                report(not faults, test, faults)
    plan()


main()
