"""The interface against its baseline, and the files of the first day.

libabigail's view of libbackplane (its functions and what they lead to) and of the vendor's surface (surface.c) is kept
in baseline/; what it reports beyond allowed.ini is a break. Planted breaks show that the check sees them. Run with
"write" it makes the baseline anew: for additions alone, and when an API is closed.
"""
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

top, build = os.environ["top_srcdir"], os.environ["top_builddir"]
sys.path.insert(0, os.path.join(top, "tests", "lib"))
from tap import plan, report, skip  # noqa: E402

HERE = os.path.join(top, "tests", "abi")
BASELINE = os.path.join(HERE, "baseline")
FIRST = os.path.join(HERE, "v1")
HEADERS = [os.path.join(top, "sdk/include"), os.path.join(build, "sdk/include")]
LIBRARY = os.path.join(build, ".libs", "libbackplane.so")
COMPILER = os.environ.get("CC", "gcc").split()
# Structs whose size crosses the boundary with them: the other side reads no further.
GROWING = re.compile(r"bp_(host|backend_info|backend_wants|symbol|view|compile_options|callable_stats|nn_\w+_options)")
# abidiff's exit status: 1 and 2 are failures of its own, 4 a change, 8 an incompatible one.
OWN_ERRORS = 3


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def compile_surface(headers, out):
    done = run([*COMPILER, "-std=c11", "-g", "-O0", "-fPIC", "-shared", "-fvisibility=hidden",
                *[f"-I{h}" for h in headers], os.path.join(HERE, "surface.c"), "-o", out])
    return done.stderr.splitlines() if done.returncode else None


def dump(library, out):
    done = run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed",
                "--headers-dir", HEADERS[0], "--headers-dir", HEADERS[1], "--drop-private-types",
                "--out-file", out, library])
    return done.stderr.splitlines()[:10] if done.returncode else None


def breaks(text):
    """Lines of a report that are no growth of a struct that may grow. What fills padding is no growth: an older side's
    size covers it."""
    bad, old_size = [], None
    for line in filter(None, text.splitlines()):
        head = re.match(r"'struct (\w+)(?: at .*)?' changed:$", line)
        size = re.match(r"  type size changed from (\d+) to \d+ \(in bits\)$", line)
        member = re.match(r"    '.*', at offset (\d+) \(in bits\)", line)
        if re.search(r"changes? summary|^(Leaf|Removed|Changed).* summary", line):
            continue
        if head and GROWING.fullmatch(head[1]):
            old_size = float("inf")
        elif old_size is None or not line.startswith(" "):
            old_size = None
            bad.append(line)
        elif size:
            old_size = int(size[1])
        elif not (member and int(member[1]) >= old_size) and not re.match(r"  \d+ data member insertions?:$", line):
            bad.append(line)
    return bad


def compare(old, new):
    """(clean, lines)."""
    done = run(["abidiff", "--leaf-changes-only", "--no-added-syms", old, new])
    bad = breaks(done.stdout)
    lines = [f"abidiff: exit status {done.returncode}", *bad, "of", *(done.stdout + done.stderr).splitlines()]
    return not bad and not done.returncode & OWN_ERRORS, lines


def unpacked(name, folder):
    with lzma.open(os.path.join(BASELINE, name + ".abi.xz")) as f:
        path = os.path.join(folder, name + ".abi")
        with open(path, "wb") as to:
            shutil.copyfileobj(f, to)
    return path


def pack(path, name):
    os.makedirs(BASELINE, exist_ok=True)
    with open(path, "rb") as f, lzma.open(os.path.join(BASELINE, name + ".abi.xz"), "wb", preset=9) as to:
        shutil.copyfileobj(f, to)


def current(name, folder):
    """The dump of this tree; fails the run when there is none."""
    library = LIBRARY
    if name == "plugin":
        library = os.path.join(folder, "surface.so")
        said = compile_surface(HEADERS, library)
        if said:
            sys.exit("\n".join(said))
    out = os.path.join(folder, f"{name}-now.abi")
    said = dump(library, out)
    if said:
        sys.exit("\n".join(said))
    return out


# -- planted breaks ---------------------------------------------------------------------------------------------------

PLANTS = [  # (what, header, from, to, whether it is a break)
    ("a row of the host's table is taken out", "host_api.def",
     r"BP_API_ROW\(1, uint64_t, gm_code_id,[^\n]*\n", "", True),
    ("two rows change places", "host_api.def",
     r"(BP_API_VOID\(1, gm_unref[^\n]*\n)(BP_API_ROW[^\n]*\n)", r"\2\1", True),
    ("a service takes another type", "host_api.def",
     r"\(bp_run \*r, uint32_t i, bp_view \*out\)", "(bp_run *r, uint64_t i, bp_view *out)", True),
    ("a field of bp_view moves", "types.h", r"uint32_t rank, flags;", "uint32_t flags, rank;", True),
    ("bp_dim grows", "types.h", r"uint32_t sym, zero; \} bp_dim;", "uint32_t sym, zero; int64_t more; } bp_dim;", True),
    ("backend_info loses a field", "plugin.h",
     r"const char \*version, \*build_id, \*vendor;", "const char *version, *build_id;", True),
    ("backend_info grows at its end", "plugin.h",
     r"(bp_compile_fn compile_backward, compile_inference;)", r"\1 const char *licence;", False),
    ("the host's table grows at its end", "host_api.def",
     r"\Z", "BP_API_VOID(1, added_last, (const bp_host *host), (host), &host)\n", False),
    ("options of bp_compile fill their padding", "backplane.h",
     r"(int32_t disable;[^\n]*\n)", r"\1    int32_t more;\n", True),
    ("options of bp_compile grow at their end", "backplane.h",
     r"(int32_t disable;[^\n]*\n)", r"\1    void *more;\n", False),
]


def planted_headers(folder, header, pattern, text):
    own = os.path.join(folder, "include", "backplane")
    os.makedirs(own)
    for headers in HEADERS:
        for name in os.listdir(os.path.join(headers, "backplane")):
            if name.endswith((".h", ".def")):
                shutil.copy(os.path.join(headers, "backplane", name), own)
    path = os.path.join(own, header)
    with open(path, encoding="utf-8") as f:
        before = f.read()
    after = re.sub(pattern, text, before, count=1)
    os.chmod(path, 0o644)
    with open(path, "w", encoding="utf-8") as f:
        f.write(after)
    return os.path.dirname(own) if after != before else None


def plant(what, header, pattern, text, is_break):
    with tempfile.TemporaryDirectory() as folder:
        headers = planted_headers(folder, header, pattern, text)
        sound, bad = os.path.join(folder, "sound.so"), os.path.join(folder, "planted.so")
        said = ["its place is not found"] if not headers else \
            compile_surface(HEADERS, sound) or compile_surface([headers], bad)
        clean, lines = compare(sound, bad) if not said else (is_break, said)
        report(not said and clean != is_break, f"planted: {what} is {'a break' if is_break else 'allowed'}", lines[:30])


def plant_in_library(base, folder):
    """A function that is gone, and one that takes another type, in the dump of the library."""
    with open(base, encoding="utf-8") as f:
        text = f.read()
    gone = re.sub(r"<elf-symbol name='bp_call1'[^\n]*\n", "", text)
    for what, after in ("a function that is gone", gone), \
                       ("another symbol version", text.replace("libbackplane.so.0", "libbackplane.so.1")):
        path = os.path.join(folder, "planted.abi")
        with open(path, "w", encoding="utf-8") as f:
            f.write(after)
        clean, lines = compare(base, path)
        report(after != text and not clean, f"planted: {what} is a break", lines[:10])


# -- layouts ----------------------------------------------------------------------------------------------------------


def layouts():
    """The table of sizes and offsets, as each compiler has it in each language; and one that is wrong."""
    table = os.path.join(top, "host/base/layout.c")
    with open(table, encoding="utf-8") as f:
        wrong = f.read().replace("AT(bp_view, rank, 16)", "AT(bp_view, rank, 20)")
    for compiler, language, standard in (("gcc", "c", "c11"), ("g++", "c++", "c++17"), ("clang", "c", "c11"),
                                         ("clang++", "c++", "c++17")):
        name = f"layouts as {compiler} -std={standard} has them"
        if not shutil.which(compiler):
            skip(name, f"{compiler} is not installed")
            continue
        command = [compiler, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                   *[f"-I{h}" for h in HEADERS], "-x", language]
        done, planted = run([*command, table]), run([*command, "-"], input=wrong)
        report(done.returncode == 0 and planted.returncode != 0 and "rank moved" in planted.stderr, name,
               done.stderr.splitlines()[:10])


# -- the files of the first day ---------------------------------------------------------------------------------------


def kept_files():
    with open(os.path.join(FIRST, "SHA256SUMS"), encoding="utf-8") as f:
        rows = [line.split() for line in f]
    wrong = []
    for digest, name in rows:
        with open(os.path.join(FIRST, name), "rb") as f:
            if hashlib.sha256(f.read()).hexdigest() != digest:
                wrong.append(name)
    report(len(rows) == 2 and not wrong, "the files of the first day are what they were", wrong)
    with open(os.path.join(FIRST, "golden_plugin.c"), encoding="utf-8") as f:
        source = f.read()
    with open(os.path.join(top, "sdk/include/backplane/host_api.def"), encoding="utf-8") as f:
        names = re.findall(r"^BP_API_(?:ROW\(1, [^,]+, |VOID\(1, )(\w+)", f.read(), flags=re.M)
    first = names[:43]
    unused = [n for n in first if f"bp_{n.replace('log_text', 'log_message').removesuffix('_text')}(" not in source]
    report(len(first) == 43 and first[-1] == "once" and not unused,
           "the plugin uses every row of the first day", unused)


def run_program(backend):
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(os.path.join(FIRST, "golden_app"), folder)
        os.chmod(path, 0o755)
        where = {**os.environ, "LD_LIBRARY_PATH": os.path.join(build, ".libs"),
                 "BACKPLANE_SYSCONFDIR": os.path.join(build, "conf/uninstalled")}
        return run([path, backend], env=where)


def kept_program():
    with open(os.path.join(FIRST, "golden_app.txt"), encoding="utf-8") as f:
        want = f.read()
    for backend in ("eager", "eager_debug"):
        done = run_program(backend)
        report(done.returncode == 0 and done.stdout == want, f"the program of the first day runs on {backend}",
               [f"exit status {done.returncode}", *done.stdout.splitlines(), *done.stderr.splitlines()])


# -- all --------------------------------------------------------------------------------------------------------------


def check_baseline():
    with tempfile.TemporaryDirectory() as folder:
        for name in "libbackplane", "plugin":
            if name == "libbackplane" and "debug_info" not in run(["readelf", "-S", "-W", LIBRARY]).stdout:
                skip("libbackplane against its baseline", "it is built without -g")
                continue
            old = unpacked(name, folder)
            clean, lines = compare(old, current(name, folder))
            report(clean, f"{name} is what its users were compiled against, or more", lines[:60])
        plant_in_library(unpacked("libbackplane", folder), folder)
    for row in PLANTS:
        plant(*row)


def write():
    with tempfile.TemporaryDirectory() as folder:
        for name in "libbackplane", "plugin":
            pack(current(name, folder), name)


def main():
    if sys.argv[1:] == ["write"]:
        write()
        return
    layouts()
    kept_files()
    if os.uname().machine == "x86_64":
        kept_program()
    else:
        skip("the program of the first day", "it is compiled for x86-64")
    if not shutil.which("abidiff"):
        skip("the interface against its baseline", "libabigail is not installed (./bootstrap tools)")
    else:
        check_baseline()
    plan()


main()
