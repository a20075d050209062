"""train_digits: its losses are PyTorch's, and the model that it trains is right on digits that it has not seen."""
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["top_srcdir"]) / "tests/lib"))
from tap import plan, report  # noqa: E402

DIGITS = Path(os.environ["top_srcdir"]) / "tests/models/digits"
TRAIN = Path(os.environ["top_builddir"]) / "sdk/examples/train_digits"
CURVE, SINGLE, RELATIVE, RIGHT, HELD_OUT = 200, 50, 1e-4, 0.97, 360


def read_doubles(path):
    """The elements of a float64 .npy file of version 1."""
    data = path.read_bytes()
    (header,) = struct.unpack_from("<H", data, 8)
    assert b"'<f8'" in data[10:10 + header], f"{path} is no float64 file"
    return [x for (x,) in struct.iter_unpack("<d", data[10 + header:])]


def run(*arguments):
    done = subprocess.run([TRAIN, *map(str, arguments), DIGITS], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def worst_difference(ours, theirs):
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))


def compare_curve(backend, kind, flags, theirs):
    """The first losses from PyTorch's weights; theirs: PyTorch's."""
    out = Path(os.environ["TMPDIR"]) / "losses.npy"
    status, _, err = run("--backend", backend, "--steps", len(theirs), "--start", DIGITS / "start.safetensors",
                         "--losses", out, *flags)
    worst = worst_difference(read_doubles(out), theirs) if status == 0 else float("inf")
    report(worst <= RELATIVE, f"{backend}: the losses of {len(theirs)} steps in {kind} are PyTorch's",
           [f"largest relative difference {worst}", *err.splitlines()])
    print(f"# largest relative difference {worst:.1e}")


def main():
    curves = read_doubles(DIGITS / "losses.npy")
    for backend in ("eager", "onednn-cpu", "fallback"):
        compare_curve(backend, "float64", ["--double"], curves[:CURVE])
        compare_curve(backend, "float32", [], curves[CURVE:CURVE + SINGLE])
        status, said, err = run("--backend", backend)
        right = re.search(r"(\d+) of (\d+) held-out digits right", said)
        share = int(right[1]) / int(right[2]) if right else 0
        report(status == 0 and bool(right) and int(right[2]) == HELD_OUT and share >= RIGHT,
               f"{backend} trains to {RIGHT:.0%} of held-out digits", (said + err).splitlines())
        print(f"# {said.strip()}")
    plan()


main()
