"""Instructions by function, counted by callgrind: they do not move with the machine's load, so a test can hold a limit.

A profile covers what runs inside bench_measured of a bench program. Inclusive figures count what a function calls."""
import collections
import os
import re
import shutil
import subprocess
import tempfile

SUBJECT = "bench_measured"


def valgrind():
    """The path of valgrind, or None."""
    return shutil.which("valgrind")


class Profile:
    """own[f]: instructions of f itself; calls[(f, g)], inclusive[(f, g)]: how often f called g, and what that took."""

    def __init__(self, text):
        self.own, self.calls, self.inclusive = (collections.Counter() for _ in range(3))
        function, callee = None, None
        for line in text.split("\n"):
            if line.startswith("fn="):
                function = name_of(line[3:])
            elif line.startswith("cfn="):
                callee = name_of(line[4:])
            elif line.startswith("calls="):
                self.calls[function, callee] += int(line[6:].split()[0])
            elif re.match(r"[\d+*-]", line):
                cost = int(line.split()[1])
                if callee:
                    self.inclusive[function, callee] += cost
                    callee = None
                else:
                    self.own[function] += cost

    def of(self, name):
        """All that calls of a function took, but for those from itself."""
        return sum(cost for (caller, callee), cost in self.inclusive.items() if callee == name != caller)

    def functions(self):
        """Names of all that ran."""
        return {f for f, cost in self.own.items() if cost}


def name_of(text):
    """A function's name without the version of its symbol, and without the marks of a part of it."""
    return re.sub(r"(@.*|'\d+|\.(part|isra|constprop|cold)\.?\d*)+$", "", text)


def run(command):
    """The profile of a program; its failure is an exception with what it said."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        done = subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=" + SUBJECT, "--compress-strings=no",
                               "--compress-pos=no", "--callgrind-out-file=" + out] + command,
                              env={k: v for k, v in os.environ.items() if k != "MALLOC_PERTURB_"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode or not os.path.exists(out):
            raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        with open(out, encoding="utf-8", errors="replace") as f:
            return Profile(f.read())
