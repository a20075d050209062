"""Who includes whom: dependence between rooms runs one way.

A file of the host includes its own room and rooms to its left (ROOMS); store stands over base alone; nn and import do
not see each other. Plugins see sdk/include, sdk/base and sdk/loop; sdk/base sees itself. Paths are written from the top
of the tree, so that what a file depends on can be read off its first lines. The rules are tried on planted faults
first: a rule that cannot fail proves nothing.
"""
import os
import re
import sys
import tempfile

top = os.environ.get("top_srcdir") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report  # noqa: E402

ROOMS = ["base", "sym", "tensor", "op", "graph", "pass", "grad", "guard", "capture", "cache", "backend", "compile",
         "nn", "import", "tools", "cli"]
STRANGERS = {("nn", "import"), ("import", "nn")}
# The rooms that expand a column of ops.def: schema, shape and kernel; decomposition; derivative.
COLUMN_ROOMS = {"op", "pass", "grad"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
SOURCES = (".c", ".h", ".def", ".cc", ".cpp", ".hpp", ".cu")


def room_of(path):
    """host/ROOM/..., sdk/PART/..., plugins/NAME/... -> (top folder, room)."""
    part = path.split("/")
    return part[0], part[1] if len(part) > 2 else ""


def host_may(room, path):
    folder, other = room_of(path)
    if folder == "sdk":
        return other in ("base", "include") or (room, other) == ("cli", "examples")
    if folder != "host":
        return False
    if room == "store" or other == "store":
        return other in ("base", room) or (other == "store" and room != "base")
    if other not in ROOMS or (room, other) in STRANGERS:
        return False
    return ROOMS.index(other) <= ROOMS.index(room)


def why_not(file, quote, path):
    """None where file may include path, else the rule that it breaks."""
    folder, room = room_of(file)
    if quote == "<":
        if not path.startswith("backplane/"):
            return None
        if file.startswith("sdk/base/"):
            return "sdk/base knows neither host nor plugin"
        if file.startswith(("plugins/", "sdk/loop/")) and path == "backplane/backplane.h":
            return "a plugin sees plugin.h, not the user's header"
        if file.endswith(("backplane/types.h", "backplane/plugin.h")) and path in ("backplane/backplane.h",
                                                                                   "backplane/aten.h"):
            return "the vendor's headers stand without the user's"
        return None
    if path == "config.h":
        return None if folder in ("host", "plugins") else "config.h is the host's and the plugins'"
    if path.split("/")[0] not in ("host", "sdk", "plugins", "tests"):
        return "write the path from the top of the tree"
    if file.startswith("sdk/include/"):
        return "public headers include public headers, in angle brackets"
    if file.startswith("sdk/base/"):
        return None if path.startswith("sdk/base/") else "sdk/base knows neither host nor plugin"
    if file.startswith("sdk/examples/"):
        return None if path.startswith("sdk/examples/") else "an example is written as a user would"
    if folder == "sdk":
        own = path.startswith((f"sdk/{room}/", "sdk/base/"))
        return None if own else f"sdk/{room} includes itself and sdk/base"
    if folder == "plugins":
        own = path.startswith((f"plugins/{room}/", "sdk/base/", "sdk/loop/"))
        return None if own else "plugins include sdk/include, sdk/base and sdk/loop"
    if not host_may(room, path):
        return f"{room} includes its own room and rooms to its left"
    if path == "host/op/ops.def" and room not in COLUMN_ROOMS:
        return "a column of ops.def is expanded in op, pass or grad, which own one"
    return None


def scan(root):
    """All includes under root that break a rule, as (folder/room, text)."""
    found, seen = [], set()
    for base in ("host", "sdk", "plugins"):
        for folder, _, names in sorted(os.walk(os.path.join(root, base))):
            for name in sorted(names):
                if not name.endswith(SOURCES):
                    continue
                full = os.path.join(folder, name)
                file = os.path.relpath(full, root)
                seen.add("/".join(room_of(file)))
                for number, line in enumerate(open(full, encoding="utf-8"), 1):
                    match = INCLUDE.match(line)
                    why = match and why_not(file, *match.groups())
                    if why:
                        found.append(("/".join(room_of(file)), f"{file}:{number}: includes {match[2]}: {why}"))
    return found, sorted(seen)


PLANTED = [
    ("host/tensor/a.c", '"host/op/op.h"', True), ("host/op/a.c", '"host/tensor/tensor.h"', False),
    ("host/base/a.c", '"host/sym/dim.h"', True), ("host/store/a.c", '"host/tensor/tensor.h"', True),
    ("host/store/a.c", '"host/base/diag.h"', False), ("host/cache/a.c", '"host/store/store.h"', False),
    ("host/nn/a.c", '"host/import/npy.h"', True), ("host/tools/a.c", '"host/import/npy.h"', False),
    ("host/cli/a.c", '"plugins/eager/eager.h"', True), ("host/cli/a.c", '"sdk/examples/examples.h"', False),
    ("host/tools/a.c", '"sdk/examples/examples.h"', True), ("host/op/a.c", '"op.h"', True),
    ("host/guard/a.c", '"host/op/ops.def"', True), ("host/pass/a.c", '"host/op/ops.def"', False),
    ("plugins/debug/a.c", '"host/base/diag.h"', True), ("plugins/debug/a.c", "<backplane/plugin.h>", False),
    ("plugins/debug/a.c", "<backplane/backplane.h>", True), ("plugins/onednn/a.c", '"plugins/onednn/t.h"', False),
    ("plugins/onednn/a.c", '"plugins/debug/t.h"', True), ("sdk/base/a.c", '"host/base/diag.h"', True),
    ("sdk/base/a.c", "<backplane/plugin.h>", True), ("sdk/base/a.c", '"sdk/base/vec.h"', False),
    ("sdk/examples/a.c", '"host/base/diag.h"', True), ("sdk/examples/a.c", "<backplane/backplane.h>", False),
    ("sdk/include/backplane/a.h", '"sdk/base/vec.h"', True),
    ("sdk/include/backplane/plugin.h", "<backplane/aten.h>", True),
]


def plant(file, include):
    """Whether a tree with this one include is found faulty."""
    with tempfile.TemporaryDirectory() as root:
        full = os.path.join(root, file)
        os.makedirs(os.path.dirname(full))
        with open(full, "w", encoding="utf-8") as f:
            f.write(f"/* planted */\n#include <stdio.h>\n#  include {include}\n")
        return bool(scan(root)[0])


def main():
    for file, include, faulty in PLANTED:
        verdict = "is refused" if faulty else "is allowed"
        report(plant(file, include) == faulty, f"planted: {include} in {file} {verdict}")
    found, seen = scan(top)
    for room in seen:
        lines = [text for where, text in found if where == room]
        report(not lines, f"includes of {room} run one way", lines)
    plan()


main()
