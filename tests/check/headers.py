"""Public headers as a stranger compiles them, under -Werror: each alone, every pair in both orders, and in use.

types.h and plugin.h are the vendor's: C99 to C23 and C++. The others are the user's: C11 and later, and C++17. A header
that needs another one first, or that clashes with it, fails here and not at a vendor's.
"""
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

top = os.environ["top_srcdir"]
build = os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report, skip  # noqa: E402

FOLDERS = [os.path.join(top, "sdk/include/backplane"), os.path.join(build, "sdk/include/backplane")]
VENDOR = ("types.h", "plugin.h")
CXX_ONLY = (".hpp",)
COMPILERS = [("gcc", "g++"), ("clang", "clang++")]
VENDOR_STANDARDS = ["c99", "c11", "c17", "c2x", "c++11", "c++17", "c++20"]
USER_STANDARDS = ["c11", "c17", "c2x", "c++17", "c++20"]
# Pairs of the user's headers, which are long, are tried in these; a clash of names does not depend on the standard.
PAIR_STANDARDS = ["c11", "c++17"]
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def headers():
    names = {n for folder in FOLDERS if os.path.isdir(folder) for n in os.listdir(folder)}
    return sorted(n for n in names if n.endswith((".h", ".hpp")))


def standards_of(names):
    if all(n in VENDOR for n in names):
        return VENDOR_STANDARDS
    candidates = PAIR_STANDARDS if len(names) > 1 else USER_STANDARDS
    return [s for s in candidates if "++" in s or not any(n.endswith(CXX_ONLY) for n in names)]


def compile_text(text, standard, compiler, folder=None):
    """None, or what the compiler said."""
    cxx = "++" in standard
    includes = [f"-I{os.path.dirname(f)}" for f in ([folder] if folder else FOLDERS)]
    command = [compiler[cxx], f"-std={standard}", *WARN, *includes, "-x", "c++" if cxx else "c", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.splitlines()[:12] or ["no output"]


def uses(standard):
    """Programs of tests/vendor that this standard must take: macros are only tried by use."""
    names = ["hello_cxx.cc"] if "++" in standard else ["hello.c", "composer.c"]
    if standard in USER_STANDARDS:
        names += ["user_cxx.cc"] if "++" in standard else ["user.c"]
    return names


def use(name, standard, compiler):
    with open(os.path.join(top, "tests/vendor", name), encoding="utf-8") as f:
        said = compile_text(f.read(), standard, compiler)
    return [f"{name}:"] + said if said else []


def job(names, standard, compiler):
    text = "".join(f"#include <backplane/{n}>\n" for n in names)
    if len(names) == 1:
        text += text  # twice: it guards itself
    said = compile_text(text + "int main(void) { return 0; }\n", standard, compiler)
    return [f"{' + '.join(names)}:"] + said if said else []


def self_test():
    """A header that leans on another one, and one that is not C99, are found."""
    with tempfile.TemporaryDirectory() as folder:
        own = os.path.join(folder, "backplane")
        os.mkdir(own)
        planted = {"leans.h": "static inline size_t leans(void) { return 0; }\n",
                   "modern.h": "_Static_assert(1, \"C11\");\n"}
        for name, text in planted.items():
            with open(os.path.join(own, name), "w", encoding="utf-8") as f:
                f.write(text)
            user = f"#include <backplane/{name}>\nint main(void) {{ return 0; }}\n"
            said = compile_text(user, "c99", COMPILERS[0], own)
            report(said is not None, f"planted: {name} is refused")


def main():
    self_test()
    names = headers()
    report(set(VENDOR) <= set(names) and "backplane.h" in names, "the public headers are where they belong", names)
    sets = [(n,) for n in names] + list(itertools.permutations(names, 2))
    pool = ThreadPoolExecutor(os.cpu_count())
    for compiler in COMPILERS:
        for standard in sorted(set(VENDOR_STANDARDS + USER_STANDARDS), key=lambda s: ("++" in s, s)):
            name = f"public headers, {compiler[0]} -std={standard}"
            if not shutil.which(compiler["++" in standard]):
                skip(name, f"{compiler[0]} is not installed")
                continue
            jobs = [pool.submit(job, s, standard, compiler) for s in sets if standard in standards_of(s)]
            jobs += [pool.submit(use, n, standard, compiler) for n in uses(standard)]
            report(bool(jobs) and not any(j.result() for j in jobs), name, [t for j in jobs for t in j.result()][:40])
    plan()


main()
