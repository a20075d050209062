"""What the built libraries export: libbackplane bp_* only, and all that the public headers declare; a plugin its entry
points only. A private symbol that leaks becomes somebody's interface; a declared one that is missing breaks their link.
"""
import os
import re
import subprocess
import sys

top, build = os.environ["top_srcdir"], os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402

ENTRY = {"compile", "init", "backend_info"}
# Sanitized objects register themselves with the runtime by symbols of these names.
INSTRUMENTS = ("__asan_", "__odr_asan", "__tsan_", "__ubsan_")


def exported(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    names = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}
    return {n for n in names if not n.startswith(INSTRUMENTS)}


def declared():
    """Names of the functions that backplane.h marks as exported."""
    done = subprocess.run(["gcc", "-E", "-P", f"-I{top}/sdk/include", f"-I{build}/sdk/include", "-x", "c", "-"],
                          input="#include <backplane/backplane.h>\n", capture_output=True, text=True, check=True)
    marked = re.findall(r'visibility\s*\(\s*"default"\s*\)\s*\)\s*\)([^;{]*)[;{]', done.stdout)
    return {m for text in marked for m in re.findall(r"\b(bp_\w+)\s*\(", text)[:1]}


def main():
    library = os.path.join(build, ".libs", "libbackplane.so")
    names = exported(library)
    report(names and all(n.startswith("bp_") for n in names), "libbackplane exports bp_ only",
           sorted(n for n in names if not n.startswith("bp_")))
    want = declared()
    report(len(want) > 50 and want <= names, "libbackplane defines all that backplane.h declares", sorted(want - names))
    for name in sorted(os.listdir(os.path.join(build, ".libs"))):
        if name.endswith(".so") and not name.startswith("lib"):
            own = exported(os.path.join(build, ".libs", name))
            report("compile" in own and own <= ENTRY, f"{name} exports its entry points only", sorted(own - ENTRY))
    plan()


main()
